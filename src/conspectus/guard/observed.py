"""What is told of requests: that one was made to fit, and how large each is that is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from conspectus._core.items import Window
from conspectus._drive import Flow
from conspectus.events import GuardFit, RequestSent, Whose, listening, observing, tell
from conspectus.guard.measuring import Measured

T = TypeVar("T")


def fitting(
    steps: Flow[T],
    size: Callable[[T], int],
    whose: Whose,
    measured: Measured,
    room: Window | None,
    rescue: bool,
) -> Flow[T]:
    """A request made to fit, as one event.

    Args:
        steps: which make it fit.
        size: tokens of the messages of what they answer with.
        whose: history it is about.
        measured: the request before.
        room: what it must fit in.
        rescue: the provider has refused it.
    """
    budget = None if room is None else room.budget
    facts = {"rescue": rescue, "tokens_before": measured.messages, "budget": budget}
    with observing(GuardFit, whose, **facts) as seen:
        fitted = yield from steps
        if seen:
            tokens = size(fitted)
            over = budget is not None and tokens > budget
            seen.tell(tokens_after=tokens, outcome="stuck" if over else "ok")
    return fitted


def tell_sent(size: Callable[[], int], whose: Callable[[], Whose], measured: Measured) -> None:
    """Tell of a request that is sent; nothing is counted where nobody listens."""
    if not listening():
        return
    tokens, window = measured.requested.overhead + size(), measured.requested.window
    share = tokens / window if window else None
    tell(RequestSent, whose(), tokens=tokens, window=window, share=share)
