"""Messages that were said before. If one is said again, only what differs is shown."""

from __future__ import annotations

from collections.abc import Iterable

from conspectus.notes.cutting import GAP, cut
from conspectus.notes.data import Line

SHORTEST_REPEATED = 80
"""Characters. A shorter message is quoted whole, also if it was said before."""

NAMING_CHARACTERS = 60
"""Characters that are quoted of a message of which all was said before."""

_WORD_KINDS = ("said", "agent")
_Key = tuple[str, str, bytes]


class SaidBefore:
    """Finds messages that differ from an earlier one in numbers alone.

    Args:
        lines: the lines of the notes so far.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self._texts: dict[_Key, tuple[str, str]] = {}
        for line in lines:
            if line.kind in _WORD_KINDS and not line.is_tally and not line.same_as:
                self._remember(line, line.text)

    def shorten(self, line: Line) -> None:
        """Reduce a new line to what was not said before, and set the id of the message before.

        A line that was not said before is only remembered.
        """
        text = line.text
        if len(text) < SHORTEST_REPEATED:
            return
        earlier = self._texts.get(_key(line, text))
        if earlier is None:
            self._remember(line, text)
            return
        earlier_id, earlier_text = earlier
        differing = _differing_lines(text, earlier_text)
        if 2 * len(differing) > len(text):
            return
        line.text = differing or cut(text, NAMING_CHARACTERS, 1.0)
        line.same_as = earlier_id

    def _remember(self, line: Line, text: str) -> None:
        if len(text) >= SHORTEST_REPEATED:
            self._texts.setdefault(_key(line, text), (line.ids[0], text))


def _key(line: Line, text: str) -> _Key:
    """Return a key that is equal for messages of one speaker that differ in digits alone."""
    return line.kind, line.speaker, text.encode(errors="replace").translate(None, b"0123456789")


def _differing_lines(text: str, earlier: str) -> str:
    """Return the lines of a text that an earlier one with as many lines does not have."""
    pieces: list[str] = []
    for line, earlier_line in zip(text.split("\n"), earlier.split("\n"), strict=False):
        if line != earlier_line:
            pieces.append(line)
        elif pieces and pieces[-1] != GAP:
            pieces.append(GAP)
    return " ".join(pieces)
