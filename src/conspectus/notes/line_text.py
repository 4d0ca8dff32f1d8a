"""A line of the notes as text of a length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from conspectus.notes.cutting import (
    BOTH_ENDS_FROM,
    GAP,
    SHORTEST_PIECE,
    common_length,
    common_limit,
    cut,
    cut_around,
    cut_lines,
    one_line,
)
from conspectus.notes.data import ARGUMENT_OVERHEAD, SYSTEM, Line
from conspectus.notes.tally import write_tally

USER = "The user"
"""Begins a line of the user's words. A text could imitate a role alone, such as "User"."""

AGENT = "Agent"
"""Begins a line of the agent's words, and the reason of a call."""

_TABLE_HEAD = re.compile(r"([\w.\[\]]{0,60} ?)\(([^()]{1,400} \| [^()]{1,400})\): ")
"""The name and the columns of a table, before its rows."""

MOST_CACHED_TEXTS = 8
"""The most texts of one line, each of another length, that are kept in memory."""

CITATION_OVERHEAD = 4
"""Characters around the ids that a line cites."""

CALL_OVERHEAD = 5
"""Characters around a call and its outcome."""

PROGRAM_HEAD_SHARE = 0.5
"""The share of the beginning in a shortened output of a program. The end says what came of it."""

FAILED_HEAD_SHARE = 0.3
"""The same for a call that failed. The last lines say why."""

DATA_HEAD_SHARE = 1.0
"""The same for data. Only the beginning stays."""

LONGEST_NAME = 100
"""Characters. A shorter value without spaces is a name, such as a path, and is not cut."""

LONG_VALUE = 240
"""Characters. A longer reason, argument or outcome of a call is cut first."""

SHORTEST_CUT_VALUE = 80
"""Characters. If the long ones would be cut to less, the short ones are cut, too."""

_SPACE = re.compile(r"\s")

_PLAIN_NAME = re.compile(r"[\w.:/-]+")
"""The name of a tool that cannot be taken for a speaker."""


def line_text(line: Line, allowance: float, archived: bool) -> str:
    """Return a line as text of `allowance` characters, or little more."""
    key = (min(allowance, line.size), archived)
    text = line.texts.get(key)
    if text is None:
        # From compaction to compaction, a line is cut to other lengths.
        if len(line.texts) >= MOST_CACHED_TEXTS:
            line.texts.clear()
        text = write_line(shorten_line(line, allowance), archived)
        line.texts[key] = text
    return text


def write_line(line: Line, archived: bool = True) -> str:
    """Return a whole line as text: words, or a call with its reason and its outcome.

    Example:
        >>> write_line(Line("done", ("m2",), call="read", args=(("path", "a.py"),), outcome="ok"))
        'read(a.py) → ok [m2]'
    """
    if line.is_tally:
        return write_tally(line, archived)
    text = _write_call(line) if line.kind == "done" else _write_words(line, archived)
    return f"{text} [{', '.join(line.cited_ids)}]" if archived and line.ids else text


def _write_call(line: Line) -> str:
    has_names = len(line.args) > 1
    args = [f"{name}={value}" if has_names and name else value for name, value in line.args]
    reason = f"{AGENT}: {one_line(line.text)} " if line.text else ""
    tool = line.call if _PLAIN_NAME.fullmatch(line.call) else f"`{one_line(line.call)}`"
    outcome = line.outcome or "(no result)"
    failed = "failed: " if line.failed and line.outcome else ""
    return f"{reason}{tool}({', '.join(args)}) → {failed}{outcome}"


def _write_words(line: Line, archived: bool) -> str:
    if line.kind == "found":
        return line.text
    return f"{_speaker(line)}{_again(line, archived)}: {line.text}"


def _again(line: Line, archived: bool) -> str:
    """Say that a message was said before, and where all of it is."""
    if not line.same_as:
        return ""
    return f", again as in [{line.same_as}]" if archived else ", again"


def _speaker(line: Line) -> str:
    """Name who said a line. Nobody else's name can look like the user's or the agent's."""
    if line.kind == "said":
        return f"{USER}, to {line.speaker}" if line.speaker else USER
    if line.speaker == SYSTEM:
        return "System message"
    return f"From {one_line(line.speaker)}" if line.speaker else AGENT


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
    return replace(line, text=cut_lines(line.text, room))


def _shorten_call(line: Line, room: float) -> Line:
    """Return a call of which the reason, the arguments and the outcome share the room."""
    room -= len(line.call) + CALL_OVERHEAD
    room -= sum(len(name) + ARGUMENT_OVERHEAD for name, _ in line.args)
    line = _without_repeated_beginnings(line)
    args = _without_common_ends(line.args) if len(line.args) > 1 else line.args
    values = [value for _, value in args]
    limits = _limits_of_values([*values, line.outcome, line.text], room)
    return replace(
        line,
        text=cut(line.text, limits.pop()),
        outcome=_cut_outcome(line, limits.pop()),
        args=tuple(
            (name, cut(value, limit)) for (name, value), limit in zip(args, limits, strict=True)
        ),
    )


def _limits_of_values(parts: Sequence[str], room: float) -> list[float]:
    """Return the characters that each argument, the outcome and the reason of a call may take.

    Long ones are cut first: outputs and contents, which say least for their size. Names, such as
    paths and ids, are never cut.

    Args:
        parts: the values of the arguments, the outcome, and the reason.
        room: the characters for all of them.
    """
    sizes = [len(part) for part in parts]
    room_of_long = room - sum(size for size in sizes if size <= LONG_VALUE)
    long_sizes = [size for size in sizes if size > LONG_VALUE]
    limit = common_limit(long_sizes, room_of_long)
    if long_sizes and limit >= SHORTEST_CUT_VALUE:
        return [float(size) if size <= LONG_VALUE else limit for size in sizes]
    is_name = [
        size <= LONGEST_NAME and not _SPACE.search(part)
        for size, part in zip(sizes, parts, strict=True)
    ]
    room -= sum(size for size, name in zip(sizes, is_name, strict=True) if name)
    limit = common_limit(
        [size for size, name in zip(sizes, is_name, strict=True) if not name], room
    )
    limit = max(limit, SHORTEST_PIECE)
    return [float(size) if name else limit for size, name in zip(sizes, is_name, strict=True)]


def _cut_outcome(line: Line, limit: float) -> str:
    outcome = line.outcome
    if line.is_data and len(outcome) > limit:
        outcome = _values_first(outcome)
    return cut(outcome, limit, _head_share(line))


def _values_first(outcome: str) -> str:
    """Put the names of the columns behind the rows of a table: values say more.

    Example:
        >>> _values_first("beds (n | kind): 1 | twin; 2 | king")
        '1 | twin; 2 | king (beds: n | kind)'
    """
    head = _TABLE_HEAD.match(outcome)
    if head is None:
        return outcome
    name = f"{head[1].strip()}: " if head[1].strip() else ""
    return f"{outcome[head.end() :]} ({name}{head[2]})"


def _head_share(line: Line) -> float:
    """Return the share of the beginning in an outcome that is cut."""
    if line.failed:
        return FAILED_HEAD_SHARE
    return DATA_HEAD_SHARE if line.is_data else PROGRAM_HEAD_SHARE


def _without_repeated_beginnings(line: Line) -> Line:
    """Leave out the beginnings of arguments that the previous call of the tool also had."""
    if not line.repeated:
        return line
    args = tuple(
        (name, GAP + value[size:] if size else value)
        for (name, value), size in zip(line.args, line.repeated, strict=True)
    )
    return replace(line, args=args, repeated=())


def _without_common_ends(args: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Leave out of an edit what its old and its new text have in common at both ends.

    The old text keeps the end of their common beginning, which says where the change is.
    """
    changed = [*args]
    for position, ((old_name, old), (new_name, new)) in enumerate(pairwise(args)):
        is_edit = old_name.lower().startswith("old") and new_name.lower().startswith("new")
        if old == new or not is_edit:
            continue
        head = old.rfind(" ", 0, common_length(old, new)) + 1
        old_reversed = old[head:][::-1]
        new_reversed = new[head:][::-1]
        tail = old_reversed.rfind(" ", 0, common_length(old_reversed, new_reversed)) + 1
        before = old[: max(head - 1, 0)]
        where = cut(before[::-1], BOTH_ENDS_FROM, 1.0)[::-1] + old[head - 1 : head]
        behind = GAP if tail else ""
        changed[position] = (old_name, f"{where}{old[head : len(old) - tail]}{behind}")
        ahead = GAP if head else ""
        changed[position + 1] = (new_name, f"{ahead}{new[head : len(new) - tail]}{behind}")
    return tuple(changed)
