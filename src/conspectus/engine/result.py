"""Report what one call of the compactor did, and raise its errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from conspectus.core.records import Cost, Draft, Record
from conspectus.errors import ConspectusError, StuckError, SummaryError

Outcome = Literal["kept", "compacted", "stuck"]
Failure = Literal["archive", "redaction", "summary"]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The outcome of one call for one history.

    Attributes:
        outcome: `kept`: nothing was due, or it failed and there is still room; `compacted`: a new
            record is in force; `stuck`: the history does not fit and cannot be made to.
        reason: why, as one sentence.
        cause: the reason for a compaction; empty for none.
        messages: the view to send to the model, in the caller's kind; kept messages are the
            caller's own objects.
        summary: body of the summary in force; empty for none.
        record: the record of this compaction; None for none.
        archived: the archive has confirmed every original that is not in `messages`.
        tokens_before: tokens of the view before, without messages already covered.
        tokens_after: tokens of `messages`.
        budget: most tokens of `messages`; None if no window is known.
        evicted: messages that left the view now.
        kept: messages of the caller in view, clipped ones included.
        clipped: messages shown short.
        dropped: messages left out on arrival because the record in force covers them.
        cost: cost of the summary; a draft that was found costs nothing.
        needed: fewest tokens of the part that must stay, if stuck.
        failed: the obstacle of a compaction that failed; None for none.
        failures: failed tries on the way, one sentence each.
        notes: further remarks for the caller.
        redacted: secrets that were taken out of what left or was shown short, by kind.
        preparing: the trigger was reached, the history fits, and its notes are being prepared in
            the background: nothing needs to be done.
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
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    preparing: bool = False

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        record = "" if self.record is None else f", record {self.record.id}"
        counts = f"{self.evicted:,} messages left, {self.kept:,} in view"
        return f"<CompactionResult {self.outcome}: {sizes}, {counts}{record}; {self.reason:.80}>"

    def raise_if_stuck(self) -> None:
        """Raise `StuckError` with the numbers if `outcome` is `stuck`."""
        if self.outcome == "stuck":
            needed, budget = self.needed or self.tokens_after, self.budget or 0
            raise StuckError(self.reason, needed=needed, budget=budget)

    @property
    def record_id(self) -> str | None:
        """Id of the record that this call put in force; None for none."""
        return None if self.record is None else self.record.id


@dataclass(frozen=True, slots=True)
class Done:
    """A compaction whose record is in force; without a draft messages were only shown short."""

    record: Record
    draft: Draft | None
    spent: Cost
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A compaction that left the history as it was.

    Attributes:
        refused: a person refused the summary, which raises nothing.
    """

    reason: str
    error: Exception
    spent: Cost
    refused: bool = False
    failures: tuple[str, ...] = ()


def as_the_models(error: SummaryError) -> Exception:
    """Make an error of both our class and the model's own.

    `except RuntimeError` or `except ContextOverflowError` then catches it, with the attributes of
    the model's error. If no class can be both, return the model's error with ours as a note.

    Example:
        >>> try:
        ...     raise SummaryError("no summary was made") from RuntimeError("429")
        ... except SummaryError as failure:
        ...     made = as_the_models(failure)
        >>> isinstance(made, RuntimeError), isinstance(made, SummaryError), str(made)
        (True, True, 'no summary was made')
    """
    cause = error.__cause__
    while isinstance(cause, ConspectusError):
        cause = cause.__cause__
    if not isinstance(cause, Exception) or type(cause) is Exception:
        return error
    try:
        ours: Any = type(error)
        theirs: Any = type(cause)
        kind = _both(ours, theirs)
        made: Exception = kind.__new__(kind, *cause.args)
        made.__dict__.update({**vars(cause), **vars(error)})
        made.args = error.args
    except Exception:  # a class that cannot be inherited from, or made without its own words
        cause.add_note(f"{type(error).__qualname__}: {error}")
        return cause
    made.__cause__ = cause
    return made.with_traceback(error.__traceback__)


@lru_cache(maxsize=64)
def _both(ours: Any, theirs: Any) -> type[Exception]:
    def said(self: Exception) -> str:
        return str(self.args[0]) if self.args else ""

    def plain(self: Exception) -> tuple[object, ...]:  # no other process knows this class
        return ours, self.args

    about = {
        "__doc__": ours.__doc__,
        "__module__": ours.__module__,
        "__qualname__": ours.__qualname__,
        "__str__": said,
        "__reduce__": plain,
    }
    return type(ours.__name__, (ours, theirs), about)
