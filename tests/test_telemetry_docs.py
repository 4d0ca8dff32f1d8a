"""The tables of docs/telemetry.md say what the code really emits, no more and no less."""

import ast
import dataclasses
import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from opentelemetry.sdk.metrics.export import Histogram

from conspectus import ChatModelSummarizer, Compactor, ContextGuard, StuckError
from conspectus import telemetry as public
from conspectus.archive import store
from conspectus.events import Event
from conspectus.telemetry import LogLines, Price, listen
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from graph_support import agent, middleware, said, steps, thread
from telemetry_support import Own, Telemetry, busy, dicts, instrumented

PAGE = Path(__file__).resolve().parents[1] / "docs" / "telemetry.md"
COMMON = {"outcome", "tenant", "thread", "session", "error.type"}
LEVELS = ("debug", "info", "warning", "error", "exception", "critical")
CODE = re.compile(r"`([^`\n]+)`")


def prose() -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


def table(heading: str) -> list[list[str]]:
    """The rows of the first table after a heading."""
    text = prose().split(f"\n{heading}\n", 1)[1]
    found = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    rows = [line.strip().strip("|").split("|") for line in found[0].splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def codes(cell: str) -> set[str]:
    return set(CODE.findall(cell))


class TooLong(Exception):
    """What a provider says of a request that is too long."""


def built(name: str) -> ScriptedChatModel:
    """What stands for a provider's model, without the provider's package."""
    return ScriptedChatModel(answers=lambda messages: ValueError("broken"))


def everything() -> None:
    """A bit of all that can happen."""
    usage: Any = {"input_tokens": 900, "output_tokens": 50, "total_tokens": 950}
    usage |= {
        "input_token_details": {"cache_read": 64, "cache_creation": 32},
        "output_token_details": {"reasoning": 9},
    }
    told = ScriptedChatModel(answers=[AIMessage("## Done\n- Seen. [d0]", usage_metadata=usage)])
    Compactor(
        ChatModelSummarizer(told), keep=("messages", 2), archive="memory:", redact=True
    ).compact(dicts(9), thread_id="a", force=True)
    Compactor("openai:gpt-5-mini", keep=("messages", 2), on_failure="keep").compact(
        dicts(9), thread_id="b", force=True
    )
    Compactor(
        ScriptedChatModel(answers=busy(1, "")), keep=("messages", 2), on_failure="keep"
    ).compact(dicts(9), thread_id="c", force=True)
    compactor = Compactor(Own(), window=2_000, keep=("messages", 4), archive="memory:")
    compactor.compact(dicts(40), thread_id="d")
    compactor.recall("module 3", thread_id="d")
    Compactor(window=200).compact(dicts(1, words=400), thread_id="e")
    ahead = Compactor(Own(), window=4_000, keep=("messages", 4), background=True)
    for count in (2, 40):
        assert ahead.prepare(dicts(count), thread_id="f").wait(60)
    asked, _ = agent(steps(5), middleware(preview=True))
    asked.invoke(said("go"), thread())
    refused = TooLong("prompt is too long: 9000 tokens > 3000 maximum")
    model = ScriptedChatModel(answers=["one", "two", refused, *["on"] * 9])
    guard = ContextGuard(archive=InMemoryStore(), keep=("messages", 2))
    rescued, _ = agent(model, guard, tools=[])
    for turn in range(3):
        rescued.invoke(said(f"Look at m{turn}. " * 200), thread())
    small = ContextGuard(archive=InMemoryStore(), keep=("messages", 2), window=2_000)
    tight, _ = agent(lambda messages: "ok. " * 300, small, tools=[])
    for turn in range(6):
        tight.invoke(said(f"Look at m{turn}. " * 50), thread())
    stuck, _ = agent(lambda messages: "ok", ContextGuard(window=60), tools=[], store=None)
    with pytest.raises(StuckError):
        stuck.invoke(said("Look at this. " * 300), thread())


@pytest.fixture(scope="module")
def emitted() -> Iterator[tuple[Telemetry, list[Event]]]:
    heard: list[Event] = []
    prices = {"scripted": Price(1, 1), "own": Price(1, 1)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conspectus.model.chat_model._built", built)
        with instrumented(prices=prices) as found:
            listen(heard.append)
            everything()
            yield found, heard


@pytest.mark.slow
def test_every_span_and_its_attributes(emitted):
    found: dict[str, set[str]] = defaultdict(set)
    for span in emitted[0].spans:
        name = re.sub(r"^chat .*", "chat <model>", span.name.removeprefix("conspectus."))
        name = re.sub(r"^archive\..*", "archive.<operation>", name)
        keys = {key.removeprefix("conspectus.") for key in span.attributes or {}}
        assert "outcome" in keys, span.name
        found[name] |= keys - COMMON
    told = {CODE.findall(row[0])[0]: codes(row[2]) for row in table("### Spans")}
    diff = {k: found.get(k, set()) ^ told.get(k, set()) for k in {*found, *told}}
    assert not {k: v for k, v in diff.items() if v}


@pytest.mark.slow
def test_every_metric_with_its_kind_unit_and_attributes(emitted):
    found = {
        name: (
            "histogram" if isinstance(metric.data, Histogram) else "counter",
            metric.unit,
            {key for point in metric.data.data_points for key in point.attributes},
        )
        for name, metric in emitted[0].metrics.items()
    }
    told = {
        CODE.findall(row[0])[0]: (row[1], row[2].strip("`"), codes(row[3]))
        for row in table("### Metrics")
    }
    assert found == told


def test_every_event_and_its_fields(emitted):
    kinds = {
        kind
        for name in public.__all__
        if isinstance(kind := getattr(public, name), type) and issubclass(kind, Event)
    } - {Event}
    common = {one.name for one in dataclasses.fields(Event)}
    found = {
        kind.__name__: (kind.name, {one.name for one in dataclasses.fields(kind)} - common)
        for kind in kinds
    }
    told = {
        CODE.findall(row[0])[0]: (CODE.findall(row[1])[0], codes(row[2]))
        for row in table("## Events")
    }
    assert found == told
    assert {type(one) for one in emitted[1]} == kinds, "some were never told"
    text = prose().split("\n## Events\n", 1)[1]
    assert common <= codes(text.split("| event |", 1)[0])


def test_every_operation_on_the_archive_is_named():
    source = Path(store.__file__).read_text(encoding="utf-8")
    operations = set(re.findall(r'@observed\("(\w+)"', source))
    text = prose()
    found = re.search(r"Operations on the archive are (.*?)\.\n", text, re.DOTALL)
    assert codes(found[1]) == operations


def test_every_outcome_and_value_is_named(emitted):
    text = codes(prose())
    heard = emitted[1]
    values = {one.outcome for one in heard}
    for name in ("cause", "failure", "kind", "operation"):
        values |= {getattr(one, name) for one in heard if getattr(one, name, "")}
    assert values <= text, values - text


def test_every_line_comes_at_the_level_that_is_told(emitted, caplog):
    caplog.set_level("DEBUG", "conspectus.events")
    lines = LogLines()
    rows = {row[0]: codes(row[1]) for row in table("## Log lines")}
    names = {kind.name for kind in map(type, emitted[1])}
    assert rows["INFO"] | rows["DEBUG"] == names
    for event in emitted[1]:
        caplog.clear()
        lines(event)
        [record] = caplog.records
        bad = event.outcome in rows["WARNING"]
        level = "WARNING" if bad else "INFO" if event.name in rows["INFO"] else "DEBUG"
        assert (record.levelname, record.name) == (level, "conspectus.events")
    assert logging.getLogger("conspectus.events").name in prose()


@pytest.mark.slow
def test_every_sentence_has_a_name_that_is_told():
    found: set[str] = set()
    root = Path(public.__file__).parents[1]
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            named = node.args[0] if node.args and ast.unparse(node.func) == "log" else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                found.add(named.value)
            if not ast.unparse(node.func).startswith("logger."):
                continue
            if ast.unparse(node.func) not in {f"logger.{one}" for one in LEVELS}:
                continue
            extra = [ast.unparse(one.value) for one in node.keywords if one.arg == "extra"]
            name = re.fullmatch(r"noted\('(\w+)'\)", extra[0]) if extra else None
            assert name is not None or file.name == "notes.py", (
                f"{file.name}, line {node.lineno}: a sentence without a name"
            )
            found |= {name[1]} if name else set()
    assert found == {name for row in table("### Sentences") for name in codes(row[0])}
