"""What a person sees of results and of the main objects at a prompt fits two lines."""

import pytest

from conspectus import Archive, Compactor, ContextGuard, SummarizationMiddleware
from observe_support import dicts


def objects() -> list[object]:
    compactor = Compactor(keep=("messages", 2), archive="memory:", window=20_000)
    result = compactor.compact(dicts(60), thread_id="t", force=True, focus="all of it " * 50)
    recalled = compactor.recall("module", thread_id="t", tokens=4_000)
    stuck = Compactor(window=200).compact(dicts(9), thread_id="t")
    middleware = SummarizationMiddleware(None, trigger=("tokens", 900), archive="memory:")
    return [
        *(compactor, result, result.record, recalled, recalled.hits[0], stuck, middleware),
        *(ContextGuard(window=900), Archive.open("memory:")),
    ]


@pytest.mark.parametrize("shown", objects(), ids=lambda one: type(one).__name__)
def test_it_fits_two_lines(shown):
    assert len(repr(shown)) <= 200
    assert "\n" not in repr(shown)


def test_a_result_says_what_came_of_it():
    shown = {type(one).__name__: repr(one) for one in objects()}
    assert "58 messages left, " in shown["Record"]
    assert shown["CompactionResult"].startswith("<CompactionResult stuck: ")
    assert ", shortened>" in shown["RecallResult"]
