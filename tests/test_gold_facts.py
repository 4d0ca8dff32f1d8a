"""The set of statements is sound, and its measure tells kept from lost."""

import json
from collections import Counter

from scripts import ROOT, imported

SET = json.loads((ROOT / "benchmarks" / "gold_facts" / "said.json").read_text(encoding="utf-8"))


gold = imported("gold_facts")


def test_every_kind_and_language_has_statements_and_what_they_hold_stands_in_them():
    by = {one["id"]: one for one in SET["statements"]}
    assert len(by) == len(SET["statements"])
    assert all(words in one["text"] for one in by.values() for words in one["holds"])
    for one in by.values():
        if "replaces" in one:
            assert one["stale"] in by[one["replaces"]]["text"]
            assert one["stale"] not in one["text"]
    languages = Counter(one["lang"] for one in by.values())
    assert set(languages) == set("en de es fr ja ko zh pt it ru".split())
    assert min(languages.values()) >= 5


def test_all_stands_where_there_is_room_and_nothing_where_there_is_none(gold):
    few = {"statements": SET["statements"][:12], "lookalikes": SET["lookalikes"]}
    figures, lost = gold.measure(few, room=1.1, orders=1)
    assert (figures["all"], lost) == (1.0, [])
    figures, lost = gold.measure(few, room=0.0, orders=1)
    assert figures["all"] == 0.0
    assert lost
