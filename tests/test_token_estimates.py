"""The estimate is within 12 % of the real tokenizers, for every script, kind of text and family."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import imported

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


bench = imported("token_estimates")


def stored(bench: Any) -> dict[str, list[dict[str, float]]]:
    counts = json.loads(bench.STORED.read_text(encoding="utf-8"))
    return {
        name: [counts[bench.digest(text)] for text in some] for name, some in bench.texts().items()
    }


def test_every_class_is_within_the_promise_for_every_family(bench):
    rows = bench.measure(bench.texts(), stored(bench))
    assert len(rows) == 20
    wrong = {row.name: (row.error, row.unknown) for row in rows if not row.holds}
    assert not wrong


def test_the_stored_counts_are_those_of_the_real_tokenizers(bench):
    if bench.folder() is None:
        pytest.skip("no vocabularies are here; `make bench-tokens` gets them")
    real, source = bench.real_counts(bench.texts())
    assert source == "vocabularies"
    for name, counts in stored(bench).items():
        for one, other in zip(counts, real[name], strict=True):
            assert one == pytest.approx(other, abs=0.1)


def test_a_class_that_is_off_is_found_out(bench):
    counts = stored(bench)
    counts["Hindi"] = [{f: n * 1.2 for f, n in count.items()} for count in counts["Hindi"]]
    wrong = [row.name for row in bench.measure(bench.texts(), counts) if not row.holds]
    assert wrong == ["Hindi"]
