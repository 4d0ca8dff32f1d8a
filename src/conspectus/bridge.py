"""Run one body of `async def` with or without an event loop: only here do sync and async differ.

In sync mode no primitive ever suspends: `run` steps a coroutine to its end in the caller's own
thread, and `io` makes the plain call. On an event loop `io` awaits the async call, or makes the
plain one in a thread. What computes for more than a few milliseconds goes `aside`: its body is
stepped in a thread, and only its async calls are made on the loop, which is so never held.

A loop may be closed while a coroutine waits on it. The collector then closes the coroutine at any
time, in any thread, in the midst of other work: on `GeneratorExit` nothing here is awaited, set
back or taken, as what is current then is not the coroutine's own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Literal, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

from conspectus._turns import Turn, giving_up_turn

S = TypeVar("S")
T = TypeVar("T")
Call = Callable[[], Any]
ACall = Callable[[], Awaitable[Any]]

CLEAN_UP = 1.0  # seconds in which a cancelled call may clean up before it is left behind
LOOK = 0.05  # seconds between two looks at a loop on which something is waited for
STANDS = 0.5  # seconds after which a loop that does not run is taken for ended

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
        result = await body
    except GeneratorExit:
        raise
    except BaseException:
        _MODE.set(before)
        raise
    _MODE.set(before)
    return result


async def aside(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that computes for long beside the event loop, as if it were awaited.

    In sync mode it runs where it is. A cancellation is raised in it where it makes its next call.
    """
    if _MODE.get() is not None:
        return await body
    work = _Beside(asyncio.get_running_loop())
    ended = _on_this_loop(_daemon(partial(work.stepped, body)))
    try:
        await asyncio.wait({ended})
    except GeneratorExit:
        work.cancelled.set()
        if not ended.done():
            ended.add_done_callback(_retrieved)
        raise
    except BaseException:
        if not ended.done():
            work.cancelled.set()
            for call in list(work.calls):
                call.cancel()
            await _leave(ended)
        raise
    return ended.result()


class Driver(NamedTuple):
    """What runs a coroutine in another thread, to an end that nobody here awaits."""

    run: Callable[[Awaitable[Any]], Any]
    leave: Callable[[], None]  # makes it do without the event loop that has begun it
    home: int  # the thread of that loop; 0 for none


def outliving() -> Driver:
    """Return the driver for work that may outlive the work here.

    Below a sync call it is `run`. On an event loop its async calls are made on that loop while it
    runs, and then on one of its own; what the end of the loop has cancelled is called again there.
    """
    mode = _MODE.get()
    loop = mode.loop if isinstance(mode, _Beside) else None
    if mode is None:
        with suppress(RuntimeError):  # there is none
            loop = asyncio.get_running_loop()
    if loop is None:
        return Driver(run, lambda: None, 0)
    work = _Outliving(loop)
    if isinstance(mode, _Beside):
        work.home = mode.home
    return Driver(work.run, work.left.set, work.home)


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


async def io_apart(call: Call) -> Any:
    """Make a call that may hang, for which the end of the event loop does not wait."""
    if isinstance(_MODE.get(), _Outliving):  # in a thread of its own already
        return call()
    return await io(call, partial(in_a_daemon, call))


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
    others = mode.turn.given_up() if isinstance(mode, _Beside) else nullcontext()
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
    return await _on_this_loop(_daemon(call))


def home() -> int:
    """Return the thread without which the work here cannot go on: its loop's, or its own."""
    mode = _MODE.get()
    return mode.home if isinstance(mode, _Beside) else threading.get_ident()


def is_held(thread: int) -> bool:
    """Tell whether a thread stands still while the work here waits."""
    return _MODE.get() == "sync" and thread == threading.get_ident()


class _Beside:
    """Work beside a running event loop: makes its calls there, until it is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.home = loop, threading.get_ident()
        self.turn = _TURNS.setdefault(loop, Turn())
        self.calls: set[Future[Any]] = set()
        self.cancelled = threading.Event()

    def stepped(self, body: Awaitable[T]) -> T:
        """Run a coroutine to its end, while no other one computes beside this loop."""
        _MODE.set(self)
        giving_up_turn.set(self.turn.given_up)
        with self.turn.taken():
            return _stepped(body)

    def io(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        if self.cancelled.is_set():
            raise asyncio.CancelledError
        with self.turn.given_up():
            if acall is None:
                return within(call, timeout)
            try:
                made = _begun_on(self.loop, partial(_ado, call, acall, timeout))
            except _LoopEnded:
                raise asyncio.CancelledError from None
            self.calls.add(made)
            made.add_done_callback(self.calls.discard)
            if self.cancelled.is_set():  # since it was looked at
                made.cancel()
            while not wait([made], LOOK).done:
                if self.loop.is_closed() or self.cancelled.is_set():
                    raise asyncio.CancelledError
        if made.cancelled():
            raise asyncio.CancelledError
        return made.result()


class _LoopEnded(Exception):
    """The event loop on which a call was made has ended before its answer came."""


class _Outliving(_Beside):
    """Work that a loop has begun and may not see the end of."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.turn = Turn()  # it computes beside all others, as the loop may be gone
        self.left = threading.Event()  # set where the loop stands still until this work ends
        self._own = _OwnLoop()

    def run(self, body: Awaitable[T]) -> T:
        """Run a coroutine to its end in the thread of the caller."""
        try:
            return self.stepped(body)
        finally:
            self._own.close()

    def stepped(self, body: Awaitable[T]) -> T:
        _MODE.set(self)
        giving_up_turn.set(nullcontext)
        return _stepped(body)

    def io(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        if acall is None:
            return within(call, timeout)
        ask = partial(_ado, call, acall, timeout)
        if self.loop.is_running() and not self.left.is_set():
            with suppress(_LoopEnded):
                return self._on_its_loop(ask)
        made = _begun_on(self._own.running(), ask)
        wait([made])
        return made.result()

    def _on_its_loop(self, ask: ACall) -> Any:
        """Make a call on the loop that has begun this; raise `_LoopEnded` if that ends first."""
        made = _begun_on(self.loop, ask)
        ran = time.monotonic()
        while not wait([made], LOOK).done:
            now = time.monotonic()
            ran = now if self.loop.is_running() else ran
            if self.left.is_set() or self.loop.is_closed() or now - ran > STANDS:
                made.cancel()
                raise _LoopEnded
        # All tasks are cancelled as a loop ends; some calls raise an error of their own then.
        if made.cancelled() or (made.exception() is not None and not self.loop.is_running()):
            raise _LoopEnded
        return made.result()


class _OwnLoop:
    """An event loop in a daemon thread, from its first use on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                work = partial(self._serve, self._loop)
                threading.Thread(target=work, daemon=True, name="conspectus-loop").start()
            return self._loop

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class _Made(Future[Any]):
    """A call that is made on a loop by another thread."""

    task: asyncio.Task[Any] | None = None

    def cancel(self) -> bool:
        """Stop waiting for it, and cancel it once its loop comes to it; a closed one never does."""
        if self.task is not None:
            with suppress(RuntimeError):
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)
        return super().cancel()

    def settle(self, task: asyncio.Task[Any]) -> None:
        """Take the outcome of the task, if it is still waited for."""
        error = None if task.cancelled() else task.exception()
        with suppress(InvalidStateError):
            if task.cancelled():
                super().cancel()
            elif error is not None:
                self.set_exception(error)
            else:
                self.set_result(task.result())


def _begun_on(loop: asyncio.AbstractEventLoop, ask: ACall) -> _Made:
    """Begin a call on a loop that another thread runs; raise `_LoopEnded` for a closed one."""
    made = _Made()

    def begin() -> None:
        if made.cancelled():
            return
        # A task with a context of its own, a copy of that of who asks.
        task: Any = loop.create_task(arun(ask()))
        task._log_destroy_pending = False  # a loop may be closed before its end
        task.add_done_callback(made.settle)
        made.task = task

    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError as error:
        raise _LoopEnded from error
    return made


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
    task: Any = asyncio.ensure_future(acall() if acall is not None else in_a_daemon(call))
    task._log_destroy_pending = False
    try:
        await asyncio.wait({task}, timeout=timeout)
    except GeneratorExit:
        raise
    except BaseException:
        if not task.done():
            task.cancel()
            await _leave(task)
        raise
    if not task.done():
        task.cancel()
        await _leave(task)
        raise StepTimeout(f"no answer within {timeout:g} seconds")
    return task.result()


async def _leave(ended: asyncio.Future[Any]) -> None:
    """Give what was cancelled a moment to end, and leave it behind if it does not.

    Database drivers cancel a query at the server first, which may hang.
    """
    _LEFT_BEHIND.add(ended)
    ended.add_done_callback(_LEFT_BEHIND.discard)
    ended.add_done_callback(_retrieved)
    await asyncio.wait({ended}, timeout=CLEAN_UP)


def _retrieved(ended: asyncio.Future[Any]) -> None:
    """Retrieve an outcome that nobody waits for, so that asyncio does not report it."""
    if not ended.cancelled():
        ended.exception()


def _ended(call: Callable[[], T]) -> T:
    """Make a call, without a `StopIteration`: no future can carry it, so that a loop would hang."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("a function raised StopIteration; give next() a default") from error


def _on_this_loop(job: Future[T]) -> asyncio.Future[T]:
    """Return the outcome of a thread's work to be awaited here; a closed loop does not hear it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def settle() -> None:
        if ended.done():
            return
        error = job.exception()
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(job.result())

    def tell(_: Future[T]) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    job.add_done_callback(tell)
    return ended


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
