"""What one call of the compactor reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, Literal

from conspectus.core.records import Cost, Record
from conspectus.errors import StuckError

Outcome = Literal["kept", "compacted", "stuck"]
Failure = Literal["archive", "redaction", "summary"]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The outcome of one call for one history.

    Attributes:
        outcome: `kept`: nothing was due, or it failed and there is still room; `compacted`: a new
            record is in force, and `messages` fit; `stuck`: they do not fit and cannot be made to.
            What may leave has left then: now, as `record` says, or before.
        reason: why, as one sentence.
        cause: the reason for a compaction; empty for none.
        messages: the view to send to the model, in the caller's kind; kept messages are the
            caller's own objects.
        summary: body of the summary in force; empty for none.
        record: the record of this compaction; None for none.
        archived: the archive has confirmed every original that is not in `messages`; False also
            while it fails, and after a summary of another library.
        tokens_before: tokens of the view before, without messages already covered.
        tokens_after: tokens of `messages`: with a `token_counter`, what it returns for that list.
        budget: most tokens of `messages`; without a window the least trigger of tokens, or None.
        evicted: messages that left the view now.
        kept: messages of the caller in view, clipped ones included.
        clipped: messages clipped.
        dropped: messages left out on arrival because the record in force covers them.
        cost: cost of the summary; a draft that was found costs nothing.
        needed: fewest tokens of the part that must stay, if stuck.
        failed: the obstacle of a compaction that failed; None for none.
        failures: failed tries on the way, one sentence each.
        redacted: secrets that were taken out of what left or was clipped, by kind.
        cut: tokens known to be missing at the end of the new summary, as for `Record`; 0 if it is
            whole.
        alternates: no model has answered two messages of the user in a row in this history.
        preparing: the trigger was reached, the history fits, and its notes are being prepared in
            the background: nothing needs to be done.
        head: id of the record that the archive, or the memory of this process, names as in force
            now; empty for none, and where a state names it.
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
    needed: int | None = None
    failed: Failure | None = None
    failures: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    preparing: bool = False
    alternates: bool = False
    head: str = ""

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        record = "" if self.record is None else f", record {self.record.id}"
        lost = ", not archived" if self.evicted and not self.archived else ""
        counts = f"{self.evicted:,} messages evicted{lost}, {self.kept:,} in view"
        counts += f" ({self.clipped:,} of them clipped)" if self.clipped else ""
        reason = shorten(self.reason, 80, placeholder=" …")
        return f"<CompactionResult {self.outcome}: {sizes}, {counts}{record}; {reason}>"

    def raise_if_stuck(self) -> None:
        """Raise `StuckError` with the numbers if `outcome` is `stuck`."""
        if self.outcome == "stuck":
            needed = self.needed or self.tokens_after
            raise StuckError(self.reason, needed=needed, budget=self.budget or 0)

    @property
    def cut(self) -> int:
        """Tokens known to be missing at the end of the new summary; 0 if it is whole."""
        return 0 if self.record is None else self.record.cut

    @property
    def record_id(self) -> str | None:
        """Id of the record that this call put in force; None for none."""
        return None if self.record is None else self.record.id
