"""Tallies: one line that stands for lines that are left out, and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from conspectus.notes.cutting import GAP, cut
from conspectus.notes.data import Kind, Line
from conspectus.notes.shell import SHELLS, command_in, what_changes

MOST_NAMED_TOOLS = 12
"""The most tools that a tally names. The calls of the others are counted together."""

MOST_NAMED_CHANGES = 12
"""The most calls with a change that a tally names, the newest ones."""

MOST_NAMED_RECORDS = 4
"""The most calls with a record of which a tally has the values, the newest ones."""

CHANGE_CHARACTERS = 40
"""The characters of what a call was about."""

RECORD_CHARACTERS = 60
"""The characters of a record that was found."""

OUTCOME_CHARACTERS = 40
"""The characters of what came of such a call, if it answered with data."""

NO_RESULT = "no result"
"""What came of a call that was never answered, or not yet."""

ARROW = " → "
"""Stands between what a call was about and what came of it."""

WHAT_IS_LEFT_OUT: dict[Kind, tuple[str, str]] = {
    "said": ("message of the user", "messages of the user"),
    "agent": ("message of the agent or others", "messages of the agent or others"),
    "found": ("finding", "findings"),
}
"""The words for the lines that a tally counts, in the singular and the plural."""

CELL = " | "
"""Stands between the cells of a table."""

TABLE_CHARACTERS = 200
"""A result with a `CELL` among its first characters, so many, is a table and not a record."""

MOST_NAMED_MESSAGES = 12
"""Up to so many messages of the user are cited one by one. Of more, both ends are cited."""


def tally_of(lines: Sequence[Line]) -> Line:
    """Return the tally of lines of one kind, some of which may be tallies."""
    calls = Counter[str]()
    changes: dict[str, str] = {}
    records: dict[str, str] = {}
    for line in lines:
        if line.is_tally:
            calls.update({name: int(count) for name, count in line.args})
            for change in line.changes:
                _add_as_newest(changes, change)
            for record in line.records:
                _add_as_newest(records, record)
            continue
        calls[line.call] += 1
        may_have_changed = line.failed or not line.outcome
        if line.acts or (may_have_changed and line.kind == "done" and line.effect is not False):
            _add_as_newest(changes, _name_of_change(line))
        elif line.is_data and not line.failed and CELL not in line.outcome[:TABLE_CHARACTERS]:
            _add_as_newest(records, _name_of_record(line))
    first = min(lines, key=lambda line: line.span)
    last = max(lines, key=lambda line: line.span[-1])
    return Line(
        first.kind,
        # Findings cite messages in any order.
        () if first.kind == "found" else _ids_of_tally(lines, first, last),
        args=tuple((name, str(count)) for name, count in calls.items()),
        changes=tuple(changes.values())[-MOST_NAMED_CHANGES:],
        records=tuple(records.values())[-MOST_NAMED_RECORDS:],
        span=(first.span[0], last.span[-1]),
        stands_for=sum(line.stands_for or 1 for line in lines),
        failures=sum(line.failures if line.is_tally else line.failed for line in lines),
    )


def _add_as_newest(named: dict[str, str], name: str) -> None:
    """Add the name of a call as the newest, in the place of an earlier one about the same thing."""
    thing = name.partition(ARROW)[0]
    named.pop(thing, None)
    named[thing] = name


def _name_of_record(line: Line) -> str:
    """Name a call that found a record by its tool, its arguments and the record's values."""
    about = cut(", ".join(value for _, value in line.args), CHANGE_CHARACTERS)
    return f"{line.call} {about}{ARROW}{cut(line.outcome, RECORD_CHARACTERS, 1.0)}"


def _name_of_call(line: Line) -> str:
    """Name a call by its tool and what it was about."""
    about = line.args[0][1] if line.args else ""
    if line.call.casefold() in SHELLS:
        about = what_changes(command_in(line.args)) or about
    is_long_path = "/" in about[:-CHANGE_CHARACTERS] and " " not in about
    if is_long_path:
        # The end of a path tells it from others.
        about = GAP + about[1 - CHANGE_CHARACTERS :]
    return f"{line.call} {cut(about, CHANGE_CHARACTERS)}".strip()


def _name_of_change(line: Line) -> str:
    """Name a call that changed something by its tool, what it was about, and what came of it."""
    name = _name_of_call(line)
    if not line.outcome:
        return f"{name}{ARROW}{NO_RESULT}"
    if line.failed:
        return f"{name}{ARROW}failed: {cut(line.outcome, OUTCOME_CHARACTERS, 0.0)}"
    return f"{name}{ARROW}{cut(line.outcome, OUTCOME_CHARACTERS, 1.0)}" if line.is_data else name


def _ids_of_tally(lines: Sequence[Line], first: Line, last: Line) -> tuple[str, ...]:
    """Return the ids of all messages if the user wrote them and they are few; else of both ends."""
    number = sum(line.stands_for or 1 for line in lines)
    if first.kind == "said" and 2 < number <= MOST_NAMED_MESSAGES:
        in_order = sorted(lines, key=lambda line: line.span)
        ids = tuple(name for line in in_order for name in line.ids)
        if len(ids) == number:
            return ids
    return tuple(dict.fromkeys((*first.ids[:1], *last.ids[-1:])))


def write_tally(tally: Line, archived: bool) -> str:
    """Return the text of a tally: calls by their tools, other lines by their number.

    Example:
        >>> write_tally(Line("said", ("m2", "m9"), stands_for=5), archived=True)
        '(5 messages of the user left out; recall range m2 to m9)'
    """
    where = _where_to_recall(tally) if archived else ""
    if tally.kind != "done":
        what = WHAT_IS_LEFT_OUT[tally.kind][tally.stands_for > 1]
        return f"({tally.stands_for} {what} left out{where})"
    changes = f"; among them {', '.join(tally.changes)}" if tally.changes else ""
    records = f"; found: {' | '.join(tally.records)}" if tally.records else ""
    failed = f"; {tally.failures} of them failed" if tally.failures else ""
    calls = "call" if tally.stands_for == 1 else "calls"
    what = f"{_numbers_by_tool(tally)}{changes}{records}{failed}{where}"
    return f"({tally.stands_for} more {calls}: {what})"


def _where_to_recall(tally: Line) -> str:
    ids = dict.fromkeys(tally.ids)
    if not ids:
        return ""
    names_each = len(ids) != 2
    return f"; recall {', '.join(ids)}" if names_each else f"; recall range {' to '.join(ids)}"


def _numbers_by_tool(tally: Line) -> str:
    calls = Counter({name: int(count) for name, count in tally.args}).most_common()
    others = sum(count for _, count in calls[MOST_NAMED_TOOLS:])
    shown = calls[:MOST_NAMED_TOOLS]
    if others:
        shown.append(("others", others))
    return ", ".join(f"{name} {count}" for name, count in shown)
