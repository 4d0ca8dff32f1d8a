"""Count a history as its trigger does.

Sizes are counted as LangChain's own middleware counts them, because users have chosen their
triggers for that. The first answer after a compaction may report that system prompt and tools alone
reach the trigger. Then that report counts as the size after the compaction, and the next one waits
until the history has grown by a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.langchain.history_sizes import HistorySizes, MessageCount, ReportedAnswer
from conspectus.model.calls import model_and_provider
from conspectus.tokens import TokenMeter

MOST_SCALE = 1.25
"""LangChain's limit for scaling its approximation up by reported usage."""

ANTHROPIC_CHARACTERS = 3.3
"""Characters a token in LangChain's count for Anthropic's models."""

ALIASES = {
    "amazon_bedrock": frozenset({"bedrock", "bedrock_converse"}),
    "openai-mantle": frozenset({"openai"}),
    "anthropic-mantle": frozenset({"anthropic"}),
}
"""Names of a provider in its messages, by its name in its model."""


class Counting:
    """One way to count, for `trigger` and `keep`; LangChain's approximation is scaled by usage."""

    def __init__(self, meter: TokenMeter | None, model: object) -> None:
        self.approximate = meter is None
        self.meter = meter
        self._provider = model_and_provider(model, "")[1]
        anthropic = str(getattr(model, "_llm_type", "")).startswith("anthropic-chat")
        options: Any = {"chars_per_token": ANTHROPIC_CHARACTERS} if anthropic else {}
        approximation: Any = partial(count_tokens_approximately, **options)
        self.message: MessageCount = lambda message: approximation((message,))
        if meter is not None:
            self.message = meter.count_message
        # Whether the caller's function counts. It is called with the list, as in LangChain.
        self.by_list = meter is not None and meter.counts_lists
        # The latest history that it has counted, with its length and its tokens.
        self._latest: tuple[list[BaseMessage], int, int] = ([], 0, 0)

    @property
    def columns(self) -> list[MessageCount]:
        """The ways to count single messages at each step."""
        return [] if self.by_list else [self.message]

    def total(self, sizes: HistorySizes) -> int:
        """Return the tokens of a history, without usage that models have reported."""
        if not self.by_list or self.meter is None:
            return sizes.total()
        counted, length, count = self._latest
        if counted is not sizes.messages or length != sizes.length:
            count = self.meter.count_list(sizes.messages[: sizes.length])
            self._latest = (sizes.messages, sizes.length, count)
        return count

    def count(self, messages: Iterable[BaseMessage]) -> int:
        """Count the tokens of messages as the trigger does, with all usage reported by models."""
        columns = self.columns
        empty = HistorySizes([], [[0] for _ in columns], [])
        sizes = empty.extended(list(messages), columns)
        return self.trigger_size(sizes, 0)

    def trigger_size(self, sizes: HistorySizes, since: int) -> int:
        """Return the size for the trigger, in tokens. Reports before `since` are not used."""
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
        counted = sizes.tokens_up_to(report.place + 1)
        if counted <= 0:
            return 1.0
        return min(MOST_SCALE, max(1.0, (report.total or 0) / counted))

    def size_reported_after(self, sizes: HistorySizes, since: int) -> int:
        """Return the size that the first answer after a compaction reported; 0 without one."""
        answers = sizes.answers_since(since) if since else ()
        first = next((answer for answer in answers if answer.total is not None), None)
        if first is None or not self._trusts(first.provider):
            return 0
        return first.input or first.total or 0

    def _trusts(self, provider: str | None) -> bool:
        """Tell whether a provider is that of the managed model, so that its reports are used."""
        managed_provider = self._provider
        return bool(provider) and (
            provider == managed_provider or provider in ALIASES.get(managed_provider, ())
        )
