"""What the model sees of a history: records that fit it are folded, others are dropped."""

from typing import Any

from conspectus.core.fold import Sent, fold
from conspectus.core.records import ClipMark, Cost, Record


def record(
    parent: Record | None, *covers: str, clips: tuple[ClipMark, ...] = (), **more: Any
) -> Record:
    parts: dict[str, Any] = {
        "parent": parent.id if parent else None,
        "covers": covers,
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


def sent(*keys: str) -> list[Sent]:
    return [Sent(k, system=k.startswith("s")) for k in keys]


def shown(view: Any) -> list[str]:
    return [s.key if s.index is not None else "SUMMARY" for s in view.shown]


R1 = record(None, "a", "b")
R2 = record(R1, "c", "d")


def test_a_whole_history_sent_again_is_folded_and_covered_messages_are_dropped():
    view = fold([R1, R2], sent("s", "a", "b", "c", "d", "e"))
    assert shown(view) == ["s", "SUMMARY", "e"]
    assert view.dropped == 4
    assert view.chain[-1] == R2


def test_what_was_given_back_and_is_sent_again_keeps_its_place():
    view = fold([R1, R2], [Sent("s", True), Sent("x", record=R2.id), *sent("e", "f")])
    assert shown(view) == ["s", "SUMMARY", "e", "f"]
    assert view.dropped == 0


def test_an_edited_message_drops_the_records_that_cover_it_and_all_after_them():
    view = fold([R1, R2], sent("a", "b", "c2", "d", "e"))
    assert shown(view) == ["SUMMARY", "c2", "d", "e"]
    assert view.chain == (R1,)
    assert fold([R1, R2], sent("a2", "b", "c", "d", "e")).chain == ()


def test_a_deleted_message_is_not_brought_back_by_a_summary():
    view = fold([R1, R2], sent("a", "c", "d", "e"))
    assert view.chain == ()
    assert shown(view) == ["a", "c", "d", "e"]


def test_a_record_that_covers_what_a_user_said_last_is_dropped():
    history = [*sent("a", "b", "c"), Sent("d", user=True)]
    assert shown(fold([R1, R2], history)) == ["SUMMARY", "c", "d"]
    assert shown(fold([R1, R2], [*history, Sent("e", user=True)])) == ["SUMMARY", "e"]
    clip = Sent("new-id", text="d-short", original="d", user=True)
    assert fold([R1, R2], [*sent("a", "b", "c"), clip]).chain == (R1,)


def test_messages_in_another_order_are_another_history():
    assert fold([R1], sent("b", "a", "e")).chain == ()


def test_going_back_to_an_earlier_summary_drops_the_later_record():
    view = fold([R1, R2], [Sent("x", record=R1.id), *sent("c", "q")])
    assert view.chain == (R1,)
    assert shown(view) == ["SUMMARY", "c", "q"]


def test_clips_are_shown_again_and_known_when_they_come_back():
    mark = ClipMark("b", "b-short", 50)
    only = record(None, clips=(mark,))
    whole = fold([only], sent("a", "b", "c"))
    assert [(s.key, s.clip, s.back) for s in whole.shown][1] == ("b", mark, False)
    back = fold([only], [*sent("a"), Sent("new-id", text="b-short", original="b"), *sent("c")])
    assert [(s.key, s.clip, s.back) for s in back.shown][1] == ("b", mark, True)
    assert back.chain == (only,)


def test_of_two_clips_of_one_message_the_later_is_shown():
    first = record(None, clips=(ClipMark("b", "b-short", 50),))
    later = ClipMark("b", "b-shorter", 20)
    second = record(first, clips=(later,))
    whole = fold([first, second], sent("a", "b", "c"))
    assert [s.clip for s in whole.shown] == [None, later, None]


def test_a_record_survives_plain_json():
    import json

    clipped = record(R1, "z", clips=(ClipMark("q", "q2", 9),), cost=Cost(1, 2, 3))
    assert Record.from_json(json.loads(json.dumps(clipped.to_json()))) == clipped
    newer = {**clipped.to_json(), "added_later": 1}
    assert Record.from_json(newer) == clipped, "a worker of an older version drops the chain"


def test_a_record_that_shows_short_what_is_not_there_is_dropped():
    only = record(None, clips=(ClipMark("b", "b-short", 50),))
    assert fold([only], sent("a", "b")).chain == (only,)
    assert fold([only], sent("a", "c")).chain == ()


def test_what_comes_after_a_summary_is_never_dropped():
    view = fold([R1], [Sent("x", record=R1.id), *sent("a", "e")])
    assert shown(view) == ["SUMMARY", "a", "e"]
    assert view.dropped == 0
