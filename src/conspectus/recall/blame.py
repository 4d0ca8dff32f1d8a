"""Name the originals that a line of the notes comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from conspectus.archive.archive import Archive
from conspectus.archive.values import Archived, Scope
from conspectus.errors import InputError, NotFoundError
from conspectus.recall.by_id import positions_named
from conspectus.recall.by_query import recall_by_query
from conspectus.recall.chain_index import ChainIndex
from conspectus.recall.originals import ChainOriginals
from conspectus.recall.packing import Packing

BY_WORDS = 3
"""The most originals that are named for a line without a citation."""

ROOM = 10_000
"""Characters of originals that are read to find those that ground a line."""

HEADING = "#"
"""The beginning of a heading of the notes, which comes from no message."""

_CITATION = re.compile(r"\[([^\[\]\n]{1,200})\]")

Ground = Literal["citation", "words"]
"""Why an original is named: the line cites it, or it is the nearest to the words of the line."""


@dataclass(frozen=True, slots=True)
class LineSource:
    """An original that a line of the notes comes from.

    Attributes:
        id: its id, as summaries cite it.
        key: the hash under which it is archived.
        role: of its speaker.
        position: its number among all evicted messages, from 1.
        text: all that it says.
    """

    id: str
    key: str
    role: str
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """A line of the notes, and where it comes from.

    Attributes:
        text: the line, as it stands in the summary.
        ground: whether the line cites its sources, or they were found by its words.
        sources: the originals, in the order of the conversation; those found by words, the best
            first.
    """

    text: str
    ground: Ground
    sources: tuple[LineSource, ...]


def blame(archive: Archive, scope: Scope, words: str) -> list[BlamedLine]:
    """Return the lines of the summary in force that have these words, each with its originals.

    A line that cites no message comes from the originals that are nearest to its words.

    Raises:
        InputError: there are no words.
        NotFoundError: no summary is in force, or no line of it has the words.
        ArchiveError: the archive cannot be read, or its newest record is damaged.
    """
    wanted = _plain(words)
    if not wanted:
        raise InputError("give some words of a line of the notes")
    chain = archive.in_force(scope)
    summary = chain[-1].summary if chain else ""
    if not summary:
        raise NotFoundError(f"thread {scope.thread!r} has no summary in force")
    lines = [
        line
        for line in summary.splitlines()
        if wanted in _plain(line) and not line.startswith(HEADING)
    ]
    if not lines:
        raise NotFoundError(
            f"no line of the summary of thread {scope.thread!r} has the words {words!r}; "
            "'conspectus show' prints it"
        )
    originals = ChainOriginals(archive, ChainIndex(archive, scope, chain))
    return [_blamed(originals, line) for line in lines]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _blamed(originals: ChainOriginals, line: str) -> BlamedLine:
    positions = sorted({*_cited_positions(originals.index, line)})
    cited = originals.read(positions)
    if cited:
        sources = [_source(position, original) for position, original in cited.items()]
        return BlamedLine(line.strip(), "citation", tuple(sources))
    packing = Packing(ROOM, len, True, BY_WORDS)
    recall_by_query(originals, packing, _CITATION.sub("", line).strip("-# "), None)
    found = originals.read([hit.position for hit in packing.hits])
    sources = [
        _source(hit.position, found[hit.position]) for hit in packing.hits if hit.position in found
    ]
    return BlamedLine(line.strip(), "words", tuple(sources))


def _cited_positions(index: ChainIndex, line: str) -> Iterator[int]:
    """Yield the positions of the messages that a line cites."""
    for citation in _CITATION.findall(line):
        for name in citation.split(","):
            try:
                positions, _ = positions_named(index, name.strip())
            except NotFoundError:
                continue  # words of the line in brackets
            yield from positions


def _source(position: int, original: Archived) -> LineSource:
    return LineSource(original.cite, original.key, original.role, position + 1, original.text)
