"""Announce operations to the listeners that are registered for them.

A context variable holds the operation under way. It goes along into tasks and threads, so that
inner events know their parent, their history and the instance's listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from conspectus._core.costs import Cost
from conspectus.errors import ArchiveOvertaken
from conspectus.events.kinds import Event, ModelUse, SummarizerCall, Whose, WithCalls
from conspectus.events.notes import noted

logger = logging.getLogger("conspectus")

T = TypeVar("T")

Listener = Callable[[Event], None]
"""Called with each event, on the thread where it happened. One that raises changes nothing."""

Pricing = Callable[[SummarizerCall], float | None]


@runtime_checkable
class Follower(Protocol):
    """A listener that also hears of beginnings, as spans need it."""

    def begin(self, kind: type[Event], whose: Whose | None, facts: Mapping[str, Any]) -> object:
        """Hear of a beginning, with the fields known; `end` gets the return value."""
        ...

    def end(self, event: Event, state: object) -> None:
        """Hear of an end; `state` is None if no beginning was announced."""
        ...

    def __call__(self, event: Event) -> None: ...


class Seen:
    """An operation without listeners; false, so that nothing is computed for it."""

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        return None

    def __bool__(self) -> bool:
        return False

    def tell(self, **facts: Any) -> None:
        """Add fields of the event."""

    def withhold(self) -> None:
        """Withhold texts of errors from here on: they may quote secrets."""

    @property
    def calls(self) -> Sequence[SummarizerCall]:
        """Calls of summarisers inside it so far."""
        return ()


_UNWATCHED = Seen()


class _State:
    def __init__(self) -> None:
        self.active = False
        self.listeners: tuple[Listener, ...] = ()
        self.pricing: Pricing | None = None
        self.currency = ""
        self.lock = threading.Lock()
        self.own = False
        self.failed: set[tuple[int, str]] = set()

    def settle(self) -> None:
        """Note whether there may be listeners: in the process, or for one instance."""
        self.active = bool(self.listeners) or self.own


_state = _State()
_around: ContextVar[_Operation | None] = ContextVar("conspectus operation", default=None)
_own: ContextVar[tuple[Listener, ...]] = ContextVar("conspectus listeners", default=())


def add(listener: Listener) -> None:
    """Add a listener for all events of this process, once; raise `TypeError` if it is none."""
    if not callable(listener) or isinstance(listener, type):
        raise TypeError(
            "listen() takes a callable that gets an event, such as "
            f"conspectus.telemetry.UsageTally() or a function: {listener!r}"
        )
    with _state.lock:
        if listener not in _state.listeners:
            _state.listeners = (*_state.listeners, listener)
        _state.settle()


def remove(listener: Listener) -> None:
    """Remove a listener, if it is there."""
    with _state.lock:
        _state.listeners = tuple(one for one in _state.listeners if one != listener)
        _state.failed = {key for key in _state.failed if key[0] != id(listener)}
        _state.settle()


def set_pricing(pricing: Pricing | None, currency: str = "") -> None:
    with _state.lock:
        _state.pricing, _state.currency = pricing, currency if pricing is not None else ""


def are_listeners(given: object) -> tuple[Listener, ...]:
    """Check the value of `telemetry=`: None, a listener, or several."""
    if given is None:
        return ()
    found = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not all(callable(one) for one in found):
        raise TypeError(
            "telemetry must be a listener or a list of them, such as "
            f"conspectus.telemetry.OpenTelemetry() or any callable that takes an event: {given!r}"
        )
    if found:
        with _state.lock:
            _state.own = True
            _state.settle()
    return cast("tuple[Listener, ...]", found)


def listening() -> bool:
    """Return whether there are listeners here and now."""
    return _state.active and bool(_state.listeners or _own.get())


def heard_by(own: Sequence[Listener], flow: Awaitable[T]) -> Awaitable[T]:
    """Return a flow in which these listeners hear everything too."""
    return _heard(own, flow) if own else flow


async def _heard(own: Sequence[Listener], flow: Awaitable[T]) -> T:
    before = _own.get()
    token = _own.set((*before, *(one for one in own if one not in before)))
    try:
        return await flow
    finally:
        with contextlib.suppress(ValueError):  # closed from another context, by the collector
            _own.reset(token)


def observing(kind: type[Event], whose: Whose | None = None, /, **facts: Any) -> Seen:
    """Watch an operation in a `with`; its history is by default that of the outer one."""
    if not _state.active:
        return _UNWATCHED
    listeners = _everyone()
    return _Operation(kind, listeners, whose, facts) if listeners else _UNWATCHED


def tell(kind: type[Event], whose: Whose | None = None, /, **facts: Any) -> None:
    """Announce an event without length, or of a known length."""
    if not _state.active:
        return
    listeners = _everyone()
    if not listeners:
        return
    parent = _around.get()
    if parent is not None and parent.withheld:
        facts.pop("error_message", None)
    event = _made(kind, whose or (parent.whose if parent else None), facts)
    if parent is not None and isinstance(event, SummarizerCall):
        parent.count(event)
    for listener in listeners:
        _one(listener, event, None)


def _everyone() -> tuple[Listener, ...]:
    own = _own.get()
    if not own:
        return _state.listeners
    return (*_state.listeners, *(one for one in own if one not in _state.listeners))


class _Operation(Seen):
    def __init__(
        self,
        kind: type[Event],
        listeners: tuple[Listener, ...],
        whose: Whose | None,
        facts: dict[str, Any],
    ) -> None:
        self._kind, self._listeners, self._facts = kind, listeners, facts
        self._parent = _around.get()
        self.whose: Whose | None = whose or (self._parent.whose if self._parent else None)
        self._calls: list[SummarizerCall] = []
        self.withheld: bool = self._parent is not None and self._parent.withheld

    def __bool__(self) -> bool:
        return True

    def tell(self, **facts: Any) -> None:
        self._facts.update(facts)

    def withhold(self) -> None:
        self.withheld = True

    @property
    def calls(self) -> Sequence[SummarizerCall]:
        return tuple(self._calls)

    def count(self, call: SummarizerCall) -> None:
        at: _Operation | None = self
        while at is not None:
            at._calls.append(call)
            at = at._parent

    def __enter__(self) -> Seen:
        self._token: Token[_Operation | None] = _around.set(self)
        self._states: list[object] = [None] * len(self._listeners)
        for i, one in enumerate(self._listeners):
            with _guarding(one):
                if isinstance(one, Follower):
                    self._states[i] = one.begin(self._kind, self.whose, self._facts)
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        seconds = time.perf_counter() - self._start
        with contextlib.suppress(ValueError):
            _around.reset(self._token)
        ended = ended_by(error)
        if self.withheld:
            ended.pop("error_message", None)
        facts = {**ended, **self._facts, "seconds": seconds}
        if error is not None and "outcome" in self._facts and _left(error):
            facts["outcome"] = _left(error)
        if issubclass(self._kind, WithCalls):
            facts = {"waited": seconds, **facts, **_sums(self._calls)}
        event = _made(self._kind, self.whose, facts)
        if self._parent is not None and isinstance(event, SummarizerCall):
            self._parent.count(event)
        for listener, state in zip(reversed(self._listeners), reversed(self._states), strict=True):
            _one(listener, event, state)


def _made(kind: type[Event], whose: Whose | None, facts: Mapping[str, Any]) -> Event:
    event, pricing = kind(whose=whose, **facts), _state.pricing
    if isinstance(event, SummarizerCall) and pricing is not None and event.price is None:
        with contextlib.suppress(Exception):
            if (price := pricing(event)) is not None:
                return replace(event, price=price, currency=_state.currency)
    return event


def money_of(cost: Cost, summarizers: Sequence[str] = ()) -> dict[str, Any]:
    """Return `money` and `currency` of calls of models; nothing if a price is unknown.

    Each model's calls count at their mean size, which selects the tier of a price. Prices may stand
    by the names of `summarizers` too, which end with those of their models.
    """
    money, names = 0.0, (*SUMMED[1:], "hour_tokens")
    for model, spent in cost.models.items():
        count = max(1, spent.calls)
        mean = {name: getattr(spent, name) / count for name in names}
        by = next((one for one in summarizers if one.partition(":")[2] == model), model)
        call = _made(SummarizerCall, None, {"model": model, "summarizer": by, **mean})
        assert isinstance(call, SummarizerCall)
        if call.price is None:
            return {}
        money += call.price * count
    if _state.pricing is None or (cost.calls and not cost.models):
        return {}
    return {"money": money, "currency": _state.currency}


SUMMED = ("calls", "input_tokens", "output_tokens", "cached_tokens", "written_tokens")
"""Fields of calls that an outer event adds up."""


def _sums(calls: Sequence[SummarizerCall]) -> dict[str, Any]:
    price = _price(calls) if calls else None
    by_model: dict[str, list[SummarizerCall]] = {}
    for call in calls:
        by_model.setdefault(call.model or call.summarizer, []).append(call)
    return {
        **_added(calls, SUMMED),
        "price": price,
        "currency": "" if price is None else calls[0].currency,
        "models": tuple(
            ModelUse(model, **_added(asked, (*SUMMED, "hour_tokens")), price=_price(asked))
            for model, asked in by_model.items()
        ),
    }


def _price(calls: Sequence[SummarizerCall]) -> float | None:
    prices = [call.price for call in calls]
    return None if None in prices else sum(price or 0.0 for price in prices)


def _added(calls: Sequence[SummarizerCall], names: Sequence[str]) -> dict[str, Any]:
    return {name: sum(getattr(call, name) for call in calls) for name in names}


def ended_by(error: BaseException | None) -> dict[str, Any]:
    """Return the fields of an event that describe its error."""
    if error is None:
        return {}
    left = _left(error)
    if left:
        return {"outcome": left}
    said = error.__cause__ if isinstance(error.__cause__, Exception) else error
    return {
        "outcome": "error",
        "error_type": type(said).__qualname__,
        "error_message": " ".join(str(error).split())[:500],
    }


def _left(error: BaseException) -> str:
    """Name an end that is no error: cancelled, interrupted, or overtaken."""
    if isinstance(error, (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)):
        return "cancelled"
    if isinstance(error, ArchiveOvertaken):
        return "overtaken"
    # LangGraph's way out of a node, known by name, as nothing here imports it.
    if any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__):
        return "interrupted"
    return ""


@contextlib.contextmanager
def _guarding(listener: Listener) -> Iterator[None]:
    """Log a listener's failure, once for each kind, and continue."""
    try:
        yield
    except Exception as error:
        key = (id(listener), type(error).__qualname__)
        with _state.lock:
            if key in _state.failed:
                return
            _state.failed.add(key)
        said = "the listener %r failed, and will be told on; this is said once"
        logger.error(said, listener, exc_info=error, extra=noted("listener_failed"))


def _one(listener: Listener, event: Event, state: object) -> None:
    with _guarding(listener):
        if isinstance(listener, Follower):
            listener.end(event, state)
        else:
            listener(event)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Remove all listeners for a test, and restore them at the end."""
    with _state.lock:
        before = _state.listeners, _state.pricing, _state.currency, _state.own
        _state.listeners, _state.pricing, _state.currency, _state.own = (), None, "", False
        _state.settle()
    try:
        yield
    finally:
        with _state.lock:
            _state.listeners, _state.pricing, _state.currency, _state.own = before
            _state.settle()
