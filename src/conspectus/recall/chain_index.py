"""The messages of one chain in the index of words, read as far as a query needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus.archive.archive import Archive
from conspectus.archive.passages import About, Act
from conspectus.archive.store import SearchIndex
from conspectus.archive.values import Scope, SearchRow, manifest
from conspectus.core.records import Chain

RESULTS: tuple[Act, ...] = ("answers", "repeats")
"""The acts of messages that have nothing but results."""

POSITIONS_BEFORE = 6
"""Positions before a message where it may find messages to borrow terms from."""

POSITIONS_AFTER = 4
"""The same after it."""

MAX_LENDERS_BEFORE = 5
"""The most messages before it that a message borrows from."""

MAX_LENDERS_AFTER: Mapping[Act, int] = {"speaks": 2, "calls": 4, "answers": 0, "repeats": 0}
"""The same after it, by its act. Only messages before it say what a result is about."""

DECAY_BEFORE = 0.7
WEIGHT_BEFORE = tuple(DECAY_BEFORE**step for step in range(1, MAX_LENDERS_BEFORE + 1))
WEIGHT_AFTER = (0.3, 0.1, 0.1, 0.1)
"""Weight of a borrowed term, by the number of nearer lenders on the same side. A term of the
message itself has weight 1."""

CACHED_ORDERS = 64
"""The most chains whose order is in memory."""

CACHED_KEYS = 500_000
"""The most keys of all of them."""


class Order(NamedTuple):
    """The keys of all messages of a chain in their order, and the position of each.

    After them come the originals of the history that no record covers.
    """

    keys: Sequence[str]
    positions: Mapping[str, int]


_orders: BoundedCache[tuple[str, tuple[str, ...]], Order] = BoundedCache(
    CACHED_ORDERS, CACHED_KEYS, lambda order: len(order.keys)
)
"""By the id of a chain's newest record, a hash of the keys that the chain covers, and the keys of
the originals that no record covers."""


class IndexedMessage:
    """One message as the index knows it.

    Attributes:
        key: of the original.
        id: the id that its caller gave it; empty if there is none.
        act: what it does.
        is_question: it ends in a question.
        is_users: the user said it.
        links: the ids of the calls that it answers, or that it makes.
        passages: the numbers of its passages in the index; none if it only repeats recalled
            originals.
        words_per_passage: on average.
        first_passage_of_call: the number of the passage in which each of its calls begins, by the
            call's id.
        lent_passages: the passages from which its neighbours borrow terms: its first one, and the
            first of each call. A long text of a speaker lends nothing, because it is about
            everything around it.
    """

    __slots__ = (
        "act",
        "first_passage_of_call",
        "id",
        "is_question",
        "is_users",
        "key",
        "lent_passages",
        "links",
        "passages",
        "words_per_passage",
    )

    def __init__(self, row: SearchRow) -> None:
        self.key, first_passage, passage_count, word_count, self.id, line = row
        about = About.from_text(line)
        self.act = about.act
        self.is_question = about.is_question
        self.is_users = about.role == "u"
        self.links = about.links
        self.words_per_passage = word_count / max(1, passage_count)

        can_be_found = self.act != "repeats"
        self.passages = range(first_passage, first_passage + passage_count * can_be_found)
        is_long_speech = self.act == "speaks" and passage_count != 1
        self.lent_passages: Sequence[int] = () if is_long_speech else self.passages[:1]
        self.first_passage_of_call: dict[str, int] = {}
        if self.act == "calls" and self.links:
            for link in self.links:
                number, _, call_id = link.partition(":")
                self.first_passage_of_call[call_id] = first_passage + int(number)
            self.lent_passages = list(self.first_passage_of_call.values())

    @property
    def is_short(self) -> bool:
        """Whether it has one passage."""
        return len(self.passages) == 1


class ChainIndex(dict[int, IndexedMessage]):
    """The messages of a chain that were read so far, by their positions.

    Args:
        archive: where the originals are.
        scope: the history they belong to.
        chain: the records whose messages may be found.
        hidden: keys and ids of messages that are never found.

    Attributes:
        order: the positions of all messages of the chain, read or not.
        words: the store's index of words.
        speech: positions of messages that only speak, as far as they were read.
        long_answers: positions of those of them that are not the user's and have several passages.
        calls_and_results: positions of all other messages, as far as they were read.
    """

    def __init__(
        self, archive: Archive, scope: Scope, chain: Chain, hidden: Collection[str] = ()
    ) -> None:
        self.scope = scope
        self.order = _order_of(chain, archive.uncovered_in_reach(scope))
        self.words: SearchIndex = archive.backend.search_index(scope, self.order.keys)
        self.speech: set[int] = set()
        self.long_answers: set[int] = set()
        self.calls_and_results: set[int] = set()
        self._hidden = {*hidden}

    def read(self, positions: Iterable[int]) -> None:
        """Read the messages at some positions. Positions outside of the chain are ignored."""
        inside = {position for position in positions if 0 <= position < len(self.order.keys)}
        unread = inside - self.keys()
        keys = [self.order.keys[position] for position in unread]
        self._add(self.words.rows_of(self.scope, keys))

    def read_passages(self, passages: Collection[int]) -> dict[int, int]:
        """Read the messages with these passages; return the position of each passage's message."""
        rows = self.words.rows_holding(self.scope, [*passages])
        wanted_passages = {*passages}
        return {
            passage: position
            for position in self._add(rows)
            for passage in wanted_passages.intersection(self[position].passages)
        }

    def _add(self, rows: Iterable[SearchRow]) -> set[int]:
        """Add the messages that belong to this chain and are not hidden; return their positions."""
        added: set[int] = set()
        for row in rows:
            message = IndexedMessage(row)
            position = self.order.positions.get(message.key)
            if position is None or not self._hidden.isdisjoint((message.key, message.id)):
                continue
            added.add(position)
            self[position] = message
            if message.act != "speaks":
                self.calls_and_results.add(position)
                continue
            self.speech.add(position)
            if not message.is_users and len(message.passages) > 1:
                self.long_answers.add(position)
        return added

    def around(self, position: int) -> range:
        """Return the positions of a message and of its neighbours, read or not."""
        return range(position - POSITIONS_BEFORE, position + POSITIONS_AFTER + 1)

    def lenders_of(self, position: int) -> dict[int, float]:
        """Return the positions from which a message borrows terms, with the weight of a term there.

        Speech borrows from speech, and a call from all messages around it. A result borrows from
        messages before it; results in between do not count.
        """
        act = self[position].act
        first_result = position
        while act in RESULTS and self._is_result(first_result - 1):
            first_result -= 1
        before = range(first_result - 1, position - POSITIONS_BEFORE - 1, -1)
        after = range(position + 1, position + POSITIONS_AFTER + 1)
        lenders: Collection[int] = self.speech if act == "speaks" else self

        nearest_before = [neighbour for neighbour in before if neighbour in lenders][
            :MAX_LENDERS_BEFORE
        ]
        nearest_after = [neighbour for neighbour in after if neighbour in lenders][
            : MAX_LENDERS_AFTER[act]
        ]
        weights = dict(zip(nearest_before, WEIGHT_BEFORE, strict=False))
        return weights | dict(zip(nearest_after, WEIGHT_AFTER, strict=False))

    def _is_result(self, position: int) -> bool:
        return position in self and self[position].act in RESULTS


def _order_of(chain: Chain, uncovered: tuple[str, ...]) -> Order:
    head_id = chain[-1].id if chain else ""
    order = _orders.get((head_id, uncovered))
    if order is None:
        keys = tuple(dict.fromkeys([*manifest(chain), *uncovered]))
        order = Order(keys, {key: position for position, key in enumerate(keys)})
        _orders.put((head_id, uncovered), order)
    return order
