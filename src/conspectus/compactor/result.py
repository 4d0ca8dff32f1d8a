"""What one call of the compactor did, and what one compaction came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from conspectus._core.records import Cost, Draft, Record
from conspectus.errors import StuckError
from conspectus.ledger import Fact

Outcome = Literal["kept", "compacted", "stuck"]
Failure = Literal["archive", "redaction", "summary"]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What happened to one history, and why.

    Attributes:
        outcome: `kept`: nothing needed doing, or nothing could be done and there is still room;
            `compacted`: a record is in force; `stuck`: it does not fit and nothing helps.
        reason: why, as one sentence.
        cause: what asked for a compaction; empty when nothing did.
        messages: the view to send to the model, in the caller's kind; kept messages are the
            caller's own objects.
        summary: body of the summary in force; empty if there is none.
        record: what this compaction did; None if it did nothing.
        archived: whether the archive has confirmed every original that is not in `messages`.
        tokens_before: size of the view before, in tokens; messages that an earlier
            compaction covers are not counted.
        tokens_after: size of `messages`, in tokens.
        budget: what `messages` must fit in, in tokens; None where no window is known.
        evicted: messages that left the view now.
        kept: messages of the caller in view, clipped ones included.
        clipped: messages shown short.
        dropped: messages left out on arrival because the record in force covers them.
        cost: what summarising cost now; a draft that was found costs nothing.
        carried: exact facts that stand in the summary, word for word.
        needed: where it is stuck, the fewest tokens that what must stay takes.
        failed: what kept a compaction that was asked for from happening; None if nothing did.
        failures: tries that failed on the way, one sentence each.
        notes: what else the caller should know.
        redacted: secrets that were taken out of what left or was shown short, by kind; empty where
            there were none, or `redact` is off.
        preparing: the trigger was reached, the history fits, and its notes are being prepared
            beside the caller: nothing is wrong, and nothing needs to be done.
    """

    outcome: Outcome
    reason: str
    messages: list[Any]
    summary: str
    archived: bool
    tokens_before: int
    tokens_after: int
    budget: int | None
    kept: int
    clipped: int
    dropped: int
    cause: str = ""
    record: Record | None = None
    evicted: int = 0
    cost: Cost = field(default_factory=Cost)
    carried: tuple[Fact, ...] = ()
    needed: int | None = None
    failed: Failure | None = None
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    preparing: bool = False

    def raise_if_stuck(self) -> None:
        """Raise where `outcome` is `stuck`, for callers that cannot go on then.

        Raises:
            StuckError: with the reason and the numbers.
        """
        if self.outcome == "stuck":
            needed, budget = self.needed or self.tokens_after, self.budget or 0
            raise StuckError(self.reason, needed=needed, budget=budget)

    @property
    def record_id(self) -> str | None:
        """Id of the record that this call put in force."""
        return None if self.record is None else self.record.id


@dataclass(frozen=True, slots=True)
class Done:
    """A compaction whose record is in force."""

    record: Record
    draft: Draft | None
    spent: Cost
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A compaction that left the history as it was.

    Attributes:
        refused: a person refused the summary, which is no failure to raise.
    """

    reason: str
    error: Exception
    spent: Cost
    refused: bool = False
    failures: tuple[str, ...] = ()
