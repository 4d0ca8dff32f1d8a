"""Histories with broken pairs of calls and results: told, mended or refused before `-o` writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_to_dict,
)

import cli_support
from conspectus.messages import SUMMARY_LINE
from conspectus.transcripts import read_history
from conspectus.transcripts.pairs import mend
from made_sessions import made_session
from request_rules import refused

FORMS = ("openai", "anthropic", "langchain")
SMALL = ["--trigger", "messages:8", "--keep", "messages:4"]


pytestmark = pytest.mark.usefixtures("own_data_folder")


class Talk:
    """Writes a history in one of the forms."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.rows: list[Any] = []

    def ask(self, text: str) -> None:
        plain: Any = {"role": "user", "content": text}
        self.rows.append(HumanMessage(text) if self.form == "langchain" else plain)

    def say(self, text: str) -> None:
        plain: Any = {"role": "assistant", "content": text}
        self.rows.append(AIMessage(text) if self.form == "langchain" else plain)

    def call(self, *ids: str) -> None:
        args = [{"path": f"/srv/{call}.py"} for call in ids]
        made: Any
        if self.form == "langchain":
            calls = [{"id": i, "name": "look", "args": a} for i, a in zip(ids, args, strict=True)]
            made = AIMessage("", tool_calls=calls)
        elif self.form == "anthropic":
            uses = [
                {"type": "tool_use", "id": i, "name": "look", "input": a}
                for i, a in zip(ids, args, strict=True)
            ]
            made = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]}
        else:
            functions = [
                {
                    "id": i,
                    "type": "function",
                    "function": {"name": "look", "arguments": json.dumps(a)},
                }
                for i, a in zip(ids, args, strict=True)
            ]
            made = {"role": "assistant", "content": None, "tool_calls": functions}
        self.rows.append(made)

    def result(self, *ids: str, text: str = "") -> None:
        """Results, in Anthropic's form in one message, with what the user says behind or before."""
        if self.form == "anthropic":
            found = [
                {"type": "tool_result", "tool_use_id": i, "content": f"there is {i}"} for i in ids
            ]
            said = [{"type": "text", "text": text}] if text else []
            self.rows.append({"role": "user", "content": [*found, *said]})
            return
        for call in ids:
            self.rows.append(
                ToolMessage(f"there is {call}", tool_call_id=call)
                if self.form == "langchain"
                else {"role": "tool", "tool_call_id": call, "content": f"there is {call}"}
            )
        if text:
            self.ask(text)

    def text(self) -> str:
        plain = [isinstance(row, BaseMessage) for row in self.rows]
        return json.dumps(messages_to_dict(self.rows) if any(plain) else self.rows)


def healthy(form: str) -> Talk:
    talk = Talk(form)
    talk.ask("Look at everything.")
    for turn in range(3):
        talk.call(f"c{turn}", f"d{turn}")
        talk.result(f"c{turn}", f"d{turn}")
        talk.say(f"Part {turn} is fine.")
        talk.ask(f"Go on after {turn}.")
    return talk


def broken(form: str, how: str) -> Talk:
    """A history with one thing wrong near its end, where no compaction reaches."""
    talk = healthy(form)
    if how == "orphan":
        talk.result("gone")
    elif how == "orphan beside another":
        talk.call("e1")
        talk.result("e1", "gone")
    elif how == "unanswered":
        talk.call("e1")
    elif how == "one of two unanswered":
        talk.call("e1", "e2")
        talk.result("e1")
    elif how == "result first":
        talk.result("e1")
        talk.call("e1")
    elif how == "answered twice":
        talk.call("e1")
        talk.result("e1")
        talk.result("e1")
    talk.ask("And now?")
    talk.say("Now it is done.")
    return talk


WAYS = (
    "orphan",
    "orphan beside another",
    "unanswered",
    "one of two unanswered",
    "result first",
    "answered twice",
)


def compacted(path: Path, out: Path, *more: str) -> dict[str, Any]:
    return cli_support.read_json("compact", path, "-o", out, *more)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("more", [[], SMALL], ids=["kept", "compacted"])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_what_a_provider_takes_and_what_was_mended_is_told(
    tmp_path, form, how, more
):
    path, out = tmp_path / "in.json", tmp_path / "out.json"
    talk = broken(form, how)
    was_refused = refused(talk.rows, form)
    assert was_refused
    path.write_text(talk.text(), encoding="utf-8")
    data = compacted(path, out, *more)
    history = read_history(out)
    assert refused(history.messages, form) == []
    assert any(note.startswith("message") for note in data["notes"])
    if data["outcome"] == "kept" and how not in ("orphan", "unanswered", "result first"):
        assert "there is e1" in out.read_text()
    assert history.messages[-1] == read_history(path).messages[-1]


@pytest.mark.parametrize("form", FORMS)
def test_a_history_with_nothing_wrong_stays_as_it_is(form):
    talk = healthy(form)
    talk.call("e1", "e2")
    talk.result("e2")  # the other one is under way
    found = mend(talk.rows, orphans=False)
    assert found.notes == ()
    assert all(a is b for a, b in zip(found.messages, talk.rows, strict=True))


def test_an_orphan_that_is_archived_nowhere_is_not_overwritten(tmp_path):
    path = tmp_path / "in.json"
    path.write_text(broken("openai", "orphan").text())
    before = path.read_bytes()
    said = cli_support.refused("compact", path, "-o", path)
    assert "archived nowhere; give -o another name" in said
    assert path.read_bytes() == before
    data = compacted(path, path, *SMALL)  # a compaction archives it
    assert data["outcome"] == "compacted"
    assert refused(read_history(path).messages, "openai") == []


def test_an_output_goes_on_under_its_thread(tmp_path):
    session = made_session(5, events=30)
    path, out, later = tmp_path / "s.jsonl", tmp_path / "out.json", tmp_path / "later.json"
    path.write_text(session.text(), encoding="utf-8")
    first = compacted(path, out, *SMALL, "--thread", "s")
    written = json.loads(out.read_text(encoding="utf-8"))
    written.append({"role": "user", "content": "One more thing, please."})
    later.write_text(json.dumps(written))
    second = compacted(later, out, "--force", "--keep", "messages:2", "--thread", "s")
    assert second["outcome"] == "compacted"
    assert str(json.loads(out.read_text())).count(SUMMARY_LINE) == 1
    start = session.said[0][1][0]["text"]
    found = cli_support.run("recall", "--thread", "s", start)
    assert start in found.stdout
    assert first["archived"]
