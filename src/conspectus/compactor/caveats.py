"""Warnings that point at the line of the caller, however many of our frames lie between."""

from __future__ import annotations

import sys
import warnings

OURS = ("conspectus", "conspectus_lab")
"""What builds objects for a caller, and is none."""


def warn_caller(text: str, kind: type[Warning], own: object) -> None:
    """Warn about the line outside our packages that builds an object, or sets something on it.

    Args:
        text: what to say.
        kind: the category of the warning.
        own: the object; what a subclass of it does in `__init__` is not the caller's line.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None:
        ours = str(frame.f_globals.get("__name__", "")).partition(".")[0] in OURS
        built = frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is own
        if not (ours or built):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)
