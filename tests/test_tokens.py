"""Counting tokens: everything in a message counts, and a user's own counter plugs in."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus import PolicyError, TokenMeter
from conspectus.tokens import PER_MEDIA, estimate
from histories import assistant, user


def test_an_empty_text_takes_nothing_and_a_longer_one_more() -> None:
    assert estimate("") == 0
    sizes = [estimate("some words of text " * n) for n in (1, 2, 10, 100)]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("The quick brown fox jumps over the lazy dog near the river bank. " * 20, 240, 340),
        ("我们今天去北京看长城，然后吃烤鸭。" * 20, 220, 380),
        ("今日は東京で友達と寿司を食べました。" * 20, 200, 400),
        ("오늘 서울에서 친구와 점심을 먹었습니다. " * 20, 200, 420),
        ("def total(items):\n    return sum(i.price for i in items)\n" * 20, 220, 420),
        ("3f9a0c77d1e24b6f8a5c" * 20, 160, 420),
    ],
)
def test_each_script_is_counted_by_its_own_measure(text: str, low: int, high: int) -> None:
    assert low <= estimate(text) <= high


def test_names_arguments_and_media_count() -> None:
    meter = TokenMeter()
    assert meter.message(assistant("", ("c", "x " * 200))) > 150
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 99_999}}
    assert PER_MEDIA < meter.message(HumanMessage([image])) < PER_MEDIA + 60


def test_a_langchain_counter_plugs_in_for_every_kind_of_message() -> None:
    meter = TokenMeter(count_tokens_approximately)
    assert meter.message(HumanMessage("hello there")) == count_tokens_approximately(
        [HumanMessage("hello there")]
    )
    assert meter.message(user("hello there")) == meter.message(HumanMessage("hello there"))
    blocks = [{"type": "tool_result", "tool_use_id": "u", "content": "found it"}]
    assert meter.message({"role": "user", "content": blocks}) > 0
    assert meter.text("hello there") == 3


@pytest.mark.parametrize("wrong", [lambda _: 1.5, lambda _: None, lambda _: -1, lambda _: True])
def test_a_counter_that_gives_no_count_is_named(wrong: Any) -> None:
    with pytest.raises(PolicyError, match="whole number of tokens"):
        TokenMeter(wrong).message(user("x"))
