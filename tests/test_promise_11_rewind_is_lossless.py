"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from engine import compacted, engine
from histories import talk

TURNS = talk(80)


def test_without_an_archive_a_branch_that_was_left_is_found_again():
    compactor = engine(archive=None, keep=("messages", 10))
    first = compacted(TURNS[:60], compactor, force=True)
    left = compacted([*first.messages, *TURNS[60:]], compactor, force=True)
    other = compacted([*first.messages, *talk(20, 5)], compactor, force=True)
    assert left.summary != other.summary
    back = compacted([*left.messages, *talk(8, 3)], compactor, force=True)
    assert back.record.parent == left.record_id
