"""The extra that this package stands on, and what to do where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deepagents() -> Iterator[None]:
    """Import of Deep Agents, which is optional.

    Raises:
        ImportError: it is not installed; says how to.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "deepagents":
            raise
        raise ImportError(
            "Deep Agents is not installed; install it with: pip install 'conspectus[deepagents]'"
        ) from error
