"""The index parts of a chain, joined in the order of the history."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from conspectus.recall.postings import KINDS, Doc, Part, digest
from conspectus.recall.steps import Act, Steps


class Corpus:
    """The passages of a history.

    `covered` holds the keys of its messages in order; a place is a position in it. `numbers` gives
    the passages of a place, `place` the place of a passage (-1 if it does not count); `starts`,
    `ends`, `sizes` and `calls` are by passage. `total` counts passages, `mean` is their terms on
    average, `gone` holds keys that no part knows, `long` the places of messages of several
    passages, and `expires` is in seconds since 1970.
    """

    def __init__(self, parts: Sequence[Part], covered: Sequence[str]) -> None:
        self.covered = covered
        at = {key: place for place, key in enumerate(covered)}
        self.numbers: list[range] = [range(0)] * len(covered)
        self.place: list[int] = []
        self.starts, self.ends, self.sizes = array("I"), array("I"), array("I")
        self.calls: dict[int, str] = {}
        self._parts: list[tuple[int, Part]] = []
        self._docs: dict[int, Doc] = {}  # those that were asked for, by place
        # By place the row of a message in all parts together; and the first row of each part.
        self._rows, self._first_rows = array("q", [-1]) * len(covered), array("q")
        kinds, total, row = [Act.SAYS] * len(covered), 0, 0
        for part in parts:
            number = len(self.starts)
            self._parts.append((number, part))
            self._first_rows.append(row)
            self.calls.update({number + one: call for one, call in part.calls.items()})
            self.starts += part.starts
            self.ends += part.ends
            self.sizes += part.sizes
            for key, kind, length in zip(part.keys, part.kinds, part.lengths, strict=True):
                place = at.get(key, -1)
                if place >= 0 and self._rows[place] < 0:
                    self._rows[place] = row
                    self.numbers[place] = range(number, number + length)
                    kinds[place] = KINDS[kind][0]
                    total += length
                else:
                    place = -1  # another part knows it, too
                self.place += [place] * length
                number += length
                row += 1
        self.expires = min((p.expires for p in parts if p.expires is not None), default=None)
        self.gone = [key for key, row in zip(covered, self._rows, strict=True) if row < 0]
        self.total = total
        self.mean = sum(self.sizes) / len(self.sizes) if sum(self.sizes) else 1.0
        self.long = frozenset(n for n, numbers in enumerate(self.numbers) if len(numbers) > 1)
        self.steps = Steps(kinds, self.long)

    def doc(self, place: int) -> Doc | None:
        """Return the facts of the message at a place; None if it is gone."""
        row = self._rows[place]
        if row < 0:
            return None
        doc = self._docs.get(place)
        if doc is None:
            at = bisect_right(self._first_rows, row) - 1
            doc = self._docs[place] = self._parts[at][1].doc(row - self._first_rows[at])
        return doc

    def lends(self, place: int) -> Sequence[int]:
        """Return the passages of a message whose words others may borrow.

        These are a short message, and the start of each call and of a result. A long text of a
        speaker is about everything around it, so it lends nothing.
        """
        numbers = self.numbers[place]
        if len(numbers) < 2:
            return numbers
        doc = self.doc(place)
        if doc is None or doc.kind == Act.SAYS:
            return ()
        return list({self.calls.get(n, ""): n for n in reversed(numbers)}.values())

    def holding(self, term: str) -> Mapping[int, int]:
        """Return how often each passage that holds a term holds it."""
        place = self.place
        return {
            first + number: count
            for first, part in self._parts
            for number, count in part.holding(term)
            if place[first + number] >= 0
        }

    def named(self, name: str) -> list[str]:
        """Return keys of messages by id, citation or start of the key, in order."""
        wanted, start = digest(name), name if is_start(name) else ""
        rows = [names for _, part in self._parts for names in part.names]
        return [
            key
            for key, row in zip(self.covered, self._rows, strict=True)
            if row >= 0 and (wanted in rows[row] or (start and key.startswith(start)))
        ]


def is_start(name: str) -> bool:
    """Return whether a name is long enough to be the start of a key."""
    return len(name) >= 8 and all(c in "0123456789abcdef" for c in name)
