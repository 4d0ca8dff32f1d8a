"""How many examples each property gets: a few, the same each time, or what a long run pays for."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

LONG = os.environ.get("CONSPECTUS_PROFILE") == "long"


def budgeted(machine: type[RuleBasedStateMachine], *, short: int, long: int) -> Any:
    """A test case that runs a machine.

    Args:
        machine: the world with its promise.
        short: examples in the short profile.
        long: and in the long one.
    """
    case: Any = machine.TestCase
    case.settings = settings(
        max_examples=long if LONG else short,
        stateful_step_count=machine.steps,  # type: ignore[attr-defined]
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    case.through = machine.through  # type: ignore[attr-defined]
    return case
