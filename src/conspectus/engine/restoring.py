"""Put originals back into a history that shows a compaction which was taken back.

A caller who sends the view of such a compaction sends its summary and its clips. The originals take
their place, word for word and in order, with the summary of the record before. What comes out is
the history as it was before the compaction, so nothing else has to know of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from conspectus.archive import Archived
from conspectus.core.records import Chain, without_undone
from conspectus.engine.folding import Folded, clip_hash, fold, signatures_in_history
from conspectus.engine.history import HistoryContext
from conspectus.messages import (
    SUMMARY_LINE,
    Message,
    Source,
    read_messages,
    summary_message,
    summary_text,
)
from conspectus.messages.shortening import POINTER


class Restored(NamedTuple):
    """A history as it was before the compactions that were taken back."""

    entries: list[Message]
    originals: Mapping[str, Archived]  # those that came back, by their keys


def may_be_ours(entry: Message) -> bool:
    """Tell whether a message may be a summary or a clip that a view has shown."""
    return entry.text.startswith(SUMMARY_LINE) or POINTER in entry.reading


async def restore_undone(
    history: HistoryContext, entries: Sequence[Message], undone: Collection[str]
) -> Restored | None:
    """Return a history without the summaries and clips of records that were taken back.

    None if it shows none of them, as the whole history of a caller does.

    Raises:
        NotFoundError: originals are no longer in the archive; the error names them.
        ArchiveError: the archive cannot be read, or an original is damaged.
    """
    for chain in await _find_chains_shown(history, entries, undone):
        folded = fold(chain, entries)
        in_force = without_undone(folded.chain, undone)
        if len(in_force) < len(folded.chain):
            return await _restore(history, folded, in_force)
    return None


async def _find_chains_shown(
    history: HistoryContext, entries: Sequence[Message], undone: Collection[str]
) -> list[Chain]:
    """Return the chains of records whose summary, or else whose clips, a history shows."""
    store = history.store
    signatures = signatures_in_history(entries, marked_only=history.checkpointed)
    chains = [await store.chain_by_signature(signature) for signature in signatures]
    if any(chains):
        return chains
    hashes = {clip_hash(entry) for entry in entries if POINTER in entry.reading}
    if not hashes:
        return []
    clipping = [await store.chain_at(record_id) for record_id in reversed([*undone])]
    return [
        chain
        for chain in clipping
        if chain and any(clip.text_hash in hashes for record in chain for clip in record.clips)
    ]


async def _restore(history: HistoryContext, folded: Folded, in_force: Chain) -> Restored:
    """Put the originals of all records of a folded history after those in force in their places."""
    taken_back = folded.chain[len(in_force) :]
    evicted = dict.fromkeys(key for record in taken_back for key in record.covers)
    clipped = {clip.key for record in taken_back for clip in record.clips}
    in_view = {
        remaining.key: folded.entries[remaining.place].source for remaining in folded.remaining
    }
    to_unclip = [
        remaining.key
        for remaining in folded.remaining
        if remaining.came_clipped and remaining.key in clipped
    ]
    originals = await history.store.read_originals([*evicted, *to_unclip])
    in_view.update((key, originals[key].message) for key in to_unclip)
    summary = await _load_summary_message(history, folded, in_force)
    sources = _in_order(folded.chain, in_view, {key: originals[key].message for key in evicted})
    if summary is not None:
        place = _end_of_instructions(sources)
        sources.insert(place, summary)
    return Restored(read_messages(sources), originals)


def _in_order(
    chain: Chain, in_view: Mapping[str, Source], evicted: Mapping[str, Source]
) -> list[Source]:
    """Put evicted messages among those in view, as the records have noted their order.

    Records name no messages that stayed after the last evicted one, and no system messages that
    stayed. The former come last, the latter stand before the message that follows them.
    """
    remaining = deque(in_view.items())
    sources: list[Source] = []
    sources += (source for _, source in _take_instructions(remaining))
    noted = dict.fromkeys(key for record in chain for key in record.order or record.covers)
    waiting = {key for key, _ in remaining}
    for key in noted:
        if key in evicted:
            sources.append(evicted[key])
        while key in waiting:
            earlier_key, source = remaining.popleft()
            waiting.remove(earlier_key)
            sources.append(source)
    sources += (source for _, source in remaining)
    return sources


def _take_instructions(remaining: deque[tuple[str, Source]]) -> list[tuple[str, Source]]:
    """Take the leading system messages, which always stay, from the messages in view."""
    leading: list[tuple[str, Source]] = []
    while remaining and _is_instruction(remaining[0][1]):
        leading.append(remaining.popleft())
    return leading


def _end_of_instructions(sources: Sequence[Source]) -> int:
    """Return the place after the leading system messages, where a view has its summary."""
    places = (place for place, source in enumerate(sources) if not _is_instruction(source))
    return next(places, len(sources))


def _is_instruction(source: Source) -> bool:
    return read_messages([source])[0].role == "system"


async def _load_summary_message(history: HistoryContext, folded: Folded, in_force: Chain) -> Any:
    """Return the summary message of the records in force; None if they have none."""
    if not in_force:
        return None
    # The newest record of a chain that was just read always has its summary.
    chain = await history.store.chain_at(in_force[-1].id)
    record = chain[-1]
    if not record.summary:
        return None
    text = summary_text(record.summary, archived=record.archived, number=record.notes_number)
    as_dict = any(isinstance(entry.source, dict) for entry in folded.entries)
    name = history.engine.caller_format.summary_name
    return summary_message(text, record.id, as_dict=as_dict, name=name)
