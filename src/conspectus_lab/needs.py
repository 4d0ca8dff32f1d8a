"""Find identifiers that an agent writes again, although no message in view shows them.

An identifier is an exact string that an agent cannot guess. Six kinds are searched in order:
addresses, paths, names of errors, opaque ids, symbols, numbers; a later kind does not see the text
of an earlier one. The definitions are not those of the notes: a compactor must not judge itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from functools import lru_cache

from langchain_core.messages import AIMessage, BaseMessage

QUOTED_WORDS = 6
"""Consecutive words around an identifier that must be there for it to count as quoted."""

SHORTEST_IDENTIFIER = 4
"""Minimum characters of an identifier."""

_ENDINGS = "|".join(
    """c cfg cpp css csv diff go h html ini ipynb java jpeg jpg js json jsonl jsx lock log md mp4
    patch png po py pyi rs rst sh sql svg toml ts tsx txt xml yaml yml""".split()
)
_STEP = r"[\w@+-][\w.@+-]*"  # one step of a path
_PATTERNS = {
    "url": (r"https?://[^\s\"'<>)\]}\\`]+",),
    "path": (
        rf"(?<![\w/.@+-])(?:\.{{0,2}}/)?(?:{_STEP}/)+{_STEP}",
        rf"(?<![\w/.-])/{_STEP}(?:/{_STEP})*",
        rf"(?<![\w/.-])[\w-]+\.(?:{_ENDINGS})\b",
    ),
    "error": (r"\b[A-Z]\w*(?:Error|Exception|Warning)\b",),
    "opaque": (
        r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b",  # a hash or a part of one
        r"\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{5,12}\b",  # a booking code
        r"\b[a-z]+(?:_[a-z]+)*_\d{3,}\b",  # user_1234
        r"(?<![\w.+-])[\w.+-]++@[\w-]+\.\w+",  # a mail address
        r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b",  # a UUID
    ),
    "symbol": (
        r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b",  # a.dotted.name
        r"\b_*[a-z0-9]+(?:_[a-z0-9]+)+_*\b",  # snake_case
        r"\b__\w+__\b",
        r"\b[A-Z]+(?:_[A-Z0-9]+)+\b",  # A_CONSTANT
        r"\b(?:[A-Z][a-z0-9]+){2,}\b",  # ClassName
        r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b",  # camelCase
    ),
    "number": (
        r"(?<![\w.])\d{4}-\d{2}-\d{2}(?![\w])",  # a date
        r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?![\w])",  # a version or a price
        r"(?<![\w.-])\d{4,}(?![\w.])",
    ),
}
_COMPILED = {name: re.compile("|".join(forms)) for name, forms in _PATTERNS.items()}
_ENDS_LIKE_A_FILE = re.compile(rf"\.(?:{_ENDINGS})$")
_EDIT_COMMAND = re.compile(r"\d*(?:,\d+)?s/")  # of sed, which looks like a path
_COMMON = frozenset({"returncode", "output", "stdout", "stderr", "utf-8", "e.g", "i.e"})
_LETTER_OR_DIGIT = re.compile(r"[A-Za-z0-9]")


@lru_cache(maxsize=100_000)
def identifiers(text: str) -> frozenset[str]:
    """Find the identifiers in a text.

    Example:
        >>> sorted(identifiers("see src/app.py:12, ValueError on 2024-05-01"))
        ['2024-05-01', 'ValueError', 'src/app.py']
    """
    values: set[str] = set()
    for name, pattern in _COMPILED.items():
        matches = [match.group().rstrip(".,:;") for match in pattern.finditer(text)]
        if matches:
            text = pattern.sub(" ", text)
        values.update(map(_path, matches) if name == "path" else matches)
    return frozenset(
        value
        for value in values
        if len(value) >= SHORTEST_IDENTIFIER
        and value.lower() not in _COMMON
        and _LETTER_OR_DIGIT.search(value)
    )


def _path(value: str) -> str:
    """Normalise a path; return an empty text if it is none."""
    if not value.startswith("/"):
        value = value.lstrip("./")
    in_a_folder = value.count("/") >= 2 or _ENDS_LIKE_A_FILE.search(value)  # and/or
    return value.rstrip("/") if in_a_folder and not _EDIT_COMMAND.match(value) else ""


def text_of(message: BaseMessage) -> str:
    """Return the text of a message, then each tool call with its arguments on lines."""
    content = message.content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        text += f"\n{call['name']} " + "\n".join(str(value) for value in call["args"].values())
    return text


class IdentifierIndex:
    """Knows which message of a conversation shows which identifiers."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._messages = messages
        self._shown_at: dict[str, list[int]] = {}  # indexes of messages, by identifier
        for index, message in enumerate(messages):
            for identifier in identifiers(text_of(message)):
                self._shown_at.setdefault(identifier, []).append(index)

    def needed(
        self, answer: int, whole: Set[int], context: Sequence[BaseMessage]
    ) -> tuple[int, int]:
        """Count identifiers in an answer that only evicted messages show, and those quoted.

        Args:
            answer: the index of the answer in the conversation.
            whole: the indexes of messages that are whole in the request.
            context: all other messages of the request, where identifiers may be quoted.
        """
        needed: set[str] = set()
        origins: set[int] = set()
        for identifier in identifiers(text_of(self._messages[answer])):
            earlier = [index for index in self._shown_at[identifier] if index < answer]
            if earlier and whole.isdisjoint(earlier):
                needed.add(identifier)
                origins.update(earlier)
        origin_messages = [self._messages[index] for index in sorted(origins)]
        return len(needed), len(quoted(needed, context, origin_messages))


def quoted(
    needed: Collection[str], context: Sequence[BaseMessage], origins: Iterable[BaseMessage]
) -> set[str]:
    """Find the needed identifiers that the context quotes with the words around them.

    `QUOTED_WORDS` consecutive words of an original line, with the identifier among them, must be in
    one line of the context; or the whole line, if it is shorter. So a bare list of identifiers
    counts nothing.
    """
    if not needed:
        return set()
    lines = (line for message in context for line in text_of(message).split("\n"))
    shown = "\n".join(" ".join(line.split()) for line in lines)
    kept = set[str]()
    for line in (line for message in origins for line in text_of(message).split("\n")):
        words = line.split()
        for value in [value for value in needed if value not in kept and value in line]:
            pieces = _windows(value, words) if value in identifiers(line) else ()
            if any(piece in shown for piece in pieces):
                kept.add(value)
    return kept


def _windows(value: str, words: Sequence[str]) -> Iterator[str]:
    """Yield all runs of `QUOTED_WORDS` words of a line around an identifier."""
    for index, word in enumerate(words):
        if value not in word and word not in value:
            continue
        first = max(0, index - QUOTED_WORDS + 1)
        last = max(0, min(index, len(words) - QUOTED_WORDS))
        for start in range(first if len(words) > QUOTED_WORDS else 0, last + 1):
            piece = " ".join(words[start : start + QUOTED_WORDS])
            if value in piece:
                yield piece
