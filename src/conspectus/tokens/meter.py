"""Count a message's tokens by estimate, vocabulary or a caller's counter."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conspectus._core.sizes import whole
from conspectus._langchain import is_message
from conspectus.errors import PolicyError
from conspectus.messages import Entry, Source, read_messages
from conspectus.tokens.estimate import estimate
from conspectus.tokens.families import Family, family_of, maker_of, named, say_unknown
from conspectus.tokens.media import media_tokens
from conspectus.tokens.usage import Report, correction

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

FORM = "write tiktoken:o200k_base, or tokenizers:path/to/tokenizer.json"

PER_TOOL = 8  # Tokens of a tool beside its schema: delimiters and type

TOOL_PROMPT = {"claude": 346, "unknown": 346}
"""Tokens of the system prompt that Anthropic adds for tools, from its guide to tool use (`auto`;
313 or 346 by model); other providers document none."""

TokenCounter = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages: the form of LangChain's `token_counter`."""

PER_MESSAGE = 4  # Tokens that a chat format spends on each message: role and delimiters
PER_CALL = 8  # Tokens that it spends on each tool call: id, type, name and delimiters
REMEMBERED = 32_768  # Sizes of messages cached, about 6 MB; then the cache is emptied


class TokenMeter:
    """Counts tokens of messages, of text and of tools.

    Sizes are cached by the key of a message, which depends on all its content.

    Args:
        counter: a LangChain `token_counter`: a callable from a list of messages to their tokens; or
            the name of a vocabulary, such as `"tiktoken:o200k_base"` or
            `"tokenizers:path/to/tokenizer.json"` (extra `tokens`). Default: an estimate without a
            vocabulary.
        model: the model that will read the messages, as a name or a LangChain model; it decides the
            tokenizer to estimate and the rule for images. Default, and for an unknown name (logged
            once): each piece of a text costs the most that any family takes.
        file_tokens: tokens of a document or a recording that is only an id or an address. Default:
            ten full pages of a PDF: 30,000 with Anthropic's and unknown models, 20,050 with
            OpenAI's and 5,600 with Google's.

    Attributes:
        family: the family of tokenizers.
        maker: the maker whose rules count images, documents and recordings.
        exact: whether a counter or a vocabulary counts, so that no report corrects it.
        ratio: factor of the estimate; 1 unless `corrected` made the meter.

    Raises:
        PolicyError: the counter is invalid, or returns an invalid count.

    Example:
        >>> TokenMeter(model="gpt-4o").text("The tokens of a text are estimated.")
        8
    """

    def __init__(
        self,
        counter: TokenCounter | str | None = None,
        *,
        model: Any = None,
        file_tokens: int | None = None,
    ) -> None:
        if counter is not None and not callable(counter) and not isinstance(counter, str):
            raise PolicyError(
                "token_counter must be a callable that takes a list of messages and returns their "
                f"tokens, or the name of a vocabulary, not {counter!r}"
            )
        if file_tokens is not None:
            whole(file_tokens, "file_tokens")
        self.family: Family = family_of(model)
        self.maker, self._file_tokens = maker_of(model), file_tokens
        self.exact = counter is not None
        if self.family == "unknown" and not (self.exact or model is None or model == "unknown"):
            say_unknown(named(model))
        self.ratio = 1.0
        self._counter = counter if callable(counter) else None
        self._vocabulary = vocabulary(counter) if isinstance(counter, str) else None
        self._empty: int | None = None
        self._sizes: dict[str, int] = {}

    def entry(self, entry: Entry) -> int:
        """Count the tokens of a message that has been read."""
        size = self._sizes.get(entry.key)
        if size is None:
            size = self._size(entry)
            if len(self._sizes) >= REMEMBERED:
                self._sizes.clear()
            self._sizes[entry.key] = size
        return self._corrected(size)

    def message(self, message: Source) -> int:
        """Count the tokens of one message."""
        return self.entry(read_messages([message])[0])

    def messages(self, messages: Sequence[Source]) -> int:
        """Count the tokens of several messages, each alone."""
        return sum(self.message(message) for message in messages)

    def text(self, text: str) -> int:
        """Count the tokens of a text inside a message."""
        if self._counter is None:
            return self._corrected(self._text(text))
        from langchain_core.messages import HumanMessage

        if self._empty is None:
            self._empty = self._ask([HumanMessage("")])
        return max(0, self._ask([HumanMessage(text)]) - self._empty)

    def tools(self, tools: Sequence[Any]) -> int:
        """Count the tokens that tools add to each request.

        Args:
            tools: LangChain tools, callables, pydantic classes, or schemas in a provider's form.

        Raises:
            PolicyError: it is not a list of tools.
        """
        return tools_tokens(tools, self.text, self.family)

    def corrected(
        self, reports: Sequence[Report], overhead: int = 0, limit: int | None = None
    ) -> TokenMeter:
        """Return this meter corrected by reports of usage; an exact one unchanged.

        Args:
            reports: of one history since its last compaction, oldest first, with this meter's
                estimates.
            overhead: tokens reserved beside the messages.
            limit: tokens of the window; None if unknown.
        """
        return self.scaled(correction(reports, overhead, limit))

    def scaled(self, ratio: float) -> TokenMeter:
        """Return this meter with estimates times a ratio; an exact one unchanged."""
        ratio = 1.0 if self.exact else ratio
        if ratio == self.ratio:
            return self
        other = object.__new__(TokenMeter)
        other.__dict__.update(self.__dict__)
        other.ratio = ratio
        return other

    @property
    def plain(self) -> TokenMeter:
        """The meter without its correction."""
        return self.corrected(())

    def _corrected(self, size: int) -> int:
        return size if self.ratio == 1.0 else math.ceil(size * self.ratio)

    def _text(self, text: str) -> int:
        if self._vocabulary is not None:
            return self._vocabulary(text)
        return estimate(text, self.family)

    def _size(self, entry: Entry) -> int:
        if self._counter is not None:
            return self._ask([entry.source])
        text = self._text(entry.text) + self._text(entry.name or "")
        calls = sum(PER_CALL + self._text(c.name) + self._text(c.args) for c in entry.calls)
        media = sum(media_tokens(block, self.maker, self._file_tokens) for block in entry.media)
        return PER_MESSAGE + text + calls + media

    def _ask(self, messages: Sequence[Source]) -> int:
        assert self._counter is not None
        plain = [m if is_message(m) else _as_langchain(m) for m in messages]
        return checked_count(self._counter(plain))


def checked_count(count: object) -> int:
    """Return the count of a caller's counter; raise `PolicyError` if it is none."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise PolicyError(
            f"token_counter must return a whole number of tokens, and returned {count!r}"
        )
    return count


def _as_langchain(message: Source) -> BaseMessage:
    """Turn a dict into a message that a LangChain counter can count."""
    from langchain_core.messages import HumanMessage, convert_to_messages

    try:
        return convert_to_messages([dict(message)])[0]
    except (ValueError, TypeError, KeyError, NotImplementedError):
        return HumanMessage(read_messages([message])[0].reading)


def tools_tokens(tools: Sequence[Any], count: Callable[[str], int], family: Family) -> int:
    """Count the tokens that tools, in any form, add to a request."""
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable | None):
        raise PolicyError(f"tools must be a list of tools, not {tools!r}")
    if not tools:
        return 0
    total = TOOL_PROMPT.get(family, 0)
    for tool in tools:
        total += PER_TOOL + count(_written(tool))
    return total


def _written(tool: Any) -> str:
    """Write the schema of a tool as it is sent."""
    schema = _schema(tool)
    try:
        return json.dumps(schema, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyError(
            f"the schema of the tool {tool!r:.200} cannot be written as JSON ({error}); its keys "
            "must be text, and nothing in it may hold itself"
        ) from error


def _schema(tool: Any) -> Any:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    try:
        return convert_to_openai_tool(tool)
    except Exception as error:
        if isinstance(tool, dict):  # a provider's own tool, which has a form of its own
            return tool
        raise PolicyError(
            f"{tool!r:.200} is no tool: give a LangChain tool, a function with typed arguments and "
            "a docstring, a pydantic class, or a schema"
        ) from error


def vocabulary(spec: str) -> Callable[[str], int]:
    """Load a vocabulary as a function that counts the tokens of a text.

    `spec` is `tiktoken:` with an encoding or one of OpenAI's models, or `tokenizers:` with the path
    of a `tokenizer.json` or a model on the Hugging Face hub, which is downloaded if it is not there
    yet. Special tokens count as plain text. A `PolicyError` says why a vocabulary cannot be loaded.
    """
    library, colon, name = spec.partition(":")
    loaders = {"tiktoken": _tiktoken, "tokenizers": _tokenizers}
    if not colon or not name or library not in loaders:
        raise PolicyError(f"token_counter cannot be {spec!r}; {FORM}")
    try:
        return loaders[library](name)
    except PolicyError:
        raise
    except ImportError as error:
        raise PolicyError(
            f"{spec!r} needs {library}, which is not installed: pip install 'conspectus[tokens]'"
        ) from error
    except Exception as error:
        raise PolicyError(
            f"the vocabulary {spec!r} cannot be had ({type(error).__name__}: {error!s:.200}); give "
            "one that is on this machine, or leave token_counter out for the estimate"
        ) from error


def _tiktoken(name: str) -> Callable[[str], int]:
    import tiktoken

    known = name in tiktoken.list_encoding_names()
    encoding = tiktoken.get_encoding(name) if known else tiktoken.encoding_for_model(name)

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return count


def _tokenizers(name: str) -> Callable[[str], int]:
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if path.is_file():
        found: Any = Tokenizer.from_file(str(path))
    elif path.suffix == ".json":
        raise PolicyError(f"there is no file {path}; {FORM}")
    else:
        found = Tokenizer.from_pretrained(name)
    found.no_truncation()
    found.no_padding()

    def count(text: str) -> int:
        # The library refuses lone surrogates, which no provider takes either.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return len(found.encode(text, add_special_tokens=False).ids)

    return count
