"""What is tried and paid for one summary, whatever becomes of it."""

from __future__ import annotations

from conspectus.core.records import Cost
from conspectus.errors import SummaryError, SummaryRejected


class Attempts:
    """The account of one try to compact. It belongs to whoever began the try.

    A cost is entered as soon as a model has answered, so that no later error can lose it.

    Attributes:
        spent: what all calls have cost, those that failed too.
        failures: why attempts failed, one sentence for each.
        was_rejected: a text that was paid for was no summary.
    """

    def __init__(self) -> None:
        self.spent = Cost()
        self.failures: list[str] = []
        self.was_rejected = False

    def add_cost(self, by: str, cost: Cost) -> None:
        """Enter what calls of a summariser have cost."""
        self.spent += name_cost(by, cost)

    def add_failure(self, by: str, error: SummaryError) -> None:
        """Enter why a summariser failed. Its cost is entered by `add_cost`."""
        if isinstance(error, SummaryRejected) or error.after_rejection:
            self.was_rejected = True
        reason = str(error)
        self.failures.append(reason if f"{by} " in reason else f"{by}: {reason}")


def name_cost(by: str, cost: Cost) -> Cost:
    """Name the summariser in a cost that names no model."""
    return cost.asked_of(by) if cost.calls and not cost.models else cost
