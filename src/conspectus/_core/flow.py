"""One compaction as a generator of effects: the order of steps, and what follows a failure.

The flow holds no text and does nothing itself. It yields effects, is sent their results, and
catches what they raise; a driver carries them out. The order is the commit rule: originals into
the archive and read back, the summary made and checked, the draft stored, the record committed.
Whatever fails before the commit leaves the history as it was.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from conspectus._core.items import Compact
from conspectus._core.records import ClipMark, Cost, Draft, Record
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    ArchiveUnconfirmed,
    SummaryError,
    SummaryRejected,
)

OnFailure = Literal["degrade", "keep", "raise"]
FAILURES: tuple[OnFailure, ...] = ("degrade", "keep", "raise")
EMBEDDED = "embedded"
"""Name of the embedded summariser, the last resort: offline, never fails, obeys its limit."""

EMBEDDED_NAMES = frozenset({EMBEDDED, "extractive"})
"""Words by which callers may ask for it: its name, and the one that it had before."""

RETRY_AFTER = (0.5, 2.0)
"""Seconds to wait before the second and the third try of one summariser; longer where its provider
asks for it."""

LONGEST_WAIT = 20.0
"""The most seconds to wait because a provider asks for it. Where it asks for more, the summariser
is not tried again: an agent's step should not stand still, and to ask earlier would be in vain."""


def names_embedded(given: object) -> bool:
    """Tell whether a setting asks for the embedded summariser by its name."""
    return isinstance(given, str) and given in EMBEDDED_NAMES


@dataclass(frozen=True, slots=True)
class Archive:
    """Put the originals of these keys into the archive."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read these keys from the archive; answered with those that did not come back equal."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindDraft:
    """Look for a draft of this plan; answered with it, or None."""

    plan: str


@dataclass(frozen=True, slots=True)
class Summarise:
    """Have summariser `by` read these originals; answered with a `Draft`.

    Attributes:
        limit: the most that the summary message may take, in tokens.
        spent: what earlier tries of this compaction have cost, in tokens.
    """

    keys: tuple[str, ...]
    by: str
    limit: int
    spent: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """Hold a draft against the checks; answered with a `Checked`."""

    draft: Draft
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks say.

    Attributes:
        draft: the draft, with the facts that it had lost appended and its size measured.
        problems: why it cannot be used; empty if it can.
        ledger: the facts in force with it, as plain data.
    """

    draft: Draft
    problems: tuple[str, ...]
    ledger: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SaveDraft:
    """Store a draft under the hash of its plan."""

    plan: str
    draft: Draft


@dataclass(frozen=True, slots=True)
class Preview:
    """Let a person read a checked draft; answered with it as approved, or None if refused.

    Attributes:
        kept: the draft was found, and not made just now.
    """

    draft: Draft
    kept: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """Put a record in force. Nothing before this has changed anything that a caller sees."""

    record: Record


@dataclass(frozen=True, slots=True)
class Wait:
    """Pause for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell whoever listens what happens."""

    event: str
    data: Mapping[str, Any]


Effect = (
    Archive | ReadBack | FindDraft | Summarise | Check | SaveDraft | Preview | Commit | Wait | Emit
)


@dataclass(frozen=True, slots=True)
class Order:
    """Everything one compaction needs to know.

    Attributes:
        plan: what to do.
        keys: keys of the originals that leave, in order.
        clips: messages to show short.
        parent: id of the record in force.
        standing: body of the summary in force, if any.
        ledger: facts in force, as plain data; used where no summary is written.
        summarisers: names to try in turn; the embedded one is the last resort by itself.
        identity: what else would change the summary (prompts, focus, model), as one string.
        archived: whether there is an archive.
        roomy: whether the history may stay as it is for now, if no summary can be made.
        on_failure: `degrade`: keep the history while there is room, else use the embedded
            summariser; `keep`: keep the history; `raise`: raise.
        messages_after: length of the view after it, in messages.
        kept_tokens: size of what stays, the summary message not counted.
        adopted: the summary, where another library has written it already: it is not made again.
        preview: a person reads the summary before it takes effect.
        redacted: secrets that were taken out of the originals, by kind; None where nobody looks.
        among: `keys` with those of messages that stay among them; empty where none does.
    """

    plan: Compact
    keys: tuple[str, ...]
    clips: tuple[ClipMark, ...]
    parent: str | None
    standing: str
    ledger: Mapping[str, Any]
    summarisers: tuple[str, ...]
    identity: str
    archived: bool
    roomy: bool
    on_failure: OnFailure
    messages_after: int
    kept_tokens: int
    adopted: Draft | None = None
    preview: bool = False
    redacted: Mapping[str, int] | None = None
    among: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Names the draft of this plan: same originals, standing summary, facts and limit."""
        parts = [
            self.parent,
            self.keys,
            self.plan.summary_tokens,
            self.identity,
            self.standing,
            dict(self.ledger),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Done:
    """The record is in force."""

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


Compaction = Generator[Effect, Any, Done | Failed]


def compaction(order: Order) -> Compaction:
    """Carry out one plan."""
    plan = order.plan
    yield Emit("start", {"cause": plan.cause, "tokens": plan.tokens, "evict": len(order.keys)})
    outcome = yield from _steps(order)
    if isinstance(outcome, Failed):
        yield Emit("failed", {"reason": outcome.reason})
        if order.on_failure == "raise" and not outcome.refused:
            raise outcome.error
    else:
        record = outcome.record
        found = {} if order.redacted is None else {"redacted": dict(order.redacted)}
        end = {"record": record.id, "tokens": record.tokens_after, "by": record.by, **found}
        yield Emit("end", end)
    return outcome


def _steps(order: Order) -> Compaction:
    if order.archived:
        try:
            yield from archived(order.keys + tuple(mark.key for mark in order.clips))
        except ArchiveError as error:
            return Failed(_told(error), error, Cost())
    draft, ledger, spent = None, order.ledger, Cost()
    failures: tuple[str, ...] = ()
    if order.adopted is not None:
        draft = order.adopted
    elif order.plan.summary_tokens:
        found = yield from summary(order)
        if isinstance(found, Failed):
            return found
        checked, spent, failures, kept = found
        draft, ledger = checked.draft, checked.ledger
        if order.preview:
            draft = yield Preview(draft, kept)
            if draft is None:
                said = "the summary was refused by the person who was asked"
                return Failed(said, SummaryError(said), spent, refused=True, failures=failures)
    record = Record.make(
        parent=order.parent,
        covers=order.keys,
        clips=order.clips,
        summary=draft.text if draft else order.standing,
        ledger=ledger,
        cause=order.plan.cause,
        tokens_before=order.plan.tokens,
        tokens_after=order.kept_tokens + (draft.tokens if draft else 0),
        messages_after=order.messages_after,
        archived=order.archived,
        by=draft.by if draft else "",
        cost=draft.cost if draft else Cost(),
        cut=draft.cut if draft else 0,
        redacted=dict(order.redacted or {}),
        order=order.among,
    )
    try:
        yield Commit(record)
    except ArchiveError as error:
        if isinstance(error, ArchiveOvertaken):
            error.cost = spent
        why = f"the record could not be written: {error}"
        return Failed(why, error, spent, failures=failures)
    return Done(record, draft, spent, failures)


def _by_name(by: str, error: Exception) -> str:
    """What went wrong, and with whom, said once."""
    return str(error) if f"{by} " in str(error) else f"{by}: {error}"


def asked_for(failure: SummaryError) -> float:
    """Seconds that a provider asks to wait; a user's own summariser may say what is no number."""
    asked: object = getattr(failure, "retry_after", None)
    return float(asked) if isinstance(asked, (int, float)) and asked > 0 else 0.0


def resting(by: str, seconds: float) -> SummaryError:
    """The failure of a summariser that is not asked, as its provider has asked for a pause."""
    error = SummaryError(
        f"{by} is not asked: its provider wants to be left alone for another "
        f"{math.ceil(seconds)} s; try again then, or give a fallback"
    )
    error.transient, error.retry_after = True, seconds
    return error


def _told(error: ArchiveError) -> str:
    """Why, said once: errors of a store begin with it already."""
    text = str(error)
    return text if text.startswith("The archive failed") else f"the archive failed: {text}"


def archived(keys: tuple[str, ...]) -> Generator[Effect, Any, None]:
    """In, and back out again: a store that confirms and forgets is found out here."""
    if not keys:
        return
    yield Archive(keys)
    missing: Sequence[str] = yield ReadBack(keys)
    if missing:
        raise ArchiveUnconfirmed(
            f"the store took {len(keys)} messages and did not give {len(missing)} of them back; "
            "check its disk, its quota and its time to live"
        )


def summary(
    order: Order,
) -> Generator[Effect, Any, tuple[Checked, Cost, tuple[str, ...], bool] | Failed]:
    """The draft if there is one; else each summariser in turn, then the last resort.

    Answers with it, what it took, tries that failed, and whether it was found.
    """
    limit = order.plan.summary_tokens
    try:
        draft = yield FindDraft(order.hash)
    except ArchiveError as trouble:
        return Failed(_told(trouble), trouble, Cost())
    if draft is not None:
        checked = yield Check(draft, order.keys)
        if not checked.problems:
            return checked, Cost(), (), True
    spent = Cost()
    failures: tuple[str, ...] = ()
    ladder = order.summarisers
    if order.on_failure == "degrade" and not order.roomy and EMBEDDED not in ladder:
        ladder = (*ladder, EMBEDDED)
    error: Exception = SummaryError("no summariser was given")
    for by in ladder:
        for wait in (*RETRY_AFTER, None):
            asked = 0.0
            try:
                draft = yield Summarise(order.keys, by, limit, spent.tokens)
                spent += draft.cost
                checked = yield Check(draft, order.keys)
                if not checked.problems:
                    yield SaveDraft(order.hash, checked.draft)
                    return checked, spent, failures, False
                error = SummaryRejected(
                    f"the summary by {by} was refused: {'; '.join(checked.problems)}",
                    checked.problems,
                )
                retry = False
            except ArchiveError as failure:
                why = f"the draft could not be written: {failure}"
                return Failed(why, failure, spent, failures=failures)
            except SummaryError as failure:
                error, retry = failure, getattr(failure, "transient", False)
                asked = asked_for(failure)
                spent += getattr(failure, "cost", Cost())
            failures = (*failures, _by_name(by, error))
            yield Emit("attempt_failed", {"by": by, "reason": str(error)})
            if wait is None or not retry or asked > LONGEST_WAIT:
                break
            yield Wait(max(wait, asked))
    try:
        return Failed(str(error), error, spent, failures=failures)
    finally:
        del error  # it holds this frame


def with_tokens(draft: Draft, text: str, tokens: int) -> Draft:
    """The draft with another body and its measured size."""
    return replace(draft, text=text, tokens=tokens)
