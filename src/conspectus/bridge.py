"""Run the same `async def` with or without an event loop. Sync and async differ only here.

In sync mode no primitive ever suspends: `run` steps a coroutine to its end in the caller's thread,
and `call_either_way` makes the plain call. On an event loop, `call_either_way` awaits the async
call, or makes the plain one in a thread. A computation of more than a few milliseconds runs in a
worker thread (`run_in_worker`). Only its async calls are made on the loop, so the loop is never
blocked. A function whose name ends in "_flow" returns such a coroutine, for `run` or `arun`.

A loop may be closed while a coroutine waits on it. The garbage collector then closes the coroutine
at any time, in any thread, in the middle of other work. So on `GeneratorExit` nothing here is
awaited, reset or acquired: the current context belongs to the other work.
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

CLEAN_UP_SECONDS = 1.0
"""A cancelled call may clean up for this time."""

LOOP_CHECK_SECONDS = 0.05
"""Seconds between two checks of a loop that is waited for."""

STANDSTILL_SECONDS = 0.5
"""A loop that is blocked for this time counts as ended."""

_left_behind: set[asyncio.Future[Any]] = set()
"""Calls that nobody waits for any more. Without a reference, asyncio would drop them midway."""

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turn] = WeakKeyDictionary()
_mode: ContextVar[_Worker | Literal["sync"] | None] = ContextVar("conspectus_mode", default=None)
"""How the current code runs: in sync mode, in a worker, or on an event loop (None)."""


def is_async(call: Callable[..., object]) -> bool:
    """Tell whether a call of a function, or of an object, returns an awaitable."""
    return any(map(iscoroutinefunction, (call, type(call).__call__)))


class StepTimeout(TimeoutError):
    """A call took longer than its own limit."""


def run(body: Awaitable[T]) -> T:
    """Run a coroutine to its end without an event loop, in the thread of the caller."""
    mode_before = _mode.get()
    _mode.set("sync")
    try:
        return _step_to_end(body)
    finally:
        _mode.set(mode_before)


async def arun(body: Awaitable[T]) -> T:
    """Run a coroutine on the running event loop, even inside a sync call."""
    mode_before = _mode.get()
    _mode.set(None)
    try:
        result = await body
    except GeneratorExit:
        raise
    except BaseException:
        _mode.set(mode_before)
        raise
    _mode.set(mode_before)
    return result


async def run_in_worker(body: Coroutine[Any, Any, T]) -> T:
    """Run a long computing coroutine in a worker thread, and await it.

    In sync mode, and in a worker, it runs in the current thread. A cancellation is raised in it at
    its next call.
    """
    if _mode.get() is not None:
        return await body
    worker = _Worker(asyncio.get_running_loop())
    outcome = _on_this_loop(_start_daemon(partial(worker.run_to_end, body)))
    try:
        await asyncio.wait({outcome})
    except GeneratorExit:
        worker.cancelled.set()
        if not outcome.done():
            outcome.add_done_callback(_retrieve)
        raise
    except BaseException:
        if not outcome.done():
            worker.cancelled.set()
            for call in list(worker.calls):
                call.cancel()
            await _leave_behind(outcome)
        raise
    return outcome.result()


class Driver(NamedTuple):
    """Runs a coroutine in another thread. Nobody here awaits its end."""

    run: Callable[[Awaitable[Any]], Any]
    """Run the coroutine in the current thread."""

    leave: Callable[[], None]
    """Let it continue without the event loop that started it."""

    home: int
    """The thread of that loop; 0 if there is none."""


def outliving_driver() -> Driver:
    """Return the driver for work that may outlive the current call.

    In a sync call it is `run`. On an event loop, async calls are made on that loop while it runs,
    and then on another one; calls that the end of the first loop cancelled are made again.
    """
    mode = _mode.get()
    loop = mode.loop if isinstance(mode, _Worker) else None
    if mode is None:
        with suppress(RuntimeError):  # there is none
            loop = asyncio.get_running_loop()
    if loop is None:
        return Driver(run, lambda: None, 0)
    worker = _OutlivingWorker(loop)
    if isinstance(mode, _Worker):
        worker.home = mode.home
    return Driver(worker.run, worker.is_left_alone.set, worker.home)


async def call_either_way(
    call: Call, acall: ACall | None = None, timeout: float | None = None
) -> Any:
    """Make one call: `call` in sync mode; on a loop `acall`, or without it `call` in a thread.

    Raises:
        StepTimeout: the call took longer than `timeout` seconds; a late answer is ignored.
    """
    mode = _mode.get()
    if isinstance(mode, _Worker):
        return mode.make(call, acall, timeout)
    if mode == "sync":
        return call_within(call, timeout)
    return await _await_with_timeout(call, acall, timeout)


async def await_call(acall: ACall) -> Any:
    """Await a call that has no form without an event loop.

    Raises:
        AssertionError: there is no event loop.
    """
    return await call_either_way(_call_needs_loop, acall)


def _call_needs_loop() -> Any:
    raise AssertionError("this call needs an event loop")


async def call_that_may_hang(call: Call) -> Any:
    """Make a call that may never end; the end of the event loop does not wait for it."""
    if isinstance(_mode.get(), _OutlivingWorker):  # already in its own thread
        return call()
    return await call_either_way(call, partial(await_in_daemon, call))


async def call_that_computes(call: Call) -> Any:
    """Make a call that computes more than it waits, such as one of a file."""
    mode = _mode.get()
    if mode is None or (mode != "sync" and mode.cancelled.is_set()):
        return await call_either_way(call)
    return call()


async def pause(seconds: float) -> None:
    """Wait for a number of seconds."""
    await call_either_way(partial(time.sleep, seconds), partial(asyncio.sleep, seconds))


async def gather(
    work: Callable[[S], Coroutine[Any, Any, T]], items: Sequence[S], limit: int = 4
) -> list[T]:
    """Start the same work for several items, at most `limit` at a time; return results in order.

    After the first failure no other item is started. It is raised when all started items have
    ended.
    """
    mode = _mode.get()
    if mode is None:
        return await run_in_worker(gather(work, items, limit))
    if limit <= 1 or len(items) <= 1:
        return [await work(item) for item in items]
    run_to_end = mode.run_to_end if isinstance(mode, _Worker) else _step_to_end
    others_compute = mode.turn.given_up() if isinstance(mode, _Worker) else nullcontext()
    slots = threading.Semaphore(limit)
    failures: list[BaseException] = []
    answers: list[Any] = []

    def start(item: S) -> T | None:
        with slots:
            try:
                return None if failures else run_to_end(work(item))
            except BaseException as error:
                failures.append(error)
                return None

    # In daemon threads, because the end of a process does not wait for these.
    jobs = [_start_daemon(partial(start, item)) for item in items]
    try:
        with others_compute:
            answers = [job.result() for job in jobs]
    except BaseException as error:  # such as an interruption by a person
        failures.append(error)
    if failures:
        raise failures[0]
    return answers


def call_within(call: Callable[[], T], seconds: float | None) -> T:
    """Make a call in a daemon thread; stop waiting after `seconds`; for None, make it here.

    Raises:
        StepTimeout: the time is over.
    """
    if seconds is None:
        return call()
    job = _start_daemon(call)
    if not wait([job], seconds).done:
        raise StepTimeout(f"no answer within {seconds:g} seconds")
    return job.result()


async def await_in_daemon(call: Callable[[], T]) -> T:
    """Make a call that may never end in a daemon thread; the loop's end does not await it."""
    return await _on_this_loop(_start_daemon(call))


def home_thread() -> int:
    """Return the thread that the current work depends on: that of its loop, or its own."""
    mode = _mode.get()
    return mode.home if isinstance(mode, _Worker) else threading.get_ident()


def is_blocked(thread: int) -> bool:
    """Tell whether a thread is blocked while the current work waits."""
    return _mode.get() == "sync" and thread == threading.get_ident()


class _Worker:
    """Runs a coroutine in a worker thread; makes its calls on the loop until it is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.home = threading.get_ident()
        self.turn = _turns.setdefault(loop, Turn())
        self.calls: set[Future[Any]] = set()
        self.cancelled = threading.Event()

    def run_to_end(self, body: Awaitable[T]) -> T:
        """Run a coroutine to its end, while no other worker of this loop computes."""
        _mode.set(self)
        giving_up_turn.set(self.turn.given_up)
        with self.turn.taken():
            return _step_to_end(body)

    def make(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        """Make a call and wait for it here, while others compute; see `call_either_way`."""
        if self.cancelled.is_set():
            raise asyncio.CancelledError
        with self.turn.given_up():
            if acall is None:
                return call_within(call, timeout)
            try:
                pending = _start_on(self.loop, partial(_await_with_timeout, call, acall, timeout))
            except _LoopEnded:
                raise asyncio.CancelledError from None
            self.calls.add(pending)
            pending.add_done_callback(self.calls.discard)
            if self.cancelled.is_set():  # since it was looked at
                pending.cancel()
            while not wait([pending], LOOP_CHECK_SECONDS).done:
                if self.loop.is_closed() or self.cancelled.is_set():
                    raise asyncio.CancelledError
        if pending.cancelled():
            raise asyncio.CancelledError
        return pending.result()


class _LoopEnded(Exception):
    """The event loop on which a call was made has ended before its answer came."""


class _OutlivingWorker(_Worker):
    """Runs work that a loop has started, and that may outlive the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.turn = Turn()  # its own turn, because the loop may be gone
        self.is_left_alone = threading.Event()  # set if the loop is blocked until its end
        self._own_loop = _OwnLoop()

    def run(self, body: Awaitable[T]) -> T:
        """Run a coroutine to its end in the thread of the caller."""
        try:
            return self.run_to_end(body)
        finally:
            self._own_loop.close()

    def run_to_end(self, body: Awaitable[T]) -> T:
        """Run a coroutine to its end, without waiting for other workers."""
        _mode.set(self)
        giving_up_turn.set(nullcontext)
        return _step_to_end(body)

    def make(self, call: Call, acall: ACall | None, timeout: float | None) -> Any:
        """Make a call on the loop that started this, or else on another loop."""
        if acall is None:
            return call_within(call, timeout)
        request = partial(_await_with_timeout, call, acall, timeout)
        if self.loop.is_running() and not self.is_left_alone.is_set():
            with suppress(_LoopEnded):
                return self._make_on_its_loop(request)
        pending = _start_on(self._own_loop.running(), request)
        wait([pending])
        return pending.result()

    def _make_on_its_loop(self, request: ACall) -> Any:
        """Make a call on the loop that started this; raise `_LoopEnded` if that ends first."""
        pending = _start_on(self.loop, request)
        last_seen_running = time.monotonic()
        while not wait([pending], LOOP_CHECK_SECONDS).done:
            now = time.monotonic()
            if self.loop.is_running():
                last_seen_running = now
            stands_still = now - last_seen_running > STANDSTILL_SECONDS
            if stands_still or self.is_left_alone.is_set() or self.loop.is_closed():
                pending.cancel()
                raise _LoopEnded
        # When a loop ends, all tasks are cancelled, and some calls raise their own errors.
        has_failed = pending.cancelled() or pending.exception() is not None
        if pending.cancelled() or (has_failed and not self.loop.is_running()):
            raise _LoopEnded
        return pending.result()


class _OwnLoop:
    """An event loop in a daemon thread, from its first use on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        """Return the loop, which runs now."""
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


class _CallOnLoop(Future[Any]):
    """A call that another thread makes on a loop."""

    task: asyncio.Task[Any] | None = None

    def cancel(self) -> bool:
        """Stop waiting for it, and cancel it on its loop. A closed loop never does that."""
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


def _start_on(loop: asyncio.AbstractEventLoop, request: ACall) -> _CallOnLoop:
    """Start a call on a loop that another thread runs; raise `_LoopEnded` for a closed one."""
    pending = _CallOnLoop()

    def start() -> None:
        if pending.cancelled():
            return
        # The task has its own context, a copy of its caller's.
        task: Any = loop.create_task(arun(request()))
        task._log_destroy_pending = False  # a loop may be closed before its end
        task.add_done_callback(pending.settle)
        pending.task = task

    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError as error:
        raise _LoopEnded from error
    return pending


def _step_to_end(body: Awaitable[T]) -> T:
    """Run a coroutine that never suspends."""
    steps = body.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return cast("T", end.value)
    steps.close()
    raise RuntimeError("a coroutine suspended in sync mode; await it on an event loop instead")


async def _await_with_timeout(call: Call, acall: ACall | None, timeout: float | None) -> Any:
    """Make a call on the running loop; see `call_either_way`."""
    if timeout is None:
        return await (acall() if acall is not None else asyncio.to_thread(_without_stop, call))
    task: Any = asyncio.ensure_future(acall() if acall is not None else await_in_daemon(call))
    task._log_destroy_pending = False
    try:
        await asyncio.wait({task}, timeout=timeout)
    except GeneratorExit:
        raise
    except BaseException:
        if not task.done():
            task.cancel()
            await _leave_behind(task)
        raise
    if not task.done():
        task.cancel()
        await _leave_behind(task)
        raise StepTimeout(f"no answer within {timeout:g} seconds")
    return task.result()


async def _leave_behind(cancelled: asyncio.Future[Any]) -> None:
    """Give a cancelled call a moment to end; then stop waiting for it.

    Database drivers cancel a query at the server first, which may hang.
    """
    _left_behind.add(cancelled)
    cancelled.add_done_callback(_left_behind.discard)
    cancelled.add_done_callback(_retrieve)
    await asyncio.wait({cancelled}, timeout=CLEAN_UP_SECONDS)


def _retrieve(outcome: asyncio.Future[Any]) -> None:
    """Retrieve an outcome that nobody waits for, so that asyncio does not report it."""
    if not outcome.cancelled():
        outcome.exception()


def _without_stop(call: Callable[[], T]) -> T:
    """Make a call; turn `StopIteration` into another error, because no future can hold it."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("a function raised StopIteration; give next() a default") from error


def _on_this_loop(job: Future[T]) -> asyncio.Future[T]:
    """Return a thread's outcome as a future of this loop; a closed loop never gets it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle() -> None:
        if outcome.done():
            return
        error = job.exception()
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(job.result())

    def settle_on_loop(_: Future[T]) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    job.add_done_callback(settle_on_loop)
    return outcome


def _start_daemon(call: Callable[[], T]) -> Future[T]:
    """Start a call in a daemon thread; callbacks and tracing travel in context variables."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # a caller that stops waiting does not stop it
    context = copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(_without_stop, call))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True, name="conspectus").start()
    return outcome
