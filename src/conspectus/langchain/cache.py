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
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.messages.message import EACH, characters, has_thoughts
from conspectus.model.calls import model_and_provider
from conspectus.tokens import Report, TokenMeter
from conspectus.tokens.meter import LEAST_GROWTH

Count = Callable[[BaseMessage], int]

MOST_SCALE = 1.25  # LangChain's limit for scaling its approximation up by reported usage
ANTHROPIC_CHARACTERS = 3.3  # characters a token in LangChain's count for Anthropic's models

ALIASES = {
    "amazon_bedrock": frozenset({"bedrock", "bedrock_converse"}),
    "openai-mantle": frozenset({"openai"}),
    "anthropic-mantle": frozenset({"anthropic"}),
}
"""Names of a provider in its messages, by its name in its model."""


class Answer(NamedTuple):
    """One answer of a model: its place, and what it says of itself."""

    place: int
    provider: str | None
    total: int | None  # reported tokens, with its own
    input: int | None
    thinks: bool  # it or one before it has thoughts
    providers: tuple[str | None, ...]  # of all answers up to it, from the first that names one on

    @classmethod
    def of(cls, message: AIMessage, place: int, before: Answer | None) -> Answer:
        usage: Any = message.usage_metadata or {}
        reported = usage.get("total_tokens"), usage.get("input_tokens")
        total, sent = (one if isinstance(one, int) else None for one in reported)
        provider = message.response_metadata.get("model_provider")
        providers = before.providers if before else ()
        if provider not in providers and (providers or provider):
            providers = (*providers, provider)
        thinks = before is not None and before.thinks
        thinks = thinks or (sent is not None and has_thoughts(message))
        return cls(place, provider, total, sent, thinks, providers)


class Sizes(NamedTuple):
    """A history at one moment; later ones share its lists while it only grows."""

    messages: list[BaseMessage]
    # for each way to count, the tokens of the first 0, 1, 2 … messages
    sums: Sequence[list[int]]
    answers: list[Answer]  # those with a report of usage
    newest: Answer | None = None
    length: int = 0
    fresh: int = 0  # the first message that is new; 0 after an edit
    characters: int = 0
    blocks: bool = False  # the content of a message is blocks, such as thoughts, and no text

    def followed(self, messages: Sequence[BaseMessage], counts: Sequence[Count]) -> Sizes:
        """Return the sizes of a later history; what is new is counted."""
        own, known, size, newest = self.messages, self.length, self.characters, self.newest
        blocks = self.blocks
        own += messages[known:]  # two lists of one length are compared without a copy
        if len(own) != len(messages) or not are_equal(own, messages):
            again = [self.counted(column, count) for column, count in enumerate(counts)]
            return Sizes([], [[0] for _ in counts], []).followed(messages, again)
        if known and (own[0] is not messages[0] or own[known - 1] is not messages[known - 1]):
            own[:] = messages  # the same objects compare fastest
        for place in range(known, len(own)):
            message = own[place]
            size += EACH + characters(message.content)
            blocks = blocks or type(message.content) is list
            if isinstance(message, AIMessage):
                newest = Answer.of(message, place, newest)
                if newest.total is not None or newest.input is not None:
                    self.answers.append(newest)
            for sums, count in zip(self.sums, counts, strict=True):
                sums.append(sums[-1] + count(message))
        return Sizes(own, self.sums, self.answers, newest, len(own), known, size, blocks)

    def counted(self, column: int, count: Count) -> Count:
        """Return this way to count for an edited history: the same objects have their tokens."""
        pairs = zip(self.messages[: self.length], pairwise(self.sums[column]), strict=False)
        known = {id(one): (one, after - before) for one, (before, after) in pairs}
        return lambda message: known[id(message)][1] if id(message) in known else count(message)

    def upto(self, index: int, column: int = 0) -> int:
        """Return the tokens of the first `index` messages."""
        return self.sums[column][index]

    def total(self, column: int = 0) -> int:
        return self.sums[column][self.length]

    def since(self, place: int) -> Sequence[Answer]:
        return self.answers[bisect_left(self.answers, place, key=attrgetter("place")) :]

    def reports(self, since: int, column: int) -> list[Report]:
        """Return the first and the last usable report from place `since` on."""
        answers = self.since(max(since, bisect_left(self.sums[column], LEAST_GROWTH)))
        ends = [next((a for a in each if a.input), None) for each in (answers, reversed(answers))]
        known = (answer for answer in ends if answer is not None)
        return [Report(self.upto(a.place, column), a.input or 0, a.thinks) for a in known]


class SessionCache:
    """What this process remembers of one session."""

    def __init__(self) -> None:
        self.pointer: str | None = None  # what the archive's pointer is known to name
        self.tried = ("", False, -1)  # head, over and length at which a plan changed nothing
        # What the records of a head make of messages.
        self._view: tuple[str, Sequence[BaseMessage], Any] = ("", (), None)
        self._sizes: dict[str, Sizes] = {}
        self._lock, self.characters = threading.Lock(), 0

    def sizes(self, what: str, messages: Sequence[BaseMessage], *counts: Count) -> Sizes:
        """Return the sizes of the view, or of requests."""
        with self._lock:
            known = self._sizes.get(what)
            if known is None or len(known.sums) != len(counts):
                known = Sizes([], [[0] for _ in counts], [])
            self._sizes[what] = now = known.followed(messages, counts)
            self.characters = now.characters
            return now

    def has_blocks(self, messages: Sequence[BaseMessage]) -> bool:
        """Return whether the content of a message is blocks, such as thoughts, and no text."""
        with self._lock:
            known = self._sizes.get("view")
            if known is not None and are_equal(known.messages, messages):
                return known.blocks
        return any(type(message.content) is list for message in messages)

    def counted(self, count: Count) -> Count:
        """Return a way to count that knows the tokens of the messages in view."""
        known = self._sizes.get("view")
        return count if known is None else known.counted(0, count)

    def view(self, head: str, messages: Sequence[BaseMessage]) -> tuple[int, Any]:
        """Return what `keep_view` was given under this head, and for how many of the messages."""
        kept, known, value = self._view
        if kept != head or not are_equal(known, messages[: len(known)]):
            return 0, None
        self._view = (head, messages[: len(known)], value)
        return len(known), value

    def keep_view(self, head: str, messages: Sequence[BaseMessage], value: Any) -> None:
        """Keep what the records of a head made of messages, while these only grow."""
        self._view = (head, messages[:], value)


def are_equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # values that cannot be compared, such as arrays
        return False


class Counting:
    """One way to count, for `trigger` and `keep`; LangChain's approximation is scaled by usage."""

    def __init__(self, meter: TokenMeter | None, model: object) -> None:
        self.approximate = meter is None
        self.meter = meter
        self._provider = model_and_provider(model, "")[1]
        anthropic = str(getattr(model, "_llm_type", "")).startswith("anthropic-chat")
        given: Any = {"chars_per_token": ANTHROPIC_CHARACTERS} if anthropic else {}
        approximation: Any = partial(count_tokens_approximately, **given)
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

    def total(self, sizes: Sizes) -> int:
        """Return the tokens of a history, without what models reported."""
        if not self.by_list or self.meter is None:
            return sizes.total()
        known, length, count = self._latest
        if known is not sizes.messages or length != sizes.length:
            count = self.meter.whole(sizes.messages[: sizes.length])
            self._latest = sizes.messages, sizes.length, count
        return count

    def of(self, messages: Iterable[BaseMessage]) -> int:
        """Count the tokens of messages as the trigger does, with all that models reported."""
        columns = self.columns
        sizes = Sizes([], [[0] for _ in columns], []).followed(list(messages), columns)
        return self.asked(sizes, 0)

    def asked(self, sizes: Sizes, since: int) -> int:
        """Return the size for the trigger, in tokens; reports before `since` are out of date."""
        total, newest = self.total(sizes), sizes.newest
        if newest is None or newest.place < since:
            return total
        report = next((one for one in reversed(sizes.answers) if one.total is not None), None)
        if (
            self.approximate
            and report is not None
            and report.place >= since
            and sizes.length > 1
            and len(newest.providers) == 1
            and (counted := sizes.upto(report.place + 1)) > 0
        ):
            total = math.ceil(total * min(MOST_SCALE, max(1.0, (report.total or 0) / counted)))
        trusted = newest.total and self._trusts(newest.provider)
        return max(total, newest.total or 0) if trusted else total

    def reached(self, sizes: Sizes, since: int) -> int:
        """Return the size after a compaction, as the first answer since reported it, or 0."""
        answers = sizes.since(since) if since else ()
        first = next((one for one in answers if one.total is not None), None)
        if first is None or not self._trusts(first.provider):
            return 0
        return first.input or first.total or 0

    def _trusts(self, provider: str | None) -> bool:
        """Return whether reports of a provider are those of the managed model."""
        own = self._provider
        return bool(provider) and (provider == own or provider in ALIASES.get(own, ()))
