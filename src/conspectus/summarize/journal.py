"""Part 2 of the notes: one line a step, in order, with what was called and what came of it.

A step that only looked around is folded with its neighbours; everything else may have had an effect
outside and keeps a line of its own. A call is taken for a look by its verb, and whatever is not
known to be a look counts as an effect, so that a deed is never folded away by mistake.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus.ledger import statements
from conspectus.messages import Entry
from conspectus.messages.content import Call, Result
from conspectus.summarize.compacting import LONG, brief, compact, cut, dense, one_line, parsed
from conspectus.summarize.edits import with_change
from conspectus.summarize.known_records import Shown, news_of, shown_records
from conspectus.summarize.looks import IN_PLACE, SHELL, is_look
from conspectus.summarize.outputs import command, failed, outline, output, unwrapped

CALL, OUTCOME = 150, 150
"""Characters of a call and of its outcome at scale 1; records get three times as much."""

CONTENT = 600
"""Characters at scale 1 for the outline of what a call writes."""

EDIT = 240
"""Characters on top for a command that edits a file in place: its text is what was changed."""

LONG_VALUE = 120
"""Characters from which an argument is told by its outline."""

RULE_FILES = ("SKILL.md", "AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
"""Files whose rules an agent that has read them goes by."""

RULES = 600
"""Characters of their rules at scale 1."""

AGAIN, PATH = 60, 90
"""Characters of a call that stands before, and of a path."""

RECORD = 3
"""A record of short values gets so many times the room of an output in words."""

FOUND = 2
"""And what a search found in words has so many times less."""

LEAST_RECORD, LEAST_CALL, LEAST_OUTCOME, LEAST_ERROR = 240, 160, 60, 160
"""Characters that a record of short values, a call, an outcome, and what went wrong have at any
scale."""

ID = 8
"""Characters from which an argument with a digit is taken for an id."""

PROMPTS = 3
"""Outputs that end in one line from which it is taken for a prompt."""

LOOK = 60
"""Characters of a look at scale 1 where it is folded."""

SAYS = ", which says: "
"""Stands before the rules of a file that was read."""

LOOKED = "looked at: "
"""Begins a line of folded looks, by which a later condensation knows it."""

_STRESSED = re.compile(
    r"\b(?:NOT|MUST|NEVER|ALWAYS|ONLY|IMPORTANT|CRITICAL|DON'T|REQUIRED)\b|必须|禁止"
)
_NAMED = re.compile(r"`[^`]+`|\w_\w|\{\w+\}|(?<![\w/])/\w+/")
_NAMES = re.compile(r"(?:^|_)(?:id|uuid|key|number|code)$|Id$")
_PROMPT = re.compile(
    r"(?=.{1,120}$)(?:>>>|(?:PS )?[A-Za-z]:\\[^<>|]*>"
    r"|(?:\([\w.-]+\) ?)?(?:[\w.-]+@[^\s:]+[: ]?\S*|\w*sh-[\d.]*|\[\S+@[^\]]+\]|[~/]\S*)? ?[$#%❯])"
    r"\s*$"
)
_PLACE = re.compile(r"\([A-Z][\w ]+: (?:n/a|[~/]\S*)\)\s*$")
"""How a shell asks for the next command, and says above that in which file and folder it is."""

_CITED = re.compile(r"^>[ \t]?", re.MULTILINE)
_LISTS = re.compile(r"todo|task_?list|checklist|update_plan|write_plan", re.I)
_ITEMS = ("todos", "todo", "items", "tasks", "plan", "list", "steps")
_TEXT = ("content", "text", "title", "task", "description", "step", "name", "activeForm")
_CONTENT = ("content", "file_text", "text", "new_str", "new_string", "patch", "body", "data")


@dataclass(slots=True)
class Step:
    """One call and what came of it.

    Attributes:
        call: the call.
        cites: how its messages are named: the call's, the result's.
        result: the text of the result; None where there is none.
        looks: it only looked around.
        failed: nothing came of it.
        times: how often the same call had the same outcome.
        args: its arguments, read.
        was: the result of the same look before, where it was another one.
        seen: lines of outputs before it.
    """

    call: Call
    cites: list[str]
    result: str | None = None
    looks: bool = False
    failed: bool = False
    times: int = 1
    args: Mapping[str, Any] = field(default_factory=dict)
    was: str | None = None
    seen: Container[str] = frozenset()

    @property
    def record(self) -> bool:
        """Whether the result is data."""
        return self.result is not None and parsed(self.result) is not None


@dataclass(frozen=True, slots=True)
class _Before:
    """Those of some lines that came before a place among them."""

    lines: Mapping[str, int]
    place: int

    def __contains__(self, line: object) -> bool:
        return isinstance(line, str) and self.lines.get(line, self.place) < self.place


def steps(entries: Sequence[Entry]) -> list[Step]:
    """Return the steps of these messages; lists of things to do and thoughts are none."""
    found: list[Step] = []
    open_: dict[str, list[Step]] = {}
    lines: dict[str, int] = {}
    for entry in entries:
        for call in entry.calls:
            if listed(call) is None and not _thinks(call.name):
                args = _args(call)
                step = Step(call, [entry.cite], args=args, looks=is_look(call, args))
                found.append(step)
                open_.setdefault(call.id, []).append(step)
        marked = getattr(entry.source, "status", None) == "error"
        blocks = {result.call: result for result in entry.results}
        for answered in entry.answers:
            _, text, wrong = blocks.get(answered, Result(answered, entry.text, marked))
            waiting = open_.get(answered)
            if not waiting:
                continue
            step = waiting.pop(0)
            step.result = text
            step.cites.append(entry.cite)
            step.failed = marked or wrong or failed(text)
            step.seen = _Before(lines, len(lines))
            for line in step.result.splitlines()[:400]:
                if len(line) >= LONG:
                    lines.setdefault(one_line(line), len(lines))
    _without_prompts(found)
    return _counted(found)


def _without_prompts(found: Sequence[Step]) -> None:
    """Take out the lines with which a shell asks for the next command: ends of several outputs.

    Any other line may say how a deed ended, however often it comes.
    """
    ends = Counter(line for step in found for line in set((step.result or "").split("\n")[-3:]))
    asks = {line for line, times in ends.items() if times >= PROMPTS}
    for step in found if asks else ():
        rows = (step.result or "").rstrip().split("\n")
        if rows[-1].rstrip() not in map(str.rstrip, asks) or not _PROMPT.match(rows[-1]):
            continue
        rows.pop()
        while rows and (not rows[-1].strip() or (rows[-1] in asks and _PLACE.match(rows[-1]))):
            rows.pop()
        if any(map(str.isalnum, "".join(rows))):
            step.result = "\n".join(rows)


def _counted(found: list[Step]) -> list[Step]:
    """Equal steps stand once, where they came last; a look that was repeated, with what it was."""
    last: dict[tuple[str, str], Step] = {}
    owners: dict[tuple[str, str], Step] = {}
    kept: list[Step] = []
    for step in found:
        key = (step.call.name, step.call.args)
        before = last.get(key)
        if before is not None and before.result == step.result:
            before.times += 1
            before.cites.append(step.cites[-1])
            continue
        if before is not None and step.looks and step.record and before.record:
            kept.remove(before)
            step.was = before.result
            step.times = before.times + 1
        elif not step.looks and step.record and not step.failed:
            # A record that was shown before, under the same id: only what changed is news.
            same = next((owners[o] for o in _owners(step) if o in owners), None)
            if same is not None and _alike(same.result, step.result):
                step.was = same.result
        owners.update(dict.fromkeys(_owners(step), step) if step.record else {})
        last[key] = step
        kept.append(step)
    return kept


def _owners(step: Step) -> list[tuple[str, str]]:
    return [(key, value) for key, value in step.args.items() if isinstance(value, str) and value]


def looked(line: str) -> bool:
    """Return whether a line tells of a call that only looked around or worked something out."""
    call = line.partition(" → ")[0]
    if call.startswith("$ "):
        return is_look(Call("", "shell", ""), {"command": call[2:]})
    return call.startswith(LOOKED) or is_look(Call("", call.partition("(")[0], ""), {})


def _alike(before: str | None, now: str | None) -> bool:
    old, new = parsed(before or ""), parsed(now or "")
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return False
    if any(old[key] != new[key] for key in old.keys() & new.keys() if _NAMES.search(key)):
        return False  # another thing of the same kind
    return 2 * len(old.keys() & new.keys()) > max(len(old), len(new))


def lines(
    found: Sequence[Step], scale: float, more: int = 0, standing: Sequence[str] = ()
) -> list[tuple[str, list[str]]]:
    """Return the lines of a journal, each with the messages that it rests on.

    Args:
        found: the steps.
        scale: how roomy lines are; below 1 looks are folded with their neighbours.
        more: characters on top of each for what a command printed.
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
    schemas: set[str] = set()
    given = set(shown)
    for step in found:
        if step.looks and (rules := says(step, int(RULES * min(max(scale, 0.6), 1.5)))):
            close()
            call = call_text(step.call, step.args, int(LOOK * max(scale, 0.5)), content=0)
            told.append((f"{call}{SAYS}{rules}", step.cites[-1:]))
            continue
        plain = not (step.record and (scale >= RECORDS_FROM or dense(step.result or "")))
        if step.looks and plain:
            text = _look(step, scale)
            if text not in folded:
                folded.append(text)
            cites.extend(step.cites[:1])
            continue
        close()
        told.append((_deed(step, scale, before, schemas, given, more, shown), [step.cites[0]]))
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
    schemas: set[str],
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
    size = max(int(CALL * scale), LEAST_CALL)
    call = call_text(step.call, step.args, size, content=int(CONTENT * scale))
    if (first := told.setdefault(step.call.args + step.call.name, step.cites[0])) != step.cites[0]:
        call = f"{cut(call, AGAIN)} (as {first})"
    if step.result is None:
        came = "no answer"
    elif step.was is not None:
        came = f"now {changes(step.was, step.result, room)}"
    elif (news := news_of(step.result, step.args, shown)) is not None:
        came = news[1] if not news[0] else f"{compact(news[0], room, known, schemas)} ({news[1]})"
    else:
        came = output(step.result, room, known, step.seen, schemas, more)
    if step.failed and not came.lower().startswith(("error", "fail", "exit")):
        came = f"FAILED: {came}"
    return f"{call} → {came}{f' ({step.times} times)' if step.times > 1 else ''}"


def _look(step: Step, scale: float) -> str:
    room = int(LOOK * max(scale, 0.5))
    call = call_text(step.call, step.args, room, content=0)
    result = step.result or ""
    count = len([line for line in result.splitlines() if line.strip()])
    if step.failed or count <= 3:
        came = output(result, room, (), step.seen)
        came = f" → {came}" if came != "ok" else ""
    elif scale >= 1:
        came = f" → {outline(unwrapped(result), int(room * 1.5))}"
    else:
        came = f" ({count} lines)"
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
        if IN_PLACE.search(args[shell]):
            room += max(content, EDIT if content else 0)
        return f"$ {command(args[shell], room, content)}"
    if not args:
        return cut(one_line(f"{call.name}({call.args if call.args != '{}' else ''})"), room)
    args, parts = with_change(args), list[str]()
    left = room - len(call.name) - 2
    short = {k: v for k, v in args.items() if not _long(k, v)}
    order = sorted(short, key=lambda key: key in ("description", "explanation", "reason"))
    for key in order:
        text = f"{key}={brief(short[key], max(PATH if '/' in str(short[key]) else 16, left // 2))}"
        if parts and len(text) > left:
            text = cut(text, max(left, 16))
        parts.append(text)
        left -= len(text) + 2
        if left < 16:
            break
    rest = {k: v for k, v in args.items() if k not in short}
    for key, value in rest.items() if content else ():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"{key}: {outline(shown, max(40, content // len(rest)))}")
    return f"{call.name}({', '.join(parts)})"


def _long(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > LONG_VALUE or (key in _CONTENT and "\n" in value)
    return not isinstance(value, (int, float)) and len(json.dumps(value)) > LONG_VALUE


def listed(call: Call) -> list[tuple[str, str]] | None:
    """Return the items of a to-do list with their states; None where a call writes none."""
    if not _LISTS.search(call.name):
        return None
    args = _args(call)
    rows = next((args[key] for key in _ITEMS if isinstance(args.get(key), list)), None)
    if rows is None:
        return None
    found = []
    for row in rows:
        if isinstance(row, str):
            found.append((one_line(row), "open"))
        elif isinstance(row, Mapping):
            text = next((row[key] for key in _TEXT if isinstance(row.get(key), str)), "")
            state = str(row.get("status", row.get("state", ""))) or (
                "completed" if row.get("done") is True or row.get("completed") is True else "open"
            )
            if text.strip():
                found.append((one_line(text), state))
    return found


def thoughts(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Yield what calls of a tool for thinking say, each with the message that it stands in."""
    for entry in entries:
        for call in entry.calls:
            if _thinks(call.name):
                yield "\n".join(str(v) for v in _args(call).values()) or call.args, entry.cite


def _thinks(name: str) -> bool:
    return bool(
        re.fullmatch(r"(?:\w+_)?think(?:ing)?(?:_\w+)?|reflect\w*|sequentialthinking", name, re.I)
    )


def _args(call: Call) -> Mapping[str, Any]:
    try:
        args = json.loads(call.args)
    except (ValueError, RecursionError):
        return {}
    return args if isinstance(args, dict) else {}
