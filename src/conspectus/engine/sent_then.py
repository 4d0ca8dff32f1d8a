"""What a model was sent once a record was in force, as far as the archive knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from conspectus.archive import Archive, Archived, Scope
from conspectus.archive.values import DAMAGED
from conspectus.core.records import Chain, Record, RecordedClip
from conspectus.engine.clips import clip_again
from conspectus.engine.folding import newest_clips
from conspectus.errors import NotFoundError
from conspectus.messages import Source, read_message, read_messages, summary_text
from conspectus.tokens import TokenMeter

Known = Literal["summary", "whole", "clipped", "not stored"]
"""How a message of the view is known: it is the summary, the archive has it as it was sent, it was
sent clipped, or the archive does not have it, because it has not left the view yet."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message of a view, as the model was sent it.

    Attributes:
        known: how it is known.
        key: the hash of its original; empty for the summary.
        id: its id, as summaries cite it; empty if it is not stored.
        role: of its speaker; empty if it is not stored.
        text: what it says; empty if it is not stored, or if its clip cannot be made again.
        lossless: False if it was sent otherwise than the archive has it: secrets were removed, or a
            part is only described.
    """

    known: Known
    key: str = ""
    id: str = ""
    role: str = ""
    text: str = ""
    lossless: bool = True


@dataclass(frozen=True, slots=True)
class SentThen:
    """What is known of the view of a record.

    Attributes:
        record: the record.
        number: its number among the compactions of its branch, from 1.
        messages: the messages of the view that the record or the archive names, in order. Leading
            system messages never leave a view, so they are not among them.
        unknown: how many more messages the view had.
    """

    record: Record
    number: int
    messages: tuple[SentMessage, ...]
    unknown: int


def sent_then(archive: Archive, scope: Scope, record_id: str) -> SentThen:
    """Return what is known of the view that was sent once a record was in force.

    Raises:
        NotFoundError: the history has no such record.
        ArchiveError: the archive cannot be read.
    """
    chain = archive.chain_at(scope, record_id)
    if not chain:
        raise NotFoundError(
            f"thread {scope.thread!r} has no record {record_id!r}; 'conspectus archive show' lists "
            "those in force"
        )
    record = chain[-1]
    keys = _keys_in_view(chain)
    originals = archive.find(scope, keys)
    clips = newest_clips(chain)
    messages = [_sent(key, originals, clips) for key in keys]
    if record.summary:
        text = summary_text(record.summary, archived=record.archived, number=record.notes_number)
        messages.insert(0, SentMessage("summary", role="user", text=text))
    unknown = max(0, record.messages_after - len(messages))
    return SentThen(record, len(chain), tuple(messages), unknown)


def _keys_in_view(chain: Chain) -> list[str]:
    """Return the keys of the messages that stayed in view, as the records name them."""
    covered = {key for record in chain for key in record.covers}
    before_last_evicted = (key for record in chain for key in record.order)
    stayed = chain[-1].stayed
    return [key for key in dict.fromkeys([*before_last_evicted, *stayed]) if key not in covered]


def _sent(
    key: str,
    originals: Mapping[str, Archived],
    clips: Mapping[str, RecordedClip],
) -> SentMessage:
    original = originals.get(key)
    if original is None or original.role == DAMAGED:
        return SentMessage("not stored", key)
    text = original.text
    if key in clips:
        source = _clip(original, clips[key])
        text = "" if source is None else read_message(source).reading
    return SentMessage(
        known="clipped" if key in clips else "whole",
        key=key,
        id=original.cite,
        role=original.role,
        text=text,
        lossless=original.lossless,
    )


def _clip(original: Archived, clip: RecordedClip) -> Source | None:
    """Clip an original as its record did; None if tokens are counted in another way now."""
    [message] = read_messages([original.message])
    message.key = original.key
    message.id = original.id
    return clip_again(clip, message, TokenMeter().count_message)
