"""Session files of other programs: what was said and done is read, in order, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli_support import read_json
from conspectus.transcripts import HistoryFile, mend, read_history, write_history
from made_sessions import random_session
from providers import provider_refusals

Row = dict[str, Any]


def session_file(folder: Path, rows: list[Any]) -> Path:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def texts(history: HistoryFile) -> list[str]:
    """Each message in a line: its role or type, and its words."""
    lines = []
    for message in history.messages:
        assert isinstance(message, dict)
        content = message.get("content") or message.get("output") or message.get("name") or ""
        if isinstance(content, list):
            content = " ".join(str(block.get("text", block["type"])) for block in content)
        lines.append(f"{message.get('role') or message['type']}: {content}")
    return lines


SESSIONS = Path(__file__).parent / "sessions"


def sample(name: str) -> list[Row]:
    """The lines of a session as the program writes it."""
    lines = (SESSIONS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


CODEX = sample("codex.jsonl")


def test_a_codex_rollout_is_read_as_the_model_had_it(tmp_path):
    history = read_history(session_file(tmp_path, CODEX))
    assert texts(history) == [
        "developer: <environment_context>Run the tests.",  # not the user's words
        "user: Run the tests.",
        "reasoning: ",
        "function_call: exec_command",
        "function_call_output: 3 failed",
        "assistant: Three fail.",
        "user: Mend them.",
        "assistant: Done.",
    ]
    assert (history.format.name, history.model, history.window) == ("codex", "gpt-5-codex", 272_000)
    items = json.loads(write_history(history.messages, history))
    assert items[3] == CODEX[6]["payload"]
    assert read_history(session_file(tmp_path, items)).format.name == "openai"


def test_a_codex_call_that_was_interrupted_gets_a_result(tmp_path):
    rows = [row for row in CODEX if row["payload"].get("type") != "function_call_output"]
    mended = mend(read_history(session_file(tmp_path, rows)).messages)
    outputs = [
        message for message in mended.messages if message.get("type") == "function_call_output"
    ]  # type: ignore[union-attr]
    assert [output["call_id"] for output in outputs] == ["c1"]  # type: ignore[index]
    assert ["no result" in note for note in mended.notes] == [True]


def test_what_a_codex_user_took_back_is_not_read(tmp_path):
    rollback = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Stop."}],
    }
    event = {"type": "event_msg", "payload": {"type": "user_message", "message": "Stop."}}
    rows = [*CODEX, rollback, {"type": "response_item", "payload": message}, event]
    history = read_history(session_file(tmp_path, rows))
    assert texts(history)[-2:] == ["assistant: Three fail.", "user: Stop."]


@pytest.mark.parametrize("name", ["gemini.jsonl", "gemini.json"])
def test_a_gemini_session_is_read_in_both_of_its_forms(name):
    """Of its lines, a later one replaces a message."""
    history = read_history(SESSIONS / name)
    assert texts(history) == [
        "user: Look.",
        "assistant: I look.",
        "tool: x = 1",
        "user: And now?",
        "assistant: All is well.",
    ]
    assert (history.format.name, history.model) == ("gemini-cli", "gemini-2.5-pro")
    assert provider_refusals(history.messages, "openai") == []


def test_what_a_gemini_user_went_back_from_is_not_read(tmp_path):
    later = {"id": "6", "type": "user", "content": [{"text": "Instead this."}]}
    rows = [*sample("gemini.jsonl")[:-1], {"$rewindTo": "4"}, later]
    lines = texts(read_history(session_file(tmp_path, rows)))
    assert lines[-2:] == ["tool: x = 1", "user: Instead this."]


def test_gemini_turns_without_an_id_are_all_read(tmp_path):
    first, *other_rows = sample("gemini.jsonl")
    nameless = [
        {"id": None, "type": "user", "content": [{"text": text}]} for text in ("One.", "Two.")
    ]
    lines = texts(read_history(session_file(tmp_path, [first, *nameless, *other_rows])))
    assert {"user: One.", "user: Two."} <= {*lines}
    assert lines[-1] == texts(read_history(session_file(tmp_path, [first, *other_rows])))[-1]


def test_an_opencode_session_is_read_step_by_step(tmp_path):
    history = read_history(SESSIONS / "opencode.json")
    assert texts(history) == [
        "user: Look at a.py.",
        "developer: Called the Read tool.",
        "assistant: I look.",
        "tool: x = 1",
        "tool: no such file",
        "assistant: It is small.",
        "user: Go on. image_url",
        "assistant: ",
        "user: Stop.",
    ]
    assert (history.format.name, history.model) == ("opencode", "claude-sonnet-4-5")
    assert history.skipped == 2
    mended = mend(history.messages)
    assert provider_refusals(mended.messages, "openai") == []
    assert ["no result" in note for note in mended.notes] == [True]
    whole = json.loads((SESSIONS / "opencode.json").read_text(encoding="utf-8"))
    whole["info"]["revert"] = {"messageID": "m5"}
    assert texts(read_history(session_file(tmp_path, [whole])))[-1] == "assistant: It is small."


def claude_row(role: str, uuid: str, parent: str | None, content: Any, **fields: Any) -> Row:
    message = {"role": role, "content": content, "id": f"m-{uuid}", "model": "claude-opus-4-6"}
    row = {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", **fields}
    return {**row, "timestamp": f"2026-09-01T10:00:00.{uuid[1:]:>03}Z", "message": message}


def queued_row(prompt: Any, **fields: Any) -> Row:
    row = claude_row("attachment", "q5", "a2", None)
    return {**row, "attachment": {"type": "queued_command", "prompt": prompt, **fields}}


@pytest.mark.parametrize("prompt", ["Leave b.py.", [{"type": "text", "text": "Leave b.py."}]])
def test_what_is_typed_during_a_turn_is_the_users_word(tmp_path, prompt):
    rows = [
        claude_row("user", "u1", None, "Mend a.py."),
        claude_row("assistant", "a2", "u1", "I do."),
        queued_row(prompt, commandMode="prompt"),
        claude_row("assistant", "a6", "q5", "Done."),
    ]
    history = read_history(session_file(tmp_path, rows))
    assert texts(history)[2:] == ["user: Leave b.py.", "assistant: Done."]
    assert history.model == "claude-opus-4-6"
    rows[2] = queued_row("A task ended.", commandMode="task-notification")
    assert len(read_history(session_file(tmp_path, rows)).messages) == 3


@pytest.mark.parametrize("link", ["parent", "boundary", "copies"])
def test_a_second_compaction_that_leads_behind_the_first_one_loses_nothing(tmp_path, link):
    def boundary(uuid: str, last_before: str) -> Row:
        return {
            "type": "system",
            "uuid": uuid,
            "parentUuid": None,
            "logicalParentUuid": last_before,
        }

    begin = [
        claude_row("user", "u1", None, "First."),
        claude_row("assistant", "a2", "u1", "Second."),
        boundary("c3", "a2"),
        claude_row("user", "s4", "c3", "Summary.", isCompactSummary=True),
        claude_row("user", "u5", "s4", "Third."),
        claude_row("assistant", "a6", "u5", "Fourth."),
    ]
    copies = begin[:2] if link == "copies" else []
    rows = [
        *begin,
        *copies,
        boundary("c7", "a2"),
        claude_row("user", "s8", "c7", "Another summary.", isCompactSummary=True),
        claude_row("user", "u9", "u1" if link == "parent" else "s8", "Fifth."),
    ]
    history = read_history(session_file(tmp_path, rows))
    words = [line.split(": ")[1] for line in texts(history)]
    assert words == ["First.", "Second.", "Third.", "Fourth.", "Fifth."]


WHOLE = [json.dumps(claude_row("user", f"u{n}", None, f"Message {n}.")) for n in range(1, 6)]
DAMAGE = {
    "a line that is no JSON": ([*WHOLE[:2], "{oops", *WHOLE[2:]], 5, 1),
    "the first line": (["}", *WHOLE], 5, 1),
    "NULs": ([*WHOLE[:2], "\0" * 512 + WHOLE[2], *WHOLE[3:]], 5, 0),
    "NULs first": (["\0" * 512 + WHOLE[0], *WHOLE[1:]], 5, 0),
    "two on a line": ([WHOLE[0] + WHOLE[1], *WHOLE[2:]], 5, 0),
    "one cut by the next": ([WHOLE[0][:90] + WHOLE[1], *WHOLE[2:]], 4, 1),
    "one cut at the end": ([*WHOLE[:4], WHOLE[4][:90]], 4, 1),
    "half a letter": ([*WHOLE, '{"type": "user", "message": "\udcc3'], 5, 1),
    "a number": ([*WHOLE, "7"], 5, 1),
    "a deep line": ([*WHOLE, '{"a":' + "[" * 9_000 + "]" * 9_000 + "}"], 5, 1),
    "a strange message": ([*WHOLE, WHOLE[0].replace('"Message 1."', "7")], 5, 0),
    "a strange id": (
        [*WHOLE, json.dumps(claude_row("user", "u9", None, "x") | {"uuid": []})],
        5,
        0,
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_lines_are_skipped_and_counted_and_all_others_read(tmp_path, damage):
    lines, whole, broken = DAMAGE[damage]
    path = tmp_path / "session.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    history = read_history(path)
    assert len(history.messages) == whole
    assert history.parsed.broken == broken
    assert history.skipped == ("strange" in damage)


@pytest.mark.parametrize(
    "cut", ['{"role": "us', '{"role": "assistant", "tool_calls": [{"id": "c"}']
)
def test_a_damaged_line_of_plain_messages_is_told(tmp_path, own_data_folder, cut):
    path = tmp_path / "talk.jsonl"
    rows = [json.dumps({"role": "user", "content": f"Message {n}."}) for n in range(5)]
    path.write_text("\n".join([*rows, cut]))
    data = read_json("compact", path, "-o", tmp_path / "out.jsonl")
    assert data["skipped"] == 1
    assert "1 line skipped: damaged" in data["notes"]


def blocks(message: Any) -> tuple[str, list[Any]]:
    content = message["content"]
    whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message["role"], whole


@pytest.mark.parametrize("seed", range(24))
def test_what_was_said_is_read_once_and_in_order(tmp_path, seed):
    session = random_session(seed)
    path = tmp_path / "session.jsonl"
    path.write_text(session.text(), encoding="utf-8")
    assert [blocks(message) for message in read_history(path).messages] == session.said
