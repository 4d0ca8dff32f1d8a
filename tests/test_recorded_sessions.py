"""Recorded sessions: every call gives its result again, and a made-up result is noticed."""

import copy
import json
from typing import Any

import pytest

from conspectus.messages import read_messages
from scripts import imported

NAMES = ("booking-transcript.json", "research-transcript.json")
Messages = list[dict[str, Any]]


replaying = imported("recorded.replaying", "examples")


@pytest.mark.parametrize("name", NAMES)
def test_every_call_gives_the_recorded_result(replaying, name):
    messages = replaying.read(name)
    assert list(replaying.problems(name, messages)) == []
    assert sum(m["role"] == "tool" for m in messages) >= 40
    assert sum(m["role"] == "user" for m in messages) >= 12
    assert len(read_messages(messages)) == len(messages)
    assert (replaying.FOLDER / name).stat().st_size < 150_000


def _another_result(messages: Messages) -> None:
    result = next(m for m in messages if m["role"] == "tool")
    result["content"] = result["content"].replace("1", "2", 1)


def _without_an_effect(messages: Messages) -> None:
    refused = [m["tool_call_id"] for m in messages if m.get("content", "").startswith("error")]
    asked = [c for m in messages for c in m.get("tool_calls", ()) if c["id"] not in refused]
    done = next(c for c in asked if c["function"]["name"] in ("book_lodge", "write_note"))
    done["function"]["name"] = "calculate"


def _without_an_answer(messages: Messages) -> None:
    at = max(at for at, message in enumerate(messages) if message["role"] == "tool")
    del messages[at]


def _a_refusal_told_as_done(messages: Messages) -> None:
    refused = next(m for m in messages if m.get("content", "").startswith("error"))
    refused["content"] = "done"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "damage", [_another_result, _without_an_effect, _without_an_answer, _a_refusal_told_as_done]
)
def test_what_was_not_so_is_found(replaying, name, damage):
    messages = copy.deepcopy(replaying.read(name))
    damage(messages)
    assert list(replaying.problems(name, messages))


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
