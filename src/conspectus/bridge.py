"""Run one body of `async def` with or without an event loop: only here do sync and async differ.

In sync mode no primitive ever suspends: `run` steps a coroutine to its end in the caller's own
thread, and `io` makes the plain call. On an event loop `io` awaits the async call, or makes the
plain one in a thread. What computes for more than a few milliseconds goes `aside`: its body is
stepped in a thread, and only its async calls are made on the loop, which is so never held.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeVar, cast
from weakref import WeakKeyDictionary

from conspectus._turns import Turn, waiting

S = TypeVar("S")
T = TypeVar("T")
Call = Callable[[], Any]
ACall = Callable[[], Awaitable[Any]]

CLEAN_UP = 1.0  # seconds in which a cancelled call may clean up before it is left behind

_LEFT_BEHIND: set[asyncio.Future[Any]] = set()
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, Turn] = WeakKeyDictionary()
_MODE: ContextVar[_Beside | Literal["sync"] | None] = ContextVar("conspectus_mode", default=None)
"""None on an event loop."""


def is_async(call: Callable[..., object]) -> bool:
    """Return whether what a caller gave, a function or an object, has to be awaited."""
    return any(map(iscoroutinefunction, (call, type(call).__call__)))


class StepTimeout(TimeoutError):
    """A call took longer than its own limit."""


def run(body: Awaitable[T]) -> T:
    """Run a coroutine to its end without an event loop, in the thread of the caller."""
    before = _MODE.get()
    _MODE.set("sync")
    try:
        return _stepped(body)
    finally:
        _MODE.set(before)


async def arun(body: Awaitable[T]) -> T:
    """Run a coroutine on the running event loop, also below a sync call."""
    before = _MODE.get()
    _MODE.set(None)
    try:
        return await body
    finally:
        _MODE.set(before)


async def aside(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that computes for long beside the event loop, as if it were awaited.

    In sync mode it runs where it is. A cancellation is raised in it where it makes its next call.
    """
    if _MODE.get() is not None:
        return await body
    work = _Beside()
    ended = asyncio.wrap_future(_daemon(partial(work.stepped, body)))
    try:
        await asyncio.wait({ended})
        return ended.result()
    finally:
        if not ended.done():
            work.cancelled.set()
            for call in list(work.calls):
                call.cancel()
            await _leave(ended)


async def io(call: Call, acall: ACall | None = None, timeout: float | None = None) -> Any:
    """Make one call: `call` in sync mode; on a loop `acall`, or without it `call` in a thread.

    Raises:
        StepTimeout: it took longer than `timeout` seconds; its late answer is thrown away.
    """
    mode = _MODE.get()
    if isinstance(mode, _Beside):
        return mode.io(call, acall, timeout)
    if mode == "sync":
        return within(call, timeout)
    return await _ado(call, acall, timeout)


async def in_turn(call: Call) -> Any:
    """Make a call that computes more than it waits, such as one of a file."""
    mode = _MODE.get()
    if mode is None or (mode != "sync" and mode.cancelled.is_set()):
        return await io(call)
    return call()


async def pause(seconds: float) -> None:
    """Wait."""
    await io(partial(time.sleep, seconds), partial(asyncio.sleep, seconds))


async def gather(
    work: Callable[[S], Coroutine[Any, Any, T]], items: Sequence[S], limit: int = 4
) -> list[T]:
    """Do the same with several items at once, at most `limit` at a time; answers in their order.

    The first failure is raised when all that had started have ended; no other item starts.
    """
    mode = _MODE.get()
    if mode is None:
        return await aside(gather(work, items, limit))
    if limit <= 1 or len(items) <= 1:
        return [await work(item) for item in items]
    step = mode.stepped if isinstance(mode, _Beside) else _stepped
    others = mode.turn.given() if isinstance(mode, _Beside) else nullcontext()
    gate, failures, answers = threading.Semaphore(limit), list[BaseException](), list[Any]()

    def start(item: S) -> T | None:
        with gate:
            try:
                return None if failures else step(work(item))
            except BaseException as error:
                failures.append(error)
                return None

    # In daemons: the end of a process waits for none of them.
    jobs = [_daemon(partial(start, item)) for item in items]
    try:
        with others:
            answers = [job.result() for job in jobs]
    except BaseException as error:  # of a person who interrupts it
        failures.append(error)
    if failures:
        raise failures[0]
    return answers


def within(call: Callable[[], T], seconds: float | None) -> T:
    """Run `call` in a daemon thread and stop waiting after `seconds`; for None run it here.

    Raises:
        StepTimeout: the time is over.
    """
    if seconds is None:
        return call()
    job = _daemon(call)
    if not wait([job], seconds).done:
        raise StepTimeout(f"no answer within {seconds:g} seconds")
    return job.result()


async def in_a_daemon(call: Callable[[], T]) -> T:
    """Run a call that may never end in a daemon thread, which the loop's end does not await."""
    return await asyncio.wrap_future(_daemon(call))


def home() -> int:
    """Return the thread without which the work here cannot go on: its loop's, or its own."""
    mode = _MODE.get()
    return mode.home if isinstance(mode, _Beside) else threading.get_ident()


def is_held(thread: int) -> bool:
    """Tell whether a thread stands still while the work here waits."""
    return _MODE.get() == "sync" and thread == threading.get_ident()


class _Beside:
    """Work beside the running event loop: makes its calls there, until it is cancelled."""

    def __init__(self) -> None:
        self.loop, self.home = asyncio.get_running_loop(), threading.get_ident()
        self.turn = _TURNS.setdefault(self.loop, Turn())
        self.calls: set[Future[Any]] = set()
        self.cancelled = threading.Event()

    def stepped(self, body: Awaitable[T]) -> T:
        """Run a coroutine to its end, while no other one computes beside this loop."""
        _MODE.set(self)
        waiting.set(self.turn.given)
        with self.turn.taken():
            return _stepped(body)

    def io(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        if self.cancelled.is_set():
            raise asyncio.CancelledError
        with self.turn.given():
            if acall is None:
                return within(call, timeout)
            # In a task with a context of its own.
            made = asyncio.run_coroutine_threadsafe(arun(_ado(call, acall, timeout)), self.loop)
            self.calls.add(made)
            made.add_done_callback(self.calls.discard)
            if self.cancelled.is_set():  # since it was looked at
                made.cancel()
            wait([made])
        if made.cancelled():
            raise asyncio.CancelledError
        return made.result()


def _stepped(body: Awaitable[T]) -> T:
    steps = body.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return cast("T", end.value)
    steps.close()
    raise RuntimeError("a coroutine suspended in sync mode; await it on an event loop instead")


async def _ado(call: Call, acall: ACall | None, timeout: float | None) -> Any:
    if timeout is None:
        return await (acall() if acall is not None else asyncio.to_thread(_ended, call))
    task = asyncio.ensure_future(acall() if acall is not None else in_a_daemon(call))
    try:
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise StepTimeout(f"no answer within {timeout:g} seconds")
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await _leave(task)


async def _leave(ended: asyncio.Future[Any]) -> None:
    """Give what was cancelled a moment to end, and leave it behind if it does not.

    Database drivers cancel a query at the server first, which may hang.
    """
    _LEFT_BEHIND.add(ended)
    ended.add_done_callback(_LEFT_BEHIND.discard)
    # Retrieved, so that asyncio does not report it.
    ended.add_done_callback(lambda it: it.cancelled() or it.exception())
    await asyncio.wait({ended}, timeout=CLEAN_UP)


def _ended(call: Callable[[], T]) -> T:
    """Make a call, without a `StopIteration`: no future can carry it, so that a loop would hang."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("a function raised StopIteration; give next() a default") from error


def _daemon(call: Callable[[], T]) -> Future[T]:
    """Begin a call in a daemon thread; callbacks and tracing travel in context variables."""
    ended: Future[T] = Future()
    ended.set_running_or_notify_cancel()  # a caller that stops waiting does not stop it
    context = copy_context()

    def work() -> None:
        try:
            ended.set_result(context.run(_ended, call))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=work, daemon=True, name="conspectus").start()
    return ended
