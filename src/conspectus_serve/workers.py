"""Do the work of requests in threads: small steps never wait for a summary."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from conspectus.bridge import run

T = TypeVar("T")

QUICK, SLOW = 8, 128
"""Threads for steps that take milliseconds, and for compactions, which may wait for a model."""


class Workers:
    """Two pools of threads."""

    def __init__(self) -> None:
        self._quick = ThreadPoolExecutor(QUICK, "conspectus-serve")
        self._slow = ThreadPoolExecutor(SLOW, "conspectus-compacting")

    async def quick(self, body: Awaitable[T]) -> T:
        """Take a step to its end, even if the caller has gone."""
        return await asyncio.get_running_loop().run_in_executor(self._quick, run, body)

    async def slow(self, body: Awaitable[T]) -> T:
        """Take a step that may wait for a model."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, run, body)

    async def close(self) -> None:
        """Let all steps end."""
        for pool in (self._quick, self._slow):
            await asyncio.to_thread(pool.shutdown)
