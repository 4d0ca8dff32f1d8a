"""Two drivers for one flow: the only place where sync and async differ.

A flow is a generator that yields steps (`Io`, `Gather`) and is sent their results. What a step
raises is thrown into the flow, which may catch it and go on. A cancelled or interrupted driver
closes the flow, so that its `finally` blocks run, and lets the cancellation pass.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
E = TypeVar("E")

Flow = Generator["Io | Gather", Any, T]
"""A flow of I/O steps that returns a `T`."""


class StepTimeout(TimeoutError):
    """A step took longer than it was given; a `TimeoutError` of its own making is none of these."""


@dataclass(frozen=True, slots=True)
class Io:
    """One thing to do outside: `call` for the sync driver, `acall` for the async one.

    Without `acall` the async driver runs `call` in a worker thread. `timeout` is in seconds;
    a step that takes longer raises `StepTimeout` and its late answer is thrown away.
    """

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]] | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Gather:
    """Several flows at once, at most `limit` at a time; answers in the order given.

    The first failure stops what has not started and is thrown into the flow.
    """

    flows: Sequence[Flow[Any]]
    limit: int = 4


def pause(seconds: float) -> Io:
    """A step that waits.

    Args:
        seconds: how long.
    """
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
        result: T = end.value
        return result
    finally:
        flow.close()


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
        result: T = end.value
        return result
    finally:
        flow.close()


def interpret(
    effects: Generator[E, Any, T], perform: Callable[[E], Flow[Any]]
) -> Generator[Io | Gather, Any, T]:
    """Turn a pure flow of effects into a flow of I/O steps.

    `perform` says how each effect is done; what it raises is thrown into the pure flow.
    """
    answer: Any = None
    failure: Exception | None = None
    try:
        while True:
            effect = effects.throw(failure) if failure is not None else effects.send(answer)
            answer, failure = None, None
            try:
                answer = yield from perform(effect)
            except Exception as error:
                failure = error
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        effects.close()


def _do(step: Io | Gather) -> Any:
    if isinstance(step, Io):
        return step.call() if step.timeout is None else _within(step.call, step.timeout)
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


async def _ado(step: Io | Gather) -> Any:
    if isinstance(step, Io):
        waiting = step.acall() if step.acall is not None else asyncio.to_thread(step.call)
        return await waiting if step.timeout is None else await _awithin(waiting, step.timeout)
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


async def _awithin(waiting: Awaitable[T], seconds: float) -> T:
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await waiting
    except TimeoutError as error:
        if not timer.expired():
            raise
        raise StepTimeout(f"no answer within {seconds:g} seconds") from error


def _within(call: Callable[[], T], seconds: float) -> T:
    """Run `call` in a thread of its own and stop waiting after `seconds`.

    The thread is a daemon: a hanging provider must not keep the process from ending.
    """
    box: dict[str, Any] = {}
    done = threading.Event()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            box["answer"] = context.run(call)
        except BaseException as error:
            box["failure"] = error
        finally:
            done.set()

    threading.Thread(target=work, daemon=True, name="conspectus-timeout").start()
    if not done.wait(seconds):
        raise StepTimeout(f"no answer within {seconds:g} seconds")
    if "failure" in box:
        raise box["failure"]
    answer: T = box["answer"]
    return answer
