"""A line of the notes as text of a length."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from conspectus.notes.cutting import (
    BOTH_ENDS_FROM,
    GAP,
    SHORTEST_PIECE,
    common_limit,
    cut,
    cut_around,
    cut_lines,
    one_line,
)
from conspectus.notes.data import ARGUMENT_OVERHEAD, Line
from conspectus.notes.tally import write_tally

CACHED_TEXTS = 8
"""The most texts of one line, each of another length, that are kept in memory."""

CITATION_OVERHEAD = 4
"""Characters around the ids that a line cites."""

CALL_OVERHEAD = 5
"""Characters around a call and its outcome."""

PROGRAM_HEAD_SHARE = 0.5
"""The share of the beginning in what a program printed: its end says what came of it."""

DATA_HEAD_SHARE = 1.0
"""The same in data, of which only the beginning stays."""


def line_text(line: Line, allowance: float, archived: bool) -> str:
    """Return a line as text of `allowance` characters, or little more."""
    key = (min(allowance, line.size), archived)
    text: str | None = line.derived.get(key)
    if text is None:
        # A line that stands for long is cut to ever other lengths.
        if len(line.derived) >= CACHED_TEXTS:
            line.derived.clear()
        text = write_line(shorten_line(line, allowance), archived)
        line.derived[key] = text
    return text


def write_line(line: Line, archived: bool = True) -> str:
    """Return a whole line as text: words, or a call with its reason and its outcome.

    Example:
        >>> write_line(Line("done", ("m2",), call="read", args=(("path", "a.py"),), outcome="ok"))
        'read(a.py) → ok [m2]'
    """
    if line.is_tally:
        return write_tally(line, archived)
    text = _write_call(line) if line.kind == "done" else _write_words(line)
    return f"{text} [{', '.join(line.cited_ids)}]" if archived and line.ids else text


def _write_call(line: Line) -> str:
    has_names = len(line.args) > 1
    args = [f"{name}={value}" if has_names and name else value for name, value in line.args]
    reason = f"{one_line(line.text)} " if line.text else ""
    outcome = line.outcome or "(no result)"
    failed = "failed: " if line.failed and line.outcome else ""
    return f"{reason}{line.call}({', '.join(args)}) → {failed}{outcome}"


def _write_words(line: Line) -> str:
    return f"{line.speaker}: {line.text}" if line.speaker else line.text


def shorten_line(line: Line, allowance: float) -> Line:
    """Return a line with its parts cut so that it takes `allowance` characters, or little more."""
    if line.size <= allowance or line.is_tally:
        return line
    citation = sum(map(len, line.cited_ids)) + 2 * len(line.cited_ids) + CITATION_OVERHEAD
    if line.kind == "done":
        return _shorten_call(line, allowance - citation)
    room = allowance - citation - len(line.speaker)
    if line.rules:
        return replace(line, text=cut_around(line.text, line.rules, room))
    # The end of what an agent reports is its result.
    text = cut_lines(line.text, room) if line.kind == "said" else cut(line.text, room)
    return replace(line, text=text)


def _shorten_call(line: Line, room: float) -> Line:
    """Return a call of which the reason, the arguments and the outcome share the room."""
    room -= len(line.call) + CALL_OVERHEAD
    room -= sum(len(name) + ARGUMENT_OVERHEAD for name, _ in line.args)
    sizes = [len(line.text), len(line.outcome), *(len(value) for _, value in line.args)]
    limit = max(common_limit(sizes, room), SHORTEST_PIECE)
    args = _without_common_ends(line.args) if len(line.args) > 1 else line.args
    return replace(
        line,
        text=cut(line.text, limit),
        args=tuple((name, cut(value, limit)) for name, value in args),
        outcome=cut(line.outcome, limit, DATA_HEAD_SHARE if line.is_data else PROGRAM_HEAD_SHARE),
    )


def _without_common_ends(args: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Leave out of an edit what its old and its new text have in common at both ends.

    The old text keeps the end of their common beginning, which says where the change is.
    """
    changed = [*args]
    for position, ((old_name, old), (new_name, new)) in enumerate(pairwise(args)):
        is_edit = old_name.lower().startswith("old") and new_name.lower().startswith("new")
        if old == new or not is_edit:
            continue
        head = old.rfind(" ", 0, _common_length(old, new)) + 1
        old_reversed = old[head:][::-1]
        new_reversed = new[head:][::-1]
        tail = old_reversed.rfind(" ", 0, _common_length(old_reversed, new_reversed)) + 1
        before = old[: max(head - 1, 0)]
        where = cut(before[::-1], BOTH_ENDS_FROM, 1.0)[::-1] + old[head - 1 : head]
        behind = GAP if tail else ""
        changed[position] = (old_name, f"{where}{old[head : len(old) - tail]}{behind}")
        ahead = GAP if head else ""
        changed[position + 1] = (new_name, f"{ahead}{new[head : len(new) - tail]}{behind}")
    return tuple(changed)


def _common_length(text: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    for position, (character, other_character) in enumerate(zip(text, other, strict=False)):
        if character != other_character:
            return position
    return min(len(text), len(other))
