"""Recorded sessions: every call gives its result again, and a made-up result is noticed."""

import copy
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from conspectus.messages import read_messages
from scripts import imported

NAMES = ("booking-transcript.json", "research-transcript.json")
Messages = list[dict[str, Any]]


replaying = imported("recorded.replaying", "examples")


@pytest.fixture
def tools(replaying: ModuleType) -> Callable[..., Any]:
    desk = replaying.TravelDesk().tools()

    def call(name: str, **arguments: Any) -> Any:
        result = desk.call(name, arguments)
        return result if result.startswith("error") else json.loads(result)

    return call


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


def test_a_booking_has_effects_that_later_calls_see(tools):
    stay = {"place": "Corvik", "arrival": "2031-05-15", "nights": 1, "guests": 3}
    room = {"lodge_id": "lodge-23", "room": "loft", "arrival": "2031-05-15", "nights": 1}
    who = {"guest_id": "guest-0412", "guests": 3}
    free = [row["lodge"] for row in tools("search_lodges", **stay)]
    while "lodge-23" in free:
        paid = tools("book_lodge", **room, **who, payments={"card-8841": 90.0})
        free = [row["lodge"] for row in tools("search_lodges", **stay)]
    assert paid["status"] == "confirmed"
    again = tools("book_lodge", **room, **who, payments={"card-8841": 90.0})
    assert again == "error: lodge-23 loft is full on 2031-05-15"
    assert tools("cancel_booking", booking_id=paid["id"])["repaid"] == 90.0
    assert "lodge-23" in [row["lodge"] for row in tools("search_lodges", **stay)]


def test_a_gift_card_pays_what_it_holds_and_no_more(tools):
    ride = {"departure_id": "R2-0512-1", "fare": "flex", "travellers": 5, "bicycles": 0}
    book = {"guest_id": "guest-0412", **ride}
    short = tools("book_train", **book, payments={"gift-2207": 145.0})
    assert short == "error: gift-2207 has a balance of 140.00, 145.00 is needed"
    other = tools("book_train", **book, payments={"card-1190": 145.0})
    assert other == "error: card-1190 does not belong to guest-0412"
    assert tools("book_train", **book, payments={"gift-2207": 140.0, "card-8841": 5.0})["paid"]
    cards = {
        row["id"]: row["balance"] for row in tools("get_guest", guest_id="guest-0412")["payments"]
    }
    assert cards["gift-2207"] == 0


def test_a_call_that_fits_no_tool_is_refused(replaying):
    room = replaying.ReadingRoom().tools()
    assert room.call("read", {}).startswith(
        "error: there is no tool read; there are list_documents"
    )
    assert room.call("calculate", {"sum": "1"}) == "error: calculate takes expression; got sum"
    assert room.call("calculate", {"expression": "__import__('os')"}).startswith("error: only")
    assert room.call("query_table", {"sql": "DROP TABLE trial_days"}).startswith("error: only")
    assert room.call("write_note", {"path": "../x.md", "text": ""}).startswith("error: ../x.md")
