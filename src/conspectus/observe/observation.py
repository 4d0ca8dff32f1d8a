"""Tell listeners what happens.

A context variable has the work that is being done. Tasks and threads inherit it, so that inner
events know their history, and which listeners get them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, Token, copy_context
from functools import partial
from typing import Any, TypeVar

from conspectus._turns import others_may_compute
from conspectus.core.records import Cost
from conspectus.errors import ArchiveOvertaken, PolicyError
from conspectus.observe.event import FIELDS as FIELDS
from conspectus.observe.event import Event as Event
from conspectus.observe.logs import log as log
from conspectus.observe.logs import log_event, logger
from conspectus.observe.logs import safe_text as safe_text

T = TypeVar("T")


Listener = Callable[[Event], object]
"""A function that is called with each event at its end, in the thread where it happened. If it
raises an error, nothing else changes. If it has a method `begin`, that is called when the work
begins, with the event as far as it is known. It returns the function to call at the end; spans are
made in this way."""

EndCall = Callable[[Event], object]
"""What a listener's `begin` returns: the function to call with the event at its end."""

_listeners: tuple[Listener, ...] = ()
_failed: set[tuple[int, str]] = set()
_context: ContextVar[tuple[Listener, ...]] = ContextVar("conspectus listeners", default=())
_around: ContextVar[Observation | None] = ContextVar("conspectus work", default=None)


def listen(listener: Listener) -> None:
    """Add a listener for all events of this process. Adding it twice has no further effect.

    Raises:
        PolicyError: it cannot be called with an event.
    """
    global _listeners
    new = [added for added in listeners_of(listener) if added not in _listeners]
    _listeners = (*_listeners, *new)


def unlisten(listener: Listener) -> None:
    """Remove a listener that `listen` has added."""
    global _listeners
    _listeners = tuple(other for other in _listeners if other != listener)


def listeners_of(setting: object) -> tuple[Listener, ...]:
    """Return the value of a `telemetry=` as listeners: None, one, or several.

    Raises:
        PolicyError: one of them cannot be called with an event.
    """
    if setting is None:
        return ()
    listeners = tuple(setting) if isinstance(setting, (list, tuple)) else (setting,)
    for listener in listeners:
        if not callable(listener) or isinstance(listener, type):
            raise PolicyError(
                "a listener is a callable that takes an event, such as a function or "
                f"conspectus.observe.OpenTelemetry(), not {listener!r}"
            )
    return listeners


def listening() -> bool:
    """Tell whether any listener gets the events of the current work."""
    return bool(_listeners or _context.get())


async def heard_by(listeners: Sequence[Listener], work: Awaitable[T]) -> T:
    """Do work whose events these listeners hear, too, and not only those of the process."""
    token = _context.set((*_context.get(), *listeners))
    try:
        result = await work
    except GeneratorExit:  # closed, perhaps by the garbage collector, in another context
        raise
    except BaseException:
        _reset(_context, token)
        raise
    _reset(_context, token)
    return result


def _reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset a variable, unless a framework has continued a coroutine in another context."""
    with contextlib.suppress(ValueError):
        variable.reset(token)


def emit(kind: str, scope: Any = None, /, **facts: Any) -> None:
    """Pass an event that took no time to the listeners."""
    Observation(kind, scope, **facts).end({})


class Observation:
    """Work that is being done, in a `with`.

    Its history is that of the work around it, unless it names one. The listeners that hear its
    beginning also hear its end.

    Attributes:
        spent: what calls of models in it have cost so far.
        hides_errors: texts of errors may be secret. Then its event, and those of work in it, have
            only texts that are added.
    """

    def __init__(self, kind: str, scope: Any = None, /, **facts: Any) -> None:
        outer = _around.get()
        self._kind = kind
        self._facts = facts
        self._around = outer
        self._scope: Any = scope or (outer._scope if outer else None)
        self.hides_errors: bool = outer is not None and outer.hides_errors
        self.spent = Cost()
        # each listener, with the function to call at the end; a listener need not be hashable
        self._ends: list[tuple[Listener, EndCall]] = []
        for listener in (*_listeners, *_context.get()):
            if not any(listener == known for known, _ in self._ends):
                self._ends.append((listener, listener))

    def add(self, **facts: Any) -> None:
        """Add fields of the event; those that it does not have go into `extra`."""
        self._facts.update(facts)

    def __enter__(self) -> Observation:
        self._token: Token[Observation | None] = _around.set(self)
        self._context = copy_context()
        for number, (listener, _) in enumerate(self._ends):
            if hasattr(listener, "begin"):
                end = _call(listener, listener.begin, self._event({}))
                self._ends[number] = (listener, end or listener)
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        ending: dict[str, Any] = {"seconds": time.perf_counter() - self._start}
        if error is not None:
            ending |= _ending_by(error)
        if isinstance(error, GeneratorExit):
            self._end_in_a_thread(ending)
            return
        _reset(_around, self._token)
        if self.hides_errors:
            ending.pop("error_message", None)
        event = self.end(ending)
        if error is None and self._kind in ("compaction", "preparation"):
            is_warning = event.outcome == "failed" or bool(event.error_message)
            # The line of a success is made only if somebody reads it.
            if is_warning or logger.isEnabledFor(logging.INFO):
                log_event(event)

    def _end_in_a_thread(self, ending: Mapping[str, Any]) -> None:
        """Tell the listeners in a thread, in the context of this work.

        The collector closes a coroutine in the midst of other work, which may hold locks that a
        listener takes.
        """
        work = partial(self._context.run, self.end, ending)
        with contextlib.suppress(RuntimeError):  # the process is ending
            threading.Thread(target=work, daemon=True, name="conspectus").start()

    def end(self, ending: Mapping[str, Any]) -> Event:
        """Tell the listeners how it ended."""
        event = self._event(ending)
        outer = self._around
        while outer is not None and event.kind == "model_call":
            outer.spent += event.cost
            outer = outer._around
        for listener, end in reversed(self._ends):
            _call(listener, end, event)
        return event

    def _event(self, ending: Mapping[str, Any]) -> Event:
        """Make the event of the facts so far.

        An outcome that was added wins over an exception, but not over an interrupt, a cancellation
        or a lost race: these are the outcome whatever was added.
        """
        facts = {"cost": self.spent, **ending, **self._facts}
        if ending.get("outcome", "error") != "error":
            facts["outcome"] = ending["outcome"]
        if facts["cost"].calls and facts.get("money") is None:
            from conspectus.observe.prices import price_of  # which logs

            facts["money"] = price_of(facts["cost"])
        fields = {name: facts.pop(name) for name in FIELDS & facts.keys()}
        return Event(kind=self._kind, scope=self._scope, extra=facts, **fields)


observing = Observation
"""The same class, named for a `with`: `with observing("recall", scope) as observation:`."""


def is_way_out(error: BaseException) -> bool:
    """Tell whether LangGraph leaves a node by this error: to ask a person, or for a command."""
    # Compared by name, because nothing here imports it.
    return any(base.__name__ == "GraphBubbleUp" for base in type(error).__mro__)


def _ending_by(error: BaseException) -> dict[str, Any]:
    """Return the fields of an event that describe how work ended."""
    if is_way_out(error):
        return {"outcome": "interrupted"}
    if isinstance(error, ArchiveOvertaken):
        return {"outcome": "overtaken"}
    if isinstance(error, (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)):
        return {"outcome": "cancelled"}
    return {"outcome": "error", **error_fields(error)}


def error_fields(error: BaseException) -> dict[str, str]:
    """Return the class of an error, or of its cause, and its text on one line."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    message = " ".join(safe_text(error).split())[:500]
    return {"error": type(cause).__qualname__, "error_message": message}


def _call(listener: Listener, method: EndCall, event: Event) -> Any:
    """Call a listener by one of its methods; log its failure once for each class of error."""
    try:
        with others_may_compute():
            return method(event)
    except Exception as error:
        key = (id(listener), type(error).__qualname__)
        if key not in _failed:
            _failed.add(key)
            log(
                "listener_failed",
                "the listener %r failed; it is called again, and this is said once",
                listener,
                exc_info=error,
            )
