"""The calls of an agent with what came of each, read from its messages: the steps of its work."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus.messages import Entry
from conspectus.messages.content import Call, Result
from conspectus.summarize.compacting import parsed
from conspectus.summarize.cutting import one_line
from conspectus.summarize.looks import is_look
from conspectus.summarize.outputs import failed

PROMPTS = 3
"""Outputs that end in one line from which it is taken for a prompt."""

_NAMES = re.compile(r"(?:^|_)(?:id|uuid|key|number|code)$|Id$")
_PROMPT = re.compile(
    r"(?=.{1,120}$)(?:>>>|(?:PS )?[A-Za-z]:\\[^<>|]*>"
    r"|(?:\([\w.-]+\) ?)?(?:[\w.-]+@[^\s:]+[: ]?\S*|\w*sh-[\d.]*|\[\S+@[^\]]+\]|[~/]\S*)? ?[$#%❯])"
    r"\s*$"
)
_PLACE = re.compile(r"\([A-Z][\w ]+: (?:n/a|[~/]\S*)\)\s*$")
"""How a shell asks for the next command, and says above that in which file and folder it is."""

_WRITES = re.compile(
    r"(cd \S+ && )?cat (?:> ?(\S+) <<|<<) ?-?['\"]?(\w+)['\"]?(?: ?> ?(\S+))?\n.*?\n\3(.*)",
    re.DOTALL,
)
_WRITERS = ("write_file", "create_file", "write")

_LISTS = re.compile(r"todo|task_?list|checklist|update_plan|write_plan", re.I)
_ITEMS = ("todos", "todo", "items", "tasks", "plan", "list", "steps")
_TEXT = ("content", "text", "title", "task", "description", "step", "name", "activeForm")


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
        replaced: what it wrote into a file was written anew by a later step.
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
    replaced: bool = False

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


def steps_of(entries: Sequence[Entry]) -> list[Step]:
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
                lines.setdefault(one_line(line), len(lines))
    _without_prompts(found)
    newest: dict[str, Step] = {}
    for step in found:
        if (path := _wrote_alone(step)) and not step.failed:
            if path in newest:
                newest[path].replaced = True
            newest[path] = step
    return _counted(found)


def _wrote_alone(step: Step) -> str:
    """Return the file that a step wrote whole, where it did no other thing."""
    shell = next((value for value in step.args.values() if isinstance(value, str)), "")
    if (found := _WRITES.fullmatch(shell.strip())) and found[5].strip() == "":
        return f"{found[1] or ''}{found[2] or found[4]}"
    path = step.args.get("path", step.args.get("file_path"))
    return path if isinstance(path, str) and step.call.name in _WRITERS else ""


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


def _alike(before: str | None, now: str | None) -> bool:
    old, new = parsed(before or ""), parsed(now or "")
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return False
    if any(old[key] != new[key] for key in old.keys() & new.keys() if _NAMES.search(key)):
        return False  # another thing of the same kind
    return 2 * len(old.keys() & new.keys()) > max(len(old), len(new))


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
