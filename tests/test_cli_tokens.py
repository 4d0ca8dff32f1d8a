"""`conspectus tokens`: the numbers add up, and broken pairs are found."""

import json
from pathlib import Path
from typing import Any

from cli_support import read_json, run
from conspectus.tokens import TokenMeter


def call(call_id: str) -> dict[str, Any]:
    function = {"name": "ls", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result_of(call_id: str, content: str = "a.py") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def counted(path: Path, messages: list[dict[str, Any]]) -> dict[str, Any]:
    path.write_text(json.dumps(messages), encoding="utf-8")
    return read_json("tokens", path)


def test_the_parts_add_up_to_the_whole(tmp_path):
    messages = [
        {"role": "user", "content": "Look around."},
        call("c1"),
        result_of("c1", "a long listing " * 50),
        {"role": "assistant", "content": "There it is."},
    ]
    data = counted(tmp_path / "a.json", messages)
    assert data["tokens"] == TokenMeter().messages(messages)
    assert data["tokens"] == sum(row["tokens"] for row in data["by_role"].values())
    assert data["messages"] == sum(row["messages"] for row in data["by_role"].values()) == 4
    assert data["exchanges"] == 1
    assert data["largest"][0]["index"] == 2
    assert data["calls_without_result"] == data["results_without_call"] == []


def test_broken_pairs_are_named_by_their_place(tmp_path):
    messages = [result_of("c0"), {"role": "user", "content": "Go on."}, call("c1")]
    data = counted(tmp_path / "a.json", messages)
    assert data["results_without_call"] == [0]
    assert data["calls_without_result"] == [2]
    shown = run("tokens", tmp_path / "a.json")
    assert "Tool calls without a result: message 2" in shown.stdout
    assert "Tool results without a call: message 0" in shown.stdout


def test_a_person_sees_the_same_numbers(tmp_path):
    data = counted(tmp_path / "a.json", [{"role": "user", "content": "[red]Hello\x1b[31m there"}])
    shown = run("tokens", tmp_path / "a.json")
    assert f"{data['tokens']} tokens in 1 message (" in shown.stdout
    assert "[red]Hello" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_a_model_chooses_the_tokenizer(tmp_path):
    messages = [{"role": "user", "content": "Пожалуйста, посмотрите ещё раз. " * 20}]
    data = counted(tmp_path / "a.json", messages)
    assert data["family"] == "unknown"
    assert data["tokens"] >= max(data["by_family"].values())
    for model, family in (("gpt-4o", "o200k"), ("claude-sonnet-4-5", "claude")):
        one = read_json("tokens", tmp_path / "a.json", "--model", model)
        assert one["family"] == family
        assert one["tokens"] == data["by_family"][family] == one["by_family"][family]
    shown = run("tokens", tmp_path / "a.json")
    assert f"o200k {data['by_family']['o200k']:,}" in shown.stdout


def test_a_model_that_nobody_knows_is_said_with_names_that_are(tmp_path):
    data = counted(tmp_path / "a.json", [{"role": "user", "content": "Hello there"}])
    other = run("tokens", tmp_path / "a.json", "--model", "nobody", "--json")
    assert json.loads(other.stdout) == {**data, "model": "nobody"}
    assert "'nobody' is not known here" in other.stderr
    assert "such as gpt-4o" in " ".join(other.stderr.split())
    assert other.stderr.count("\n") == 1


def test_a_bad_file_is_one_line_also_as_json(tmp_path):
    result = run("tokens", tmp_path / "none.json", "--json", code=2)
    error = json.loads(result.stdout)["error"]
    assert error["type"] == "InputError"
    assert error["exit_code"] == 2
    assert result.stderr == f"conspectus: error: {error['message']}\n"
