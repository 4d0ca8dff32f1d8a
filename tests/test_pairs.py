"""Histories with broken pairs of calls and results: told, mended or refused before `-o` writes."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_to_dict

import cli_support
from conspectus.messages import SUMMARY_LINE
from conspectus.transcripts import read_history
from made_sessions import made_session
from request_rules import refused

FORMS = ("openai", "anthropic", "langchain")
SMALL = ["--trigger", "messages:8", "--keep", "messages:4"]
pytestmark = pytest.mark.usefixtures("own_data_folder")


def ask(form: str, text: str) -> list[Any]:
    return [HumanMessage(text) if form == "langchain" else {"role": "user", "content": text}]


def say(form: str, text: str) -> list[Any]:
    return [AIMessage(text) if form == "langchain" else {"role": "assistant", "content": text}]


def call(form: str, *ids: str) -> list[Any]:
    args = {one: {"path": f"/srv/{one}.py"} for one in ids}
    if form == "langchain":
        calls = [{"id": one, "name": "look", "args": args[one]} for one in ids]
        return [AIMessage("", tool_calls=calls)]
    if form == "anthropic":
        uses = [{"type": "tool_use", "id": i, "name": "look", "input": args[i]} for i in ids]
        return [{"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]}]
    functions = {one: {"name": "look", "arguments": json.dumps(args[one])} for one in ids}
    calls = [{"id": one, "type": "function", "function": functions[one]} for one in ids]
    return [{"role": "assistant", "content": None, "tool_calls": calls}]


def result(form: str, *ids: str) -> list[Any]:
    """Results, in Anthropic's form in one message."""
    texts = {one: f"there is {one}" for one in ids}
    if form == "anthropic":
        kind = {"type": "tool_result"}
        blocks = [{**kind, "tool_use_id": one, "content": text} for one, text in texts.items()]
        return [{"role": "user", "content": blocks}]
    if form == "langchain":
        return [ToolMessage(text, tool_call_id=one) for one, text in texts.items()]
    return [{"role": "tool", "tool_call_id": i, "content": text} for i, text in texts.items()]


def healthy(form: str) -> list[Any]:
    rows = ask(form, "Look at everything.")
    for turn in range(3):
        rows += call(form, f"c{turn}", f"d{turn}") + result(form, f"c{turn}", f"d{turn}")
        rows += say(form, f"Part {turn} is fine.") + ask(form, f"Go on after {turn}.")
    return rows


def broken(form: str, steps: str) -> list[Any]:
    """A history with one thing wrong near its end, where no compaction reaches."""
    rows = healthy(form)
    for step in steps.split("; "):
        what, *ids = step.split()
        rows += {"call": call, "result": result}[what](form, *ids)
    return rows + ask(form, "And now?") + say(form, "Now it is done.")


def text_of(form: str, rows: list[Any]) -> str:
    return json.dumps(messages_to_dict(rows) if form == "langchain" else rows)


WAYS = (
    "result gone",
    "call e1; result e1 gone",
    "call e1",
    "call e1 e2; result e1",
    "result e1; call e1",
    "call e1; result e1; result e1",
)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("more", [[], SMALL], ids=["kept", "compacted"])
@pytest.mark.parametrize("steps", WAYS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_what_a_provider_takes_and_what_was_mended_is_told(
    tmp_path, form, steps, more
):
    path, out = tmp_path / "in.json", tmp_path / "out.json"
    rows = broken(form, steps)
    assert refused(rows, form)
    path.write_text(text_of(form, rows), encoding="utf-8")
    data = cli_support.read_json("compact", path, "-o", out, *more)
    history = read_history(out)
    assert refused(history.messages, form) == []
    assert any(note.startswith("message") for note in data["notes"])
    if data["outcome"] == "kept" and steps.startswith("call") and "result" in steps:
        assert "there is e1" in out.read_text()
    assert history.messages[-1] == read_history(path).messages[-1]


def test_an_orphan_that_is_archived_nowhere_is_not_overwritten(tmp_path):
    path = tmp_path / "in.json"
    path.write_text(text_of("openai", broken("openai", "result gone")))
    before = path.read_bytes()
    said = cli_support.refused("compact", path, "-o", path)
    assert "archived nowhere; give -o another name" in said
    assert path.read_bytes() == before
    data = cli_support.read_json("compact", path, "-o", path, *SMALL)  # a compaction archives it
    assert data["outcome"] == "compacted"
    assert refused(read_history(path).messages, "openai") == []


def test_an_output_goes_on_under_its_thread(tmp_path):
    session = made_session(5, events=30)
    path, out, later = tmp_path / "s.jsonl", tmp_path / "out.json", tmp_path / "later.json"
    path.write_text(session.text(), encoding="utf-8")
    assert cli_support.read_json("compact", path, "-o", out, *SMALL, "--thread", "s")["archived"]
    written = json.loads(out.read_text(encoding="utf-8"))
    later.write_text(json.dumps([*written, *ask("anthropic", "One more thing, please.")]))
    more = ["--force", "--keep", "messages:2", "--thread", "s"]
    assert cli_support.read_json("compact", later, "-o", out, *more)["outcome"] == "compacted"
    assert str(json.loads(out.read_text())).count(SUMMARY_LINE) == 1
    start = session.said[0][1][0]["text"]
    assert start in cli_support.run("recall", "--thread", "s", start).stdout
