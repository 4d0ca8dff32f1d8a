"""What the model sees of a history: records that fit it are folded, others are dropped."""

from typing import Any

import pytest

from conspectus.core.records import ClipMark, Cost, Record
from conspectus.engine.folding import Folded, fold
from conspectus.messages import Message, read_messages, summary_message, summary_text


def sent(*names: str, summary: Record | None = None) -> list[Message]:
    """Messages with these texts and ids, behind the summary of a record if one is given."""
    roles = {"s": "system", "u": "user"}
    messages: list[Any] = [
        {"role": roles.get(name[0], "assistant"), "content": name, "id": name} for name in names
    ]
    if summary is not None:
        text = summary_text(summary.summary, archived=True, mark=summary.mark)
        messages.insert(messages[0]["role"] == "system", summary_message(text, summary.id))
    return read_messages(messages)


def key(name: str) -> str:
    return sent(name)[0].key


def record(
    parent: Record | None, *covers: str, clips: tuple[ClipMark, ...] = (), **more: Any
) -> Record:
    parts: dict[str, Any] = {
        "parent": parent.id if parent else None,
        "covers": tuple(map(key, covers)),
        "clips": clips,
        "summary": f"about {covers}" if covers else "",
        "segment": {},
        "cause": "test",
        "tokens_before": 10,
        "tokens_after": 5,
        "messages_after": 1,
        "archived": True,
        "by": "x",
        "cost": Cost(),
    }
    return Record.make(**{**parts, **more})


def shown(view: Folded, history: list[Message]) -> list[str]:
    return [history[message.position].text for message in view.remaining]


R1 = record(None, "a", "b")
R2 = record(R1, "c", "d")


@pytest.mark.parametrize(
    ("history", "in_view", "chain"),
    [
        (sent("s", "a", "b", "c", "d", "e"), "s e", [R1, R2]),
        (sent("s", "e", "f", summary=R2), "s e f", [R1, R2]),
        (sent("a", "b", "c2", "d", "e"), "c2 d e", [R1]),
        (sent("a2", "b", "c", "d", "e"), "a2 b c d e", []),
        (sent("a", "c", "d", "e"), "a c d e", []),
        (sent("b", "a", "e"), "b a e", []),
        (sent("c", "q", summary=R1), "c q", [R1]),
        (sent("a", "e", summary=R1), "a e", [R1]),
    ],
    ids=[
        "a whole history sent again",
        "what was given back and is sent again",
        "an edited message drops the records that cover it and all after them",
        "an edit of the first one drops all",
        "a deleted message is not brought back by a summary",
        "messages in another order are another history",
        "going back to an earlier summary drops the later record",
        "what comes after a summary is never dropped",
    ],
)
def test_which_records_fit(history, in_view, chain):
    view = fold([R1, R2], history)
    assert shown(view, history) == in_view.split()
    assert list(view.chain) == chain


def test_of_two_clips_of_one_message_the_later_is_shown():
    first = record(None, clips=(ClipMark(key("b"), "b-short", 50),))
    later = ClipMark(key("b"), "b-shorter", 20)
    second = record(first, clips=(later,))
    view = fold([first, second], sent("a", "b", "c"))
    assert [one.clip for one in view.remaining] == [None, later, None]


def test_a_record_that_shows_short_what_is_not_there_is_dropped():
    only = record(None, clips=(ClipMark(key("b"), "b-short", 50),))
    assert fold([only], sent("a", "b")).chain == (only,)
    assert fold([only], sent("a", "c")).chain == ()
