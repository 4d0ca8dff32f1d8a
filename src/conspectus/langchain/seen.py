"""Answer for each history: is this the one that was seen before, and how large is it now?

Most steps only add messages. What was computed of a history is kept while it only grows, so that a
step looks at new messages alone. Objects are compared, at some 2 ns a message in the histories used
last, and held weakly in others; other objects, as after a checkpoint, are known by fingerprints of
their content. Changes of an object in place are not noticed.

Sizes are counted as LangChain's own middleware counts them, as users have chosen their triggers by
that. If the first answer after a compaction reports that system prompt and tools alone meet the
trigger, that report is the size after it: the history has to grow by a tenth from there.
"""

from __future__ import annotations

import contextlib
import math
import threading
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter, call
from typing import Any, NamedTuple
from weakref import ref

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus._newest import Newest
from conspectus.model.calls import model_and_provider
from conspectus.tokens import Report, TokenCounter, TokenMeter
from conspectus.tokens.counters import MessageCounter
from conspectus.tokens.meter import LEAST_GROWTH

Count = Callable[[BaseMessage], int]

HISTORIES, MESSAGES = 256, 262_144
"""Most histories in a cache, and most messages in all of them, at some 100 bytes each; a longer
history stays alone. The least recently used goes first."""

HELD = 8  # histories, used last, whose messages are kept alive: lists of objects compare fast

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
    fresh: int  # the first message that is new or another one than before
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


class Seen:
    """One history as it was seen last, and what was computed of it."""

    def __init__(self, counts: Sequence[Count], *, by_content: bool) -> None:
        # The latest step that was due and changed nothing: its head, over the window, messages.
        self.tried: tuple[str, bool, int] = ("", False, -1)
        self.looked: tuple[str, int] = ("", 0)  # head, and messages without long arguments
        self.pointed: tuple[object, str] = (None, "")  # archive, and what its pointer names
        self.run = ""  # the run of a subgraph that has looked for its record
        self._counts, self._lock = counts, threading.Lock()
        self._refs: list[ref[BaseMessage]] = []
        self._held: list[BaseMessage] | None = []
        self._marks: list[int] | None = [] if by_content else None
        self._sums = [array("q") for _ in counts]
        self._values: dict[str, tuple[str, int, Any]] = {}
        self._answers: list[Answer] = []
        self._newest: Answer | None = None
        self._provider: str | None = None
        self._mixed = False

    def __len__(self) -> int:
        return len(self._refs)

    def follow(self, messages: Sequence[BaseMessage], columns: int = 1) -> Sizes:
        """Look at a whole history again; count messages that are new or replaced."""
        with self._lock:
            # Comparing lists looks at identity first.
            known = list(map(call, self._refs)) if self._held is None else self._held
            if known != messages[: len(known)]:
                self._recognise(messages)
            fresh = len(self._refs)
            self._held = list(messages) if self._held is None else self._held
            self._held += messages[len(self._held) :]
            for place, message in enumerate(messages[fresh:], fresh):
                self._refs.append(ref(message))
                if self._marks is not None:
                    self._marks.append(fingerprint(message))
                if isinstance(message, AIMessage):
                    self._note(place, message)
            for sums, count in zip(self._sums[:columns], self._counts, strict=False):
                for message in messages[len(sums) :]:
                    sums.append((sums[-1] if sums else 0) + count(message))
            alone = self._provider is not None and not self._mixed
            found = self._sums, self._answers, self._newest, alone
            return Sizes(len(messages), fresh, *found)

    def _note(self, place: int, message: AIMessage) -> None:
        usage: Mapping[str, object] = message.usage_metadata or {}
        reported = (usage.get("total_tokens"), usage.get("input_tokens"))
        total, sent = (one if isinstance(one, int) else None for one in reported)
        provider = message.response_metadata.get("model_provider")
        answer = self._newest = Answer(place, provider, total, sent)
        if total is not None or sent is not None:
            self._answers.append(answer)
        self._mixed |= self._provider not in (None, provider)
        self._provider = self._provider or provider

    def _note_all(self, messages: Sequence[BaseMessage]) -> None:
        self._answers, self._newest, self._provider, self._mixed = [], None, None, False
        for place, message in enumerate(messages):
            if isinstance(message, AIMessage):
                self._note(place, message)

    def _recognise(self, messages: Sequence[BaseMessage]) -> None:
        """Cut what was seen at the first message that is another one."""
        at, known = 0, min(len(self._refs), len(messages))
        while at < known:
            message = messages[at]
            if self._refs[at]() is not message:
                if self._marks is None or self._marks[at] != fingerprint(message):
                    break
                self._refs[at] = ref(message)
            at += 1
        self._held = list(messages[:at])
        # New lists, as the sizes of the step before go on reading the old ones.
        self._refs = self._refs[:at]
        self._marks = None if self._marks is None else self._marks[:at]
        self._sums = [sums[:at] for sums in self._sums]
        self._note_all(messages[:at])
        self._values = {name: one for name, one in self._values.items() if one[1] <= at}

    def let_go(self) -> None:
        """Keep no message alive any longer."""
        with self._lock:
            self._held = None

    def value(self, name: str, head: str) -> tuple[Any, int] | None:
        """Return what was computed of the history, and its length then."""
        with self._lock:
            made_at, length, value = self._values.get(name, ("", -1, None))
            return (value, length) if length >= 0 and made_at == head else None

    def keep(self, name: str, head: str, messages: Sequence[BaseMessage], value: Any) -> None:
        """Keep what was computed of a history; from now on it is known by its content, too."""
        self.follow(messages, 0)
        with self._lock:
            if len(self._refs) == len(messages):  # another worker may have gone on
                self._values[name] = (head, len(messages), value)
                if self._marks is None:
                    self._marks = [fingerprint(message) for message in messages]


class Histories:
    """The histories of one middleware: bounded, and safe to share between workers."""

    def __init__(self, *counts: Count, by_content: bool = False) -> None:
        self._counts, self._by_content = counts, by_content
        self._known: Newest[str, Seen] = Newest(HISTORIES, MESSAGES, len)
        self._newest: deque[Seen] = deque()

    def of(self, name: str) -> Seen:
        """Return the history of this name, as the one used last."""
        make = partial(Seen, self._counts, by_content=self._by_content)
        seen = self._known.get_or_make(name, make)
        if not self._newest or self._newest[-1] is not seen:
            with contextlib.suppress(ValueError, IndexError):  # other workers may be at it
                self._newest.remove(seen)
            self._newest.append(seen)
            if len(self._newest) > HELD:
                self._newest.popleft().let_go()
        return seen


def fingerprint(message: BaseMessage) -> int:
    """Hash all parts of a message that have a size."""
    thought = message.response_metadata.get("reasoning_content")
    names = ("id", "name", "content", "tool_call_id", "tool_calls", "invalid_tool_calls")
    held = vars(message)  # attributes that a message does not have are slow to ask for
    parts = [held.get(name) for name in (*names, "additional_kwargs")]
    plain = (part if isinstance(part, str) else repr(part) if part else "" for part in parts)
    return hash((type(message), *plain, str(thought)))


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
