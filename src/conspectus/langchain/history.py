"""Answer for each history: is this the one that was seen before, and how large is it now?

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
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.messages import characters, is_summary_message
from conspectus.messages.memory import EACH
from conspectus.model.calls import model_and_provider
from conspectus.tokens import Report, TokenCounter, TokenMeter
from conspectus.tokens.meter import LEAST_GROWTH, MessageCounter

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
    """One answer of a model: its place, provider and reported tokens; `total` with its output."""

    place: int
    provider: str | None
    total: int | None
    input: int | None


class Sizes(NamedTuple):
    """A history at one moment."""

    messages: int
    fresh: int  # the first message that is new; 0 after an edit
    sums: Sequence[array[int]]  # running sums, by way of counting
    answers: Sequence[Answer]  # those with a report of usage
    newest: Answer | None
    one_provider: bool  # all answers from the first with a provider on name that one

    def upto(self, index: int, column: int = 0) -> int:
        """Return the tokens of the first `index` messages."""
        return self.sums[column][index - 1] if index else 0

    def total(self, column: int = 0) -> int:
        return self.upto(self.messages, column)

    def since(self, place: int) -> Sequence[Answer]:
        return self.answers[bisect_left(self.answers, place, key=attrgetter("place")) :]

    def reports(self, since: int, column: int) -> list[Report]:
        """Return the first and the last usable report from place `since` on."""
        answers = self.since(since)
        ends = (self._usable(answers, column), self._usable(reversed(answers), column))
        return [report for report in ends if report is not None]

    def _usable(self, answers: Iterable[Answer], column: int) -> Report | None:
        reports = (Report(self.upto(a.place, column), a.input) for a in answers if a.input)
        return next((one for one in reports if one.estimated >= LEAST_GROWTH), None)


class History:
    """One history as it was seen last, and what was computed of it."""

    def __init__(self, *counts: Count) -> None:
        # The latest step that was due and changed nothing: its head, over the window, messages.
        self.tried: tuple[str, bool, int] = ("", False, -1)
        self.looked: tuple[str, int] = ("", 0)  # head, and messages without long arguments
        self.pointed: tuple[object, str] = (None, "")  # archive, and what its pointer names
        self._counts, self._lock = counts, threading.Lock()
        self._begin()

    def _begin(self) -> None:
        """Forget all messages."""
        self._messages: list[BaseMessage] = []
        self.characters = 0
        # New lists, as the sizes of the step before go on reading the old ones.
        self._sums = [array("q") for _ in self._counts]
        self._answers: list[Answer] = []
        self._newest: Answer | None = None
        self._provider: str | None = None
        self._mixed = False
        self._folded: tuple[str, int, Any] = ("", 0, None)
        self.is_foreign = False  # it begins with a summary, which may be another library's

    def follow(self, messages: Sequence[BaseMessage], *columns: int) -> Sizes:
        """Look at a whole history again; count messages that are new, or all after an edit."""
        with self._lock:
            own, known = self._messages, len(self._messages)
            own += messages[known:]  # two lists of one length are compared without a copy
            if known > len(messages) or not _are_equal(own, messages):
                known = 0
                self._begin()
                self._messages += messages
            elif known and (own[0] is not messages[0] or own[known - 1] is not messages[known - 1]):
                self._messages = list(messages)
            if not known:
                self.is_foreign = bool(messages) and is_summary_message(messages[0])
            self._note(messages[known:], known)
            for column in columns:
                sums, count = self._sums[column], self._counts[column]
                for message in messages[len(sums) :]:
                    sums.append((sums[-1] if sums else 0) + count(message))
            alone = self._provider is not None and not self._mixed
            return Sizes(len(messages), known, self._sums, self._answers, self._newest, alone)

    def _note(self, messages: Iterable[BaseMessage], start: int) -> None:
        for place, message in enumerate(messages, start):
            self.characters += EACH + characters(message.content)
            if not isinstance(message, AIMessage):
                continue
            usage: Mapping[str, object] = message.usage_metadata or {}
            reported = (usage.get("total_tokens"), usage.get("input_tokens"))
            total, sent = (one if isinstance(one, int) else None for one in reported)
            provider = message.response_metadata.get("model_provider")
            self._newest = Answer(place, provider, total, sent)
            if total is not None or sent is not None:
                self._answers.append(self._newest)
            self._mixed |= self._provider not in (None, provider)
            self._provider = self._provider or provider

    def folded(self, head: str, messages: Sequence[BaseMessage]) -> tuple[int, Any]:
        """Return what `keep` was given under this head, and for how many of the messages."""
        self.follow(messages)
        with self._lock:
            kept, count, value = self._folded
            return (count, value) if kept == head else (0, None)

    def keep(self, head: str, messages: Sequence[BaseMessage], value: Any) -> None:
        """Keep what the records of a head made of messages, while these only grow."""
        self.follow(messages)
        with self._lock:
            if len(self._messages) == len(messages):  # another worker may have gone on
                self._folded = (head, len(messages), value)


def _are_equal(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # values that cannot be compared, such as arrays
        return False


class Counting:
    """One way to count, for `trigger` and `keep`; LangChain's approximation is scaled by usage."""

    def __init__(self, counter: TokenCounter | str, model: object) -> None:
        # A text names a vocabulary.
        whole: Any = TokenMeter(counter).messages if isinstance(counter, str) else counter
        kind = getattr(whole, "func", whole)  # it may be `whole` of another one
        self.approximate = kind is count_tokens_approximately
        self._provider = model_and_provider(model, "")[1]
        anthropic = str(getattr(model, "_llm_type", "")).startswith("anthropic-chat")
        characters: Any = {"chars_per_token": ANTHROPIC_CHARACTERS} if anthropic else {}
        approximation: Any = partial(count_tokens_approximately, **characters)
        self.whole: TokenCounter = whole
        self.base = 0
        self.message: Count = lambda message: approximation((message,))
        if self.approximate:
            self.whole = partial(approximation, use_usage_metadata_scaling=True)
            return
        counts = MessageCounter(whole, self.message)
        self.base = base = counts.base
        self.message = lambda message: max(0, counts(message) - base)

    def asked(self, sizes: Sizes, since: int) -> int:
        """Return the size for the trigger, in tokens; reports before `since` are out of date."""
        total, newest = sizes.total() + self.base, sizes.newest
        if newest is None or newest.place < since:
            return total
        report = next((one for one in reversed(sizes.answers) if one.total is not None), None)
        if (
            self.approximate
            and report is not None
            and report.place >= since
            and sizes.messages > 1
            and sizes.one_provider
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
