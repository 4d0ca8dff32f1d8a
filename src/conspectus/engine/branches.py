"""Which records belong to a history: those in force, or another branch of its thread.

A history is edited, rewound, branched, pasted into another one, or sent without its beginning.
`load_view` only reads; `settle_branch` then has the store name the branch that was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.records import Chain
from conspectus.engine.begun_later import RecentStems, continues, stems_of
from conspectus.engine.folding import fold, is_labelled_summary
from conspectus.engine.history import HistoryContext
from conspectus.engine.view import View, clip_item_again, is_outdated_clip, view_of
from conspectus.errors import ArchiveError
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.alternation import is_labelled_joined
from conspectus.messages.framing import record_labels
from conspectus.observe import log

ANOTHER_HISTORY = (
    "the history sent for thread %r does not go on from its summaries: it went back to before "
    "them, is another conversation, or the archive is an older copy of itself; recall searches "
    "this history alone from now on; give each conversation a thread_id of its own"
)


async def load_view(history: HistoryContext, entries: Sequence[Message]) -> View:
    """Return the view of a history by the records that belong to it; nothing is changed.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    in_force = await history.in_force()
    if history.store.keeps_originals and not all(record.archived for record in in_force.chain):
        # Made when there was no archive: they stand like another library's summary.
        return replace(view_of(history, entries, ()), stored_head=in_force.stored_head)
    is_continuation = history.is_continuation or _continues_last_read(
        history, entries, in_force.chain
    )
    view = await find_branch(history, entries, in_force.chain, is_continuation=is_continuation)
    view = await _with_newest_clips(view)
    is_other_branch = view.chain != in_force.chain and not history.head_source.in_state
    return replace(view, stored_head=in_force.stored_head, is_other_branch=is_other_branch)


async def settle_branch(view: View) -> View:
    """Note which branch a history is on: in the store, for readers without a state, and here.

    Where the store cannot note it, that is logged, and the next call tries again: until then recall
    may bring what was taken back. With `on_failure="raise"` it raises `ArchiveError`.
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
    return replace(view, stored_head=view.head_id or "", is_other_branch=False)


async def _with_newest_clips(view: View) -> View:
    """Show messages as the newest record clips them, where they came back by an older one.

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
    """Tell whether a history goes on from the one that was read last.

    In a state that is kept, each history has its own record, and says so.
    """
    if history.head_source.in_state or not in_force:
        return False
    memory = history.memory
    stems = stems_of(entries)
    if continues(memory.recent_stems, stems):
        return True
    # One that had begun later is longer now, and still shares nothing with what a record knows.
    had_record_in_force = any(record.id == memory.recent_head_id for record in in_force)
    is_longer = stems[: len(memory.recent_stems)] == [*memory.recent_stems]
    return had_record_in_force and is_longer and bool(memory.recent_stems)


async def find_branch(
    history: HistoryContext, entries: Sequence[Message], in_force: Chain, *, is_continuation: bool
) -> View:
    """Return a history by the records that belong to it; `in_force` are looked at first.

    For `is_continuation` see `begun_later`. Nothing is changed.
    """
    view = view_of(history, entries, in_force, is_continuation=is_continuation)
    if not _holds_summary_in_force(view):
        view = await _by_summaries(history, entries, in_force) or view
    if not history.head_source.in_state:
        view = await _by_later_records(history, entries, view)
    chain = await history.store.load_notes(view.chain)
    return (
        view
        if chain is view.chain
        else view_of(history, entries, chain, is_continuation=is_continuation)
    )


def _holds_summary_in_force(view: View) -> bool:
    return any(item.entry is None for item in view.items)


async def _by_summaries(
    history: HistoryContext, entries: Sequence[Message], in_force: Chain
) -> View | None:
    """Return a history by the records of a summary in it that are not in force, if any.

    It may be the summary of another branch, or of a time that the history has gone back to.
    """
    for name in _summaries_named_in(entries, marked_only=history.checkpointed):
        chain = await history.store.chain_labelled(name)
        if not chain:
            continue
        shared = in_force[: len(chain)]
        if [record.id for record in chain] == [record.id for record in shared]:
            # Records of a cached chain may lack their summaries, except the newest (see
            # `Archive._remember_lean`). `chain` ends at the record that the history names, so that
            # this record has its summary.
            chain = (*chain, *in_force[len(chain) :])
        view = view_of(history, entries, chain)
        if view.chain:
            return view
    return None


def _summaries_named_in(entries: Sequence[Message], *, marked_only: bool) -> list[str]:
    """Name the records of the summaries in a history, the last first.

    One without our mark counts only where a view puts a summary, and not with `marked_only`.
    """
    first = next((at for at, entry in enumerate(entries) if entry.role != "system"), -1)
    names: dict[str, None] = {}
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if not entry.text.startswith(SUMMARY_LINE):
            continue
        is_marked = is_labelled_summary(entry) or is_labelled_joined(entry.source)
        stands_first = place == first and entry.role == "user"
        if is_marked or (stands_first and not marked_only):
            names.update(dict.fromkeys(record_labels(entry.text)))
    return list(names)


async def _by_later_records(
    history: HistoryContext, entries: Sequence[Message], view: View
) -> View:
    """Go on to later records that fit: those of a branch that comes back, or of a longer form.

    A history with a summary names its own record, or somebody has pasted it.
    """
    if any(entry.text.startswith(SUMMARY_LINE) for entry in entries):
        return view
    later = await history.store.chains_after(view.head_id)
    longer = (chain for chain in later if len(chain) > len(view.chain))
    fitting = (fold(chain, entries).chain for chain in longer)
    longest = max(fitting, key=len, default=())
    return view_of(history, entries, longest) if len(longest) > len(view.chain) else view
