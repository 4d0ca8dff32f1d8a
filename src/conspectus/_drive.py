"""Drive one flow with or without an event loop: only here do sync and async differ.

A flow is a generator that yields steps (`Io`, `Gather`) and is sent their results. The error of a
step is thrown into the flow. A cancelled driver closes the flow, and the cancellation passes.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")

CLEAN_UP = 1.0
"""Seconds in which a cancelled call may clean up before it is left behind."""

LEFT_BEHIND = "conspectus-timeout"
"""Name of the threads of calls that may be left behind."""

_LEFT_BEHIND: set[asyncio.Future[Any]] = set()

Flow = Generator["Io | Gather", Any, T]
"""A flow of I/O steps that returns a `T`."""


class StepTimeout(TimeoutError):
    """A step took longer than its own limit."""


@dataclass(frozen=True, slots=True)
class Io:
    """One step of I/O: `call` for the sync driver, `acall` for the async one.

    Without `acall` the async driver runs `call` in a thread. A step that takes longer than
    `timeout` seconds raises `StepTimeout`, and its late answer is thrown away.
    """

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]] | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Gather:
    """Several flows at once, at most `limit` at a time; answers in the order given.

    The first failure stops the flows that have not started, and is thrown into the outer flow.
    """

    flows: Sequence[Flow[Any]]
    limit: int = 4


def pause(seconds: float) -> Io:
    return Io(lambda: time.sleep(seconds), lambda: asyncio.sleep(seconds))


def run(flow: Flow[T]) -> T:
    """Drive a flow to its end without an event loop."""
    answer: Any = None
    failure: BaseException | None = None
    try:
        while True:
            step = flow.throw(failure) if failure is not None else flow.send(answer)
            answer, failure = None, None
            try:
                answer = _do(step)
            except Exception as error:
                failure = error
    except StopIteration as end:
        return cast("T", end.value)
    finally:
        flow.close()
        failure = None  # it holds this frame, which must not hold it


async def arun(flow: Flow[T]) -> T:
    """Drive a flow to its end on the running event loop."""
    answer: Any = None
    failure: BaseException | None = None
    try:
        while True:
            step = flow.throw(failure) if failure is not None else flow.send(answer)
            answer, failure = None, None
            try:
                answer = await _ado(step)
            except Exception as error:
                failure = error
    except StopIteration as end:
        return cast("T", end.value)
    finally:
        flow.close()
        failure = None  # it holds this frame, which must not hold it


def _do(step: Io | Gather) -> Any:
    if isinstance(step, Io):
        return step.call() if step.timeout is None else within(step.call, step.timeout)
    if len(step.flows) <= 1 or step.limit <= 1:
        return [run(flow) for flow in step.flows]
    with ThreadPoolExecutor(max_workers=min(step.limit, len(step.flows))) as pool:
        # Callbacks and tracing of LangChain travel in context variables, which threads do not
        # inherit; one copy for each, as a context cannot be entered twice.
        stop = threading.Event()

        def one(flow: Flow[Any]) -> Any:
            if stop.is_set():
                return flow.close()
            try:
                return run(flow)
            except BaseException:
                stop.set()
                raise

        jobs = [pool.submit(contextvars.copy_context().run, one, flow) for flow in step.flows]
        try:
            for job in as_completed(jobs):
                job.result()
            return [job.result() for job in jobs]
        finally:
            stop.set()
            jobs = job = None  # type: ignore[assignment]  # their failures hold this frame


async def _ado(step: Io | Gather) -> Any:
    if isinstance(step, Io):
        if step.timeout is None:
            return await (step.acall() if step.acall is not None else asyncio.to_thread(step.call))
        waiting = step.acall() if step.acall is not None else in_a_daemon(step.call)
        return await _awithin(waiting, step.timeout)
    gate = asyncio.Semaphore(max(1, step.limit))
    stopped = False

    async def one(flow: Flow[Any]) -> Any:
        nonlocal stopped
        async with gate:
            if stopped:  # a place at the gate can be won before the cancellation arrives
                return flow.close()
            try:
                return await arun(flow)
            except BaseException:
                stopped = True
                raise

    tasks = [asyncio.ensure_future(one(flow)) for flow in step.flows]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        tasks = task = None  # type: ignore[assignment]  # their failures hold this frame


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
