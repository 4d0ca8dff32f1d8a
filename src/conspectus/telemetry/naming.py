"""Name histories in places that others can read."""

from __future__ import annotations

from typing import Literal

from conspectus.archive.scope import label_hash
from conspectus.errors import PolicyError
from conspectus.events import Whose

Naming = Literal["hashed", "plain", "off"]
"""`hashed`: the first 16 characters of the archive's hash, but `main` for that session; `plain`:
the name; `off`: none."""

CHOICES = ("hashed", "plain", "off")


def check_naming(given: object) -> None:
    if given not in CHOICES:
        raise PolicyError(f"thread must be one of {CHOICES}, not {given!r}")


def named(whose: Whose | None, naming: Naming) -> dict[str, str]:
    """Return tenant, thread and session as attributes.

    Example:
        >>> named(Whose("ann", "t-1", "main"), "plain")
        {'tenant': 'ann', 'thread': 't-1', 'session': 'main'}
    """
    if whose is None or naming == "off":
        return {}
    labels = {"tenant": whose.tenant, "thread": whose.thread, "session": whose.session}
    if naming == "hashed":
        return {k: v if v == "main" else label_hash(v)[:16] for k, v in labels.items()}
    return labels
