"""How many examples each property gets: a few, the same each time, or what a long run pays for."""

import os
import zlib
from typing import Any

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine

PROFILE = os.environ.get("CONSPECTUS_PROFILE", "short")
LONG = PROFILE == "long"
FAST = PROFILE.startswith("fast")
"""What `make test` runs; `make test-all` runs the same properties again, with the short profile."""

SEED = int(os.environ.get("CONSPECTUS_SEED", "0"))
"""Of the long profile."""


def few(short: int) -> int:
    """How many examples a property gets in the fast profile; in others as many as it says."""
    return max(1, short // 8) if FAST else short


def budgeted(
    machine: type[Any], world: type[RuleBasedStateMachine] | None = None, *, short: int, long: int
) -> Any:
    """A test case that runs a machine.

    Args:
        machine: the world with its promise, or the promise alone.
        world: the world that the promise is held against, if it is alone.
        short: examples in the short profile.
        long: and in the long one.
    """
    if world is not None:
        machine = type(f"{machine.__name__}{world.__name__}", (machine, world), {})
    if LONG:  # from one seed, machines with the same rules would all take the same walks
        machine = seed(SEED + zlib.crc32(machine.__name__.encode()))(machine)  # type: ignore[assignment,arg-type]
    case: Any = machine.TestCase
    case.settings = settings(
        max_examples=long if LONG else few(short),
        stateful_step_count=machine.steps,  # type: ignore[attr-defined]
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    return case
