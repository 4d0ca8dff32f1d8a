"""Know whether the archive can be written.

A full disk can still be read. So an archive that has failed counts as failed until a compaction is
stored in it, or until a test value is written to it.
"""

from __future__ import annotations

import threading
from time import monotonic

from conspectus.archive import Archive
from conspectus.engine.history import LOCAL
from conspectus.errors import ArchiveError

PROBE_BYTES = 65_536
"""Bytes of the test value: a few may fit on a full disk."""

PROBES_APART = 1.0
"""Seconds between two test values, because anybody may ask."""


class ArchiveHealth:
    """Whether the archive answers and can be written. The methods are for worker threads.

    Attributes:
        failures: the number of failures of the archive since the start.
    """

    def __init__(self, archive: Archive) -> None:
        self.failures = 0
        self._archive = archive
        self._one_probe = threading.Lock()
        self._has_failed = False
        self._probed_at = float("-inf")  # by `monotonic()`
        self._last_problem = ""  # found by the last probe; empty if none

    def note_failure(self) -> None:
        """Note that the archive has failed a request."""
        self._has_failed = True
        self.failures += 1

    def note_success(self) -> None:
        """Note that a compaction was stored in the archive."""
        self._has_failed = False

    def problem(self) -> str:
        """Return the problem, or an empty text. A test value is written only after a failure."""
        if self._has_failed:
            return self.problem_of_writing()
        try:
            self._archive.read_remarks(LOCAL, "health", ["health"])
        except ArchiveError as error:
            return str(error)
        return ""

    def problem_of_writing(self) -> str:
        """Write a test value, remove it, and return the problem; empty if there is none."""
        with self._one_probe:
            is_recent = monotonic() - self._probed_at < PROBES_APART
            has_failed_since = self._has_failed and not self._last_problem
            if is_recent and not has_failed_since:
                return self._last_problem
            try:
                self._archive.probe(PROBE_BYTES)
                self._last_problem = ""
            except ArchiveError as error:
                self._last_problem = str(error)
            self._probed_at = monotonic()
            self._has_failed = bool(self._last_problem)
            return self._last_problem
