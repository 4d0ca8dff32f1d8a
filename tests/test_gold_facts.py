"""The gold set is sound, and its measure tells right from wrong.

What the ledger reaches on it is measured by `make bench-facts`. The measure is a script in a folder
that is no package; the fixture imports it from there.
"""

from __future__ import annotations

import importlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from conspectus import Ledger
from conspectus.messages import read_messages

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "benchmarks" / "gold_facts").glob("*.json"))
SET = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in FILES}
STATES = {"open", "done"}

Data = dict[str, Any]
threads = pytest.mark.parametrize("name", sorted(SET))


@pytest.fixture(scope="module")
def gold() -> Iterator[ModuleType]:
    """The measure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("gold_facts")


def _facts(*, planted: bool = True) -> list[Data]:
    return [f for data in SET.values() for f in data["facts"] if f["planted"] is planted]


def _kinds(fact: Data) -> list[str]:
    kind = fact["kind"]
    return [kind] if isinstance(kind, str) else kind


# The set


def test_there_is_as_much_of_everything_as_is_said() -> None:
    in_force = [f for f in _facts() if not f["superseded"]]
    gone = [f for f in _facts() if f["superseded"]]
    alike = {frozenset((f["value"], f["alike"])) for f in _facts() if "alike" in f}
    assert len(in_force) >= 200
    assert len(gone) >= 40
    assert len(gone) / 2 <= sum(f["reworded"] for f in gone) < len(gone)
    assert len(alike) >= 20
    assert len({data["language"] for data in SET.values()}) >= 6


@threads
def test_every_kind_is_planted_in_every_thread(gold: ModuleType, name: str) -> None:
    facts = [f for f in SET[name]["facts"] if f["planted"] and not f["superseded"]]
    assert {_kinds(f)[0] for f in facts} == set(gold.KINDS)
    assert len(facts) >= 30


@threads
def test_a_thread_is_long_and_every_message_has_an_id_of_its_own(name: str) -> None:
    messages = SET[name]["messages"]
    assert 60 <= len(messages) <= 100
    ids = [message["id"] for message in messages]
    assert len(set(ids)) == len(ids)
    assert [entry.cite for entry in read_messages(messages)] == ids


@threads
def test_every_call_is_answered_once_and_before_anyone_else_speaks(name: str) -> None:
    waiting: list[str] = []
    called: Counter[str] = Counter()
    for message in SET[name]["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == [], message["id"]
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            waiting.append(call["id"])
            called[call["id"]] += 1
    assert waiting == []
    assert set(called.values()) == {1}


@threads
def test_every_value_stands_in_its_message_word_for_word(name: str) -> None:
    entries = read_messages(SET[name]["messages"])
    said = {entry.id: entry.reading for entry in entries}
    whole = "\n".join(said.values())
    for fact in SET[name]["facts"]:
        assert fact["value"].strip() == fact["value"] != ""
        assert fact["value"] in said[fact["source"]], fact
        assert all(value in whole for value in fact.get("also", ())), fact


@threads
def test_a_fact_is_marked_once_and_wholly(gold: ModuleType, name: str) -> None:
    facts = SET[name]["facts"]
    keys = Counter((kind, gold.folded(f["value"])) for f in facts for kind in _kinds(f))
    assert {key for key, count in keys.items() if count > 1} == set()
    values = {f["value"]: f for f in facts if not f["superseded"]}
    for fact in facts:
        assert set(_kinds(fact)) <= set(gold.KINDS), fact
        assert not (fact["planted"] and fact.get("optional")), fact
        if fact["planted"] and gold.WORK & set(_kinds(fact)):
            assert fact["state"] in STATES, fact
        if fact["superseded"]:
            new = values[fact["by"]]
            assert set(_kinds(new)) & set(_kinds(fact)), fact
            assert isinstance(fact["reworded"], bool)
        if "alike" in fact:
            assert values[fact["alike"]]["alike"] == fact["value"], fact


@threads
def test_open_and_finished_work_is_in_every_thread(name: str) -> None:
    for kind in ("task", "delegation"):
        facts = [f for f in SET[name]["facts"] if f["planted"] and kind in _kinds(f)]
        assert {f["state"] for f in facts} == STATES


@threads
def test_what_has_planted_facts_leaves_the_view_at_every_number_of_rounds(
    gold: ModuleType, name: str
) -> None:
    thread = gold.read(ROOT / "benchmarks" / "gold_facts" / f"{name}.json")
    for rounds in gold.ROUNDS:
        _, in_view = gold.compacted(thread, rounds)
        assert not {f.source for f in thread.facts if f.planted} & set(in_view)


# The measure


TALK = [
    {"id": "m1", "role": "user", "content": "Never deploy on a Friday. See docs/old.md, please."},
    {"id": "m2", "role": "user", "content": "Sorry, docs/new.md it is. Open: tell the others."},
    {"id": "m3", "role": "user", "content": "Perhaps look at docs/aside.md one day."},
    {"id": "m4", "role": "user", "content": "Bye for now."},
    {"id": "m5", "role": "assistant", "content": "Bye!"},
]
RULE = {"kind": "rule", "value": "Never deploy on a Friday.", "source": "m1"}
OLD = {"kind": "path", "value": "docs/old.md", "source": "m1", "reworded": False}
NEW = {"kind": "path", "value": "docs/new.md", "source": "m2"}
TASK = {"kind": ["task"], "value": "Open: tell the others.", "source": "m2", "state": "open"}
ASIDE = {"kind": "path", "value": "docs/aside.md", "source": "m3", "optional": True}


def _file(folder: Path, *facts: Data) -> Path:
    marked = [{"superseded": False, "planted": "optional" not in fact, **fact} for fact in facts]
    file = folder / "en-x.json"
    talk = {"language": "en", "about": "", "messages": TALK, "facts": marked}
    file.write_text(json.dumps(talk), encoding="utf-8")
    return file


@pytest.fixture
def thread(gold: ModuleType, tmp_path: Path) -> Any:
    old = {**OLD, "superseded": True, "by": "docs/new.md"}
    return gold.read(_file(tmp_path, RULE, old, NEW, TASK, ASIDE))


def _score(gold: ModuleType, thread: Any, *facts: Any) -> Any:
    return gold.score(thread, SimpleNamespace(facts=facts))


def _fact(kind: str, value: str, quote: str, source: str, state: str = "") -> Any:
    return SimpleNamespace(kind=kind, value=value, quote=quote, source=source, state=state)


def test_a_ledger_with_everything_in_force_has_it_all(gold: ModuleType, thread: Any) -> None:
    found = _score(
        gold,
        thread,
        _fact("rule", "never deploy  on a FRIDAY", "Never deploy on a Friday.", "m1"),
        _fact("path", "docs/new.md", "Sorry, docs/new.md it is.", "m2"),
        _fact("task", "tell the others.", "Open: tell the others.", "m2", "open"),
    )
    assert (found.recall(), found.precision(), found.stale) == (1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("fact", "stale"),
    [
        (_fact("path", "docs/old.md", "See docs/old.md", "m1"), 1),
        (_fact("path", "docs/new", "Sorry, docs/new.md it is.", "m2"), 0),
        (_fact("symbol", "docs/new.md", "Sorry, docs/new.md it is.", "m2"), 0),
        (_fact("rule", "Never deploy", "Never deploy on a Friday.", "m1"), 0),
        (_fact("task", "Open: tell the others.", "Open: tell the others.", "m2", "done"), 0),
    ],
)
def test_what_is_superseded_or_in_part_or_of_another_kind_is_wrong(
    gold: ModuleType, thread: Any, fact: Any, stale: int
) -> None:
    found = _score(gold, thread, fact)
    assert (found.recall(), found.precision(), found.stale) == (0.0, 0.0, stale)


def test_what_readers_differ_about_counts_neither_way(gold: ModuleType, thread: Any) -> None:
    found = _score(gold, thread, _fact("path", "docs/aside.md", "look at docs/aside.md", "m3"))
    assert (found.recall(), found.precision()) == (0.0, None)


@pytest.mark.parametrize(("quote", "source"), [("", "m2"), ("docs/new.md", "m1"), ("new md", "m2")])
def test_a_fact_without_a_true_quote_is_not_held(
    gold: ModuleType, thread: Any, quote: str, source: str
) -> None:
    found = _score(gold, thread, _fact("path", "docs/new.md", quote, source))
    assert found.recall() == 0.0
    assert "without a true quote" in found.missed["path"][0]


def test_a_fact_that_never_left_the_view_is_reported(gold: ModuleType, thread: Any) -> None:
    found = gold.score(thread, Ledger(), ["m1"])
    assert found.in_view == ["en-x [m1]"]
    assert not gold.holds({1: found})


def test_scores_add_up(gold: ModuleType, thread: Any) -> None:
    good = _score(gold, thread, _fact("path", "docs/new.md", "docs/new.md", "m2"))
    bad = _score(gold, thread, _fact("path", "docs/old.md", "docs/old.md", "m1"))
    both = gold.together([good, bad])
    assert both.precision() == 0.5
    assert both.recall("path") == 0.5
    assert both.recall() == pytest.approx(1 / 6)
    assert both.stale == 1


def test_the_command_says_whether_it_holds(
    gold: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [{**OLD, "planted": True}, NEW]
    _file(tmp_path, *paths, {**ASIDE, "planted": False})
    code = gold.main(["--set", str(tmp_path), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["languages"]["en"]["planted"] == 2
    assert data["kinds"]["path"]["rounds"]["10"]["recall"] == 1.0
    assert data["holds"] is (code == 0)
    _file(tmp_path, {**NEW, "value": "docs/nowhere.md"})
    assert gold.main(["--set", str(tmp_path), "--errors"]) == 1
    shown = capsys.readouterr().out
    assert "en-x [m2] path: 'docs/nowhere.md'" in shown
    assert "wrongly held after 10, path" in shown


def test_the_tables_show_every_language_and_kind(gold: ModuleType, thread: Any) -> None:
    found = {rounds: {"en-x": gold.score(thread, Ledger())} for rounds in gold.ROUNDS}
    screen = Console(file=io.StringIO(), width=126)
    gold.show(gold.data_of([thread], found), screen)
    assert isinstance(screen.file, io.StringIO)
    shown = screen.file.getvalue()
    assert all(kind in shown for kind in (*gold.KINDS, "en", "all"))
    assert "3 missed, 0 wrongly held" in shown
