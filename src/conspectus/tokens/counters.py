"""Exact counts: a caller's counter, or a vocabulary of `tiktoken` or `tokenizers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conspectus.errors import PolicyError, install_command
from conspectus.observe import log

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

TokenCounter = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages: the form of LangChain's `token_counter`."""

FILLER = "."  # The text of messages that stand beside a counted one
FORM = "write tiktoken:o200k_base, or tokenizers:path/to/tokenizer.json"


class MessageCounter:
    """Counts single messages by a caller's counter, fractions of a token rounded up.

    Some counters take only what a provider would: a result behind its call, and a user's message
    first. What the counter refuses alone is counted in such a history, less the rest of that. What
    it refuses there too is estimated by `estimate`, and the log says so once.
    """

    def __init__(self, counter: TokenCounter, estimate: Callable[[Any], int]) -> None:
        self._counter, self._estimate = counter, estimate
        self._refused: set[tuple[type, bool]] = set()  # kinds that it does not take alone
        self._logged = False
        self._base: int | None = None

    @property
    def base(self) -> int:
        """Tokens that it counts for no message at all, such as a reply's opening."""
        if self._base is None:
            try:
                self._base = self._ask([])
            except Exception:  # it may not be made for an empty list
                self._base = 0
        return self._base

    def __call__(self, message: BaseMessage) -> int:
        """Return the tokens of a message, with the base; raise `PolicyError` for no number."""
        kind = type(message), bool(getattr(message, "tool_calls", None))
        try:
            if kind not in self._refused:
                try:
                    return self._ask([message])
                except PolicyError:
                    raise
                except Exception:
                    pass
            history, others = _legal_history(message)
            size = max(0, self._ask(history) - self._ask(others)) + self.base
        except PolicyError:
            raise
        except Exception as error:
            if not self._logged:
                self._logged = True
                log(
                    "counter_failed",
                    "token_counter does not count every message (%s: %.200s): those are "
                    "estimated; give one that takes any list of messages",
                    type(error).__name__,
                    error,
                )
            return self._estimate(message) + self.base
        self._refused.add(kind)
        return size

    def _ask(self, messages: Sequence[Any]) -> int:
        count: Any = self._counter(list(messages))
        if isinstance(count, float) and math.isfinite(count):
            count = math.ceil(count)  # users write characters / 4
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise PolicyError(
                f"token_counter must return a whole number of tokens, and returned {count!r}"
            )
        return count


def _legal_history(message: BaseMessage) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return a history with a message that a provider takes, and one to compare it with.

    The frame of a result counts with its call.
    """
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    question = HumanMessage(FILLER)
    if isinstance(message, SystemMessage):
        return [message, question], [question]
    if isinstance(message, ToolMessage):
        call: Any = {"name": message.name or "tool", "args": {}, "id": message.tool_call_id}
        before = [question, AIMessage("", tool_calls=[call])]
        return [*before, message], [*before, message.model_copy(update={"content": FILLER})]
    calls = getattr(message, "tool_calls", ())
    results = [ToolMessage(FILLER, tool_call_id=call["id"] or "") for call in calls]
    return [question, message, *results], [question]


def vocabulary(spec: str) -> Callable[[str], int]:
    """Load a vocabulary as a function that counts the tokens of a text.

    `spec` is `tiktoken:` with an encoding or one of OpenAI's models, or `tokenizers:` with the path
    of a `tokenizer.json` or a model on the Hugging Face hub, which is downloaded if it is not there
    yet. Special tokens count as plain text. A `PolicyError` says why a vocabulary cannot be loaded.
    """
    library, _, name = spec.partition(":")
    loader = {"tiktoken": _tiktoken, "tokenizers": _tokenizers}.get(library)
    if not name or loader is None:
        raise PolicyError(f"token_counter cannot be {spec!r}; {FORM}")
    try:
        return loader(name)
    except PolicyError:
        raise
    except ImportError as error:
        raise PolicyError(
            f"{spec!r} needs {library}, which is not installed: {install_command('tokens')}"
        ) from error
    except Exception as error:
        raise PolicyError(
            f"the vocabulary {spec!r} cannot be had ({type(error).__name__}: {error!s:.200}); give "
            "one that is on this machine, or leave token_counter out for the estimate"
        ) from error


def _tiktoken(name: str) -> Callable[[str], int]:
    import tiktoken

    known = name in tiktoken.list_encoding_names()
    encode = (tiktoken.get_encoding if known else tiktoken.encoding_for_model)(name).encode_ordinary
    return lambda text: len(encode(text))


def _tokenizers(name: str) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if path.suffix == ".json" and not path.is_file():
        raise PolicyError(f"there is no file {path}; {FORM}")
    load = Tokenizer.from_file if path.is_file() else Tokenizer.from_pretrained
    tokenizer: Any = load(str(path) if path.is_file() else name)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        # The library refuses lone surrogates, which no provider takes either.
        plain = text.encode("utf-8", "replace").decode()
        return len(tokenizer.encode(plain, add_special_tokens=False).ids)

    return count
