"""The bounded dictionary behind the caches keeps what was put in or asked to be made last."""

from conspectus._newest import Newest


def test_the_oldest_goes_and_what_is_put_again_is_the_newest():
    kept: Newest[str, int] = Newest(2)
    kept.put("a", 1)
    kept.put("b", 2)
    kept.put("a", 3)
    kept.put("c", 4)
    assert (kept.get("a"), kept.get("b"), kept.get("c"), len(kept)) == (3, None, 4, 2)


def test_an_empty_value_that_was_made_is_found_again_and_clear_keeps_nothing():
    kept: Newest[str, list[str]] = Newest(2)
    made = kept.get_or_make("a", list)
    assert kept.get_or_make("a", list) is made
    kept.clear()
    assert kept.get("a") is None
    assert len(kept) == 0


def test_the_sizes_of_all_are_bounded_too_but_the_newest_stays():
    kept: Newest[str, list[int]] = Newest(9, 3, len)
    kept.put("a", [1])
    kept.put("b", [1, 2])
    assert kept.values() == [[1], [1, 2]]
    kept.put("c", [1, 2, 3, 4])
    assert kept.values() == [[1, 2, 3, 4]]
