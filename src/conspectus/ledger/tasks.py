"""Work that is open or done: lists of tools, and work handed to others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from conspectus.ledger.fact import State
from conspectus.ledger.sentences import sentences
from conspectus.ledger.wording.marks import NOT_YET, OUTCOME, UNDER_WAY
from conspectus.messages.content import Call

WORK = 400
"""Characters of a task, and of one sentence of what came back, that are kept."""

REPORT = 200
"""Characters up to which further sentences of what came back are kept too."""

_DELEGATES = re.compile(
    r"^task$|delegat|sub_?agent|hand_?off|transfer_to|dispatch|spawn|assign|^agent$|run_agent|call_agent",
    re.I,
)
_STARTS = re.compile(r"^start_(?:\w+_)?task$", re.I)
_ASKS_AFTER = re.compile(r"^(?P<what>check|cancel)_(?:\w+_)?task$", re.I)
_HANDLE = re.compile(r"""["']?\b(?:task|thread)_id["']?\s*[:=]\s*["']?(?P<id>[\w-]{1,80})""")
_NOT_OVER = frozenset("pending running waiting queued in_progress".split())
_LISTS = re.compile(r"todo|task_?list|checklist|update_plan|write_plan", re.I)
_TOLD = (
    "description",
    "task",
    "prompt",
    "instruction",
    "instructions",
    "message",
    "input",
    "query",
    "objective",
    "goal",
)
_ITEMS = ("todos", "todo", "items", "tasks", "plan", "list", "steps")
_TEXT = ("content", "text", "title", "task", "description", "step", "name", "activeForm")
_REPORTS = ("result", "output", "answer", "content", "response", "report", "message")
_HEADING = re.compile(r"#{1,6}\s|[-=*_`~]{3,}|[^.!?。！？]{1,60}[:：]\W*$")
_FAILED = re.compile(
    r"\W*(?:(?:\w+ )?(?:error|failure|exception|fehler|erreur|错误|エラー|오류|失败|失敗|실패)"
    r"\s*[:：!(]"
    r"|failed (?:to|with)\b|traceback \(|\w+(?:error|exception)\s*[:(]"
    r"|(?:the |your )?(?:task|job|agent|sub-?agent|tool|call|request)s? (?:has |have )?failed\b"
    r"|(?:die aufgabe|der auftrag) ist fehlgeschlagen|la tâche a échoué"
    r"|la tarea (?:ha fallado|falló)"
    r"|任务(?:执行)?失败|タスク[はが]失敗|작업(?:이|에)? ?실패)",
    re.I,
)
_FINISHED = frozenset("completed complete done finished closed x ✓ ✅ resolved".split())
_GIVEN_UP = frozenset("cancelled canceled removed deleted dropped".split())


def delegated(call: Call) -> str:
    """What a call hands to another agent; empty if it hands over nothing."""
    if _ASKS_AFTER.match(call.name) or _LISTS.search(call.name):
        return ""
    if not (_DELEGATES.search(call.name) or _STARTS.match(call.name)):
        return ""
    args = _args(call)
    for key in _TOLD:
        if isinstance(text := args.get(key), str) and text.strip():
            return _short(text)
    return ""


def asks_after(call: Call) -> tuple[str, bool] | None:
    """The task that a call asks after, by the id that came back when it was started, and whether
    the call gives it up; None if it does neither.

    Example:
        >>> asks_after(Call("c", "check_async_task", '{"task_id": "t-1"}'))
        ('t-1', False)
    """
    found = _ASKS_AFTER.match(call.name)
    task = _args(call).get("task_id") if found else None
    if found is None or not isinstance(task, str) or not task.strip():
        return None
    return task.strip(), found["what"].lower() == "cancel"


def handle(result: str) -> str:
    """The id by which work that was started can be asked after; empty if the result gives none."""
    found = _HANDLE.search(result[:WORK])
    return found["id"] if found else ""


def status(result: str) -> str:
    """The state of the work that a result in JSON names; empty if it names none."""
    if not result.lstrip().startswith("{"):
        return ""
    try:
        data = json.loads(result)
    except (ValueError, RecursionError):
        return ""
    named = data.get("status") if isinstance(data, dict) else None
    return named.lower() if isinstance(named, str) else ""


def under_way(result: str) -> bool:
    """Whether a result says that the work has only been started."""
    if said := status(result):
        return said in _NOT_OVER
    if len(result) > WORK or UNDER_WAY.search(result) is None:
        return False
    return OUTCOME.search(result) is None or NOT_YET.search(result) is not None


def failed(result: str) -> bool:
    """Whether a result begins by saying that the work could not be done.

    Example:
        >>> failed("Error: the agent gave up"), failed("The error comes from line 3.")
        (True, False)
    """
    return _FAILED.match(_report(result)) is not None


def came_back(result: str) -> str:
    """The first sentences of a result that say something: no headings, and no fences.

    Example:
        >>> came_back("# Findings\\n\\nAcme costs 41 USD; Bolt 37. Both renew in May.")
        'Acme costs 41 USD; Bolt 37. Both renew in May.'
    """
    said = ""
    for sentence in sentences(_report(result), whole=True):
        sentence = " ".join(sentence.split())
        if _HEADING.match(sentence):
            continue
        if said and len(said) + len(sentence) >= REPORT:
            break
        said = f"{said} {sentence}" if said else sentence[:WORK]
    return said or next(iter(sentences(result)), "")[:WORK]


def _report(result: str) -> str:
    """The text of a result that is an object with its report in it."""
    if not result.lstrip().startswith("{"):
        return result
    try:
        data = json.loads(result)
    except (ValueError, RecursionError):
        return result
    fields = data if isinstance(data, dict) else {}
    texts = (fields.get(name) for name in ("error", *_REPORTS))
    found = next((text for text in texts if isinstance(text, str) and text.strip()), result)
    return f"Error: {found}" if found is fields.get("error") else found


def listed(call: Call) -> Iterator[tuple[str, State]]:
    """The items of a to-do tool's call; the state is empty for those that were given up."""
    if not _LISTS.search(call.name):
        return
    args = _args(call)
    rows: list[Any] = next((args[key] for key in _ITEMS if isinstance(args.get(key), list)), [])
    for row in rows:
        if isinstance(row, str):
            yield _short(row), "open"
        elif isinstance(row, Mapping):
            text = next((row[key] for key in _TEXT if isinstance(row.get(key), str)), "")
            status = str(row.get("status", row.get("state", ""))).lower()
            finished = (
                status in _FINISHED or row.get("done") is True or row.get("completed") is True
            )
            if text.strip():
                yield _short(text), "done" if finished else "" if status in _GIVEN_UP else "open"


def _short(text: str) -> str:
    text = text.strip()
    if len(text) <= WORK:
        return text
    return next(iter(sentences(text)), text)[:WORK]


def _args(call: Call) -> dict[str, Any]:
    try:
        args = json.loads(call.args)
    except (ValueError, RecursionError):
        return {}
    return args if isinstance(args, dict) else {}


def texts(call: Call) -> Iterator[str]:
    """The texts among a call's arguments, without the names of the tool and its arguments."""
    try:
        args = json.loads(call.args)
    except (ValueError, RecursionError):
        yield call.args
        return
    yield from _texts(args, 0)


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, Mapping) and depth < 20:
        for part in value.values():
            yield from _texts(part, depth + 1)
    elif isinstance(value, list) and depth < 20:
        for part in value:
            yield from _texts(part, depth + 1)
