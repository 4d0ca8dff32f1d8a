"""A step with nothing due goes by what the last one has read, and says what a new one would."""

import copy
from typing import Any

import pytest
from anthropic.types import TextBlock
from langchain_core.messages import HumanMessage

from conspectus import Compactor
from conspectus.archive import Archive


def talk(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if n % 2 else "user", "content": f"Part {n} is looked at. " * 8}
        for n in range(count)
    ]


def pair(archive: Archive) -> tuple[Compactor, Compactor]:
    """Return a compactor that goes on, and one that knows nothing yet, on one archive."""
    more: dict[str, Any] = {"window": 3_000, "keep": ("messages", 4), "archive": archive}
    return Compactor("embedded", **more), Compactor("embedded", **more)


def same(one: Any, other: Any) -> bool:
    names = ("outcome", "archived", "tokens_after", "kept", "clipped", "dropped", "summary")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def test_equal_messages_are_known_and_the_view_has_the_callers_own():
    with Archive.open("memory:") as archive:
        own, fresh = pair(archive)
        sent = talk(12)
        own.compact(sent, thread_id="t")
        again = [*copy.deepcopy(sent), *talk(2)]
        result = own.compact(again, thread_id="t")
        assert all(shown is given for shown, given in zip(result.messages, again, strict=True))
        assert same(result, fresh.compact(again, thread_id="t"))


@pytest.mark.parametrize("place", ["content", "extra"])
def test_what_was_changed_in_place_is_noticed(place):
    with Archive.open("memory:") as archive:
        own, _ = pair(archive)
        sent = [HumanMessage(f"Part {n} is looked at. " * 30, note="a") for n in range(40)]
        own.compact(sent, thread_id="t", force=True)
        assert own.compact(sent, thread_id="t").dropped
        if place == "content":
            sent[2].content = "other words"
        else:
            sent[2].note = "b"  # type: ignore[attr-defined]
        result = own.compact(sent, thread_id="t")  # the record does not fit any more
        assert (result.outcome, result.dropped) == ("compacted", 0)


def test_an_object_of_an_sdk_that_was_changed_in_place_is_noticed():
    compactor, block = Compactor("embedded", window=3_000), TextBlock(type="text", text="b")
    sent = [*talk(1), {"role": "assistant", "content": [block]}, *talk(1)]
    assert compactor.compact(sent, thread_id="t").outcome == "kept"
    block.text = "much more " * 2_000
    assert compactor.compact(sent, thread_id="t").tokens_before > 1_800


def test_a_caller_may_go_on_with_the_list_of_the_result():
    compactor = Compactor("embedded", window=3_000)
    view = compactor.compact(talk(4), thread_id="t").messages
    for n in range(3):
        view.append({"role": "user", "content": f"And part {n}?"})
        view = compactor.compact(view, thread_id="t").messages
        assert len(view) == 5 + n
