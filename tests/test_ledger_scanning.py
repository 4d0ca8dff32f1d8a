"""A quick look at a text finds what a slow look finds, and a long text does no harm."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.ledger import Ledger
from conspectus.ledger.facts import HEAD, TAIL, facts_of
from conspectus.ledger.scanning import one_of
from conspectus.messages import read_messages
from histories import user

VALUES: Any = import_module("conspectus.ledger.values")
IDENTIFIERS: Any = import_module("conspectus.ledger.identifiers")
SLOW = {
    "url": VALUES._URL,
    "path": VALUES._PATH,
    "error": VALUES._ERROR,
    "id": VALUES._ID,
    "number": VALUES._NUMBER,
    "symbol": VALUES._SYMBOL,
}
PIECES = (
    *"aZ9_./-@#+: \\\"'(*,;=&~$€%é月年中の",
    *("part_12.py", "2025-03-04", "ab12cd34", "12:30", "5 GB", "10 %", "ValueError", "3.11.7"),
    *("ORD-2041", "order-77a1", "x@y.org", "Makefile", "C:\\", "getUser", "UTF8Prober", "foo()"),
    *("sha256:", "24 hours", "1 000", "May", " v2", "https://", "sqlite3", "3月4日", "下午3点"),
)
lines = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(lines)
def test_a_value_is_found_wherever_its_pattern_alone_finds_one(line: str) -> None:
    for kind, hint, finds, known in VALUES._KINDS:
        if kind == "date" or finds == VALUES._WIDE_PATH.finditer:
            continue  # a kind of two patterns
        _same(known, finds(line) if hint(line) else (), SLOW[kind].finditer(line), line)


@given(lines)
def test_a_date_is_found_wherever_its_patterns_alone_find_one(line: str) -> None:
    named, written = [one for one in VALUES._KINDS if one[0] == "date"]
    for (_, hint, finds, known), slow in (
        (named, VALUES._NAMED_DATE),
        (written, VALUES._DATE),
    ):
        _same(known, finds(line) if hint(line) else (), slow.finditer(line), line)


def _same(known: Any, quick: Any, slow: Any, line: str) -> None:
    """Both looks give the same values; a match that is no value does not count."""
    found = [[(m.start(), known(m, line)) for m in look] for look in (quick, slow)]
    assert [one for one in found[0] if one[1]] == [one for one in found[1] if one[1]]


@given(lines)
def test_an_identifier_is_found_wherever_its_pattern_alone_finds_one(line: str) -> None:
    for (kind, pattern), (_, hint, finds) in zip(
        IDENTIFIERS._IDENTIFIERS, IDENTIFIERS._KINDS, strict=True
    ):
        quick = [m.span() for m in finds(line)] if hint(line) else []
        slow = [m.span() for m in pattern.finditer(line) if len(m[0].rstrip(".,:;")) >= 3]
        assert [s for s in quick if len(line[slice(*s)].rstrip(".,:;")) >= 3] == slow, kind


def test_of_several_words_the_longest_that_stands_there_is_found() -> None:
    words = ["min", "minutes", "Stück", "m.p.h", "%"]
    pattern = re.compile(one_of(words))
    assert [m[0] for m in pattern.finditer("5 minutes, 3 MIN, 2 stück, 10 M.P.H, 4%")] == [
        "minutes",
        "MIN",
        "stück",
        "M.P.H",
        "%",
    ]
    assert not pattern.search("mxpxh")


def test_of_a_tools_long_output_both_ends_are_read_and_nothing_is_read_twice() -> None:
    rows = [f"/srv/data/part_{n}.csv" for n in range(1_000)]
    message = {"role": "tool", "tool_call_id": "x", "content": "\n".join(rows)}
    (entry,) = read_messages([message])
    found = [fact.value for fact in facts_of(entry)]
    assert found[0] == rows[0]
    assert found[-1] == rows[-1]
    assert len(found) == len(set(found))
    assert sum(len(value) + 1 for value in found) + 2 * len(rows[-1]) >= HEAD + TAIL
    assert rows[500] not in found
    (said,) = read_messages([user("\n".join(rows))])
    assert [fact.value for fact in facts_of(said)] == rows


@pytest.mark.parametrize("unit", ["a. ", "1.", "A1-", "a_", "/a", "。a"])
def test_a_megabyte_without_a_line_break_sets_no_rule(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    ledger = Ledger().updated(read_messages([user(text), user("Never push to main.")]))
    assert [fact.value for fact in ledger.standing()] == ["Never push to main."]
