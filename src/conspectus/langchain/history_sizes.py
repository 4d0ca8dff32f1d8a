"""The sizes of a history that mostly grows, and what its answers report of their usage.

Most steps only add messages. What was computed of a history is kept while it only grows, so that a
step looks at new messages alone: lists of the same objects compare at less than a nanosecond a
message. Equal objects, as of a checkpoint, are known too. Changes of an object in place are not
noticed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from conspectus.messages.message import MESSAGE_OVERHEAD, characters, has_thoughts
from conspectus.tokens import UsageReport
from conspectus.tokens.meter import LEAST_GROWTH

MessageCount = Callable[[BaseMessage], int]


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

    def extended(
        self, messages: Sequence[BaseMessage], counts: Sequence[MessageCount]
    ) -> HistorySizes:
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

    def counted(self, column: int, count: MessageCount) -> MessageCount:
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

    def reports(self, since: int, column: int) -> list[UsageReport]:
        """Return the first and the last usable report from the index `since` on."""
        large_enough = bisect_left(self.sums[column], LEAST_GROWTH)
        answers = self.since(max(since, large_enough))
        first = next((answer for answer in answers if answer.input), None)
        last = next((answer for answer in reversed(answers) if answer.input), None)
        return [
            UsageReport(self.upto(answer.place, column), answer.input or 0, answer.thinks)
            for answer in (first, last)
            if answer is not None
        ]


def are_equal(left: object, right: object) -> bool:
    """Return whether two values are equal; False for those that cannot be compared."""
    try:
        return bool(left == right)
    except Exception:  # such as arrays
        return False
