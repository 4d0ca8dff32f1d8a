"""Read a model's name, window and limit of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conspectus.model.calls import named

OUTPUT_SETTINGS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""Settings that limit an answer."""

MOST_OUTPUT = 0.5
"""Largest share of the window for the answer, whatever the model's settings say."""


def model_name(model: object) -> str:
    """Return a name that tells a model from others, or an empty text."""
    return "" if model is None else f"{type(model).__name__}:{named(model)}"


def reserved_for_answer(holders: Sequence[object], window: int | None) -> int:
    """Return the tokens of a model's answer, by its settings; at most half its window.

    Holders are mappings of settings, or models; the first with a limit counts.
    """
    for holder in holders:
        for name in OUTPUT_SETTINGS:
            found = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return min(found, int(window * MOST_OUTPUT)) if window else found
    return 0
