"""Part 2 of the notes: one line a step, in order, with what was called and what came of it.

A step that only looked around is folded with its neighbours; everything else may have had an effect
outside and keeps a line of its own. A call is taken for a look by its verb, and whatever is not
known to be a look counts as an effect, so that a deed is never folded away by mistake.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.ledger import statements
from conspectus.messages.content import Call
from conspectus.summarize.columns import head_of
from conspectus.summarize.compacting import LONG, brief, compact, dense, is_empty, parsed
from conspectus.summarize.cutting import cut, one_line
from conspectus.summarize.edits import with_change
from conspectus.summarize.known_records import Shown, news_of, shown_records
from conspectus.summarize.looks import SHELL, in_place, is_look
from conspectus.summarize.notes import cited
from conspectus.summarize.outputs import command, outline, output, unwrapped
from conspectus.summarize.scripts import EDIT, written
from conspectus.summarize.steps import Step

CALL, OUTCOME = 150, 150
"""Characters of a call and of its outcome at scale 1; records get three times as much."""

CONTENT = 600
"""Characters at scale 1 for the outline of what a call writes."""

LONG_VALUE = 120
"""Characters from which an argument is told by its outline."""

RULE_FILES = ("SKILL.md", "AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
"""Files whose rules an agent that has read them goes by."""

RULES = 600
"""Characters of their rules at scale 1."""

AGAIN, PATH, GIVEN = 60, 90, 48
"""Characters of a call that stands before, of a path, and of any other argument."""

RECORD = 3
"""A record of short values gets so many times the room of an output in words."""

FOUND = 2
"""And what a search found in words has so many times less."""

LEAST_RECORD, LEAST_CALL, LEAST_OUTCOME, LEAST_ERROR = 320, 160, 60, 160
"""Characters that a record of short values, a call, an outcome, and what went wrong have at any
scale."""

LEAST_DEED = 320
"""Characters that a call which may have had an effect has at any scale."""

ID = 8
"""Characters from which an argument with a digit is taken for an id."""


LOOK = 90
"""Characters of a look at scale 1 where it is folded."""

SAYS = ", which says: "
"""Stands before the rules of a file that was read."""

LOOKED = "looked at: "
"""Begins a line of folded looks, by which a later condensation knows it."""

_STRESSED = re.compile(
    r"\b(?:NOT|MUST|NEVER|ALWAYS|ONLY|IMPORTANT|CRITICAL|DON'T|REQUIRED)\b|必须|禁止"
)
_NAMED = re.compile(r"`[^`]+`|\w_\w|\{\w+\}|(?<![\w/])/\w+/")

_CITED = re.compile(r"^>[ \t]?", re.MULTILINE)
_CONTENT = ("content", "file_text", "text", "new_str", "new_string", "patch", "body", "data")


def looked(line: str) -> bool:
    """Return whether a line tells of a call that only looked around or worked something out."""
    call = line.partition(" → ")[0]
    if call.startswith("$ "):
        return is_look(Call("", "shell", ""), {"command": call[2:]})
    return call.startswith(LOOKED) or is_look(Call("", call.partition("(")[0], ""), {})


def lines(
    found: Sequence[Step], scale: float, more: int = 0, standing: Sequence[str] = ()
) -> list[tuple[str, list[str]]]:
    """Return the lines of a journal, each with the messages that it rests on.

    Args:
        found: the steps.
        scale: how roomy lines are; below 1 looks are folded with their neighbours.
        more: characters on top of each for what a command printed or a search found.
        standing: the lines of earlier segments; of a record that they show, only news are shown.
    """
    told: list[tuple[str, list[str]]] = []
    folded: list[str] = []
    cites: list[str] = []

    def close() -> None:
        if folded:
            told.append(
                (LOOKED + "; ".join(folded), [cites[0], cites[-1]] if cites[1:] else cites[:])
            )
            folded.clear()
            cites.clear()

    shown = shown_records(standing)
    before: dict[str, str] = {}
    schemas: dict[str, str] = {}
    given = set(shown)
    for step in found:
        if step.looks and (rules := says(step, int(RULES * min(max(scale, 0.6), 1.5)))):
            close()
            call = call_text(step.call, step.args, int(LOOK * max(scale, 0.5)), content=0)
            told.append((f"{call}{SAYS}{rules}", step.cites[-1:]))
            continue
        plain = not (step.record and (scale >= RECORDS_FROM or dense(step.result or "")))
        if step.looks and plain:
            text = _look(step, scale, more)
            if text not in folded:
                folded.append(text)
            cites.extend(step.cites[:1])
            continue
        close()
        text = _deed(step, scale, before, schemas, given, more, shown)
        told.append((text, [step.cites[0]]))
        if step.record and (head := head_of(text)):
            schemas.setdefault(head, step.cites[0])
        shown |= shown_records([cited(text, step.cites[:1])])
    close()
    return told


RECORDS_FROM = 0.3
"""The scale from which a record that was looked up has a line of its own."""


def says(step: Step, room: int) -> str:
    """Return the rules that a file of instructions for agents sets, as a report of what it says."""
    path = next((str(v) for v in step.args.values() if isinstance(v, str) and "/" in v), "")
    if (
        not step.result
        or posixpath.basename(path.strip().split()[-1] if path else "") not in RULE_FILES
    ):
        return ""
    text = _CITED.sub("", unwrapped(step.result))  # a note in a quotation is the file's own
    said = [one for one in statements(text) if one.own]
    named = {one.start for one in said if _NAMED.search(one.text)}
    told = [one for one in said if one.kind not in ("", "fact") or one.start in named]
    plain = [len(_STRESSED.findall(one.text)) for one in told]
    # What is stressed, then what names a thing: nobody could guess that.
    order = sorted(
        range(len(told)),
        key=lambda i: (
            -plain[i],
            told[i].start not in named,
            told[i].kind != "rule",
            -told[i].weight,
        ),
    )
    kept = []
    for i in order:
        if len(told[i].text) + 2 <= room:
            kept.append(i)
            room -= len(told[i].text) + 2
    return "; ".join(one_line(told[i].text) for i in sorted(kept))


def _deed(
    step: Step,
    scale: float,
    told: dict[str, str],
    schemas: Mapping[str, str],
    given: set[str],
    more: int,
    shown: Mapping[str, Shown],
) -> str:
    known = {str(value) for value in step.args.values() if isinstance(value, (str, int, float))}
    # An id that a call before was given, such as the customer's, is known in every record.
    given |= {value for value in known if len(value) >= ID and any(map(str.isdigit, value))}
    known |= given
    room = max(int(OUTCOME * scale), LEAST_OUTCOME)
    if step.record and dense(step.result or ""):
        room = max(RECORD * room, LEAST_RECORD)
    elif step.failed:
        room = max(room, LEAST_ERROR)
    elif step.looks:
        room //= FOUND  # what a search has found is there to be found again
    size = max(int(CALL * scale), LEAST_CALL if step.looks else LEAST_DEED)
    content = int(CONTENT * scale) if not step.replaced else LOOK
    call = call_text(step.call, step.args, size, content=content)
    if (first := told.setdefault(step.call.args + step.call.name, step.cites[0])) != step.cites[0]:
        call = f"{cut(call, AGAIN)} (as {first})"
    if step.result is None:
        came = "no answer"
    elif _echoes(step):
        came = "the same text"
    elif step.was is not None:
        came = f"now {changes(step.was, step.result, room)}"
    elif (news := news_of(step.result, step.args, shown)) is not None:
        came = news[1] if not news[0] else f"{compact(news[0], room, known, schemas)} ({news[1]})"
    else:
        room += more // FOUND if step.record and step.looks else 0
        came = output(step.result, room, known, step.seen, schemas, more)
    if step.failed and not came.lower().startswith(("error", "fail", "exit")):
        came = f"FAILED: {came}"
    return f"{call} → {came}{f' ({step.times} times)' if step.times > 1 else ''}"


def _echoes(step: Step) -> bool:
    """Return whether a result repeats what the call was given, such as a question to a user."""
    given = one_line(" ".join(str(value) for value in step.args.values()))
    rows = [one_line(row).strip("❓ ") for row in (step.result or "").splitlines() if row.strip()]
    return len(given) > len(step.result or "") // 2 > LONG and all(row in given for row in rows)


def _look(step: Step, scale: float, more: int = 0) -> str:
    room = int(LOOK * max(scale, 0.5))
    call = call_text(step.call, step.args, room, content=0)
    result = step.result or ""
    count = len([line for line in result.splitlines() if line.strip()])
    if step.failed or count <= 3:
        came = output(result, room, (), step.seen)
        came = f" → {came}" if came != "ok" else ""
    elif scale >= 1:
        came = f" → {outline(unwrapped(result), int(room * 1.5), more)}"
    else:
        came = f" ({len(unwrapped(result).splitlines())} lines)"
    return f"{call}{came}{f' ({step.times} times)' if step.times > 1 else ''}"


def changes(before: str, now: str, room: int) -> str:
    """Return the pairs of a record that changed, each with its value before; of lists, new rows."""
    old, new = parsed(before), parsed(now)
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return f"{output(now, room)} (was {output(before, room // 2)})"
    other: dict[str, Any] = {}
    for key, value in new.items():
        was = old.get(key)
        if value == was:
            continue
        if isinstance(value, list):
            other[key] = [row for row in value if not isinstance(was, list) or row not in was]
        elif key in old and not isinstance(value, Mapping):
            other[key] = f"{value} (was {was})"
        else:
            other[key] = value
    return compact(other, room) if other else "as before"


def call_text(call: Call, args: Mapping[str, Any], room: int, content: int) -> str:
    """Return a call in one line: a shell command as such, else the name with its arguments.

    Args:
        call: the call.
        args: its arguments, read.
        room: characters of the line.
        content: characters on top for what it writes; 0 leaves that out.
    """
    shell = next((k for k in SHELL if isinstance(args.get(k), str)), None)
    if shell is not None and not set(args) - {shell, "description", "timeout", "cwd", "workdir"}:
        if in_place(args[shell]):
            room += max(content, EDIT if content else 0)
        return f"$ {command(args[shell], room, content, written)}"
    if not args:
        return cut(one_line(f"{call.name}({call.args if call.args != '{}' else ''})"), room)
    args, parts = with_change(args), list[str]()
    left = room - len(call.name) - 2
    short = {k: v for k, v in args.items() if not _long(k, v) and not is_empty(v)}
    order = sorted(short, key=lambda key: key in ("description", "explanation", "reason"))
    for key in order:
        text = (
            f"{key}={brief(short[key], max(PATH if '/' in str(short[key]) else GIVEN, left // 2))}"
        )
        if parts and len(text) > left:
            text = cut(text, max(left, 16))
        parts.append(text)
        left -= len(text) + 2
        if left < 16:
            break
    rest = {k: v for k, v in args.items() if k not in short and not is_empty(v)}
    for key, value in rest.items() if content else ():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"{key}: {written(shown, max(40, content // len(rest)))}")
    return f"{call.name}({', '.join(parts)})"


def _long(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > LONG_VALUE or (key in _CONTENT and "\n" in value)
    return not isinstance(value, (int, float)) and len(json.dumps(value)) > LONG_VALUE
