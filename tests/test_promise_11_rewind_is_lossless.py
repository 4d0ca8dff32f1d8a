"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conspectus import is_summary_message
from conspectus.messages import POINTER
from engine import SCOPE, Scripted, check_nothing_missing, check_sequence, compacted, engine, short
from histories import histories, talk, user

TURNS = talk(80)


def test_going_forward_again_pays_for_nothing():
    scripted = Scripted(short)
    compactor = engine(scripted, keep=("messages", 10))
    there = compacted(TURNS, compactor, force=True)
    compacted(TURNS[:20], compactor)
    again = compacted(TURNS, compactor, force=True)
    assert again.record_id == there.record_id
    assert len(scripted.requests) == 1


def test_going_back_to_an_earlier_result_continues_from_its_summary():
    compactor = engine(keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    second = compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    assert second.record.parent == first.record_id
    forked = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert forked.record.parent == first.record_id


def test_a_summary_that_was_edited_by_hand_is_respected_and_extended():
    scripted = Scripted(short)
    compactor = engine(scripted)
    first = compacted(TURNS[:60], compactor, force=True)
    edited = user(first.messages[0]["content"] + "\n- and the user likes tea")
    result = compacted([edited, *first.messages[1:], *TURNS[60:]], compactor, force=True)
    request = scripted.requests[-1]
    assert "likes tea" in "\n".join([request.notes, *(entry.text for entry in request.entries)])
    assert result.outcome == "compacted"


def test_in_the_notes_what_a_person_has_edited_stands_as_it_is():
    compactor = engine()
    first = compacted(TURNS[:60], compactor, force=True)
    edited = user(first.messages[0]["content"] + "\n- and the user likes tea")
    result = compacted([edited, *first.messages[1:], *TURNS[60:]], compactor, force=True)
    assert "- and the user likes tea" in result.summary.splitlines()


@given(histories(), st.data())
def test_any_walk_of_edits_rewinds_and_replies_stays_right(messages, data):
    compactor = engine(window=1_500, keep=("messages", 4))
    history = [m for m in messages if m["role"] != "tool" and "tool_calls" not in m]
    for step in range(data.draw(st.integers(1, 6))):
        move = data.draw(st.sampled_from(["grow", "edit", "rewind", "send back"]))
        if move == "grow":
            history = [*history, *talk(data.draw(st.integers(1, 8)))]
        elif move == "edit" and history:
            at = data.draw(st.integers(0, len(history) - 1))
            if not is_summary_message(history[at]):
                history = [
                    *history[:at],
                    {**history[at], "content": f"edited {step}"},
                    *history[at + 1 :],
                ]
        elif move == "rewind":
            history = history[: data.draw(st.integers(0, len(history)))]
        result = compacted(history, compactor, force=data.draw(st.booleans()))
        check_sequence(history, result)
        check_covered(history, result, compactor)
        if move == "send back":
            history = list(result.messages)


def check_covered(history: list[dict[str, Any]], result: Any, compactor: Any) -> None:
    """What a summary stands for was in this history or behind the summary that it began with."""
    whole = [m for m in history if not (is_summary_message(m) or POINTER in str(m.get("content")))]
    if len(whole) == len(history):  # a message that came back short is archived as it was
        check_nothing_missing(history, result, compactor)
        reachable = compactor.archive.export(SCOPE)
        assert all(row["message"] in history for row in reachable)


def test_going_back_and_forth_between_results_keeps_every_chain():
    compactor = engine(trigger=("messages", 12), keep=("messages", 4))
    state, states = [user("goal")], []
    for n in range(40):
        state += [
            {"role": "assistant", "content": f"answer {n}"},
            user(f"question {n} REF-{n:04d}"),
        ]
        result = compacted(state, compactor)
        state = list(result.messages)
        if result.record:
            states.append(list(state))
    assert compactor.recall("REF-0001", thread_id="t").hits
    earlier = compacted(states[-2], compactor)
    assert earlier.messages == states[-2]
    later = compacted(states[-1], compactor)
    assert later.messages == states[-1]
    assert later.archived
    assert compactor.recall("REF-0001", thread_id="t").hits


def test_without_an_archive_earlier_results_find_their_records_too():
    scripted = Scripted(short)
    compactor = engine(scripted, archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    back = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert back.record.parent == first.record_id


def test_without_an_archive_a_branch_that_was_left_is_found_again():
    compactor = engine(archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    left = compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    other = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert left.summary != other.summary
    back = compacted([*left.messages, *talk(8, 3)], compactor, force=True)
    assert back.record.parent == left.record_id


def test_a_failure_on_one_branch_does_not_hold_back_another():
    texts = iter(["", "- fine [x]"])
    compactor = engine(Scripted(lambda _: next(texts)), trigger=("messages", 30))
    assert compacted(talk(15), compactor).failed == "summary"
    other = [user("another start"), *talk(15)]
    assert compacted(other, compactor).failed is None
