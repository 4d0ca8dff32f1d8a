"""The result of one call of a compactor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, Literal, NamedTuple

from conspectus.core.records import Cost, Record
from conspectus.errors import StuckError


class StatedRule(NamedTuple):
    """A rule of the user, and the message in which the user said it.

    Attributes:
        id: the id of this message, as summaries cite it.
        text: the rule, word for word.
    """

    id: str
    text: str


Outcome = Literal["kept", "compacted", "stuck"]
Failure = Literal["archive", "redaction", "summary"]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The outcome of one call for one history.

    Attributes:
        outcome: `kept`: no compaction was due, or it failed and the history still fits.
            `compacted`: a new record is in force, and `messages` fit. `stuck`: `messages` do not
            fit. There are three cases of `stuck`. 1: The messages that must stay do not fit.
            `needed` has their tokens. All other messages were evicted, by this call (see `record`)
            or earlier. 2: This compaction failed. `failed` names the step. Nothing was evicted.
            3: An earlier compaction failed, and the history has not grown by 10 % since then.
            Nothing was tried. `needed` has the tokens of the whole history.
        reason: the reason for the outcome, in one sentence.
        cause: what caused the compaction; empty if there was none.
        messages: what to send to the model, in the kind that the caller passed. Kept messages are
            the caller's own objects.
        summary: the text of the summary in force, without the first line of its message; empty if
            no summary is in force.
        record: the record of this compaction; None if this call compacted nothing.
        archived: whether the archive has confirmed every original that is not in `messages`. It is
            False while the archive fails. It is also False if the history has a summary of another
            library, because the originals of that summary are not in the archive.
        tokens_before: tokens of the view before this call, without messages that an earlier record
            already covers.
        tokens_after: tokens of `messages`. With a `token_counter`, it is the number that the
            counter returns for this list.
        budget: the most tokens that `messages` may have. If no window is known, it is the smallest
            trigger that counts only tokens, or None.
        evicted: number of messages that this call removed from the view, summaries of other
            libraries included.
        kept: number of the caller's messages in `messages`, clipped ones included.
        clipped: number of messages in `messages` that are clipped.
        dropped: number of the caller's messages that were left out because an earlier compaction
            has evicted them.
        cost: the calls and tokens of this call's summary. A draft that was written earlier costs
            nothing.
        needed: the tokens that the window must have; set only if `outcome` is `stuck`. In case 1
            of `stuck` it is the fewest tokens of the messages that must stay. In case 2 it is None.
            In case 3 it is the tokens of the whole history.
        failed: the step that failed: `archive`, `redaction` or `summary`; None if nothing failed.
        failures: why attempts to summarise failed, one sentence for each.
        rules_left_out: the rules of the user for which the new summary has no room, as
            `StatedRule(id, text)`. With the id, the message of the rule can be recalled. The id is
            empty for a sentence of `rules=`.
        redacted: number of secrets that were removed from the evicted and clipped messages, by
            kind.
        cut: tokens that are known to be missing at the end of the new summary; 0 if it is complete.
        may_need_joining: True if no model has yet answered two user messages in a row in this
            history. Some models refuse two user messages in a row. So, with
            `alternate_roles="auto"`, the user messages after the summary are joined with the
            summary.
        preparing: True if the trigger was reached, the history fits, and its summary is being
            prepared in the background. The caller needs to do nothing.
        head_id: id of the record in force, from the archive or from the memory of this process. It
            is empty if there is no such record. It is also empty in an agent, because there the
            agent's state has the id.
        record_id: id of the record that this call put in force; None if it made no record.
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
    rules_left_out: tuple[StatedRule, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    preparing: bool = False
    may_need_joining: bool = False
    head_id: str = ""

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        record = "" if self.record is None else f", record {self.record.id}"
        lost = ", not archived" if self.evicted and not self.archived else ""
        counts = f"{self.evicted:,} messages evicted{lost}, {self.kept:,} in view"
        counts += f" ({self.clipped:,} of them clipped)" if self.clipped else ""
        rules = self.rules_left_out
        counts += f", {len(rules):,} rules left out" if rules else ""
        reason = shorten(self.reason, 80, placeholder=" …")
        return f"<CompactionResult {self.outcome}: {sizes}, {counts}{record}; {reason}>"

    def raise_if_stuck(self) -> None:
        """Raise an error if `outcome` is `stuck`.

        Raises:
            StuckError: with the reason, the needed tokens and the budget.
        """
        if self.outcome == "stuck":
            needed = self.needed or self.tokens_after
            raise StuckError(self.reason, needed=needed, budget=self.budget or 0)

    @property
    def cut(self) -> int:
        """Tokens known to be missing at the end of the new summary; 0 if it is complete."""
        return 0 if self.record is None else self.record.cut

    @property
    def record_id(self) -> str | None:
        """Id of the record that this call put in force; None if it made no record."""
        return None if self.record is None else self.record.id


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo has taken back, or put in force again.

    Attributes:
        taken_back: ids of the records that are in force no more, the newest first.
        put_in_force: ids of the records that are in force again, the oldest first.
        head_id: id of the record that is in force now; empty if there is none.
        came_back: number of messages that the records taken back had evicted.
        left: number of messages that the records put in force evict.
        unclipped: number of messages that the records taken back had clipped.
        changed: ids, as summaries cite them, of messages that came back other than they were,
            because secrets were removed from them or a part of them could only be described.
        tokens_before: tokens of the view before. Without `messages`, as the records have measured
            it.
        tokens_after: tokens of the view now, likewise.
        messages: what to send to the model from now on, in the kind that the caller passed. None if
            no messages were passed.
    """

    taken_back: tuple[str, ...]
    put_in_force: tuple[str, ...]
    head_id: str
    came_back: int
    left: int
    unclipped: int
    changed: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    messages: list[Any] | None = None

    def __repr__(self) -> str:
        parts = [f"{self.tokens_before:,} → {self.tokens_after:,} tokens"]
        if self.taken_back:
            parts.append(f"{', '.join(self.taken_back)} taken back")
        if self.put_in_force:
            parts.append(f"{', '.join(self.put_in_force)} in force again")
        parts.append(f"{self.came_back:,} messages came back, {self.left:,} left")
        return f"<UndoResult {'; '.join(parts)}>"
