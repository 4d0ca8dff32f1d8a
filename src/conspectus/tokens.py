"""How many tokens a message takes: an estimate by script, or the caller's own counter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages

from conspectus.errors import PolicyError
from conspectus.messages import Entry, Source, read_messages

TokenCounter = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages: the form of LangChain's `token_counter`."""

PER_MESSAGE = 4
"""Tokens that a chat format spends on each message: role and delimiters."""

PER_CALL = 8
"""Tokens that it spends on each tool call: id, type, name and delimiters."""

PER_MEDIA = 1_100
"""Tokens counted for an image or a file: about what a high-resolution picture takes at OpenAI
(765 to 1,105) and less than the most that one takes at Anthropic (1,600)."""

_PIECES = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<digits>\d+)|(?P<space>\s+)|(?P<latin>[À-ɏ]+)"
    r"|(?P<han>[\u3400-\u9fff\uf900-\ufaff]+)|(?P<kana>[\u3040-\u30ff]+)"
    r"|(?P<hangul>[\uac00-\ud7af]+)|(?P<other>[^\x00-\x7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+)|(?P<mark>.)",
    re.DOTALL,
)


class TokenMeter:
    """Counts tokens of messages and of text.

    Args:
        counter: a LangChain `token_counter`: a callable that takes a list of messages and returns
            their tokens. Default: an estimate by script that needs no vocabulary.

    Raises:
        PolicyError: the counter is no callable, or returns something that is no count.

    Example:
        >>> TokenMeter().text("a short line of English")
        5
    """

    def __init__(self, counter: TokenCounter | None = None) -> None:
        if counter is not None and not callable(counter):
            raise PolicyError(
                f"token_counter must be a callable that takes a list of messages and returns their "
                f"tokens, not {counter!r}"
            )
        self._counter = counter
        self._empty: int | None = None

    def entry(self, entry: Entry) -> int:
        """Tokens of one message that has been read."""
        if self._counter is not None:
            return self._ask([entry.source])
        text = estimate(entry.text) + estimate(entry.name or "")
        calls = sum(PER_CALL + estimate(c.name) + estimate(c.args) for c in entry.calls)
        return PER_MESSAGE + text + calls + PER_MEDIA * entry.media

    def message(self, message: Source) -> int:
        """Tokens of one message."""
        if self._counter is not None:
            return self._ask([message])
        return self.entry(read_messages([message])[0])

    def messages(self, messages: Sequence[Source]) -> int:
        """Tokens of several messages, each counted alone."""
        return sum(self.message(message) for message in messages)

    def text(self, text: str) -> int:
        """Tokens of a text inside a message."""
        if self._counter is None:
            return estimate(text)
        if self._empty is None:
            self._empty = self._ask([HumanMessage("")])
        return max(0, self._ask([HumanMessage(text)]) - self._empty)

    def _ask(self, messages: Sequence[Source]) -> int:
        assert self._counter is not None
        plain = [m if isinstance(m, BaseMessage) else _as_langchain(m) for m in messages]
        count = self._counter(plain)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise PolicyError(
                f"token_counter must return a whole number of tokens, and returned {count!r}"
            )
        return count


def _as_langchain(message: Source) -> BaseMessage:
    """A dict as the LangChain message that a LangChain counter can count."""
    try:
        return convert_to_messages([dict(message)])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return HumanMessage(read_messages([message])[0].reading)


def estimate(text: str) -> int:
    """Tokens of a text, by the scripts in it, without a vocabulary.

    English words average 1.3 tokens and long ones more; Han, Kana and Hangul about one a character
    and less; other scripts about half a token a character. A later vocabulary-backed count can be
    plugged in as `counter`.
    """
    total = 0.0
    for match in _PIECES.finditer(text):
        kind, size = match.lastgroup, match.end() - match.start()
        if kind == "word":
            total += 1 if size <= 7 else 1 + (size - 7) / 5
        elif kind == "digits":
            total += (size + 2) // 3
        elif kind == "space":
            total += 0 if size == 1 and match.group() == " " else 0.5 + size / 40
        elif kind == "latin":
            total += 0.4 * size
        elif kind == "han":
            total += 0.85 * size
        elif kind == "kana":
            total += 0.7 * size
        elif kind == "hangul":
            total += 0.75 * size
        elif kind == "other":
            total += 0.55 * size
        else:
            total += 0.7
    return int(total + 0.999)
