"""`close`, `aclose` and `with`, for every public object that prepares notes or opens an archive."""

from __future__ import annotations

from math import inf
from typing import Self

from conspectus.archive import Archive
from conspectus.bridge import arun, call_either_way, run
from conspectus.engine.preparations import Preparations
from conspectus.errors import PolicyError


class Closing:
    """`close`, `aclose` and `with` for an object that prepares notes."""

    _preparations: Preparations | None
    _opened: Archive | None

    def close(self, timeout: float | None = None) -> None:
        """Wait for a summary that is being prepared, and close an archive that this object opened.

        Afterwards no thread of this object uses the archive's store, so you can close its
        connection. A store or an `Archive` that you passed stays open. The object can still be
        used, but prepares nothing in the background.

        Args:
            timeout: the most seconds to wait for a model that is writing. What it writes later is
                not used. Default: no limit.

        Raises:
            PolicyError: `timeout` is not a number of seconds from 0 on.
        """
        run(self._close(timeout))

    async def aclose(self, timeout: float | None = None) -> None:
        """`close` on an event loop."""
        await arun(self._close(timeout))

    async def _close(self, timeout: float | None) -> None:
        is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if timeout is not None and not (is_number and 0 <= timeout < inf):
            raise PolicyError(
                f"timeout must be seconds from 0 on, or None for no end, not {timeout!r}"
            )
        if self._preparations is not None:
            await self._preparations.close(timeout)
        if self._opened is not None:
            await call_either_way(self._opened.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # After an error or an interrupt, it does not wait for a model.
        self.close(None if kind is None else 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.aclose(None if kind is None else 0)
