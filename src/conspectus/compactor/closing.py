"""Provide `close` and `with` for an object that prepares notes in the background."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from conspectus._drive import Flow, Io, arun, run
from conspectus.archive import Archive
from conspectus.compactor.background import Preparations, check_seconds


class Closing:
    """`close`, `aclose` and `with` for an object that prepares notes."""

    def _prepares(self) -> Sequence[Preparations]:
        raise NotImplementedError

    def _own_archive(self) -> Archive | None:
        raise NotImplementedError

    def close(self, timeout: float | None = None) -> None:
        """Wait for notes that are being prepared, and close an archive opened here.

        Afterwards no thread and no task of this object uses a store, whose connection may then be
        closed. A store or an `Archive` that was given stays open, and the object goes on without
        `background`.

        Args:
            timeout: seconds to wait for notes that a model is writing; later ones are thrown away.
                Default: no limit.

        Raises:
            PolicyError: `timeout` is no number of seconds.
        """
        run(self._closed_flow(timeout))

    async def aclose(self, timeout: float | None = None) -> None:
        """`close` on an event loop, where notes are prepared as its tasks."""
        await arun(self._closed_flow(timeout))

    def _closed_flow(self, timeout: float | None) -> Flow[None]:
        check_seconds(timeout)
        for one in self._prepares():
            yield from one.close_flow(timeout)
        archive = self._own_archive()
        if archive is not None:
            yield Io(archive.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error or an interrupt, there is no wait for a model.
        self.close(None if kind is None else 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose(None if kind is None else 0)
