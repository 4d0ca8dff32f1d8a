"""Recall by an id, and by a range from one id to another."""

from __future__ import annotations

from collections.abc import Sequence

from conspectus.archive.passages import one_line
from conspectus.archive.values import DAMAGED, Archived
from conspectus.errors import ArchiveError, InputError, NotFoundError
from conspectus.recall.chain_index import ChainIndex
from conspectus.recall.hits import Hit, hit_of
from conspectus.recall.originals import READ_AT_ONCE, ChainOriginals
from conspectus.recall.packing import Packing

RESULTS_AFTER = 100
"""Results of a call are looked for in so many messages after it."""

RESULTS_AMONG_NEWEST = 20
"""They are also looked for in so many newest messages, because a result may come late."""

LEAST_KEY_LENGTH = 8
"""The fewest characters of a key that name a message."""

MAX_CALL_DIGITS = 9
SHOWN_CHARACTERS = 80
"""Characters of an id that an error shows."""


def quoted_id(name: str) -> str:
    """Return an id in quotes, for errors."""
    return repr(name if len(name) <= SHOWN_CHARACTERS else name[:SHOWN_CHARACTERS] + "...")


def recall_by_id(originals: ChainOriginals, packing: Packing, name: str, at: int) -> None:
    """Show a message from a character onwards, and the results of its calls.

    Raises:
        NotFoundError: the id is unknown, or its message is gone.
        ArchiveError: the message is damaged.
    """
    positions, call = positions_named(originals.index, name)
    named = read_named(originals, name, positions)
    newest = max(named)
    if not at and not call and named[newest].calls:
        near = _positions_of_results(originals.index, newest)
        originals.index.read(near)
        named |= originals.results_of(named[newest], near)
    packing.reads_on = at > 0
    spans = {position: _span_in_message(original, call, at) for position, original in named.items()}
    hits = [
        hit_of(original, spans[position], position=position) for position, original in named.items()
    ]
    _offer_in_order(packing, hits)


def read_named(
    originals: ChainOriginals, name: str, positions: Sequence[int]
) -> dict[int, Archived]:
    """Return the messages that an id names; see `recall_by_id` for the errors."""
    named = originals.read(positions)
    if not named:
        raise NotFoundError(
            f"{quoted_id(name)} was archived here and is gone: it has expired or was forgotten; "
            "go on without it"
        )
    newest = named[max(named)]
    if newest.role == DAMAGED:
        raise ArchiveError(newest.text)
    return named


def recall_by_range(originals: ChainOriginals, packing: Packing, ends: tuple[str, str]) -> None:
    """Show all messages from one to another, in their order.

    Raises:
        InputError: the range is no pair of ids, or its end is before its start.
        NotFoundError: an end is unknown, or all messages of the range are gone.
    """
    positions = range_positions(originals.index, ends)
    packing.until = ends[1].strip(" []")
    for first in range(positions.start, positions.stop, READ_AT_ONCE):
        batch = range(first, min(first + READ_AT_ONCE, positions.stop))
        hits = [
            hit_of(original, position=position)
            for position, original in originals.read(batch).items()
        ]
        unread = positions.stop - first - len(hits)
        if not _offer_in_order(packing, hits, unread):
            return
    if not packing.hits:
        raise NotFoundError("all messages of that range have expired or were forgotten")


def range_positions(index: ChainIndex, ends: tuple[str, str]) -> range:
    """Return the positions of a range; see `recall_by_range` for the errors."""
    if not isinstance(ends, (tuple, list)) or len(ends) != 2:
        raise InputError("range is a pair: the id of the first message and that of the last")
    first_name, last_name = ends
    first = positions_named(index, first_name)[0][0]
    last = positions_named(index, last_name)[0][-1]
    if first > last:
        raise InputError(
            f"the range runs backwards: {quoted_id(first_name)} comes after "
            f"{quoted_id(last_name)}; swap them"
        )
    return range(first, last + 1)


def positions_named(index: ChainIndex, name: object) -> tuple[Sequence[int], int]:
    """Return the positions of the messages that an id names, and the number of a call there.

    An id may be in brackets, as summaries cite it; it may be followed by its place (`abc #3`), or
    by the number of a call (`abc/2`). A key, or the beginning of one, is an id, too. The number is
    0 if the id has none.

    Raises:
        InputError: it is no text.
        NotFoundError: no message of the chain has it.
    """
    if not isinstance(name, str):
        raise InputError(f"an id must be text, not {type(name).__name__}")
    bare = name.strip().removeprefix("[").removesuffix("]").strip()
    readings = [(name, 0), (bare, 0), (bare.partition(" #")[0], 0)]
    base, _, number = bare.rpartition("/")
    if base and number.isascii() and number.isdigit() and len(number) <= MAX_CALL_DIGITS:
        readings.append((base, int(number)))
    for message_id, call in readings:
        positions = _positions_of_id(index, message_id)
        if positions:
            return positions, call
    raise NotFoundError(
        f"no archived message of this branch has the id {quoted_id(name)}; it may be still in "
        "view, expired, forgotten or of another branch; try a query"
    )


def _positions_of_id(index: ChainIndex, message_id: str) -> list[int]:
    position_of = index.order.positions
    keys = [message_id, *index.words.keys_named(index.scope, one_line(message_id))]
    is_hexadecimal = all(character in "0123456789abcdef" for character in message_id)
    if len(message_id) >= LEAST_KEY_LENGTH and is_hexadecimal:
        keys += [key for key in index.order.keys if key.startswith(message_id)]
    return sorted({position_of[key] for key in keys if key in position_of})


def _positions_of_results(index: ChainIndex, call: int) -> list[int]:
    """Return the positions where the results of a call may be: soon after it, or at the end.

    A message that is clipped in the view is archived, too. Its position is after all evicted
    messages.
    """
    end = len(index.order.keys)
    soon = range(call + 1, min(end, call + 1 + RESULTS_AFTER))
    newest = range(max(soon.stop, end - RESULTS_AMONG_NEWEST), end)
    return [*soon, *newest]


def _span_in_message(original: Archived, call: int, at: int) -> tuple[int, int]:
    """Return the part of a message with one call, or all of it, from a character onwards.

    Calls are at the end of a text, each on its own lines.
    """
    if call > len(original.calls):
        raise NotFoundError(
            f"the message makes {len(original.calls)} calls; there is no call {call}"
        )
    if not call:
        return at, len(original.text)
    from_call_on = original.calls[call - 1 :]
    length = sum(len(each.reading) + 1 for each in from_call_on) - 1
    begin = max(0, len(original.text) - length)
    return begin + at, begin + len(original.calls[call - 1].reading)


def _offer_in_order(packing: Packing, hits: Sequence[Hit], unread: int = 0) -> bool:
    """Add messages until the text is full; then note how many are left out, and return False.

    Args:
        packing: the text.
        hits: messages in their order.
        unread: further messages that come after them.
    """
    share: float = packing.tokens
    if len(hits) + unread > 1:
        share = packing.fair_share(hits)
    for number, hit in enumerate(hits):
        if packing.offer(hit, share):
            continue
        # If nothing is shown yet, a part of this message may take all of the room.
        if packing.hits or not packing.offer(hit, packing.tokens):
            packing.left_out = len(hits) - number + unread
            packing.next_cite = hit.cite
            return False
    return True
