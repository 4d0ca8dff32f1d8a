"""Picking the pieces of a summary: the most new worth for each token, until the room is used up."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from conspectus.messages.framing import as_notes
from conspectus.summarize.base import SummaryRequest
from conspectus.summarize.need import held
from conspectus.summarize.own_lines import JOINED, standing
from conspectus.summarize.snippets import Snippet, snippets_of

POOL = 4_000
"""Pieces that compete: the best by their own worth, so that the picking stays linear."""

CITED = 9
"""Characters that naming a message and starting a line costs, about."""

FOCUS = 0.5
"""What a piece is worth for each word that it shares with what the caller asked to keep."""

SPARE = 1.3
"""Times the limit that is ranked: pieces that share a line take less room than was counted."""

_WORD = re.compile(r"\w{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


class Worth:
    """What pieces are worth: what they say, and the identifiers in them that may be needed again.

    Args:
        likelihood: for each identifier, how likely it is needed again.
        focus: what the caller asked to keep.
    """

    def __init__(self, likelihood: Mapping[str, float], focus: str) -> None:
        self._likelihood = likelihood
        self._focus = set(_WORD.findall(focus.lower()))

    def of(self, piece: Snippet, covered: set[str] | frozenset[str] = frozenset()) -> float:
        """The worth of a piece beside others that cover some identifiers already."""
        new = sum(self._likelihood.get(value, 0.0) for value in piece.holds if value not in covered)
        if self._focus:
            new += FOCUS * len(self._focus.intersection(_WORD.findall(piece.text.lower())))
        return piece.worth + new


def ranked(
    request: SummaryRequest, worth: Worth, gone: set[str], fixed: Sequence[Snippet]
) -> list[Snippet]:
    """Pieces in the order of new worth for each token, the best first.

    The worth of a piece falls as others are picked, and its price falls when another of the same
    line is. So a heap of stale values is enough: what is still the best after it was counted anew
    is the next, and the rest of a line that has been started is put on the heap again.

    Args:
        request: what is to be summarised.
        worth: what pieces are worth.
        gone: statements that later ones have replaced.
        fixed: pieces that stand in the summary already.
    """

    def rough(piece: Snippet) -> float:
        return worth.of(piece) / (len(piece.text) + CITED)

    # Only the best are held: a long thread has millions of pieces.
    valued = ((rough(piece), -n, piece) for n, piece in enumerate(_pieces(request, gone)))
    best = heapq.nlargest(POOL, (one for one in valued if one[0] > 0))
    pieces = [piece for _, _, piece in best]
    prices = _Prices(pieces, fixed, request.count)
    covered = {value for piece in fixed for value in held(piece.text)}
    said = {piece.text for piece in fixed}

    def rate(n: int) -> float:
        return -worth.of(pieces[n], covered) / prices.of(n)

    heap = [(rate(n), n) for n in range(len(pieces))]
    heapq.heapify(heap)
    room, chosen = SPARE * request.limit, list[Snippet]()
    while heap and room > 0:
        _, n = heapq.heappop(heap)
        piece = pieces[n]
        if piece.text in said:
            continue
        now = rate(n)
        if now >= 0:
            continue
        if heap and now > heap[0][0] + 1e-12:
            heapq.heappush(heap, (now, n))
            continue
        room -= prices.of(n)
        covered.update(piece.holds)
        said.add(piece.text)
        chosen.append(replace(piece, text=as_notes(piece.text)))
        for other in prices.start(n):
            heapq.heappush(heap, (rate(other), other))
    return chosen


class _Prices:
    """Tokens that pieces take, which is less in a line that is there already."""

    def __init__(
        self, pieces: Sequence[Snippet], fixed: Sequence[Snippet], count: Callable[[str], int]
    ) -> None:
        self._count = count
        self._size = [self._cost(piece.text) for piece in pieces]
        self._line = [(piece.section, piece.cite) for piece in pieces]
        self._joined = self._cost(JOINED)
        self._open = {(piece.section, piece.cite) for piece in fixed}
        self._of_line: dict[tuple[str, str], list[int]] = {}
        for n, line in enumerate(self._line):
            self._of_line.setdefault(line, []).append(n)

    def of(self, n: int) -> float:
        line = self._line[n]
        return self._size[n] + (
            self._joined if line in self._open else self._cost(f"-  [{line[1]}]\n")
        )

    def start(self, n: int) -> list[int]:
        """Note that a piece has been picked; which others cost less from now on."""
        line = self._line[n]
        if line in self._open:
            return []
        self._open.add(line)
        return [other for other in self._of_line[line] if other != n]

    def _cost(self, text: str) -> float:
        """Tokens of a text; counted four times over, as counters round."""
        return self._count("\n".join([text] * 4)) / 4


def _pieces(request: SummaryRequest, gone: set[str]) -> Iterator[Snippet]:
    """All pieces that compete: those of the standing summary, then those of the messages."""
    for snippet in standing(request.standing):
        if snippet.section not in ("Goal", "Standing rules"):
            yield snippet
    for place, entry in enumerate(request.entries):
        stale = gone if entry.role in ("user", "system") else ()
        for snippet in snippets_of(entry, place):
            if not any(old in snippet.text or snippet.text in old for old in stale):
                yield snippet
