"""Count a history for its trigger as LangChain's own middleware counts.

Users have chosen their thresholds by that count. Whether the history fits the window is another
question, which the meter answers.

If the first answer after a compaction reports that system prompt and tools alone meet the trigger,
that report is the size after it: the history has to grow by a tenth from there.
"""

from __future__ import annotations

import math
from functools import partial

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.model.calls import model_and_provider
from conspectus.tokens import TokenCounter, TokenMeter
from conspectus.tokens.counters import MessageCounter
from conspectus.tokens.tally import Sizes

MOST_SCALE = 1.25
"""LangChain's limit for scaling its approximation up by reported usage."""

CHARACTERS, ANTHROPIC_CHARACTERS = 4.0, 3.3
"""Characters a token in LangChain's count, in general and for Anthropic's models."""

ALIASES = {
    "amazon_bedrock": frozenset({"bedrock", "bedrock_converse"}),
    "openai-mantle": frozenset({"openai"}),
    "anthropic-mantle": frozenset({"anthropic"}),
}
"""Names of a provider in its messages, by its name in its model."""


class Counting:
    """One way to count, for triggers and `keep`; LangChain's approximation is scaled by usage.

    Attributes:
        base: tokens that the counter gives for no message at all, such as a reply's opening.
        whole: counts a whole history, as LangChain's middleware does.
    """

    def __init__(self, counter: TokenCounter, model: object) -> None:
        self.approximate = counter is count_tokens_approximately
        self._provider = model_and_provider(model, "")[1]
        anthropic = str(getattr(model, "_llm_type", "")).startswith("anthropic-chat")
        characters = ANTHROPIC_CHARACTERS if anthropic else CHARACTERS
        approximation = partial(count_tokens_approximately, chars_per_token=characters)
        self.whole: TokenCounter = counter
        if self.approximate:
            self.whole = partial(approximation, use_usage_metadata_scaling=True)
        self._count = MessageCounter(
            approximation if self.approximate else counter, lambda one: approximation([one])
        )
        self.base = self._count.base

    def message(self, message: BaseMessage) -> int:
        return max(0, self._count(message) - self.base)

    def asked(self, sizes: Sizes, since: int) -> int:
        """Return the size for the trigger, in tokens; reports before `since` are out of date."""
        total = sizes.totals[0] + self.base
        report = sizes.newest_report
        if (
            self.approximate
            and report is not None
            and report.index >= since
            and sizes.messages > 1
            and sizes.one_provider
            and (counted := sizes.upto(report.index + 1)) > 0
        ):
            assert report.total is not None
            total = math.ceil(total * min(MOST_SCALE, max(1.0, report.total / counted)))
        newest = sizes.newest_answer
        if newest is not None and newest.total and newest.index >= since:
            total = max(total, newest.total) if self._trusts(newest.provider) else total
        return total

    def reached(self, sizes: Sizes, since: int) -> int:
        """Return the size after the latest compaction, as the first answer since reported it, or 0.

        A report includes the system prompt and the tools, which no compaction makes smaller. If
        they alone reach the trigger, every step would summarise again.
        """
        first = sizes.first_report(since) if since else None
        if first is None or not self._trusts(first.provider):
            return 0
        return first.input or first.total or 0

    def _trusts(self, provider: str | None) -> bool:
        """Return whether reports of a provider are those of the managed model."""
        own = self._provider
        return bool(provider) and (provider == own or provider in ALIASES.get(own, ()))


def meter_for(counter: TokenCounter | str | None, model: object) -> TokenMeter:
    """Make the meter of requests: the user's counter, or else our own estimate."""
    approximate = counter is count_tokens_approximately
    return TokenMeter(None if approximate else counter, model=model)
