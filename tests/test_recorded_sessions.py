"""Recorded sessions: every call gives its result again, and a made-up result is noticed."""

import json

import pytest

from conspectus.messages import read_messages
from scripts import imported

NAMES = ("booking-transcript.json", "research-transcript.json")
replaying = imported("recorded.replaying", "examples")


@pytest.mark.parametrize("name", NAMES)
def test_every_call_gives_the_recorded_result(replaying, name):
    messages = replaying.read(name)
    assert list(replaying.problems(name, messages)) == []
    assert sum(m["role"] == "tool" for m in messages) >= 40
    assert sum(m["role"] == "user" for m in messages) >= 12
    assert len(read_messages(messages)) == len(messages)
    assert (replaying.FOLDER / name).stat().st_size < 150_000


@pytest.mark.parametrize("name", NAMES)
def test_the_evidence_of_every_question_stands_in_the_session(replaying, name):
    path = replaying.FOLDER / name.replace(".json", ".exam.json")
    questions = json.loads(path.read_text(encoding="utf-8"))
    assert len(questions) == 12
    text = "\n".join(
        part
        for message in replaying.read(name)
        for part in (
            message["content"],
            *(call["function"]["arguments"] for call in message.get("tool_calls", ())),
        )
    ).lower()
    for question in questions:
        for group in question["evidence"]:
            assert any(alternative.lower() in text for alternative in group), question
