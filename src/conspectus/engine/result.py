"""What one call of the compactor reports, and its short way where nothing is due.

A loop sends its history again and again, a little longer each time. A step with nothing due gives
the result of the one before, with the messages that have come since. Copies of what the messages
held show whether the beginning is the one that was read, so that a change in place is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import is_
from textwrap import shorten
from typing import Any, Literal

from conspectus.core.items import Role, Size
from conspectus.core.plan import BELOW
from conspectus.core.records import Cost, Record
from conspectus.engine.thread import Thread
from conspectus.engine.view import History, reports_of
from conspectus.errors import MessageError, StuckError
from conspectus.messages import SUMMARY_LINE, Message, Source, is_summary_message, read_messages
from conspectus.messages.message import without_objects
from conspectus.messages.reading import equal
from conspectus.messages.shortening import POINTER
from conspectus.tokens import Report

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
        clipped: messages truncated.
        dropped: messages left out on arrival because the record in force covers them.
        cost: cost of the summary; a draft that was found costs nothing.
        needed: fewest tokens of the part that must stay, if stuck.
        failed: the obstacle of a compaction that failed; None for none.
        failures: failed tries on the way, one sentence each.
        redacted: secrets that were taken out of what left or was truncated, by kind.
        cut: tokens known to miss at the end of the new summary, as for `Record`; 0 if it is whole.
        alternates: no model has answered two messages of the user in a row in this history.
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
    redacted: Mapping[str, int] = field(default_factory=dict)
    preparing: bool = False
    alternates: bool = False

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        record = "" if self.record is None else f", record {self.record.id}"
        lost = ", not archived" if self.evicted and not self.archived else ""
        counts = f"{self.evicted:,} messages evicted{lost}, {self.kept:,} in view"
        counts += f" ({self.clipped:,} of them truncated)" if self.clipped else ""
        reason = shorten(self.reason, 80, placeholder=" …")
        return f"<CompactionResult {self.outcome}: {sizes}, {counts}{record}; {reason}>"

    def raise_if_stuck(self) -> None:
        """Raise `StuckError` with the numbers if `outcome` is `stuck`."""
        if self.outcome == "stuck":
            needed, budget = self.needed or self.tokens_after, self.budget or 0
            raise StuckError(self.reason, needed=needed, budget=budget)

    @property
    def cut(self) -> int:
        """Tokens known to miss at the end of the new summary; 0 if it is whole."""
        return 0 if self.record is None else self.record.cut

    @property
    def record_id(self) -> str | None:
        """Id of the record that this call put in force; None for none."""
        return None if self.record is None else self.record.id


# A step with nothing due


@dataclass(frozen=True, slots=True)
class Seen:
    """A history with nothing due, as it was sent and read."""

    sent: list[Source]  # the caller's messages, and copies of what they held
    held: list[Any]
    pointer: object  # what the archive, or this process's memory, said was in force
    head: Record | None
    result: CompactionResult
    sizes: list[int]  # tokens of the messages in view, without a correction
    reports: list[Report] | None  # the models' reports of usage; None after another's summary
    characters: int  # of all messages, images included
    joins: bool  # messages of the user in a row are joined
    last_role: Role | None  # of the newest message
    counted: int | None = None  # tokens of the view by a caller's counter; None for none


def _by_sizes(thread: Thread) -> bool:
    """Tell whether sizes alone decide steps of such a caller while nothing is due."""
    return thread.head is None and thread.trigger_size is None and thread.ratio is None


async def remember(
    thread: Thread, entries: Sequence[Message], history: History, result: CompactionResult
) -> None:
    """Remember a history with nothing due, if the next step may go on from it."""
    # A summary that the user sends last is one once another message follows.
    users = [item for item in history.items if item.entry is not None and item.role == "user"]
    held = [entry.memo["copy"] for entry in entries]
    unsure = None in held or (users and is_summary_message(users[-1].source))
    if unsure or not _by_sizes(thread):
        return
    seen = Seen(
        sent=[entry.source for entry in entries],
        held=held,
        pointer=thread.pointer if thread.engine.archive else await thread.in_force(),
        head=history.head,
        result=replace(result, messages=list(result.messages)),  # a caller may go on with its own
        sizes=[item.tokens for item in history.items],
        reports=None if history.foreign else history.reports(),
        characters=sum(entry.memo["size"] for entry in entries),
        joins=history.joins,
        last_role=entries[-1].role if entries else None,
        counted=history.size.tokens if thread.engine.meter.counts_lists else None,
    )
    thread.engine.memory.histories.put(thread.scope, seen)


async def as_before(
    thread: Thread, messages: Sequence[Source], seen: Seen
) -> CompactionResult | None:
    """Return the result where nothing is due and the history begins with what was read before."""
    memory = thread.engine.memory
    if memory.of(thread.scope).failed is not None or not _by_sizes(thread):
        return None
    if await thread.in_force() != seen.pointer:
        return None
    try:
        now = _followed(seen, messages, thread)
    except MessageError:
        return None  # raised again, with its place, where all are read
    if now is None:
        return None
    if now.counted is None and thread.engine.meter.counts_lists:
        now = replace(now, counted=thread.engine.counted(now.result.messages))
    memory.histories.put(thread.scope, now)
    corrected = thread.corrected(now.reports or (), now.head)
    tokens = _tokens(corrected, now)
    if not corrected.is_quiet(Size(tokens, len(now.sizes)), now.head):
        return None
    sizes: dict[str, Any] = {
        "tokens_before": tokens,
        "tokens_after": tokens,
        "budget": thread.budget,
    }
    view = list(now.result.messages)
    return replace(now.result, reason=BELOW, messages=view, preparing=False, **sizes)


def _tokens(corrected: Thread, now: Seen) -> int:
    """Return the tokens of what is sent now."""
    if now.counted is not None:
        return now.counted
    ratio = corrected.engine.meter.ratio
    # Corrected message by message, as a plan does.
    return sum(now.sizes if ratio == 1.0 else (math.ceil(size * ratio) for size in now.sizes))


def _followed(seen: Seen, messages: Sequence[Source], thread: Thread) -> Seen | None:
    """Return the history with the messages after those that were sent.

    None if the messages do not begin with those, or if a new one may change how earlier ones are
    seen: then all must be read. Equal messages may be other objects, as in a request that was read
    anew; the view has those then.

    Raises:
        MessageError: a new message cannot be understood.
    """
    if not isinstance(messages, (list, tuple)) or len(messages) < len(seen.sent):
        return None
    now = messages[: len(seen.sent)]
    if not _same(now, seen) and not _same(now := without_objects(now), seen):
        return None
    view = seen.result.messages
    unchanged = len(messages) == len(seen.sent)
    if not all(map(is_, now, seen.sent)):
        unchanged = False
        again = {id(before): message for message, before in zip(now, seen.sent, strict=True)}
        view = [again.get(id(message), message) for message in view]
    entries = read_messages(messages[len(seen.sent) :])
    later = [entry.source for entry in entries]
    if len({type(message) is dict for message in (*now[:1], *later)}) > 1:
        return None  # a dict among LangChain's messages, or the other way round
    held = [entry.memo["copy"] for entry in entries]
    if None in held:  # one that is to be read anew each time
        return None
    for entry in entries:
        marked = entry.text.startswith(SUMMARY_LINE) or POINTER in entry.reading
        if marked or is_summary_message(entry.source):
            return None
    if seen.joins and _in_a_row(seen, entries):
        return None
    view = [*view, *later]
    sizes = [*seen.sizes, *map(thread.engine.meter.entry, entries)]
    reports, since = seen.reports, seen.head.messages_after if seen.head else 0
    if later and reports is not None:
        # Sizes are those of messages before any of them were joined.
        known = len(seen.sizes)
        filler: list[Source] = [{}] * known
        reports = [*reports, *reports_of([*filler, *later], sizes, max(since, known))]
    return replace(
        seen,
        sent=[*now, *later],
        held=[*seen.held, *held],
        result=replace(seen.result, messages=view, kept=seen.result.kept + len(later)),
        sizes=sizes,
        reports=reports,
        characters=seen.characters + sum(entry.memo["size"] for entry in entries),
        last_role=entries[-1].role if entries else seen.last_role,
        counted=seen.counted if unchanged else None,
    )


def _in_a_row(seen: Seen, later: Sequence[Message]) -> bool:
    """Tell whether new messages bring two of the user in a row."""
    roles = [seen.last_role, *(entry.role for entry in later)]
    return ("user", "user") in pairwise(roles)


def _same(now: Sequence[Any], seen: Seen) -> bool:
    """Tell whether messages are those that were sent, and hold what they held."""
    held = [getattr(one, "__dict__", one) for one in now]  # a dict itself is compared fastest
    return [*map(type, now)] == [*map(type, seen.sent)] and equal(held, seen.held)
