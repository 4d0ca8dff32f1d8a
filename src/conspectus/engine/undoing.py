"""Take compactions back, and put them in force again.

The records stay in the archive, with their originals. A remark names those that were taken back,
and the head moves; both in one transaction. `restoring` gives a caller who still sends their
summary the originals in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from conspectus.archive import Archived
from conspectus.bridge import run_in_worker
from conspectus.core.records import Chain, Record, without_undone
from conspectus.engine.branches import find_branch, load_view
from conspectus.engine.history import HistoryContext, StateHoldsRecords
from conspectus.engine.measuring import correct_sizes
from conspectus.engine.restoring import restore_undone
from conspectus.engine.result import UndoResult
from conspectus.errors import InputError, NotFoundError
from conspectus.messages import Message, Source, read_messages

START = "start"
"""Names the beginning of a history: no record is in force there."""

NAMED_RECORDS = 20
"""The most records that an error names."""

NO_ARCHIVE = (
    "without an archive no compaction can be taken back, because nothing keeps the originals; pass "
    "archive="
)
NOTHING_TO_UNDO = "no compaction is in force in thread {!r}, so there is none to take back"
NOT_ARCHIVED = (
    "record {} of thread {!r} is from a time without an archive, so its originals cannot come "
    "back; nothing was changed"
)
OTHER_HISTORY = (
    "record {} does not belong to these messages, so nothing was changed; pass the history from "
    "which it was made, or no messages"
)


class Undone(NamedTuple):
    """What an undo has done, for the caller and for the engine's own callers."""

    result: UndoResult
    chain: Chain  # the records that are in force now


class _Change(NamedTuple):
    """Which records are in force after an undo, and which before."""

    before: Chain
    after: Chain
    undone: tuple[str, ...]  # all records that are taken back from then on, the latest last

    @property
    def taken_back(self) -> Chain:
        """The records that are in force no more."""
        return _without(self.before, self.after)

    @property
    def put_in_force(self) -> Chain:
        """The records that come in force."""
        return _without(self.after, self.before)


def _without(chain: Chain, other: Chain) -> Chain:
    others = {record.id for record in other}
    return tuple(record for record in chain if record.id not in others)


async def undo(
    history: HistoryContext, messages: Sequence[Source] | None, to: str | None
) -> Undone:
    """Take compactions of a history back, or put one in force again; see `Compactor.undo`.

    Raises:
        InputError: there is no archive, or the record does not belong to the messages.
        NotFoundError: nothing is to be taken back, the record is unknown, or originals are missing.
        ArchiveOvertaken: another worker has compacted the history at the same time.
        ArchiveError: the archive cannot be read or written, or an original is damaged.
    """
    if not history.store.keeps_originals:
        raise InputError(NO_ARCHIVE)

    async def work() -> Undone:
        if messages is None:
            return await _undo_in_archive(history, to)
        return await _undo_in_messages(history, read_messages(messages), to)

    return await run_in_worker(work())


async def _undo_in_archive(history: HistoryContext, to: str | None) -> Undone:
    """Move the pointer alone. All originals must be there, because a view may need them."""
    in_force = await history.read_in_force()
    undone = await history.store.undone()
    change = await _decide_change(history, without_undone(in_force.chain, undone), undone, to)
    originals = await history.store.read_originals(_keys_of(change.taken_back))
    await history.store.set_undone(change.undone, change.after, in_force.stored_head_id)
    sizes = _recorded_sizes(change)
    return Undone(_result(change, originals, sizes), change.after)


async def _undo_in_messages(
    history: HistoryContext, entries: Sequence[Message], to: str | None
) -> Undone:
    """Move the pointer, and bring the messages of a caller to what is in force then."""
    view = correct_sizes(await load_view(history, entries))
    change = await _decide_change(history, view.chain, await history.store.undone(), to)
    restored = await restore_undone(history, view.entries, change.undone)
    entries = view.entries if restored is None else restored.entries
    if change.put_in_force:
        await _check_belongs(history, entries, change)
    await history.store.set_undone(change.undone, change.after, view.stored_head_id)
    if history.head_source.in_state:
        history = replace(history, head_source=StateHoldsRecords(change.after))
    after = correct_sizes(await load_view(history, entries))
    originals = {} if restored is None else restored.originals
    sizes = view.size.tokens, after.size.tokens
    result = _result(change, originals, sizes)
    return Undone(replace(result, messages=list(after.sent)), after.chain)


# What changes


async def _decide_change(
    history: HistoryContext, in_force: Chain, undone: Sequence[str], to: str | None
) -> _Change:
    """Decide which records are in force from now on."""
    if to is None and not in_force:
        raise NotFoundError(NOTHING_TO_UNDO.format(history.scope.thread))
    after = in_force[:-1] if to is None else await _find_chain_named(history, in_force, undone, to)
    if to is None and after:
        after = await history.store.chain_at(after[-1].id)
    change = _Change(in_force, after, ())
    unarchived = [record.id for record in change.taken_back if not record.archived]
    if unarchived:
        raise NotFoundError(NOT_ARCHIVED.format(unarchived[-1], history.scope.thread))
    names = {record.id for record in after}
    taken_back = [record.id for record in change.taken_back]
    alike = await _find_alternatives(history, change)
    still_undone = [name for name in undone if name not in names and name not in taken_back]
    return change._replace(undone=(*dict.fromkeys([*still_undone, *alike, *taken_back]),))


async def _find_chain_named(
    history: HistoryContext, in_force: Chain, undone: Sequence[str], to: str
) -> Chain:
    """Return the records up to the one that a caller names.

    Raises:
        NotFoundError: there is no such record; the error names those that there are.
    """
    name = to.strip()
    if name in ("", START):
        return ()
    chain = await history.store.chain_at(name)
    if chain:
        return chain
    names = dict.fromkeys([*(record.id for record in in_force), *undone])
    known = ", ".join([*names][-NAMED_RECORDS:]) or "none"
    raise NotFoundError(
        f"thread {history.scope.thread!r} has no record {to!r}; its records, the latest last: "
        f"{known}"
    )


async def _find_alternatives(history: HistoryContext, change: _Change) -> list[str]:
    """Return records of other branches that cover only messages of this one.

    They would take the place of the records that are taken back. An example: a question was
    compacted, then sent again in other words, and compacted again.
    """
    if not change.taken_back:
        return []
    known: set[str] = set()
    for record in change.before:
        known.update(record.covers, record.order, record.stayed)
    parent_id = change.after[-1].id if change.after else ""
    in_force = {record.id for record in change.after}
    return [
        record.id
        for record in await history.store.records_after(parent_id)
        if record.id not in in_force and known.issuperset(record.covers)
    ]


async def _check_belongs(
    history: HistoryContext, entries: Sequence[Message], change: _Change
) -> None:
    """Raise `InputError` if the records that come in force do not fit the messages."""
    view = await find_branch(history, entries, change.after, is_continuation=False)
    if view.head_id != change.after[-1].id:
        raise InputError(OTHER_HISTORY.format(change.after[-1].id))


# What is reported


def _keys_of(chain: Chain) -> list[str]:
    """Return the keys of all originals that records have evicted or clipped."""
    keys = (key for record in chain for key in (*record.covers, *_clipped(record)))
    return [*dict.fromkeys(keys)]


def _clipped(record: Record) -> list[str]:
    return [clip.key for clip in record.clips if clip.text_hash]


def _recorded_sizes(change: _Change) -> tuple[int, int]:
    """Return the tokens of the view before and after, as the records have measured them.

    The size of the view is known for the record that is in force before an undo, and for the one
    that a redo puts in force. Each record says by how much it made the view smaller.
    """
    saved_before = _tokens_saved(change.taken_back)
    saved_after = _tokens_saved(change.put_in_force)
    if change.put_in_force and not change.taken_back:
        after = change.after[-1].tokens_after
        return after + saved_after, after
    before = change.before[-1].tokens_after if change.before else 0
    return before, before + saved_before - saved_after


def _tokens_saved(chain: Chain) -> int:
    return sum(record.tokens_before - record.tokens_after for record in chain)


def _result(
    change: _Change, originals: Mapping[str, Archived], sizes: tuple[int, int]
) -> UndoResult:
    changed = [original.cite for original in originals.values() if not original.lossless]
    return UndoResult(
        taken_back=tuple(record.id for record in reversed(change.taken_back)),
        put_in_force=tuple(record.id for record in change.put_in_force),
        head_id=change.after[-1].id if change.after else "",
        came_back=sum(len(record.covers) for record in change.taken_back),
        left=sum(len(record.covers) for record in change.put_in_force),
        unclipped=len({key for record in change.taken_back for key in _clipped(record)}),
        changed=tuple(changed),
        tokens_before=sizes[0],
        tokens_after=sizes[1],
    )
