"""What was tried and paid for a summary, also where an error ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from conspectus.core.records import Cost
from conspectus.errors import ConspectusError, SummaryError


@dataclass(frozen=True, slots=True)
class Attempts:
    """What was tried for a summary."""

    spent: Cost = field(default_factory=Cost)  # by all tries, those that failed too
    failures: tuple[str, ...] = ()  # tries that failed, one sentence each

    def with_cost(self, cost: Cost) -> Attempts:
        """Return these with what one more try has cost."""
        return replace(self, spent=self.spent + cost)

    def with_failure(self, by: str, error: SummaryError) -> Attempts:
        """Return these with a try of a summariser that failed."""
        reason = str(error)
        failure = reason if f"{by} " in reason else f"{by}: {reason}"
        cost: Any = getattr(error, "cost", Cost())
        return Attempts(self.spent + name_cost(by, cost), (*self.failures, failure))


@contextmanager
def attach_attempts(attempts: Attempts) -> Iterator[None]:
    """Have an error that is raised in here say what was spent and tried before it."""
    try:
        yield
    except ConspectusError as error:
        error.attempts = attempts
        raise


def attempts_of(error: ConspectusError) -> Attempts:
    """Return what had been spent and tried before an error."""
    return error.attempts if isinstance(error.attempts, Attempts) else Attempts()


def name_cost(by: str, cost: Cost) -> Cost:
    """Name the summariser in a cost that names no model."""
    return cost.asked_of(by) if cost.calls and not cost.models else cost
