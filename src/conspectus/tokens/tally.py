"""Keep running sizes of growing threads; each message object is counted once.

An agent needs the size of its history before every call of its model. A tally keeps the running
sums of one thread and compares objects, not contents, to find replaced messages, which takes some
20 nanoseconds a message. It holds weak references. A message that comes back as another object, as
after a checkpoint, is found by a fingerprint of its content. Changes of an object in place are not
noticed; LangGraph's reducers and LangChain's own middleware never make them.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import call
from weakref import ref

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from conspectus._newest import Newest
from conspectus.tokens.usage import LEAST_GROWTH, Report

Count = Callable[[BaseMessage], int]

THREADS = 256  # Most tallies kept; the one used least recently goes first

MESSAGES = 262_144
"""Most messages in all tallies, some 110 bytes each; a single longer thread is still tallied."""

FINGERPRINTS = 65_536  # Most messages cached by content, about 200 bytes each


@dataclass(frozen=True, slots=True)
class Answer:
    """The metadata of one answer: its place, provider and reported tokens, if any.

    `total` counts input and output tokens.
    """

    index: int
    provider: str | None
    total: int | None
    input: int | None


class Tally:
    """The sizes of one thread's messages, with a column for each way of counting."""

    def __init__(self, counts: Sequence[Count]) -> None:
        self._counts = counts
        self._refs: list[ref[BaseMessage]] = []
        self._sums = [array("q") for _ in counts]
        self._answers: list[Answer] = []
        self._told: list[Answer] = []
        self._provider: str | None = None
        self._mixed = False
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._refs)

    def follow(self, messages: Sequence[BaseMessage]) -> Sizes:
        """Count messages of a whole history that are new or replaced since the last call."""
        with self._lock:
            # Comparing lists looks at identity first, so this costs some 20 nanoseconds a message.
            if list(map(call, self._refs)) != messages[: len(self._refs)]:
                self._cut(self._first_other(messages))
            fresh = len(self._refs)
            for index in range(fresh, len(messages)):
                self._add(index, messages[index])
            return Sizes(
                len(messages),
                tuple(sums[-1] if sums else 0 for sums in self._sums),
                fresh,
                self._answers,
                self._told,
                self._sums,
                self._provider is not None and not self._mixed,
            )

    def _first_other(self, messages: Sequence[BaseMessage]) -> int:
        pairs = zip(messages, map(call, self._refs), strict=False)
        at = next((i for i, (now, before) in enumerate(pairs) if now is not before), None)
        return min(len(messages), len(self._refs)) if at is None else at

    def _cut(self, at: int) -> None:
        # New lists, as the sizes of the step before go on reading the old ones.
        self._refs = self._refs[:at]
        self._sums = [sums[:at] for sums in self._sums]
        self._answers = [answer for answer in self._answers if answer.index < at]
        self._told = [answer for answer in self._told if answer.index < at]
        self._provider, self._mixed = None, False
        for answer in self._answers:
            self._name(answer.provider)

    def _add(self, index: int, message: BaseMessage) -> None:
        for sums, count in zip(self._sums, self._counts, strict=True):
            sums.append((sums[-1] if sums else 0) + count(message))
        if isinstance(message, AIMessage):
            answer = _answer(index, message)
            self._answers.append(answer)
            if answer.total is not None or answer.input is not None:
                self._told.append(answer)
            self._name(answer.provider)
        self._refs.append(ref(message))

    def _name(self, provider: str | None) -> None:
        """Note a provider; a second one, or an answer without one, makes them mixed."""
        if self._provider is None:
            self._provider = provider
        elif provider != self._provider:
            self._mixed = True


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a history at one moment.

    `totals` are its tokens by column; `fresh` is the place of the first new or replaced message.
    `one_provider`: from the first AI message with a provider on, all name that one; LangChain
    trusts reported usage only then.
    """

    messages: int
    totals: tuple[int, ...]
    fresh: int
    _answers: Sequence[Answer]
    _told: Sequence[Answer]
    _sums: Sequence[array[int]]
    one_provider: bool

    def upto(self, index: int, column: int = 0) -> int:
        """Return the tokens of the first `index` messages."""
        return self._sums[column][index - 1] if index else 0

    @property
    def newest_answer(self) -> Answer | None:
        """The newest AI message's metadata."""
        return self._answers[-1] if self._answers else None

    @property
    def newest_report(self) -> Answer | None:
        """The newest AI message's metadata with a total of tokens."""
        return next((one for one in reversed(self._told) if one.total is not None), None)

    def first_report(self, since: int) -> Answer | None:
        """Return the first metadata with a total of tokens, from place `since` on."""
        begin = bisect_left(self._told, since, key=lambda answer: answer.index)
        after = (self._told[place] for place in range(begin, len(self._told)))  # asked at each step
        return next((one for one in after if one.total is not None), None)

    def reports(self, since: int, column: int) -> list[Report]:
        """Return the first and the last usable report from place `since` on."""
        begin = bisect_left(self._told, since, key=lambda answer: answer.index)
        first = self._usable(range(begin, len(self._told)), column)
        last = self._usable(range(len(self._told) - 1, begin - 1, -1), column)
        return [report for report in (first, last) if report is not None]

    def _usable(self, places: range, column: int) -> Report | None:
        for place in places:
            answer = self._told[place]
            before = self.upto(answer.index, column)
            report = Report(before, answer.input or 0)
            if before >= LEAST_GROWTH and report.reported > 0:
                return report
        return None


class Tallies:
    """Tallies of many threads: bounded, and safe to share between workers.

    Without `by_content`, a message that comes back as another object is counted anew, which saves a
    look-up.
    """

    def __init__(self, *counts: Count, by_content: bool = True) -> None:
        self._counts = tuple(map(remembered, counts)) if by_content else counts
        self._threads: Newest[str, Tally] = Newest(THREADS, MESSAGES, len)

    def follow(self, thread: str, messages: Sequence[BaseMessage]) -> Sizes:
        """Return the sizes of a thread as it is now, under a stable name."""
        tally = self._threads.get(thread) or Tally(self._counts)
        sizes = tally.follow(messages)
        self._threads.put(thread, tally)  # now that its size is known
        return sizes

    @property
    def messages(self) -> int:
        """Messages in all tallies together."""
        return sum(map(len, self._threads.values()))


def remembered(count: Count) -> Count:
    """Wrap a count so that it finds a message again by its content."""
    known: Newest[int, int] = Newest(FINGERPRINTS)

    def counted(message: BaseMessage) -> int:
        mark = fingerprint(message)
        size = known.get(mark)
        if size is None:
            size = count(message)
            known.put(mark, size)
        return size

    return counted


def fingerprint(message: BaseMessage) -> int:
    """Hash all parts of a message that have a size."""
    content = message.content
    parts: list[object] = [
        type(message),
        message.id,
        message.name,
        content if isinstance(content, str) else repr(content),
    ]
    if message.additional_kwargs:
        parts.append(repr(message.additional_kwargs))
    if isinstance(message, AIMessage):
        if message.tool_calls or message.invalid_tool_calls:
            parts += [repr(message.tool_calls), repr(message.invalid_tool_calls)]
        if "reasoning_content" in message.response_metadata:
            parts.append(str(message.response_metadata["reasoning_content"]))
    elif isinstance(message, ToolMessage):
        parts.append(message.tool_call_id)
    return hash(tuple(parts))


def _answer(index: int, message: AIMessage) -> Answer:
    usage: Mapping[str, object] = message.usage_metadata or {}
    total, sent = usage.get("total_tokens"), usage.get("input_tokens")
    return Answer(
        index,
        message.response_metadata.get("model_provider"),
        total if isinstance(total, int) else None,
        sent if isinstance(sent, int) else None,
    )
