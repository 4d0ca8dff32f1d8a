"""Sessions of Claude Code that were resumed, rewound and compacted are read once."""

from pathlib import Path
from typing import Any

import pytest

from conspectus.transcripts import HistoryFile, read_history
from conspectus_lab.commands.running import read_transcripts
from made_sessions import Session, made_session


def read(tmp_path: Path, session: Session) -> HistoryFile:
    path = tmp_path / "session.jsonl"
    path.write_text(session.text(), encoding="utf-8")
    return read_history(path)


def blocks(message: Any) -> tuple[str, list[Any]]:
    content = message["content"]
    whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message["role"], whole


@pytest.mark.parametrize("seed", range(60))
def test_what_was_said_is_read_once_and_in_order(tmp_path, seed):
    session = made_session(seed)
    assert [blocks(one) for one in read(tmp_path, session).messages] == session.said


def test_a_file_of_a_subagent_is_its_conversation(tmp_path):
    session = Session(1)
    session.ask("Search for it.")
    session.work(2)
    session.answer("Found.")
    for row in session.rows:
        row["isSidechain"] = True
    assert [blocks(one) for one in read(tmp_path, session).messages] == session.said


def test_what_the_lab_measures_holds_each_message_once(tmp_path):
    session = made_session(3)
    path = tmp_path / "session.jsonl"
    path.write_text(session.text(), encoding="utf-8")
    [measured], _ = read_transcripts([str(path)])
    assert [blocks(one) for one in measured.history.messages] == session.said
