"""The originals of one chain, read from the archive when a recall needs them."""

from __future__ import annotations

from collections.abc import Iterable

from conspectus.archive.archive import Archive
from conspectus.archive.passages import (
    PASSAGE_BYTES,
    UNDIVIDED_PASSAGES,
    Span,
    one_line,
    spans,
)
from conspectus.archive.values import Archived
from conspectus.recall.chain_index import ChainIndex

READ_AT_ONCE = 10
"""Messages that are read at once; more would seldom fit."""

MAX_BYTES_WHOLE = int(UNDIVIDED_PASSAGES * PASSAGE_BYTES)
"""The most bytes of a message that may be shown whole."""


class ChainOriginals:
    """Originals by their positions in a chain, and their passages.

    Attributes:
        index: the chain's messages in the index.
    """

    def __init__(self, archive: Archive, index: ChainIndex) -> None:
        self.index = index
        self._archive = archive
        self._spans_of_key: dict[str, list[Span]] = {}

    def read(self, positions: Iterable[int]) -> dict[int, Archived]:
        """Return originals by their positions, without those that are gone."""
        keys = {position: self.index.order.keys[position] for position in positions}
        if not keys:
            return {}
        originals = self._archive.find(self.index.scope, [*keys.values()])
        return {position: originals[key] for position, key in keys.items() if key in originals}

    def spans_of(self, original: Archived) -> list[Span]:
        """Return where the passages of a message are in its text."""
        if original.key not in self._spans_of_key:
            self._spans_of_key[original.key] = spans(original.text, original.calls)
        return self._spans_of_key[original.key]

    def passage_span(
        self, original: Archived, number: int, *, with_next: bool = False
    ) -> tuple[int, int]:
        """Return where a passage begins and ends; a short message is one passage.

        Args:
            original: the message.
            number: of the passage, counted from 0; negative numbers count from the end.
            with_next: return the end of the passage after it.
        """
        if len(original.text.encode("utf-8", "surrogatepass")) <= MAX_BYTES_WHOLE:
            return 0, len(original.text)
        parts = self.spans_of(original)
        last = len(parts) - 1
        begin = parts[min(number, last)].start
        end = parts[min(number + with_next, last)].end
        return begin, end

    def results_of(
        self, original: Archived, positions: Iterable[int], call_id: str = ""
    ) -> dict[int, Archived]:
        """Return the results of a message's calls, or of one of them, by their positions.

        A result may come late, after other messages. If a later call has the same id, results after
        it belong to that call.

        Args:
            original: the message that makes the calls.
            positions: where to look, in order; positions that were not read are skipped.
            call_id: of one call; empty for all.
        """
        open_calls = {one_line(call.id) for call in original.calls if call_id in ("", call.id)}
        result_positions: list[int] = []
        for position in positions:
            message = self.index.get(position)
            if message is None:
                continue
            if message.act == "calls":
                open_calls -= message.first_passage_of_call.keys()
            elif open_calls.intersection(message.links):
                result_positions.append(position)
        return self.read(result_positions)
