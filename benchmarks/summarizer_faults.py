"""A history after each way in which a summariser can go wrong.

    make bench-faults      or: python benchmarks/summarizer_faults.py --json

Every case goes through the real model summariser, once while there is still room for the history
as it is, and once while there is none. The rule: a history is changed only by a summary that has
passed the checks, or, where there is no room, by the embedded summariser; what a failing model said
never gets into it; every original is there afterwards. The exit code is 1 if that did not hold.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import printed
from fault_cases import CASES, MARK, Case
from langgraph.store.memory import InMemoryStore
from made_thread import RULE, made_thread
from promises import judge
from rich.console import Console

from conspectus import ChatModelSummarizer, CompactionResult, Compactor
from conspectus._core.choices import EMBEDDED
from conspectus.archive import Archive, Scope

MESSAGES = 80
WINDOW = 5_500
SCOPE = Scope("local", "bench")
AT_ONCE = 8
WHY = 44
"""Characters of a reason that are shown."""


@dataclass(slots=True)
class Run:
    """One case, with or without room.

    Attributes:
        outcome: of the result.
        by: writer of the summary in force: `model`, `embedded`, or empty.
        changed: whether the result differs from what was sent.
        all_there: whether every original is in view or comes back from the archive.
        calls: calls of the model, answered or not.
        why: the first failure on the way, or why nothing was done.
        wrong: breaches of the rule.
    """

    case: str
    room: bool
    outcome: str = ""
    by: str = ""
    changed: bool = False
    all_there: bool = False
    calls: int = 0
    why: str = ""
    wrong: list[str] = field(default_factory=list)


def measure(cases: Sequence[Case] = CASES, messages: int = MESSAGES) -> list[Run]:
    """Run all cases with room, then all without."""
    jobs = [(case, room, messages) for room in (True, False) for case in cases]
    # Most of the time goes into waiting between retries, so that cases can wait together.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda job: one_run(*job), jobs))


def one_run(case: Case, room: bool, messages: int = MESSAGES) -> Run:
    """Compact a made-up thread once."""
    model, archive = case.model(), Archive(InMemoryStore())
    size: dict[str, Any] = {"trigger": ("messages", messages // 2)} if room else {"window": WINDOW}
    compactor = Compactor(
        ChatModelSummarizer(model, timeout=case.timeout),
        archive=archive,
        keep=("messages", 20),
        **size,
    )
    sent = made_thread(messages)
    result = compactor.compact(sent, thread_id=SCOPE.thread)
    verdict = judge(sent, result, archive, SCOPE, None if room else WINDOW)
    run = Run(case.name, room, result.outcome)
    if result.record is not None:
        run.by = "embedded" if result.record.by == EMBEDDED else "model"
    shown = result.messages
    run.changed = len(shown) != len(sent) or any(
        a is not b for a, b in zip(shown, sent, strict=True)
    )
    run.all_there = verdict.missing == 0
    run.calls = len(model.calls)
    run.why = _short(next(iter(result.failures), "" if run.by else result.reason))
    run.wrong = [*verdict.said, *_against_the_rule(case, room, run, result)]
    return run


def _short(why: str) -> str:
    """Write a reason without the name of the scripted model."""
    name = "ScriptedChatModel:scripted"
    why = why.removeprefix(f"{name}: ").replace(f"the summary by {name} was refused", "refused")
    return why.replace(name, "the model")


def _against_the_rule(case: Case, room: bool, run: Run, result: CompactionResult) -> list[str]:
    text = json.dumps(result.messages, ensure_ascii=False)
    expected = "model" if case.passes else "" if room else "embedded"
    found = []
    if run.by != expected:
        found.append(f"the summary is by {run.by or 'nobody'}, not by {expected or 'nobody'}")
    if run.changed != bool(expected):
        found.append("changed without a summary that passed" if run.changed else "not changed")
    if MARK in text:
        found.append("what a failing model said is in the history")
    if RULE not in text:
        found.append("the standing rule is gone")
    if result.cost.calls > run.calls:
        found.append(f"{result.cost.calls} calls are charged and {run.calls} were made")
    return found


def show(runs: Sequence[Run], screen: Console) -> None:
    """Print the table, the faults, and one line for all."""
    for room in (True, False):
        some = [run for run in runs if run.room is room]
        what = "with room: the history may stay" if room else "without room: it does not fit"
        columns = ("case", "outcome", "by", "changed", "all there", "calls", "why")
        table = printed.table(f"The model summarises badly, {what}", columns, len(columns))
        for run in some:
            yes_no = ["yes" if flag else "no" for flag in (run.changed, run.all_there)]
            why = run.why if len(run.why) <= WHY else run.why[: WHY - 1] + "…"
            table.add_row(run.case, run.outcome, run.by or "-", *yes_no, str(run.calls), why)
        screen.print(table)
    wrong = [
        f"{run.case}, {'with' if run.room else 'without'} room: {what}"
        for run in runs
        for what in run.wrong
    ]
    for line in wrong:
        screen.print(f"BROKEN RULE: {line}", style="bold red", markup=False, soft_wrap=True)
    held = sum(not run.wrong for run in runs)
    screen.print(
        f"{held} of {len(runs)} as promised: changed only by a summary that passed, originals all "
        "there, no word of a failing model in the history",
        soft_wrap=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    given, runs = printed.options(__doc__).parse_args(arguments), measure()
    good, screen = not any(run.wrong for run in runs), printed.screen()
    return printed.end(
        given.json, lambda: [asdict(run) for run in runs], lambda: show(runs, screen), good
    )


if __name__ == "__main__":
    sys.exit(main())
