"""Promise 11: undo, branch and time travel bring back the head that belongs to them."""

from typing import NoReturn

import pytest

from conspectus import ArchiveError
from conspectus.archive import Archive, Scope
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


@pytest.mark.parametrize("on_failure", ["degrade", "keep", "raise"])
def test_going_back_needs_no_archive_that_can_be_written(on_failure, monkeypatch, caplog):
    compactor = engine(keep=("messages", 10), on_failure=on_failure)
    compacted(TURNS[:60], compactor, force=True)
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "set_head", refusing)
        if on_failure == "raise":
            with pytest.raises(ArchiveError, match="full"):
                compacted(TURNS[:4], compactor)
            return
        back = compacted(TURNS[:4], compactor)
    assert back.outcome == "kept"
    assert back.messages == TURNS[:4]
    assert "the disk is full" in caplog.text
    compacted(TURNS[:4], compactor)  # tried again, though nothing is due
    assert not compactor.archive.pointer(Scope("local", "t"))


def refusing(*_: object) -> NoReturn:
    raise ArchiveError("the disk is full")
