"""Know whether the archive takes what it is given.

A disk that is full still gives back what it holds. So an archive that has failed counts as failed
until a compaction is kept in it, or until it takes a value that is written to find that out.
"""

from __future__ import annotations

import threading
from time import monotonic

from conspectus.archive import Archive
from conspectus.engine.history import LOCAL
from conspectus.errors import ArchiveError

PROBE_BYTES = 65_536  # of a value that is written: a few bytes may fit where nothing else does
PROBES_APART = 1.0  # seconds for which the answer of one counts: anybody may ask


class ArchiveHealth:
    """Whether the archive answers and takes what is written. Its methods are for worker threads."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._turn = archive, threading.Lock()
        self._has_failed = False
        self._probed_at, self._probed = float("-inf"), ""
        self.failures = 0  # since the start

    def note_failure(self) -> None:
        """Note that the archive has failed a request."""
        self._has_failed = True
        self.failures += 1

    def note_success(self) -> None:
        """Note that a compaction is kept in the archive."""
        self._has_failed = False

    def problem(self) -> str:
        """Return what is wrong; empty for nothing. It writes only after a failure."""
        if self._has_failed:
            return self.problem_of_writing()
        try:
            self._archive.notes(LOCAL, "health", ["health"])
        except ArchiveError as error:
            return str(error)
        return ""

    def problem_of_writing(self) -> str:
        """Write a value, remove it, and return what is wrong; empty for nothing."""
        with self._turn:
            if monotonic() - self._probed_at < PROBES_APART and not (
                self._has_failed and not self._probed
            ):
                return self._probed
            try:
                self._archive.probe(PROBE_BYTES)
                self._probed = ""
            except ArchiveError as error:
                self._probed = str(error)
            self._probed_at = monotonic()
            self._has_failed = bool(self._probed)
            return self._probed
