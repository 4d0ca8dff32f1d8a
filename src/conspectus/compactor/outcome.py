"""What came of one compaction: a record that is in force, or the history as it was."""

from __future__ import annotations

from dataclasses import dataclass

from conspectus._core.records import Cost, Draft, Record


@dataclass(frozen=True, slots=True)
class Done:
    """The record is in force.

    Attributes:
        record: what was done.
        draft: its summary; None where messages were only shown short.
        spent: what it took.
        failures: what went wrong in each try of a summariser that failed.
    """

    record: Record
    draft: Draft | None
    spent: Cost
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The history is as it was.

    Attributes:
        reason: why, as one sentence.
        error: what to raise for those who want it raised.
        spent: what the tries cost all the same.
        refused: a person refused the summary, which is no failure to raise.
        failures: what went wrong in each try of a summariser.
    """

    reason: str
    error: Exception
    spent: Cost
    refused: bool = False
    failures: tuple[str, ...] = ()
