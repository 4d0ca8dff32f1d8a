"""A request that a provider refuses as too long gets smaller, step by step, until it is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace

from langchain_core.exceptions import ContextOverflowError

from conspectus.agents.state import Requested
from conspectus.errors import StuckError
from conspectus.guard.overflow import Overflow

RESCUE = 0.8
"""Share of what was too much that messages may take when they are sent again: the provider counts
in another way than the estimate, or they would not have been sent."""

STEPS = (RESCUE, 0.4, 0.16, 0.05, 0.0)
"""The same for each further try, of the first request that was refused: providers that say nothing
but "too long" leave a guess, and a batch of results may be ten times too large. The last is as
small as it goes."""

TRIES = len(STEPS)
"""How often a request is sent again at most."""

LEARNED = 0.9
"""Share of the limit that a provider has named to which messages may grow again."""


class StillTooLong(StuckError, ContextOverflowError):
    """Nothing makes the request fit; what LangChain's users catch, and ours."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Requests that a provider has refused as too long, one smaller than the other.

    Attributes:
        tries: how many.
        first: tokens that the messages of the first one took.
        budget: tokens that messages may take in the next one.
        most: tokens that the messages of later requests may take.
        named: the provider has named its limit.
    """

    tries: int = 0
    first: int = 0
    budget: int = 0
    most: int = 0
    named: bool = False

    def and_again(self, size: int, beside: int, told: Overflow) -> Refused:
        """This with one more.

        Args:
            size: tokens of its messages.
            beside: tokens of what stands beside them.
            told: what the provider has said of it.
        """
        tries, first = self.tries + 1, self.first or size
        if tries > TRIES:
            return replace(self, tries=tries)
        budget = int(min(first * STEPS[self.tries], size * RESCUE))
        if told.limit is not None:
            # The provider's tokens are not the estimate's: its limit in ours.
            limit = told.limit * (size + beside) // max(told.sent or told.limit, 1) - beside
            # Where the tools alone seem to be too much, the estimate of them is not to be trusted.
            named = int(min(limit, size) * RESCUE) if limit > 0 else size // 2
            budget = named if tries == 1 else min(budget, named)
        return Refused(tries, first, max(1, budget), self.most, told.limit is not None)

    def having_tried(self, budget: int, refused: int) -> Refused:
        """This once a smaller request is sent.

        Args:
            budget: tokens that its messages may take.
            refused: tokens of those that were refused.
        """
        if self.named:
            return replace(self, most=int(budget / RESCUE * LEARNED))
        # As small as it goes leaves no room for another message: there may well be some.
        smallest = self.tries == TRIES or budget > self.budget
        return replace(self, most=max(budget, int(refused * RESCUE)) if smallest else budget)

    def learned(self, seen: Requested) -> Requested:
        """What the state has to know of the model, once it has taken a request."""
        return seen if not self.tries else seen.having_learned(seen.overhead + self.most)
