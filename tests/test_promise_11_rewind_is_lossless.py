"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from engine import Scripted, compacted, engine, short
from histories import talk, user

TURNS = talk(80)


def test_a_summary_that_was_edited_by_hand_is_respected_and_extended():
    scripted = Scripted(short)
    compactor = engine(scripted)
    first = compacted(TURNS[:60], compactor, force=True)
    edited = user(first.messages[0]["content"] + "\n- and the user likes tea")
    result = compacted([edited, *first.messages[1:], *TURNS[60:]], compactor, force=True)
    request = scripted.requests[-1]
    assert "likes tea" in "\n".join([request.notes, *(entry.text for entry in request.entries)])
    assert result.outcome == "compacted"


def test_without_an_archive_earlier_results_find_their_records_too():
    scripted = Scripted(short)
    compactor = engine(scripted, archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    back = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert back.record.parent == first.record_id
