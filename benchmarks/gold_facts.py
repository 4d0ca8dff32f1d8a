"""What the ledger holds of planted facts in long talk, after one compaction and after ten.

    make bench-facts        or: python benchmarks/gold_facts.py --errors

Every file of `benchmarks/gold_facts` is one thread with all the facts that a careful reader would
mark in it. The thread is compacted by the real `Compactor` with the embedded summariser, once as a
whole, and once in ten rounds with a tenth of its messages added before each; then the ledger of the
last record is held against the marks. Recall counts the planted facts in force, precision every
fact that the ledger holds; what a later statement has superseded is wrong if it is still held. The
exit code is 1 where either is below 0.95 in all languages together. What the files hold is said in
`benchmarks/gold_facts/README.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from conspectus import Compactor, Fact, Ledger
from conspectus.messages import Entry, read_messages

SET = Path(__file__).resolve().parent / "gold_facts"
LEAST = 0.95
ROUNDS = (1, 10)
STATEMENTS = frozenset({"rule", "preference", "decision", "task", "delegation"})
WORK: frozenset[str] = frozenset({"task", "delegation"})
KINDS = (
    *("rule", "preference", "decision", "task", "delegation", "path", "url"),
    *("symbol", "error", "id", "number", "date", "command"),
)
SHARE = 0.6
"""How much of the longer of two statements the shorter one, which stands in it, must be."""

Verdict = Literal["right", "stale", "wrong", "ignored"]


@dataclass(frozen=True, slots=True)
class Gold:
    """One fact that a reader has marked.

    Attributes:
        kinds: what it is; several where reasonable people differ.
        values: it as it stands in the talk, and other wordings that are as good.
        source: id of the message it stands in.
        state: `open` or `done` at the end of the thread, for tasks and delegations.
        superseded: whether a later statement has replaced it.
        reworded: whether that statement shares no wording with it.
        planted: whether recall counts it.
        optional: whether reasonable people differ about its being a fact at all; then neither
            recall nor precision counts it.
    """

    kinds: tuple[str, ...]
    values: tuple[str, ...]
    source: str
    state: str = ""
    superseded: bool = False
    reworded: bool = False
    planted: bool = True
    optional: bool = False

    @property
    def wanted(self) -> bool:
        """Whether a ledger has to hold it."""
        return self.planted and not self.superseded

    def fits(self, fact: Fact) -> bool:
        """Whether a fact of the ledger is this one."""
        if fact.kind not in self.kinds:
            return False
        counts = self.state and not self.optional and fact.kind in WORK
        if counts and getattr(fact, "state", None) != self.state:
            return False
        held = folded(fact.value)
        if fact.kind not in STATEMENTS:
            return any(held == folded(value) for value in self.values)
        return any(_same_statement(held, folded(value)) for value in self.values)


@dataclass(frozen=True, slots=True)
class Thread:
    """One file of the set."""

    name: str
    language: str
    messages: tuple[dict[str, Any], ...]
    facts: tuple[Gold, ...]
    alike: int


@dataclass(slots=True)
class Score:
    """How one ledger, or several together, stand against the marks.

    Attributes:
        found: planted facts in force that are held, by kind.
        missed: those that are not, as lines to read, by kind.
        right: facts held that are marked and in force, by kind.
        wrong: facts held that are not, as lines to read, by kind.
        stale: how many of the wrong ones have been superseded.
        in_view: messages with planted facts that never left the view; there must be none.
    """

    found: Counter[str] = field(default_factory=Counter)
    missed: dict[str, list[str]] = field(default_factory=dict)
    right: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    stale: int = 0
    in_view: list[str] = field(default_factory=list)

    def recall(self, kind: str | None = None) -> float | None:
        """Share of the planted facts that are held; None where none is planted."""
        found = self.found.total() if kind is None else self.found[kind]
        return _share(found, _count(self.missed, kind))

    def precision(self, kind: str | None = None) -> float | None:
        """Share of the held facts that are marked and in force; None where none is held."""
        right = self.right.total() if kind is None else self.right[kind]
        return _share(right, _count(self.wrong, kind))

    def __add__(self, other: Score) -> Score:
        return Score(
            self.found + other.found,
            _joined(self.missed, other.missed),
            self.right + other.right,
            _joined(self.wrong, other.wrong),
            self.stale + other.stale,
            self.in_view + other.in_view,
        )


def folded(text: str) -> str:
    """Without case and with single blanks, as values are compared."""
    return " ".join(text.split()).casefold()


def _same_statement(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return short in long and len(short) >= SHARE * len(long)


def _share(good: int, bad: int) -> float | None:
    return good / (good + bad) if good + bad else None


def _count(lines: Mapping[str, list[str]], kind: str | None) -> int:
    return sum(len(lines[k]) for k in lines if kind in (None, k))


def _joined(one: Mapping[str, list[str]], two: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {kind: [*one.get(kind, []), *two.get(kind, [])] for kind in {**one, **two}}


# Reading the set


def read(file: Path) -> Thread:
    """One thread with its marks."""
    data = json.loads(file.read_text(encoding="utf-8"))
    facts = tuple(map(_gold, data["facts"]))
    pairs = {frozenset((f["value"], f["alike"])) for f in data["facts"] if "alike" in f}
    return Thread(file.stem, data["language"], tuple(data["messages"]), facts, len(pairs))


def read_set(folder: Path = SET) -> list[Thread]:
    """All threads of a folder, by name."""
    return [read(file) for file in sorted(folder.glob("*.json"))]


def _gold(data: Mapping[str, Any]) -> Gold:
    kind = data["kind"]
    return Gold(
        kinds=(kind,) if isinstance(kind, str) else tuple(kind),
        values=(data["value"], *data.get("also", ())),
        source=data["source"],
        state=data.get("state", ""),
        superseded=data["superseded"],
        reworded=data.get("reworded", False),
        planted=data["planted"],
        optional=data.get("optional", False),
    )


# Measuring


def compacted(thread: Thread, rounds: int) -> tuple[Ledger, list[str]]:
    """The ledger after so many rounds, and the ids of the messages that are still in view."""
    compactor = Compactor(archive="memory:", keep=("messages", 2))
    view: list[Any] = []
    ledger = Ledger()
    for i in range(rounds):
        start, end = (len(thread.messages) * n // rounds for n in (i, i + 1))
        view += thread.messages[start:end]
        result = compactor.compact(view, thread_id=thread.name, force=True)
        view = list(result.messages)
        if result.record is not None:
            ledger = Ledger.from_json(result.record.ledger)
    ids = {message["id"] for message in thread.messages}
    return ledger, [m["id"] for m in view if m.get("id") in ids]


def score(thread: Thread, ledger: Ledger, in_view: Iterable[str] = ()) -> Score:
    """Hold a ledger against the marks of its thread."""
    said = _said(read_messages(thread.messages))
    result = Score()
    seen = set(in_view)
    for gold in thread.facts:
        if not gold.wanted:
            continue
        kind = gold.kinds[0]
        held = [fact for fact in ledger.facts if gold.fits(fact)]
        if gold.source in seen:
            result.in_view.append(f"{thread.name} [{gold.source}]")
        elif any(_is_quoted(fact, said) for fact in held):
            result.found[kind] += 1
        else:
            why = " (held without a true quote)" if held else ""
            line = f"{thread.name} [{gold.source}] {'/'.join(gold.kinds)} {gold.state}".rstrip()
            result.missed.setdefault(kind, []).append(f"{line}: {gold.values[0]!r}{why}")
    for fact in ledger.facts:
        verdict = judged(fact, thread.facts)
        if verdict == "right":
            result.right[fact.kind] += 1
        elif verdict != "ignored":
            result.stale += verdict == "stale"
            state = getattr(fact, "state", None) or ""
            line = f"{thread.name} [{fact.source}] {fact.kind} {state}".rstrip()
            why = " (superseded)" if verdict == "stale" else ""
            result.wrong.setdefault(fact.kind, []).append(f"{line}: {fact.value!r}{why}")
    return result


def judged(fact: Fact, facts: Iterable[Gold]) -> Verdict:
    """Whether the ledger rightly holds a fact."""
    fitting = [gold for gold in facts if gold.fits(fact)]
    if any(not gold.superseded and not gold.optional for gold in fitting):
        return "right"
    if any(gold.optional for gold in fitting):
        return "ignored"
    return "stale" if fitting else "wrong"


def _said(entries: Iterable[Entry]) -> dict[str, str]:
    """What stands in each message, by the way it is cited."""
    said: dict[str, str] = {}
    for entry in entries:
        arguments = "\n".join(call.args for call in entry.calls)
        said[entry.cite] = " ".join(f"{entry.reading}\n{arguments}".split())
    return said


def _is_quoted(fact: Fact, said: Mapping[str, str]) -> bool:
    quote = " ".join(fact.quote.split())
    return bool(quote) and quote in said.get(fact.source, "")


def measure(threads: Sequence[Thread]) -> dict[int, dict[str, Score]]:
    """The score of every thread by its name, for each number of rounds."""
    return {
        rounds: {thread.name: score(thread, *compacted(thread, rounds)) for thread in threads}
        for rounds in ROUNDS
    }


def together(scores: Iterable[Score]) -> Score:
    """Several scores as one."""
    return sum(scores, Score())


# Showing


def _row(score: Score, kind: str | None = None) -> dict[str, float | None]:
    return {"precision": score.precision(kind), "recall": score.recall(kind)}


def data_of(
    threads: Sequence[Thread], found: Mapping[int, Mapping[str, Score]], least: float = LEAST
) -> dict[str, Any]:
    """The numbers of the tables."""
    languages = {}
    for language in dict.fromkeys(thread.language for thread in threads):
        own = [thread for thread in threads if thread.language == language]
        gone = [f for thread in own for f in thread.facts if f.superseded and f.planted]
        languages[language] = {
            "messages": sum(len(thread.messages) for thread in own),
            "planted": sum(f.wanted for thread in own for f in thread.facts),
            "superseded": len(gone),
            "reworded": sum(f.reworded for f in gone),
            "alike": sum(thread.alike for thread in own),
            "rounds": {
                rounds: _row(together(scores[thread.name] for thread in own))
                for rounds, scores in found.items()
            },
        }
    total = {rounds: together(scores.values()) for rounds, scores in found.items()}
    kinds = {
        kind: {
            "planted": sum(f.wanted and f.kinds[0] == kind for t in threads for f in t.facts),
            "rounds": {rounds: _row(score, kind) for rounds, score in total.items()},
        }
        for kind in KINDS
    }
    whole = {
        rounds: {
            **_row(score),
            "missed": _count(score.missed, None),
            "wrong": _count(score.wrong, None),
            "stale": score.stale,
            "in_view": score.in_view,
        }
        for rounds, score in total.items()
    }
    return {"languages": languages, "kinds": kinds, "all": whole, "holds": holds(total, least)}


def holds(total: Mapping[int, Score], least: float = LEAST) -> bool:
    """Whether precision and recall are as promised, after every number of rounds."""
    return all(
        not score.in_view and min(score.recall() or 0.0, score.precision() or 0.0) >= least
        for score in total.values()
    )


def show(data: Mapping[str, Any], screen: Console) -> None:
    """Two tables: by language, and by kind."""
    counts = ("messages", "planted", "superseded", "reworded", "alike")
    sums = {name: sum(row[name] for row in data["languages"].values()) for name in counts}
    by_language = {**data["languages"], "all": {**sums, "rounds": data["all"]}}
    _table(screen, "The gold set, by language", "language", counts, by_language)
    _table(screen, "By kind", "kind", ("planted",), data["kinds"])
    for rounds, row in data["all"].items():
        screen.print(
            f"after {rounds}: {row['missed']} missed, {row['wrong']} wrongly held, "
            f"{row['stale']} of them superseded",
            highlight=False,
        )
        for message in row["in_view"]:
            screen.print(f"never left the view: {message}", style="bold red", markup=False)


def _table(
    screen: Console, title: str, first: str, counts: Sequence[str], rows: Mapping[str, Any]
) -> None:
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first)
    for name in counts:
        table.add_column(name, justify="right")
    for rounds in ROUNDS:
        table.add_column(f"precision, {rounds}", justify="right")
        table.add_column(f"recall, {rounds}", justify="right")
    for name, row in rows.items():
        if name == "all":
            table.add_section()
        shares = [row["rounds"][r][what] for r in ROUNDS for what in ("precision", "recall")]
        numbers = [f"{row[count]:,}" for count in counts]
        table.add_row(name, *numbers, *("-" if s is None else f"{s:.3f}" for s in shares))
    screen.print(table)


def show_errors(found: Mapping[int, Mapping[str, Score]], screen: Console) -> None:
    """Everything that was missed or wrongly held, by kind, with its source."""
    for rounds, scores in found.items():
        total = together(scores.values())
        for title, lines in (("missed", total.missed), ("wrongly held", total.wrong)):
            for kind in sorted(lines):
                screen.print(f"\n{title} after {rounds}, {kind}", style="bold")
                for line in lines[kind]:
                    screen.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it as a command; gives the exit code."""
    parser = argparse.ArgumentParser(description="Planted facts in long talk, and the ledger.")
    parser.add_argument("--json", action="store_true", help="print the numbers as data")
    parser.add_argument("--errors", action="store_true", help="list what was missed or is wrong")
    parser.add_argument("--set", type=Path, default=SET, help="a folder of threads")
    parser.add_argument("--least", type=float, default=LEAST, help="fail below this; 0 only shows")
    given = parser.parse_args(arguments)
    threads = read_set(given.set)
    if not threads:
        parser.error(f"there are no threads in {given.set}")
    found = measure(threads)
    data = data_of(threads, found, given.least)
    if given.json:
        print(json.dumps(data, indent=1))
    else:
        screen = Console(width=None if sys.stdout.isatty() else 126)
        if given.errors:
            show_errors(found, screen)
        show(data, screen)
    return 0 if data["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
