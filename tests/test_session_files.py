"""Session files of other programs: what was said and done is read, in order, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli_support import read_json
from conspectus.transcripts import HistoryFile, read_history, write_history
from conspectus_lab.commands.running import read_transcripts
from made_sessions import Session, made_session
from request_rules import refused

Row = dict[str, Any]


def written(folder: Path, rows: list[Any]) -> Path:
    path = folder / "session.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def texts(history: HistoryFile) -> list[str]:
    """Each message in a line: its role or type, and its words."""
    found = []
    for message in history.messages:
        assert isinstance(message, dict)
        content = message.get("content") or message.get("output") or message.get("name") or ""
        if isinstance(content, list):
            content = " ".join(str(block.get("text", block["type"])) for block in content)
        found.append(f"{message.get('role') or message['type']}: {content}")
    return found


# Codex


def codex(kind: str, payload: Row) -> Row:
    return {"timestamp": "2026-09-01T10:00:00.000Z", "type": kind, "payload": payload}


def asked(text: str) -> list[Row]:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    shown = {"type": "user_message", "message": text, "images": []}
    return [codex("response_item", item), codex("event_msg", shown)]


def answered(text: str) -> Row:
    content = [{"type": "output_text", "text": text}]
    return codex("response_item", {"type": "message", "role": "assistant", "content": content})


CONTEXT = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "<environment_context>..."}],
}
CALL = {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c1"}
CODEX = [
    codex("session_meta", {"id": "s1", "cwd": "/srv", "cli_version": "0.149.0"}),
    codex("response_item", CONTEXT),
    codex("turn_context", {"model": "gpt-5-codex", "cwd": "/srv"}),
    *asked("Run the tests."),
    codex("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}),
    codex("response_item", CALL),
    codex("event_msg", {"type": "exec_command_end", "call_id": "c1", "exit_code": 1}),
    codex("response_item", {"type": "function_call_output", "call_id": "c1", "output": "3 failed"}),
    answered("Three fail."),
    codex("event_msg", {"type": "token_count", "info": {"model_context_window": 272_000}}),
    codex("compacted", {"message": "so far", "replacement_history": [CONTEXT]}),
    *asked("Mend them."),
    answered("Done."),
]


def test_a_codex_rollout_is_read_as_the_model_had_it(tmp_path):
    history = read_history(written(tmp_path, CODEX))
    assert texts(history) == [
        "developer: <environment_context>...",  # not the user's words
        "user: Run the tests.",
        "reasoning: ",
        "function_call: exec_command",
        "function_call_output: 3 failed",
        "assistant: Three fail.",
        "user: Mend them.",
        "assistant: Done.",
    ]
    assert (history.form.name, history.model, history.window) == ("codex", "gpt-5-codex", 272_000)
    items = json.loads(write_history(history.messages, history))
    assert items[3] == CALL
    assert read_history(written(tmp_path, items)).form.name == "openai"


def test_what_a_codex_user_took_back_is_not_read(tmp_path):
    back = codex("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    history = read_history(written(tmp_path, [*CODEX, back, *asked("Leave them.")]))
    assert texts(history)[-2:] == ["assistant: Three fail.", "user: Leave them."]


# Gemini CLI


def gemini_call(call_id: str, output: str) -> Row:
    response = {"id": call_id, "name": "read_file", "response": {"output": output}}
    return {
        "id": call_id,
        "name": "read_file",
        "args": {"path": "a.py"},
        "status": "success",
        "result": [{"functionResponse": response}],
    }


GEMINI: list[Row] = [
    {
        "id": "1",
        "timestamp": "2026-09-01T10:00:00Z",
        "type": "user",
        "content": [{"text": "Look."}],
    },
    {"id": "2", "type": "gemini", "content": "I look.", "model": "gemini-2.5-pro", "thoughts": []},
    {"id": "3", "type": "info", "content": "Update available"},
    {"id": "4", "type": "user", "content": "And now?"},
    {"id": "5", "type": "gemini", "content": "All is well.", "model": "gemini-2.5-pro"},
]
HEAD = {"sessionId": "s1", "projectHash": "f00", "startTime": "2026-09-01T10:00:00Z"}


@pytest.mark.parametrize("lines", [True, False])
def test_a_gemini_session_is_read_in_both_of_its_forms(tmp_path, lines):
    with_call = {**GEMINI[1], "toolCalls": [gemini_call("c1", "x = 1")]}
    if lines:  # a later line replaces a message
        summary = {"$set": {"messages": [{"id": "9", "type": "user", "content": "summary"}]}}
        rows = [HEAD, *GEMINI[:2], with_call, {"$set": {"lastUpdated": "x"}}, *GEMINI[2:], summary]
    else:
        rows = [{**HEAD, "messages": [GEMINI[0], with_call, *GEMINI[2:]]}]
    history = read_history(written(tmp_path, rows))
    assert texts(history) == [
        "user: Look.",
        "assistant: I look.",
        "tool: x = 1",
        "user: And now?",
        "assistant: All is well.",
    ]
    assert (history.form.name, history.model) == ("gemini-cli", "gemini-2.5-pro")
    assert refused(history.messages, "openai") == []


def test_what_a_gemini_user_went_back_from_is_not_read(tmp_path):
    later = {"id": "6", "type": "user", "content": [{"text": "Instead this."}]}
    history = read_history(written(tmp_path, [HEAD, *GEMINI, {"$rewindTo": "4"}, later]))
    assert texts(history) == ["user: Look.", "assistant: I look.", "user: Instead this."]


# opencode


def opencode(message_id: str, role: str, *parts: Row, **more: Any) -> Row:
    info = {"id": message_id, "role": role, "time": {"created": 1_788_000_000_000}, **more}
    return {"info": info, "parts": list(parts)}


def text(words: str, **more: Any) -> Row:
    return {"type": "text", "text": words, **more}


def tool(call_id: str, **state: Any) -> Row:
    return {"type": "tool", "callID": call_id, "tool": "bash", "state": {"input": {}, **state}}


OPENCODE = [
    opencode("m1", "user", text("Look at a.py."), text("Called the Read tool.", synthetic=True)),
    opencode(
        "m2",
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        text("I look."),
        tool("c1", status="completed", output="x = 1"),
        tool("c2", status="error", error="no such file"),
        {"type": "step-finish"},
        {"type": "step-start"},
        text("It is small."),
        modelID="claude-sonnet-4-5",
    ),
    opencode("m3", "user", {"type": "compaction", "auto": True}),
    opencode("m4", "assistant", text("A summary."), summary=True),
    opencode("m5", "user", text("Go on."), {"type": "file", "mime": "image/png", "url": "data:x"}),
    opencode("m6", "assistant", tool("c3", status="running"), modelID="claude-sonnet-4-5"),
    opencode("m7", "user", text("Stop.")),
]


def test_of_a_pi_session_the_branch_of_the_last_line_is_read(tmp_path):
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py"}}
    said: list[Row] = [
        {"role": "user", "content": "Look at a.py."},
        {"role": "assistant", "content": [text("Yes."), call], "model": "claude-opus-4-5"},
        {"role": "user", "content": [text("Taken back.")]},
        {"role": "toolResult", "toolCallId": "c1", "content": [text("import os")]},
    ]
    rows: list[Row] = [{"type": "session", "id": "s"}]
    for n, parent in enumerate([None, 0, 1, 1]):
        rows.append({"type": "message", "id": n, "parentId": parent, "message": said[n]})
    history = read_history(written(tmp_path, rows))
    assert (history.form.name, history.model, history.skipped) == ("pi", "claude-opus-4-5", 2)
    assert texts(history) == ["user: Look at a.py.", "assistant: Yes.", "tool: import os"]


def test_an_opencode_session_is_read_step_by_step(tmp_path):
    path = written(tmp_path, [{"info": {"id": "ses_1"}, "messages": OPENCODE}])
    history = read_history(path)
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
    assert (history.form.name, history.model) == ("opencode", "claude-sonnet-4-5")
    assert history.skipped == 2
    mended = history.mended()
    assert refused(mended.messages, "openai") == []
    assert ["no result" in note for note in mended.notes] == [True]
    whole = {"info": {"revert": {"messageID": "m5"}}, "messages": OPENCODE}
    assert texts(read_history(written(tmp_path, [whole])))[-1] == "assistant: It is small."


# Claude Code


def claude(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> Row:
    said = {"role": kind, "content": content, "id": f"m-{uuid}", "model": "claude-opus-4-6"}
    row = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", **more}
    return {**row, "timestamp": f"2026-09-01T10:00:00.{uuid[1:]:>03}Z", "message": said}


def queued(prompt: Any, **more: Any) -> Row:
    row = claude("attachment", "q5", "a2", None)
    return {**row, "attachment": {"type": "queued_command", "prompt": prompt, **more}}


@pytest.mark.parametrize("prompt", ["Leave b.py.", [{"type": "text", "text": "Leave b.py."}]])
def test_what_is_typed_during_a_turn_is_the_users_word(tmp_path, prompt):
    rows = [
        claude("user", "u1", None, "Mend a.py."),
        claude("assistant", "a2", "u1", "I do."),
        queued(prompt, commandMode="prompt"),
        claude("assistant", "a6", "q5", "Done."),
    ]
    history = read_history(written(tmp_path, rows))
    assert texts(history)[2:] == ["user: Leave b.py.", "assistant: Done."]
    assert history.model == "claude-opus-4-6"
    rows[2] = queued("A task ended.", commandMode="task-notification")
    assert len(read_history(written(tmp_path, rows)).messages) == 3


@pytest.mark.parametrize("how", ["parent", "boundary", "copies"])
def test_a_second_compaction_that_leads_behind_the_first_one_loses_nothing(tmp_path, how):
    def boundary(uuid: str, after: str) -> Row:
        return {"type": "system", "uuid": uuid, "parentUuid": None, "logicalParentUuid": after}

    begin = [
        claude("user", "u1", None, "First."),
        claude("assistant", "a2", "u1", "Second."),
        boundary("c3", "a2"),
        claude("user", "s4", "c3", "Summary.", isCompactSummary=True),
        claude("user", "u5", "s4", "Third."),
        claude("assistant", "a6", "u5", "Fourth."),
    ]
    again = begin[:2] if how == "copies" else []
    rows = [
        *begin,
        *again,
        boundary("c7", "a2"),
        claude("user", "s8", "c7", "Another summary.", isCompactSummary=True),
        claude("user", "u9", "u1" if how == "parent" else "s8", "Fifth."),
    ]
    history = read_history(written(tmp_path, rows))
    said = [line.split(": ")[1] for line in texts(history)]
    assert said == ["First.", "Second.", "Third.", "Fourth.", "Fifth."]


# Damage

WHOLE = [json.dumps(claude("user", f"u{n}", None, f"Message {n}.")) for n in range(1, 6)]
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
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_lines_are_skipped_and_counted_and_all_others_read(tmp_path, how):
    lines, whole, broken = DAMAGE[how]
    path = tmp_path / "session.jsonl"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    history = read_history(path)
    assert len(history.messages) == whole
    assert history.parsed.broken == broken
    assert history.skipped == (how == "a strange message")


def test_a_damaged_line_of_plain_messages_is_told(tmp_path, own_data_folder):
    path = tmp_path / "talk.jsonl"
    rows = [json.dumps({"role": "user", "content": f"Message {n}."}) for n in range(5)]
    path.write_text("\n".join([*rows, '{"role": "us']))
    data = read_json("compact", path, "-o", tmp_path / "out.jsonl")
    assert data["skipped"] == 1
    assert "1 line skipped: damaged" in data["notes"]


# Sessions of Claude Code that were resumed, rewound and compacted are read once


def read(tmp_path: Path, session: Session) -> HistoryFile:
    path = tmp_path / "session.jsonl"
    path.write_text(session.text(), encoding="utf-8")
    return read_history(path)


def blocks(message: Any) -> tuple[str, list[Any]]:
    content = message["content"]
    whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message["role"], whole


@pytest.mark.parametrize("seed", range(24))
def test_what_was_said_is_read_once_and_in_order(tmp_path, seed):
    session = made_session(seed)
    assert [blocks(one) for one in read(tmp_path, session).messages] == session.said


def test_what_the_lab_measures_holds_each_message_once(tmp_path):
    session = made_session(3)
    path = tmp_path / "session.jsonl"
    path.write_text(session.text(), encoding="utf-8")
    [measured], _ = read_transcripts([str(path)])
    assert [blocks(one) for one in measured.history.messages] == session.said
