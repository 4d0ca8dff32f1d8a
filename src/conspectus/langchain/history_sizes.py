"""The sizes of a history to which messages are added, and the usage that its answers report.

Most steps only add messages. Then the sizes of earlier messages are not computed again. To compare
the lists takes less than a nanosecond a message if the objects are the same; equal objects, for
example from a checkpoint, are recognised, too. A change of an object in place is not noticed.
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
    """One answer of a model: its place, its provider and its reported usage."""

    place: int
    provider: str | None
    total: int | None  # reported tokens of request and answer
    input: int | None  # reported tokens of the request
    thinks: bool  # it, or an answer before it, has thoughts
    providers: tuple[str | None, ...]  # of answers up to it, from the first that names one

    @classmethod
    def of(cls, message: AIMessage, index: int, previous: ReportedAnswer | None) -> ReportedAnswer:
        """Read the answer at an index; `previous` is the answer before it."""
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
    """A history at one moment. As long as messages are only added, later ones share its lists."""

    messages: list[BaseMessage]
    # for each way to count, the tokens of the first 0, 1, 2 … messages
    sums: Sequence[list[int]]
    answers: list[ReportedAnswer]  # those with a report of usage
    newest: ReportedAnswer | None = None
    length: int = 0
    first_new: int = 0  # the first message that is new; 0 after an edit
    characters: int = 0
    blocks: bool = False  # a content is a list of blocks, such as thoughts

    def extended(
        self, messages: Sequence[BaseMessage], counts: Sequence[MessageCount]
    ) -> HistorySizes:
        """Return the sizes of a later history; only new messages are counted."""
        history = self.messages
        length = self.length
        history += messages[length:]  # two lists of one length are compared without a copy
        if len(history) != len(messages) or not are_equal(history, messages):
            counts = [self.reusing_counts(column, count) for column, count in enumerate(counts)]
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

    def reusing_counts(self, column: int, count: MessageCount) -> MessageCount:
        """Return a way to count an edited history without counting the same objects again."""
        sums = pairwise(self.sums[column])
        pairs = zip(self.messages[: self.length], sums, strict=False)
        # The dict holds the messages, so that no other object gets their ids.
        tokens = {id(message): (message, end - start) for message, (start, end) in pairs}

        def tokens_of(message: BaseMessage) -> int:
            counted = tokens.get(id(message))
            return count(message) if counted is None else counted[1]

        return tokens_of

    def tokens_up_to(self, index: int, column: int = 0) -> int:
        """Return the tokens of the first `index` messages."""
        return self.sums[column][index]

    def total(self, column: int = 0) -> int:
        return self.sums[column][self.length]

    def answers_since(self, index: int) -> Sequence[ReportedAnswer]:
        """Return the answers from an index of the history onwards."""
        return self.answers[bisect_left(self.answers, index, key=attrgetter("place")) :]

    def reports(self, since: int, column: int) -> list[UsageReport]:
        """Return the first and the last usable report from the index `since` onwards."""
        large_enough = bisect_left(self.sums[column], LEAST_GROWTH)
        answers = self.answers_since(max(since, large_enough))
        first = next((answer for answer in answers if answer.input), None)
        last = next((answer for answer in reversed(answers) if answer.input), None)
        return [
            UsageReport(self.tokens_up_to(answer.place, column), answer.input or 0, answer.thinks)
            for answer in (first, last)
            if answer is not None
        ]


def are_equal(left: object, right: object) -> bool:
    """Tell whether two values are equal; False for those that cannot be compared."""
    try:
        return bool(left == right)
    except Exception:  # such as arrays
        return False
