"""Open the archive at its first use, as an agent may start before it exists."""

from __future__ import annotations

import threading

from conspectus.archive import Archive, check_address, without_password
from conspectus.cli.options import file_of
from conspectus.errors import InputError, NotFoundError


class Opening:
    """An archive that exists now or later.

    Raises:
        InputError: the address is malformed, or of an archive in a process's memory.
    """

    def __init__(self, where: str) -> None:
        check_address(where)
        if where in ("memory:", ":memory:"):
            raise InputError(
                "memory: ends with its process, so nothing is in it; give --archive a file or the "
                "URL of a database"
            )
        self._where = where
        self._lock = threading.Lock()
        self._archive: Archive | None = None

    def archive(self) -> Archive:
        """Return the open archive.

        Raises:
            NotFoundError: its file does not exist; none is made.
            ArchiveError: it cannot be opened.
        """
        with self._lock:
            if self._archive is None:
                file = file_of(self._where)
                if file is not None and not file.exists():
                    raise NotFoundError(
                        f"there is no archive at {without_password(str(file))} yet; it is made by "
                        "the first compaction. If there should be one, check --archive"
                    )
                self._archive = Archive.open(self._where)
            return self._archive

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._archive is not None:
                self._archive.close()
            self._archive = None
