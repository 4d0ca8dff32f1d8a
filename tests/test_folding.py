"""Records folded over a history: which of them fit, and what is shown."""

from typing import Any

import pytest

from conspectus.core.records import Cost, Record, RecordedClip
from conspectus.engine.folding import Folded, fold
from conspectus.messages import Message, read_messages, summary_message, summary_text


def entries_of(*names: str, summary: Record | None = None) -> list[Message]:
    """Messages with these texts and ids, behind the summary of a record if one is given."""
    roles = {"s": "system", "u": "user"}
    messages: list[Any] = [
        {"role": roles.get(name[0], "assistant"), "content": name, "id": name} for name in names
    ]
    if summary is not None:
        text = summary_text(summary.summary, archived=True, number=summary.notes_number)
        messages.insert(messages[0]["role"] == "system", summary_message(text, summary.id))
    return read_messages(messages)


def key(name: str) -> str:
    return entries_of(name)[0].key


def record(
    parent: Record | None, *covers: str, clips: tuple[RecordedClip, ...] = (), **changes: Any
) -> Record:
    fields: dict[str, Any] = {
        "parent": parent.id if parent else None,
        "covers": tuple(map(key, covers)),
        "clips": clips,
        "summary": f"about {covers}" if covers else "",
        "notes": {},
        "cause": "test",
        "tokens_before": 10,
        "tokens_after": 5,
        "messages_after": 1,
        "archived": True,
        "by": "x",
        "cost": Cost(),
    }
    return Record.make(**{**fields, **changes})


def shown(view: Folded, history: list[Message]) -> list[str]:
    return [history[message.place].text for message in view.remaining]


R1 = record(None, "a", "b")
R2 = record(R1, "c", "d")


CHAINS = {
    "a whole history sent again": (entries_of("s", "a", "b", "c", "d", "e"), "s e", [R1, R2]),
    "what was given back and is sent again": (
        entries_of("s", "e", "f", summary=R2),
        "s e f",
        [R1, R2],
    ),
    "an edit drops the records of it and all after": (
        entries_of("a", "b", "c2", "d"),
        "c2 d",
        [R1],
    ),
    "an edit of the first one drops all": (entries_of("a2", "b", "c", "d"), "a2 b c d", []),
    "a summary brings no deleted message back": (entries_of("a", "c", "d"), "a c d", []),
    "another order is another history": (entries_of("b", "a", "e"), "b a e", []),
    "an earlier summary drops the later record": (entries_of("c", "q", summary=R1), "c q", [R1]),
    "what comes after a summary stays": (entries_of("a", "e", summary=R1), "a e", [R1]),
}


@pytest.mark.parametrize(("history", "in_view", "chain"), CHAINS.values(), ids=CHAINS)
def test_which_records_fit(history, in_view, chain):
    view = fold([R1, R2], history)
    assert shown(view, history) == in_view.split()
    assert list(view.chain) == chain


def test_of_two_clips_of_one_message_the_later_is_shown():
    first = record(None, clips=(RecordedClip(key("b"), "b-short", 50),))
    later = RecordedClip(key("b"), "b-shorter", 20)
    second = record(first, clips=(later,))
    view = fold([first, second], entries_of("a", "b", "c"))
    assert [message.clip for message in view.remaining] == [None, later, None]


def test_a_record_that_shows_short_what_is_not_there_is_dropped():
    only = record(None, clips=(RecordedClip(key("b"), "b-short", 50),))
    assert fold([only], entries_of("a", "b")).chain == (only,)
    assert fold([only], entries_of("a", "c")).chain == ()
