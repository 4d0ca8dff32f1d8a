"""Find the records that belong to a history: those in force, or another branch of its thread.

A history may be edited, rewound, branched, pasted into another one, or truncated. `load_view` only
reads; `settle_branch` makes the store name the branch that was found.

If a caller has a state (`head_source.in_state`), the state names the record, so nothing is settled
here. For agents, `AgentStep.bring_archive_along` moves the head in the archive to that record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.records import Chain, without_undone
from conspectus.engine.clips import clip_item_again, is_outdated_clip
from conspectus.engine.folding import fold, signatures_in_history
from conspectus.engine.history import HistoryContext
from conspectus.engine.restoring import may_be_ours, restore_undone
from conspectus.engine.truncated import (
    RecentStems,
    shares_recent_messages,
    stem_of,
    stems_of,
)
from conspectus.engine.view import View
from conspectus.engine.viewing import view_of
from conspectus.errors import ArchiveError, NotFoundError
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.observe import log

ANOTHER_HISTORY = (
    "the history sent for thread %r does not continue its summaries: it went back to before "
    "them, is another conversation, or the archive is an older copy of itself; recall searches "
    "this history alone from now on; give each conversation a thread_id of its own"
)


async def load_view(history: HistoryContext, entries: Sequence[Message]) -> View:
    """Return the view of a history by the records that belong to it; nothing is changed.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    in_force = await history.read_in_force()
    if history.store.keeps_originals and not all(record.archived for record in in_force.chain):
        # They are from a time without an archive: their summary is treated as another library's.
        return replace(view_of(history, entries, ()), stored_head_id=in_force.stored_head_id)
    undone = await _read_undone(history, entries, in_force.chain)
    chain = without_undone(in_force.chain, undone)
    if undone:
        entries = await _restore_undone_if_kept(history, entries, undone)
    is_continuation = history.is_continuation or _continues_last_read(history, entries, chain)
    view = await find_branch(history, entries, chain, is_continuation=is_continuation)
    view = await _update_outdated_clips(view)
    is_other_branch = view.chain != in_force.chain and not history.head_source.in_state
    return replace(view, stored_head_id=in_force.stored_head_id, is_other_branch=is_other_branch)


async def settle_branch(view: View) -> View:
    """Note which branch a history is on: in the store, for readers without a state, and here.

    If the store cannot note it, the log says so, and the next call tries again. Until then recall
    may return messages that were taken back. With `on_failure="raise"` it raises `ArchiveError`.
    """
    history = view.history
    history.memory.remember_read(RecentStems().with_later(view.entries), view.head_id)
    if not view.is_other_branch:
        return view
    if not view.chain:
        log("another_history", ANOTHER_HISTORY, history.scope.thread)
    try:
        await history.store.set_head(view.chain)
    except ArchiveError as error:
        if history.engine.settings.on_failure == "raise":
            raise
        log("head_not_moved", "recall may bring what was taken back: %s", error)
        return view
    return replace(view, stored_head_id=view.head_id, is_other_branch=False)


async def _read_undone(
    history: HistoryContext, entries: Sequence[Message], in_force: Chain
) -> Sequence[str]:
    """Return the records that were taken back, if a history may still show any of them.

    A history without our texts shows none, and the store names no such record as in force. Only a
    caller's state may still name one.
    """
    names_one = history.head_source.in_state and bool(in_force)
    if names_one or any(map(may_be_ours, entries)):
        return await history.store.undone()
    return ()


async def _restore_undone_if_kept(
    history: HistoryContext, entries: Sequence[Message], undone: Sequence[str]
) -> Sequence[Message]:
    """Return a history as it was before the compactions that were taken back.

    If their originals are gone, it stays as it is: their summary is all that is left of them.
    """
    try:
        restored = await restore_undone(history, entries, undone)
    except NotFoundError as error:
        log("undo_incomplete", "a compaction that was taken back stays in view: %s", error)
        return entries
    return entries if restored is None else restored.entries


async def _update_outdated_clips(view: View) -> View:
    """Clip messages as the newest record does, if they came back as an older record clipped them.

    The older clip is longer, and the originals are in the archive.
    """
    outdated = {item.key for item in view.items if is_outdated_clip(item)}
    if not outdated:
        return view
    originals = await view.history.store.find_originals(sorted(outdated))
    engine = view.history.engine
    items = tuple(
        clip_item_again(item, originals[item.key], engine) if item.key in originals else item
        for item in view.items
    )
    return replace(view, items=items)


def _continues_last_read(
    history: HistoryContext, entries: Sequence[Message], in_force: Chain
) -> bool:
    """Tell whether a history continues the one that was read last.

    If the caller keeps a state, that state names the record of each history instead.
    """
    if history.head_source.in_state or not in_force:
        return False
    memory = history.memory
    stems = stems_of(entries)
    if shares_recent_messages(memory.recent_stems, stems):
        return True
    # A truncated history has become longer, and still has no overlap with what a record knows.
    had_record_in_force = any(record.id == memory.recent_head_id for record in in_force)
    is_longer = stems[: len(memory.recent_stems)] == [*memory.recent_stems]
    return had_record_in_force and is_longer and bool(memory.recent_stems)


async def find_branch(
    history: HistoryContext, entries: Sequence[Message], in_force: Chain, *, is_continuation: bool
) -> View:
    """Return a history by the records that belong to it; those in force are tried first.

    For `is_continuation` see `find_truncation`. Nothing is changed.
    """
    view = view_of(history, entries, in_force, is_continuation=is_continuation)
    if not _holds_summary_in_force(view):
        view = await _find_by_summaries(history, entries, in_force) or view
    if not history.head_source.in_state:
        view = await _find_later_records(history, entries, view)
    chain = await history.store.load_notes(view.chain)
    if chain is view.chain:
        return view
    with_notes = view_of(history, entries, chain, is_continuation=is_continuation)
    return replace(with_notes, stems_of_later=view.stems_of_later)


def _holds_summary_in_force(view: View) -> bool:
    return any(item.is_summary_in_force for item in view.items)


async def _find_by_summaries(
    history: HistoryContext, entries: Sequence[Message], in_force: Chain
) -> View | None:
    """Return a history by the records of a summary in it that is not in force; else None.

    It may be the summary of another branch, or of a time to which the history has gone back.
    """
    for signature in signatures_in_history(entries, marked_only=history.checkpointed):
        chain = await history.store.chain_by_signature(signature)
        if not chain:
            continue
        shared = in_force[: len(chain)]
        if [record.id for record in chain] == [record.id for record in shared]:
            # Earlier records of `in_force` may lack their summaries (see `Chain`). `chain` ends at
            # the record that the history names, so that this record has its summary.
            chain = (*chain, *in_force[len(chain) :])
        view = view_of(history, entries, chain)
        if view.chain:
            return view
    return None


async def _find_later_records(
    history: HistoryContext, entries: Sequence[Message], view: View
) -> View:
    """Continue with later records that fit: of a branch that comes back, or of a longer history.

    A history with a summary is left out: it names its own record, or somebody has pasted the
    summary.
    """
    if any(entry.text.startswith(SUMMARY_LINE) for entry in entries):
        return view
    later = await history.store.chains_after(view.head_id)
    longer = [chain for chain in later if len(chain) > len(view.chain)]
    fitting = (fold(chain, entries).chain for chain in longer)
    longest = max(fitting, key=len, default=())
    if len(longest) > len(view.chain):
        view = view_of(history, entries, longest)
    in_force = {record.id for record in view.chain}
    unfit = (record for chain in longer for record in chain if record.id not in in_force)
    stems = frozenset(stem_of(key) for record in unfit for key in record.covers)
    return replace(view, stems_of_later=stems) if stems else view
