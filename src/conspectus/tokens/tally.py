"""Running sizes of growing threads: each message is counted once.

A tally compares objects, not contents, to find replaced messages, which takes some 20 nanoseconds a
message, and holds weak references. A message that comes back as another object, as after a
checkpoint, is found by a hash of its content. Changes of an object in place are not noticed.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, call
from typing import NamedTuple
from weakref import ref

from langchain_core.messages import AIMessage, BaseMessage

from conspectus._newest import Newest
from conspectus.tokens.meter import LEAST_GROWTH, Report

Count = Callable[[BaseMessage], int]

THREADS = 256  # Most tallies kept; the one used least recently goes first
MESSAGES = 262_144  # Most messages in all of them, some 110 bytes each; a longer thread stays alone
FINGERPRINTS = 65_536  # Most messages cached by content, about 200 bytes each


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model: its place, provider and reported tokens; `total` with its output."""

    index: int
    provider: str | None
    total: int | None
    input: int | None


class Sizes(NamedTuple):
    """A history at one moment: its tokens by column, and the first new or replaced message."""

    messages: int
    fresh: int
    totals: tuple[int, ...]
    sums: Sequence[array[int]]
    answers: Sequence[Answer]

    def upto(self, index: int, column: int = 0) -> int:
        """Return the tokens of the first `index` messages."""
        return self.sums[column][index - 1] if index else 0

    @property
    def newest_answer(self) -> Answer | None:
        """The newest answer."""
        return self.answers[-1] if self.answers else None

    @property
    def newest_report(self) -> Answer | None:
        """The newest answer with a total of tokens."""
        return next((one for one in reversed(self.answers) if one.total is not None), None)

    @property
    def one_provider(self) -> bool:
        """Whether all answers from the first with a provider on name that one, as in LangChain."""
        names = [one.provider for one in self.answers]
        first = next(filter(None, names), None)
        return first is not None and set(names[names.index(first) :]) == {first}

    def first_report(self, since: int) -> Answer | None:
        """Return the first answer with a total of tokens, from place `since` on."""
        return next((one for one in self._since(since) if one.total is not None), None)

    def reports(self, since: int, column: int) -> list[Report]:
        """Return the first and the last usable report from place `since` on."""
        answers = self._since(since)
        ends = self._usable(answers, column), self._usable(reversed(answers), column)
        return [report for report in ends if report is not None]

    def _since(self, since: int) -> Sequence[Answer]:
        return self.answers[bisect_left(self.answers, since, key=attrgetter("index")) :]

    def _usable(self, answers: Iterable[Answer], column: int) -> Report | None:
        reports = (Report(self.upto(a.index, column), a.input) for a in answers if a.input)
        return next((one for one in reports if one.estimated >= LEAST_GROWTH), None)


class Tally:
    """The sizes of one thread's messages, with a column for each way of counting."""

    def __init__(self, counts: Sequence[Count]) -> None:
        self._counts, self._lock = counts, threading.Lock()
        self._refs: list[ref[BaseMessage]] = []
        self._sums = [array("q") for _ in counts]
        self._answers: list[Answer] = []

    def __len__(self) -> int:
        return len(self._refs)

    def follow(self, messages: Sequence[BaseMessage]) -> Sizes:
        """Count messages of a whole history that are new or replaced since the last call."""
        with self._lock:
            # Comparing lists looks at identity first, so this costs some 20 nanoseconds a message.
            known = list(map(call, self._refs))
            if known != messages[: len(known)]:
                same = (now is before for now, before in zip(messages, known, strict=False))
                self._cut(next((at for at, one in enumerate(same) if not one), len(messages)))
            fresh = len(self._refs)
            for message in messages[fresh:]:
                self._add(message)
            totals = tuple(sums[-1] if sums else 0 for sums in self._sums)
            return Sizes(len(messages), fresh, totals, self._sums, self._answers)

    def _cut(self, at: int) -> None:
        # New lists, as the sizes of the step before go on reading the old ones.
        self._refs = self._refs[:at]
        self._sums = [sums[:at] for sums in self._sums]
        self._answers = [answer for answer in self._answers if answer.index < at]

    def _add(self, message: BaseMessage) -> None:
        for sums, count in zip(self._sums, self._counts, strict=True):
            sums.append((sums[-1] if sums else 0) + count(message))
        if isinstance(message, AIMessage):
            usage: Mapping[str, object] = message.usage_metadata or {}
            reported = (usage.get("total_tokens"), usage.get("input_tokens"))
            total, sent = (one if isinstance(one, int) else None for one in reported)
            provider = message.response_metadata.get("model_provider")
            self._answers.append(Answer(len(self._refs), provider, total, sent))
        self._refs.append(ref(message))


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


def remembered(count: Count) -> Count:
    """Wrap a count so that it finds a message again by its content."""
    known: Newest[int, int] = Newest(FINGERPRINTS)

    def counted(message: BaseMessage) -> int:
        mark = fingerprint(message)
        size = known.get(mark)
        if size is None:
            known.put(mark, size := count(message))
        return size

    return counted


def fingerprint(message: BaseMessage) -> int:
    """Hash all parts of a message that have a size."""
    thought = message.response_metadata.get("reasoning_content")
    names = ("id", "name", "content", "tool_call_id", "tool_calls", "invalid_tool_calls")
    held = vars(message)  # attributes that a message does not have are slow to ask for
    parts = [held.get(name) for name in (*names, "additional_kwargs")]
    plain = (part if isinstance(part, str) else repr(part) if part else "" for part in parts)
    return hash((type(message), *plain, str(thought)))
