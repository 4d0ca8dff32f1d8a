"""`make clients`: sessions through real clients, and the faults that the command would notice."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conspectus_lab.testing.fault_server import Request


def client(script: Callable[[str], ModuleType], name: str) -> Any:
    made = next(one for one in script("client_programs").CLIENTS if one.name == name)
    return replace(made, window=4_000, piece=500)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai", "anthropic", "openai-agents"])
def test_a_session_goes_through_two_windows_and_nothing_is_missing(script, name):
    one = client(script, name)
    program, version = one.had(Path("unused"))
    went = script("serve_clients").went_through(one, program, version, windows=2, turns=2)
    assert went.wrong == ()
    assert (went.over, went.refused, went.kept.missing, went.kept.threads) == (0, 0, (), 1)
    assert went.windows >= 2
    assert went.kept.archived > went.kept.in_view > 0


@pytest.mark.slow
def test_without_a_compaction_the_requests_over_the_window_are_told(script, monkeypatch):
    bench, one = script("serve_clients"), client(script, "openai")
    plain = bench.endpoint
    # The endpoint takes the window for a larger one.
    monkeypatch.setattr(bench, "endpoint", lambda *given: plain(*given[:-1], 1_000_000))
    went = bench.went_through(one, *one.had(Path("unused")), windows=2, turns=1)
    assert went.over > 0
    assert any("over 4,000 tokens" in what for what in went.wrong)


def test_a_client_that_cannot_be_started_is_said_to_be_absent(script, monkeypatch, capsys):
    bench, programs = script("serve_clients"), script("client_programs")
    line = [sys.executable, "-c", "import sys; sys.exit('no such wheel')"]

    def had(folder: Path) -> Any:
        return programs.ran(line)

    monkeypatch.setattr(bench, "CLIENTS", (replace(client(script, "Codex"), had=had),))
    assert bench.main([]) == 0
    said = capsys.readouterr().out
    assert "Codex cannot be had or started here" in said
    assert "no such wheel" in said
    assert sys.executable in said


def played(session: Any, history: list[dict[str, Any]]) -> None:
    """Answer a client that sends all, until the session is over."""
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {}}}]
    asked = iter(session.questions)
    history.append({"role": "user", "content": next(asked)})
    while True:
        body = {"model": "m", "messages": history, "tools": tools}
        answer = session.answer(Request(1, "openai", {**body, "messages": [*history]}))
        if answer.calls:
            path = answer.calls[0].args["path"]
            call = {"id": path, "type": "function", "function": {"name": "f", "arguments": path}}
            history.append({"role": "assistant", "content": None, "tool_calls": [call]})
            text = (session.folder / path).read_text()
            history.append({"role": "tool", "tool_call_id": path, "content": text})
        elif session.over:
            return
        else:
            history += [
                {"role": "assistant", "content": answer.text},
                {"role": "user", "content": next(asked)},
            ]


def test_what_is_nowhere_is_missing_and_what_only_notes_say_is_too(script, tmp_path):
    module = script("client_session")
    session = module.Session(tmp_path, 1_000, 1, 300, 1, "m")
    history: list[dict[str, Any]] = []
    played(session, history)
    assert (session.wrong, session.broken) == ([], [])
    archive = str(tmp_path / "a.db")
    whole = session.kept(archive, "t")
    assert (whole.archived, whole.missing) == (0, ())
    session._last[0] = {"role": "user", "content": f"{module.OURS[0]}\n{history[0]['content']}"}
    session._last[2] = {**session._last[2], "content": "cut"}
    lost = session.kept(archive, "t")
    assert lost.missing == ("question 0", "result for part_0000.txt")
    assert lost.in_view == whole.in_view - 2


def test_a_result_that_does_not_come_whole_is_told(script, tmp_path):
    session = script("client_session").Session(tmp_path, 1_000, 1, 300, 1, "m")
    tools = [{"name": "shell", "parameters": {}}]
    asked = {"role": "user", "content": session.questions[0]}
    body: dict[str, Any] = {"model": "m", "tools": tools, "input": [asked]}
    session.answer(Request(1, "responses", body))
    session.answer(Request(2, "responses", body))
    assert "lines of part_0000.txt did not come" in session.wrong[0]


def test_a_suite_that_fails_is_told_and_what_fails_at_the_provider_is_not(script):
    bench = script("serve_open_responses")
    passed = {name: {"status": "passed"} for name in ("basic", "compact-response")}
    failed: dict[str, Any] = {"status": "failed", "errors": ["HTTP 500", "no output"]}
    direct = {**passed, "websocket": failed, "compact-response": failed}
    assert bench.complaints(direct, {**passed, "websocket": failed}) == []
    told = bench.complaints(direct, {"basic": failed, "compact-response": failed})
    assert told == [f"{name}: failed: HTTP 500; no output" for name in passed]
    assert bench.complaints({}, {"basic": failed}) == ["the suite has no test of a compaction"]


def test_what_is_added_is_a_request_less_the_same_one_directly(script):
    bench = script("serve_latency")
    times = {bench.DIRECTLY: [1.0, 9.0, 2.0, 3.0], bench.OURS: [3.0, 11.0, 4.0, 9.0]}
    [(name, (mid, end))] = bench.added(times).items()
    assert (name, mid) == (bench.OURS, 2.0)
    assert end > 4.0
