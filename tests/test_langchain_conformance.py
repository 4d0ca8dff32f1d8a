"""Each public behaviour of LangChain's middleware, run on it and on ours: the same, or different
in a way that is stated."""

import copy
import random
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_conformance.behaviour import BEHAVIOURS, OURS, THEIRS, kept
from langchain_conformance.cuts import drawn, is_legal
from langchain_conformance.page import PAGE, outcome, page

EMPTY = "`keep` as large as the trigger: warnings when built"
"""The behaviour of which an empty outcome is LangChain's real one."""


@pytest.mark.sampled(130)
@pytest.mark.parametrize(
    "one",
    [pytest.param(one, id=f"{one.section}: {one.name}") for one in BEHAVIOURS],
)
def test_it_comes_out_the_same_or_differs_as_stated(one):
    came = outcome(one)
    assert came.theirs not in ([], (), {}, "") or one.name == EMPTY, "was anything run?"
    if one.must_differ:
        assert not came.same, f"the stated difference is gone: {came.theirs!r}"
    else:
        assert came.same, f"LangChain: {came.theirs!r}; ours: {came.ours!r}"


@pytest.mark.slow
@pytest.mark.skipif(version("langchain") != "1.4.7", reason="the page is written with the lock")
def test_the_page_is_what_the_behaviours_write():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew with `make conformance`"


@given(st.integers(0, 2**63))
def test_wherever_langchains_cut_is_legal_ours_is_the_same(seed):
    history, settings = drawn(random.Random(seed))
    theirs = kept(THEIRS.step(copy.deepcopy(history), **settings()))
    ours = kept(OURS.step(copy.deepcopy(history), **settings()))
    if theirs is not None and is_legal(history, theirs):
        assert ours == theirs
    elif ours is not None:
        assert is_legal(history, ours)
