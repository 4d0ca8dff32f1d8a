"""Count a history for its trigger as LangChain's own middleware counts.

Users have chosen their thresholds by that count. Whether the history fits the window is another
question, which the meter answers.

If the first answer after a compaction reports that system prompt and tools alone meet the trigger,
that report is the size after it: the history has to grow by a tenth from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus.model.calls import model_and_provider
from conspectus.tokens import TokenCounter, TokenMeter
from conspectus.tokens.meter import checked_count
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
        self._counter: Callable[[list[BaseMessage]], Any] = rounded(counter)
        self.whole: TokenCounter = counter
        if self.approximate:
            anthropic = str(getattr(model, "_llm_type", "")).startswith("anthropic-chat")
            characters = ANTHROPIC_CHARACTERS if anthropic else CHARACTERS
            self._counter = partial(count_tokens_approximately, chars_per_token=characters)
            self.whole = partial(
                count_tokens_approximately,
                chars_per_token=characters,
                use_usage_metadata_scaling=True,
            )
        self.base = 0 if self.approximate else self._nothing()

    def message(self, message: BaseMessage) -> int:
        return max(0, checked_count(self._counter([message])) - self.base)

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

    def _nothing(self) -> int:
        try:
            found = self._counter([])
        except Exception:  # a counter may not be made for an empty list
            return 0
        return found if isinstance(found, int) and found > 0 else 0


def rounded(counter: TokenCounter) -> TokenCounter:
    """Round a counter's fractions of tokens up; users write characters / 4."""

    def counted(messages: Any) -> Any:
        count: Any = counter(messages)
        fraction = isinstance(count, float) and math.isfinite(count)
        return math.ceil(count) if fraction else count

    return counted


def meter_for(
    counter: TokenCounter | str | None, model: object, file_tokens: int | None = None
) -> TokenMeter:
    """Make the meter of requests: the user's counter, or else our own estimate."""
    if counter is count_tokens_approximately:
        counter = None
    exact = rounded(counter) if callable(counter) else counter
    return TokenMeter(exact, model=model, file_tokens=file_tokens)
