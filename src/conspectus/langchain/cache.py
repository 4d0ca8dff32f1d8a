"""What this process remembers of a session: is this the history it saw, and how large is it now?

Most steps only add messages. What was computed of a history is kept while it only grows, so that a
step looks at new messages alone: lists of the same objects compare at less than a nanosecond a
message. Equal objects, as of a checkpoint, are known too. Changes of an object in place are not
noticed.

Sizes are counted as LangChain's own middleware counts them, as users have chosen their triggers by
that. If the first answer after a compaction reports that system prompt and tools alone meet the
trigger, that report is the size after it: the history has to grow by a tenth from there.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.core.records import Chain
from conspectus.messages.message import MESSAGE_OVERHEAD, characters, has_thoughts
from conspectus.model.calls import model_and_provider
from conspectus.tokens import Report, TokenMeter
from conspectus.tokens.meter import LEAST_GROWTH

Count = Callable[[BaseMessage], int]
Measured = Literal["view", "request"]

MOST_SCALE = 1.25  # LangChain's limit for scaling its approximation up by reported usage
ANTHROPIC_CHARACTERS = 3.3  # characters a token in LangChain's count for Anthropic's models

ALIASES = {
    "amazon_bedrock": frozenset({"bedrock", "bedrock_converse"}),
    "openai-mantle": frozenset({"openai"}),
    "anthropic-mantle": frozenset({"anthropic"}),
}
"""Names of a provider in its messages, by its name in its model."""


class ReportedAnswer(NamedTuple):
    """One answer of a model: its place, and what it says of itself."""

    place: int
    provider: str | None
    total: int | None  # reported tokens of request and answer
    input: int | None  # reported tokens of the request
    thinks: bool  # it or one before it has thoughts
    providers: tuple[str | None, ...]  # of all answers up to it, from the first that names one on

    @classmethod
    def of(cls, message: AIMessage, index: int, previous: ReportedAnswer | None) -> ReportedAnswer:
        """Read an answer that stands at an index, behind the previous one."""
        usage: Any = message.usage_metadata or {}
        sent = _int_or_none(usage.get("input_tokens"))
        provider = message.response_metadata.get("model_provider")
        providers = () if previous is None else previous.providers
        if provider not in providers and (providers or provider):
            providers = (*providers, provider)
        thought_before = previous is not None and previous.thinks
        return cls(
            place=index,
            provider=provider,
            total=_int_or_none(usage.get("total_tokens")),
            input=sent,
            thinks=thought_before or (sent is not None and has_thoughts(message)),
            providers=providers,
        )


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) else None


class CachedView(NamedTuple):
    """What the records of a head made of messages."""

    parts: list[int | BaseMessage]  # the place of a message that is shown as it is, or another one
    chain: Chain
    keys: frozenset[str]


class HistorySizes(NamedTuple):
    """A history at one moment; later ones share its lists while it only grows."""

    messages: list[BaseMessage]
    # for each way to count, the tokens of the first 0, 1, 2 … messages
    sums: Sequence[list[int]]
    answers: list[ReportedAnswer]  # those with a report of usage
    newest: ReportedAnswer | None = None
    length: int = 0
    first_new: int = 0  # the first message that is new; 0 after an edit
    characters: int = 0
    blocks: bool = False  # the content of a message is blocks, such as thoughts, and no text

    def extended(self, messages: Sequence[BaseMessage], counts: Sequence[Count]) -> HistorySizes:
        """Return the sizes of a later history; what is new is counted."""
        history = self.messages
        length = self.length
        history += messages[length:]  # two lists of one length are compared without a copy
        if len(history) != len(messages) or not are_equal(history, messages):
            counts = [self.counted(column, count) for column, count in enumerate(counts)]
            return HistorySizes([], [[0] for _ in counts], []).extended(messages, counts)
        is_rebuilt = length and (
            history[0] is not messages[0] or history[length - 1] is not messages[length - 1]
        )
        if is_rebuilt:
            history[:] = messages  # the same objects compare fastest
        size = self.characters
        newest = self.newest
        blocks = self.blocks
        for index in range(length, len(history)):
            message = history[index]
            size += MESSAGE_OVERHEAD + characters(message.content)
            blocks = blocks or type(message.content) is list
            if isinstance(message, AIMessage):
                newest = ReportedAnswer.of(message, index, newest)
                if newest.total is not None or newest.input is not None:
                    self.answers.append(newest)
            for sums, count in zip(self.sums, counts, strict=True):
                sums.append(sums[-1] + count(message))
        return HistorySizes(
            history, self.sums, self.answers, newest, len(history), length, size, blocks
        )

    def counted(self, column: int, count: Count) -> Count:
        """Return this way to count for an edited history: the same objects have their tokens."""
        sums = pairwise(self.sums[column])
        pairs = zip(self.messages[: self.length], sums, strict=False)
        # The messages are held, so that no id is used again.
        tokens = {id(message): (message, end - start) for message, (start, end) in pairs}

        def tokens_of(message: BaseMessage) -> int:
            counted = tokens.get(id(message))
            return count(message) if counted is None else counted[1]

        return tokens_of

    def upto(self, index: int, column: int = 0) -> int:
        """Return the tokens of the first `index` messages."""
        return self.sums[column][index]

    def total(self, column: int = 0) -> int:
        return self.sums[column][self.length]

    def since(self, index: int) -> Sequence[ReportedAnswer]:
        """Return the answers from an index of the history on."""
        return self.answers[bisect_left(self.answers, index, key=attrgetter("place")) :]

    def reports(self, since: int, column: int) -> list[Report]:
        """Return the first and the last usable report from the index `since` on."""
        large_enough = bisect_left(self.sums[column], LEAST_GROWTH)
        answers = self.since(max(since, large_enough))
        first = next((answer for answer in answers if answer.input), None)
        last = next((answer for answer in reversed(answers) if answer.input), None)
        return [
            Report(self.upto(answer.place, column), answer.input or 0, answer.thinks)
            for answer in (first, last)
            if answer is not None
        ]


class VainPlan(NamedTuple):
    """A history for which a plan changed nothing."""

    head: str  # the record in force
    exceeded_window: bool
    messages: int


class SessionCache:
    """What this process remembers of one session."""

    def __init__(self) -> None:
        self.stored_head: str | None = None  # what the archive's pointer is known to name
        self.vain_plan = VainPlan("", False, -1)  # the latest one
        # A head, and what its records make of messages.
        self._view: tuple[str, Sequence[BaseMessage], CachedView | None] = ("", (), None)
        self._sizes: dict[Measured, HistorySizes] = {}
        self._lock = threading.Lock()
        self.characters = 0

    def sizes(
        self, measured: Measured, messages: Sequence[BaseMessage], *counts: Count
    ) -> HistorySizes:
        """Return the sizes of the view, or of a request."""
        with self._lock:
            sizes = self._sizes.get(measured)
            if sizes is None or len(sizes.sums) != len(counts):
                sizes = HistorySizes([], [[0] for _ in counts], [])
            sizes = sizes.extended(messages, counts)
            self._sizes[measured] = sizes
            self.characters = sizes.characters
            return sizes

    def has_blocks(self, messages: Sequence[BaseMessage]) -> bool:
        """Return whether the content of a message is blocks, such as thoughts, and no text."""
        with self._lock:
            sizes = self._sizes.get("view")
            if sizes is not None and are_equal(sizes.messages, messages):
                return sizes.blocks
        return any(type(message.content) is list for message in messages)

    def counted(self, count: Count) -> Count:
        """Return a way to count that knows the tokens of the messages in view."""
        sizes = self._sizes.get("view")
        return count if sizes is None else sizes.counted(0, count)

    def view(self, head: str, messages: Sequence[BaseMessage]) -> tuple[int, CachedView | None]:
        """Return what `keep_view` was given under this head, and for how many of the messages."""
        kept_head, kept, view = self._view
        if kept_head != head or not are_equal(kept, messages[: len(kept)]):
            return 0, None
        self._view = (head, messages[: len(kept)], view)
        return len(kept), view

    def keep_view(self, head: str, messages: Sequence[BaseMessage], view: CachedView) -> None:
        """Keep what the records of a head made of messages, while these only grow."""
        self._view = (head, messages[:], view)


def are_equal(left: object, right: object) -> bool:
    """Return whether two values are equal; False for those that cannot be compared."""
    try:
        return bool(left == right)
    except Exception:  # such as arrays
        return False


class Counting:
    """One way to count, for `trigger` and `keep`; LangChain's approximation is scaled by usage."""

    def __init__(self, meter: TokenMeter | None, model: object) -> None:
        self.approximate = meter is None
        self.meter = meter
        self._provider = model_and_provider(model, "")[1]
        anthropic = str(getattr(model, "_llm_type", "")).startswith("anthropic-chat")
        options: Any = {"chars_per_token": ANTHROPIC_CHARACTERS} if anthropic else {}
        approximation: Any = partial(count_tokens_approximately, **options)
        self.message: Count = lambda message: approximation((message,))
        if meter is not None:
            self.message = meter.message
        # Whether the caller's function counts, which is called with the list, as by LangChain.
        self.by_list = meter is not None and meter.counts_lists
        # The latest history that it has counted, which is shared while it only grows.
        self._latest: tuple[list[BaseMessage], int, int] = ([], 0, 0)

    @property
    def columns(self) -> list[Count]:
        """The ways to count single messages at each step."""
        return [] if self.by_list else [self.message]

    def total(self, sizes: HistorySizes) -> int:
        """Return the tokens of a history, without what models reported."""
        if not self.by_list or self.meter is None:
            return sizes.total()
        counted, length, count = self._latest
        if counted is not sizes.messages or length != sizes.length:
            count = self.meter.whole(sizes.messages[: sizes.length])
            self._latest = (sizes.messages, sizes.length, count)
        return count

    def count(self, messages: Iterable[BaseMessage]) -> int:
        """Count the tokens of messages as the trigger does, with all that models reported."""
        columns = self.columns
        empty = HistorySizes([], [[0] for _ in columns], [])
        sizes = empty.extended(list(messages), columns)
        return self.trigger_size(sizes, 0)

    def trigger_size(self, sizes: HistorySizes, since: int) -> int:
        """Return the size for the trigger, in tokens; reports before `since` are out of date."""
        newest = sizes.newest
        if newest is None or newest.place < since:
            return self.total(sizes)
        total = self.total(sizes)
        if self.approximate:
            total = math.ceil(total * self._scale(sizes, newest, since))
        if newest.total and self._trusts(newest.provider):
            return max(total, newest.total)
        return total

    def _scale(self, sizes: HistorySizes, newest: ReportedAnswer, since: int) -> float:
        """Return the factor by which LangChain corrects its approximation by reported usage."""
        answers = reversed(sizes.answers)
        report = next((answer for answer in answers if answer.total is not None), None)
        if report is None or report.place < since:
            return 1.0
        if sizes.length < 2 or len(newest.providers) != 1:
            return 1.0
        counted = sizes.upto(report.place + 1)
        if counted <= 0:
            return 1.0
        return min(MOST_SCALE, max(1.0, (report.total or 0) / counted))

    def size_reported_after(self, sizes: HistorySizes, since: int) -> int:
        """Return the size after a compaction, as the first answer since reported it, or 0."""
        answers = sizes.since(since) if since else ()
        first = next((answer for answer in answers if answer.total is not None), None)
        if first is None or not self._trusts(first.provider):
            return 0
        return first.input or first.total or 0

    def _trusts(self, provider: str | None) -> bool:
        """Return whether reports of a provider are those of the managed model."""
        own = self._provider
        return bool(provider) and (provider == own or provider in ALIASES.get(own, ()))
