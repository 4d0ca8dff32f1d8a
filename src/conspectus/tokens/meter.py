"""Count a message's tokens by estimate, vocabulary or a caller's counter."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property, partial
from inspect import iscoroutinefunction
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import innermost, is_message, named
from conspectus.errors import PolicyError, install_command
from conspectus.messages import Message, Source, read_message
from conspectus.messages.message import message_of
from conspectus.observe import log
from conspectus.tokens.estimate import estimate, family_of
from conspectus.tokens.media import media_tokens

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

TokenCounter = Callable[[Iterable[Any]], int]
"""Tokens of a list of messages: the form of LangChain's `token_counter`."""

FILLER = "."
"""The text of messages that stand beside a counted one."""

PER_MESSAGE = 4
"""Tokens that a chat format spends on each message: role and delimiters."""

PER_CALL = 8
"""Tokens that it spends on each tool call: id, type, name and delimiters."""

PER_TOOL = 8
"""Tokens of a tool beside its schema: delimiters and type."""

TOOL_PROMPT_TOKENS = {"claude": 346, "unknown": 346}
"""Tokens of the system prompt that Anthropic adds for tools, from its guide to tool use (`auto`;
313 or 346 by model); other providers document none."""

MOST_FRAME_TOKENS = 20
"""A counter that adds at most so many tokens to a list adds the frame of a message: they count with
each message."""

LEAST_RATIO = 0.5
"""The smallest ratio by which an estimate is corrected. A report below it measures something else,
such as one without cached tokens, and is ignored."""

MOST_RATIO = 2.0
"""The largest ratio by which an estimate is corrected. A report above it may count tools, and is
cut. If it is as far above the window, too, it belongs to no request that a model has answered, and
is ignored."""

COUNTS_KEPT = 16_384
"""Messages whose count by a caller's counter is remembered."""

LEAST_GROWTH = 500
"""The fewest estimated tokens of a report, and between two of them, that are used."""


class UsageReport(NamedTuple):
    """Reported input tokens of one request, beside the estimate for its messages alone."""

    estimated: int
    reported: int
    thinks: bool = False  # it, or an answer before it, has thoughts: many are not counted again


def correction(
    reports: Sequence[UsageReport],
    overhead: int = 0,
    limit: int | None = None,
    *,
    known: float = 1.0,
) -> float:
    """Return the ratio by which the estimate is corrected: 0.5 to 2.

    Without usable reports it is `known`, the ratio from before.

    The growth from the first to the last report is that of the messages alone, as the rest of a
    request stays the same. A single one counts less the known overhead; beyond that it can only
    show that the estimate is too large. Reports belong to one history since its last compaction,
    oldest first. Where a model thinks, the estimate is never lowered: what was not counted may be
    its thoughts alone.

    Example:
        >>> correction([UsageReport(1_000, 2_600), UsageReport(3_000, 5_000)])
        1.2
    """
    window = limit or math.inf  # without a known window, no report is too large
    usable = [
        report
        for report in reports
        if report.estimated >= LEAST_GROWTH
        and report.reported >= LEAST_RATIO * report.estimated
        and report.reported <= MOST_RATIO * max(report.estimated + overhead, window)
    ]
    if not usable:
        return known
    first = usable[0]
    last = usable[-1]
    growth = last.estimated - first.estimated
    ratio = last.reported / last.estimated
    if growth >= LEAST_GROWTH and last.reported > first.reported:
        ratio = (last.reported - first.reported) / growth
    elif ratio > 1:
        ratio = max(1.0, (last.reported - overhead) / last.estimated)
    least = 1.0 if any(report.thinks for report in usable) else LEAST_RATIO
    return min(MOST_RATIO, max(least, ratio))


class TokenMeter:
    """Counts tokens of messages, of text and of tools; a message that was counted is remembered.

    Args:
        counter: a LangChain `token_counter`, or the name of a vocabulary: `"tiktoken:o200k_base"`
            or `"tokenizers:path/to/tokenizer.json"` (extra `tokens`). Default: an estimate.
        model: the model that will read the messages, as a name or a LangChain model; it decides the
            tokenizer to estimate and the rule for images. Default: the most that any takes.

    Attributes:
        model: the name of the model; empty if unknown.
        exact: whether a counter or a vocabulary counts, so that no report corrects it.
        ratio: what the estimate is multiplied by; 1 unless `scaled` made the meter.

    Raises:
        PolicyError: the counter is invalid, or returns an invalid count.

    Example:
        >>> TokenMeter(model="gpt-4o").count_text("The tokens of a text are estimated.")
        8
    """

    def __init__(self, counter: TokenCounter | str | None = None, *, model: Any = None) -> None:
        self.model = named(model)
        self.family, self.maker = family_of(self.model)
        self.exact = counter is not None
        self.ratio = 1.0
        self._counter: MessageCounter | None = None
        self._list_counter: MessageCounter | None = None
        self._text: Callable[[str], int] = partial(estimate, family=self.family)
        # Meters that count alike share the sizes that are remembered with messages.
        self._counts_like: object = f"{counter} {self.family} {self.maker}"
        if isinstance(counter, str):
            self._text = vocabulary(counter)
        elif callable(counter):
            # What the counter refuses is estimated by this copy, which has no counter yet.
            estimating = copy(self)
            self._counter = MessageCounter(counter, estimating.count_message)
            self._list_counter = self._counter
            self._counts_like = object()
        elif counter is not None:
            raise PolicyError(
                "token_counter must be a callable that takes a list of messages and returns their "
                f"tokens, or the name of a vocabulary, not {counter!r}"
            )
        elif self.family == "unknown":
            _warn_unknown(model)

    def count_entry(self, message: Message) -> int:
        """Count the tokens of a message that has been read."""
        size: int
        counts_like, size = message.remembered.tokens or (None, 0)  # of the newest meter
        if counts_like != self._counts_like:
            if self._counter is not None:
                size = max(0, self._counter.of_entry(message) - self.base)
            else:
                text = message.text
                calls = message.calls
                if message.name or calls:
                    # Several short texts cost several times as much to estimate as one.
                    texts = (part for call in calls for part in (call.name, call.args))
                    text = "\n".join(filter(None, (text, message.name, *texts)))
                size = PER_MESSAGE + PER_CALL * len(calls) + self._text(text)
                size += sum(media_tokens(block, self.maker) for block in message.media)
            message.remembered.tokens = self._counts_like, size
        return math.ceil(size * self.ratio)

    @property
    def base(self) -> int:
        """Tokens that a counter adds to any list, as for tools; 0 if it adds a message's frame."""
        base = 0 if self._list_counter is None else self._list_counter.base
        return base if base > MOST_FRAME_TOKENS else 0

    @property
    def estimates(self) -> bool:
        """Whether single messages and texts are estimated or counted by a vocabulary."""
        return self._counter is None

    @property
    def counts_lists(self) -> bool:
        """Whether a caller's counter counts, for whom a list need not be the sum of its parts."""
        return self._list_counter is not None

    def count_list(self, messages: Sequence[Source]) -> int:
        """Count a list of messages as it is sent: a caller's counter is called once, with all.

        Its base is included. If it does not take such a list, and for an estimate or a vocabulary,
        the result is the sum of the messages.
        """
        if self._list_counter is None:
            return self.count_messages(messages)
        counted = self._list_counter.count_list(messages)
        return self.count_messages(messages) + self.base if counted is None else counted

    def count_message(self, message: Source) -> int:
        """Count the tokens of one message."""
        return self.count_entry(read_message(message))

    def count_messages(self, messages: Sequence[Source]) -> int:
        """Count the tokens of several messages, each alone."""
        return sum(map(self.count_message, messages))

    def count_text(self, text: str) -> int:
        """Count the tokens of a text inside a message."""
        if self._counter is None:
            return math.ceil(self._text(text) * self.ratio)
        return math.ceil(max(0, self._message_of_text(text) - self._frame) * self.ratio)

    @cached_property
    def _frame(self) -> int:
        """Tokens of a message without its text; some counters refuse an empty one."""
        with_one = self._message_of_text(FILLER)
        with_two = self._message_of_text(2 * FILLER)
        return max(0, 2 * with_one - with_two)

    def _message_of_text(self, text: str) -> int:
        """Count a user's message with this text by the caller's counter, without a ratio."""
        assert self._counter is not None
        return max(0, self._counter.of_text(text) - self.base)

    def count_tools(self, tools: Sequence[Any]) -> int:
        """Count the tokens that tools, in any form, add to a request; or raise `PolicyError`."""
        if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable | None):
            raise PolicyError(f"tools must be a list of tools, not {tools!r}")
        prompt = TOOL_PROMPT_TOKENS.get(self.family, 0) if tools else 0
        return prompt + sum(PER_TOOL + self.count_text(_schema(tool)) for tool in tools or ())

    @property
    def ratios_by_family(self) -> dict[str, float]:
        """The ratio by the family of its tokenizer, for `known_ratio`; empty if it is 1."""
        return {} if self.exact or self.ratio == 1.0 else {self.family: self.ratio}

    def known_ratio(self, ratios_by_family: Mapping[str, float]) -> float:
        """Return the ratio that was known for this tokenizer; 1 for another, or a counter."""
        return 1.0 if self.exact else ratios_by_family.get(self.family, 1.0)

    def scaled(self, ratio: float) -> TokenMeter:
        """Return this meter with counts of messages and texts times a ratio.

        A caller's count of a whole list stays as it is.
        """
        if ratio == self.ratio:
            return self
        other = copy(self)
        other.ratio = ratio
        return other

    def estimating(self) -> TokenMeter:
        """Return this meter with estimates of messages and texts; lists are counted as before."""
        other = copy(self)
        other._counter = None
        other._text = partial(estimate, family=self.family)
        other._counts_like = f"None {self.family} {self.maker}"
        return other


_warned: list[str] = []


def _warn_unknown(model: Any) -> None:
    """Log once in this process that a model's tokenizer is not known; never for a fake model."""
    name = named(model)
    kinds = type(innermost(model)).__mro__
    fake = re.search("fake|scripted|mock", f"{name} {kinds}".lower())
    if name not in ("", "unknown") and not fake and not _warned:
        _warned.append(name)
        text = "the tokenizer of the model %r is not known, so its tokens are estimated a little"
        log("tokenizer_unknown", f"{text} high; give a token_counter for exact sizes", name)


def _schema(tool: Any) -> str:
    """Write the schema of a tool as it is sent."""
    from langchain_core.utils.function_calling import convert_to_openai_tool

    with suppress(Exception):  # a dictionary is a provider's own tool
        tool = convert_to_openai_tool(tool)
    if isinstance(tool, dict):
        with suppress(TypeError, ValueError, RecursionError):
            return json.dumps(tool, separators=(",", ":"), default=str)
    raise PolicyError(
        f"{tool!r:.200} is no tool: give a LangChain tool, a function with typed arguments and a "
        "docstring, a pydantic class, or a schema that can be written as JSON"
    )


class MessageCounter:
    """Counts lists and single messages by a caller's counter, fractions of a token rounded up.

    Some counters take only what a provider would: a result behind its call, and a user's message
    first. What the counter refuses alone is counted in such a history, less the rest of that. What
    it refuses there too is estimated by `estimate`, and the log says so once. A message is asked
    about once, as a counter may ask a server.
    """

    def __init__(self, counter: TokenCounter, estimate: Callable[[Any], int]) -> None:
        if iscoroutinefunction(counter):
            raise PolicyError("token_counter must be a function that answers at once, not async")
        self._counter = counter
        self._estimate = estimate
        self._logged = False
        self._known: BoundedCache[bytes, int] = BoundedCache(COUNTS_KEPT)

    @cached_property
    def base(self) -> int:
        """Tokens that it counts for no message at all, such as a reply's opening."""
        with suppress(Exception):  # it may not be made for an empty list
            return self._ask([])
        return 0

    def of_entry(self, entry: Message) -> int:
        """Return the tokens of a message with the base; raise `PolicyError` for no number.

        A dict is shown as it is, and as a LangChain message if the counter does not take it.
        """
        forms = [] if is_message(entry.source) else [entry.source]
        return self._single(forms, message_of(entry))

    def of_text(self, text: str) -> int:
        """Return the tokens of a user's message with this text, with the base."""
        from langchain_core.messages import HumanMessage

        return self._single([], HumanMessage(text), {"role": "user", "content": text})

    def count_list(self, messages: Sequence[Source]) -> int | None:
        """Return the tokens of a list, called as its caller would; None if it takes no such list.

        Lists with dicts are shown as they are, and as LangChain messages if the counter does not
        take that.
        """
        try:
            return self._ask(messages)
        except PolicyError:
            raise
        except Exception as error:
            failed = error
        if not all(map(is_message, messages)):
            try:
                return self._ask([message_of(read_message(message)) for message in messages])
            except PolicyError:
                raise
            except Exception as error:
                failed = error
        self._say_failed(failed)
        return None

    def _single(self, first: list[Any], message: BaseMessage, *last: Any) -> int:
        """Count one message in the first of its forms that the counter takes, or estimate it."""
        shown = repr([first, vars(message)]).encode("utf-8", "backslashreplace")
        name = hashlib.sha256(shown).digest()
        if (known := self._known.get(name)) is not None:
            return known
        first_forms = [_Shown([form], []) for form in first]
        last_forms = [_Shown([form], []) for form in last]
        for history, without in chain(first_forms, _shown_forms(message), last_forms):
            try:
                beside = self._ask(without) - self.base if without else 0
                known = max(0, self._ask(history) - beside)
                self._known.put(name, known)
                return known
            except PolicyError:
                raise
            except Exception as error:
                failed = error
        self._say_failed(failed)
        return self._estimate(message) + self.base

    def _say_failed(self, error: Exception) -> None:
        if self._logged:
            return
        self._logged = True
        text = "token_counter does not count every message (%s: %.200s): those are estimated; "
        text += "give one that takes any list of messages"
        log("counter_failed", text, type(error).__name__, error)

    def _ask(self, messages: Sequence[Any]) -> int:
        count: Any = self._counter(list(messages))
        # Users write characters / 4. Numpy's numbers are such, too.
        if isinstance(count, Real) and math.isfinite(count):
            count = count if isinstance(count, (bool, Integral)) else math.ceil(count)
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise PolicyError(
                f"token_counter must return a whole number of tokens, and returned {count!r}"
            )
        return int(count)


class _Shown(NamedTuple):
    """What a counter is shown to count one message: the difference of two histories."""

    history: list[Any]
    without: list[Any]  # the same without the message; empty if the history is the message alone


def _shown_forms(message: BaseMessage) -> Iterator[_Shown]:
    """Yield a message alone, and then in a history that a provider takes.

    A call counts with the frames of its results.
    """
    yield _Shown([message], [])
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    question = HumanMessage(FILLER)
    if isinstance(message, SystemMessage):
        yield _Shown([message, question], [question])
    elif isinstance(message, ToolMessage):
        call: Any = {"name": message.name or "tool", "args": {}, "id": message.tool_call_id}
        before = [question, AIMessage("", tool_calls=[call])]
        filler = message.model_copy(update={"content": FILLER})
        yield _Shown([*before, message], [*before, filler])
    else:
        calls = getattr(message, "tool_calls", ())
        results = [ToolMessage(FILLER, tool_call_id=call["id"] or "") for call in calls]
        yield _Shown([question, message, *results], [question])


def vocabulary(spec: str) -> Callable[[str], int]:
    """Load a vocabulary as a function that counts the tokens of a text.

    `spec` is `tiktoken:` with an encoding or one of OpenAI's models, or `tokenizers:` with the path
    of a `tokenizer.json` or a model on the Hugging Face hub, which is downloaded if it is not there
    yet. Special tokens count as plain text. A `PolicyError` says why a vocabulary cannot be loaded.
    """
    library, _, name = spec.partition(":")
    load = {"tiktoken": _tiktoken, "tokenizers": _tokenizers}.get(library)
    if not name or load is None:
        raise PolicyError(
            f"{spec!r} cannot be a token_counter; write tiktoken:o200k_base, or "
            "tokenizers:path/to/tokenizer.json"
        )
    try:
        tokens = load(name)
    except Exception as error:
        advice = "give one that is on this machine, or leave token_counter out for the estimate"
        if isinstance(error, ImportError):
            advice = install_command("tokens")
        wrong = f"cannot be had ({type(error).__name__}: {error!s:.200})"
        raise PolicyError(f"the vocabulary {spec!r} {wrong}; {advice}") from error
    return lambda text: len(tokens(text))


def _tiktoken(name: str) -> Callable[[str], Sequence[int]]:
    import tiktoken

    known = name in tiktoken.list_encoding_names()
    return (tiktoken.get_encoding if known else tiktoken.encoding_for_model)(name).encode_ordinary


def _tokenizers(name: str) -> Callable[[str], Sequence[int]]:
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    local = path.suffix == ".json" or path.is_file()
    tokenizer: Any = Tokenizer.from_file(str(path)) if local else Tokenizer.from_pretrained(name)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # It refuses lone surrogates.
    return lambda text: (
        tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids
    )
