"""Keep the names of tenants, so that a person can list what is archived."""

from __future__ import annotations

import asyncio
import logging

from conspectus._newest import Newest
from conspectus.archive import Archive
from conspectus.errors import ArchiveError
from conspectus_serve.secret import LOCAL

logger = logging.getLogger("conspectus.serve")

KIND, NAME = "tenants", "serve"
"""Kind and name of the note, beside the threads of the command line's own tenant, which reads it
for `conspectus archive list`."""

MOST = 1_000
"""Tenants whose names are kept."""


class Tenants:
    """The tenants of whom something is archived."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._known = archive, Newest[str, bool](MOST)

    def names(self) -> list[str]:
        """Return their names, sorted; `local` where there are none.

        Raises:
            ArchiveError: the archive cannot be read.
        """
        note = self._archive.notes(LOCAL, KIND, [NAME]).get(NAME, {})
        return sorted({*note.get("names", ()), *self._known.keys()}) or [LOCAL]

    def add(self, tenant: str) -> None:
        """Keep a name; a failure does not stop the answer."""
        if self._known.get(tenant) is not None:
            return
        self._known.put(tenant, True)
        try:
            note = {"names": self.names()[-MOST:]}
            self._archive.note(LOCAL, KIND, {NAME: note})
        except ArchiveError as error:
            logger.warning("the name of a tenant could not be kept: %s", error)

    async def add_aside(self, tenant: str) -> None:
        """Keep a name in a thread."""
        await asyncio.to_thread(self.add, tenant)
