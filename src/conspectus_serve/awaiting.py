"""Ways to await work: one computation at a time, to its end, or while a client is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

T = TypeVar("T")


class OneComputation:
    """Runs long computations one after another."""

    def __init__(self) -> None:
        self._semaphore = asyncio.Semaphore(1)

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """Run a long computation in a thread, and no other one at the same time.

        Next to many of them, the event loop and small requests would get no time.
        """
        async with self._semaphore:
            thread = asyncio.ensure_future(asyncio.to_thread(call, *args))
            try:
                return await asyncio.shield(thread)
            finally:  # the computation continues even if its client disconnects
                await asyncio.wait({thread})


class UnfinishedWork:
    """Work that is finished even if its client has disconnected."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Start work, and return a future of its result."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)

    async def wait(self) -> None:
        """Wait until all of it has ended, or failed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def while_client_is_there(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Await work, and cancel it if its client disconnects. Raises ClientDisconnect then."""
    task = asyncio.current_task()

    async def cancel_at_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if task is not None:
            task.cancel()

    watching = asyncio.ensure_future(cancel_at_disconnect())
    try:
        await work
    except asyncio.CancelledError:
        if watching.done():
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()
