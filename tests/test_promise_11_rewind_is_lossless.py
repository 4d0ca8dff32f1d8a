"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from engine import compacted, engine
from histories import talk, user

TURNS = talk(80)


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


def test_without_an_archive_a_branch_that_was_left_is_found_again():
    compactor = engine(archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    left = compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    other = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert left.summary != other.summary
    back = compacted([*left.messages, *talk(8, 3)], compactor, force=True)
    assert back.record.parent == left.record_id
