"""Run one body of `async def` with or without an event loop: only here do sync and async differ.

In sync mode no primitive of this module ever suspends: `run` steps a coroutine to its end in the
caller's own thread, and `io` makes the plain call. In async mode `io` awaits the async one, or
makes the plain call in a thread. What computes for more than a few milliseconds goes `aside`: its
body is stepped in a thread, and only its async calls are made on the event loop, which is so never
held.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

T = TypeVar("T")
Call = Callable[[], Any]
ACall = Callable[[], Awaitable[Any]]

CLEAN_UP = 1.0  # Seconds in which a cancelled call may clean up before it is left behind
LOOK = 0.5  # Seconds after which work beside a loop looks whether the loop is still there
LEFT_BEHIND = "conspectus-timeout"  # Name of the threads of calls that may be left behind

_LEFT_BEHIND: set[asyncio.Future[Any]] = set()
_MODE: contextvars.ContextVar[_Aside | bool] = contextvars.ContextVar(
    "conspectus_mode", default=False
)
"""True in sync mode, False on an event loop, else the work beside the loop."""


class StepTimeout(TimeoutError):
    """A call took longer than its own limit."""


def run(body: Awaitable[T]) -> T:
    """Run a coroutine to its end without an event loop, in the thread of the caller."""
    before = _MODE.get()
    _MODE.set(True)
    try:
        return _stepped(body)
    finally:
        _MODE.set(before)


def _stepped(body: Awaitable[T]) -> T:
    steps = body.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return cast("T", end.value)
    steps.close()
    raise RuntimeError("a coroutine suspended in sync mode; await it on an event loop instead")


async def arun(body: Awaitable[T]) -> T:
    """Run a coroutine on the running event loop, also below a sync call."""
    before = _MODE.get()
    _MODE.set(False)
    try:
        return await body
    finally:
        _MODE.set(before)


async def aside(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that computes for long beside the event loop, as if it were awaited.

    In sync mode it runs where it is. A cancellation is raised in it where it makes its next call.
    """
    if _MODE.get() is not False:
        return await body
    work, context = _Aside(asyncio.get_running_loop()), contextvars.copy_context()
    context.run(_MODE.set, work)
    waiting = asyncio.ensure_future(
        asyncio.wrap_future(_daemon(lambda: context.run(_in_turn, body)))
    )
    try:
        await asyncio.wait({waiting})
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.wait({waiting, *work.tasks}, timeout=CLEAN_UP)
        await asyncio.sleep(0)  # for a call that had not begun
        # Nobody takes its failure any more, which holds all that was under way.
        waiting.add_done_callback(lambda ended: ended.cancelled() or ended.result().clear())
        raise
    except GeneratorExit:  # its loop is gone, and nothing can be awaited
        work.cancel()
        raise
    return cast("T", _opened(waiting.result()))


def _in_turn(body: Awaitable[T]) -> T:
    """Step a coroutine while no other one computes beside a loop, which would wait for them all."""
    with _TURN:
        _own.turn = True
        try:
            return _stepped(body)
        finally:
            _own.turn = False


@contextmanager
def _letting_others() -> Iterator[None]:
    """Let others compute while this thread waits."""
    if not getattr(_own, "turn", False):
        yield
        return
    _own.turn = False
    _TURN.release()
    try:
        yield
    finally:
        _TURN.acquire()
        _own.turn = True


_TURN, _own = threading.Lock(), threading.local()


def _forked() -> None:
    global _TURN
    _TURN = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Aside:
    """Work beside an event loop: makes its calls, and stops at the next one once cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._lock, self.home = loop, threading.Lock(), threading.get_ident()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._calls: set[Future[Any]] = set()
        self._cancelled = False

    def call(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        with _letting_others():
            return self._call(call, acall, timeout)

    def _call(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        if acall is None:
            if self._cancelled:
                raise asyncio.CancelledError
            return _do(call, timeout)
        with self._lock:
            if self._cancelled:
                raise asyncio.CancelledError
            made = asyncio.run_coroutine_threadsafe(self._ado(call, acall, timeout), self._loop)
            self._calls.add(made)
        try:
            while True:
                try:
                    return made.result(LOOK)
                except TimeoutError:
                    if made.done():
                        raise
                    if self._loop.is_closed():  # nobody will ever answer
                        raise asyncio.CancelledError from None
        except CancelledError:
            raise asyncio.CancelledError from None
        finally:
            self._calls.discard(made)
            del made  # its failure holds this frame

    async def _ado(self, call: Call, acall: ACall, timeout: float | None) -> Any:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        _MODE.set(False)
        try:
            return await _ado(call, acall, timeout)
        finally:
            self.tasks.discard(task)
            del task  # it holds its failure, which holds this frame

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for call in list(self._calls):
                call.cancel()


def home() -> int:
    """Return the thread without which the work here cannot go on: its loop's, or its own."""
    mode = _MODE.get()
    return mode.home if isinstance(mode, _Aside) else threading.get_ident()


async def io(call: Call, acall: ACall | None = None, timeout: float | None = None) -> Any:
    """Make one call: `call` in sync mode; in async mode `acall`, or without it `call` in a thread.

    Raises:
        StepTimeout: it took longer than `timeout` seconds; its late answer is thrown away.
    """
    mode = _MODE.get()
    if mode is True:
        return _do(call, timeout)
    if isinstance(mode, _Aside):
        return mode.call(call, acall, timeout)
    return await _ado(call, acall, timeout)


def _do(call: Call, timeout: float | None) -> Any:
    return call() if timeout is None else within(call, timeout)


async def _ado(call: Call, acall: ACall | None, timeout: float | None) -> Any:
    if timeout is None:
        return await (acall() if acall is not None else asyncio.to_thread(call))
    return await _awithin(acall() if acall is not None else in_a_daemon(call), timeout)


async def pause(seconds: float) -> None:
    """Wait."""
    await io(lambda: time.sleep(seconds), lambda: asyncio.sleep(seconds))


async def gather(bodies: Sequence[Coroutine[Any, Any, T]], limit: int = 4) -> list[T]:
    """Run several coroutines at once, at most `limit` at a time; answers in the order given.

    The first failure is raised, and those that have not started do not start.
    """
    if _MODE.get() is False:
        return await aside(gather(bodies, limit))
    if len(bodies) <= 1 or limit <= 1:
        try:
            return [_stepped(body) for body in bodies]
        finally:
            for body in bodies:
                body.close()  # those behind one that failed
    stop, gate = threading.Event(), threading.Semaphore(limit)

    def one(body: Coroutine[Any, Any, T]) -> T | None:
        with gate:
            if stop.is_set():
                body.close()
                return None
            try:
                return _stepped(body)
            except BaseException:
                stop.set()
                raise

    # Daemons, each with a copy of the context: the end of a process waits for none of them, and
    # callbacks and tracing of LangChain travel in context variables.
    jobs = [_daemon(partial(one, body)) for body in bodies]
    try:
        with _letting_others():
            boxes = [job.result() for job in jobs]
        for box in boxes:
            if "failure" in box:
                raise box.pop("failure")
        return [cast("T", box["answer"]) for box in boxes]
    finally:
        stop.set()
        jobs = boxes = box = None  # type: ignore[assignment]  # their failures hold this frame


async def _awithin(waiting: Awaitable[T], seconds: float) -> T:
    """Stop waiting after `seconds`, even if the task ignores its cancellation.

    Database drivers cancel a query at the server first, which may hang: the task is left behind.
    """
    task = asyncio.ensure_future(waiting)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise StepTimeout(f"no answer within {seconds:g} seconds")
        return task.result()
    finally:
        if not task.done():
            _LEFT_BEHIND.add(task)
            task.add_done_callback(_forget)
            task.cancel()
            await asyncio.wait({task}, timeout=CLEAN_UP)
        del task  # its failure holds this frame


def _forget(task: asyncio.Future[Any]) -> None:
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not report it


async def in_a_daemon(call: Callable[[], T]) -> T:
    """Run a call that may never end in a daemon thread, which the loop's end does not await."""
    return cast("T", _opened(await asyncio.wrap_future(_daemon(call))))


def within(call: Callable[[], T], seconds: float) -> T:
    """Run `call` in a daemon thread and stop waiting after `seconds`."""
    try:
        box = _daemon(call).result(seconds)
    except TimeoutError:
        raise StepTimeout(f"no answer within {seconds:g} seconds") from None
    return cast("T", _opened(box))


def _daemon(call: Callable[[], Any]) -> Future[dict[str, Any]]:
    """Begin a call in a daemon thread.

    Its future gets a box with the answer or the failure: it would not hold every failure, and hand
    others on as copies.
    """
    ended: Future[dict[str, Any]] = Future()
    ended.set_running_or_notify_cancel()  # whoever stops waiting does not stop the thread
    context = contextvars.copy_context()

    def work() -> None:
        box: dict[str, Any] = {}
        try:
            box["answer"] = context.run(call)
        except BaseException as error:
            box["failure"] = error
        ended.set_result(box)

    threading.Thread(target=work, daemon=True, name=LEFT_BEHIND).start()
    return ended


def _opened(box: dict[str, Any]) -> Any:
    if "failure" in box:
        raise box.pop("failure")  # it holds this frame, which holds the box
    return box["answer"]
