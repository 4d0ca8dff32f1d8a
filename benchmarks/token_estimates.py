"""The estimate of tokens beside real tokenizers: by script and kind of text, and by family.

    make bench-tokens      or: python benchmarks/token_estimates.py --json

The texts were not used to fit the estimate. The exit code is 1 if the estimate of any class is more
than 12 % off for any family, or the one for an unknown model is more than 5 % under the largest.
The speed is that of one processor on what a recorded agent read and wrote.
Without the vocabularies the counts that were stored with the texts are the reference;
`--store` writes them anew.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import printed
from token_texts import texts
from vocabularies import folder, load

from conspectus.messages import read_messages
from conspectus.tokens import KNOWN, Family, estimate

SESSION = Path(__file__).resolve().parents[1] / "examples/data/demo-transcript.json"
STORED = Path(__file__).with_name("token_texts") / "counts.json"
WITHIN = 12.0
"""Per cent that a class may be off."""

UNDER = 5.0
"""Per cent that the estimate for an unknown model may be under the largest family."""

WHOLE = 500
"""Characters from which on a single text is looked at by itself."""

Counts = Mapping[str, Sequence[Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class Row:
    """One class.

    Attributes:
        name: of the class.
        texts: number of texts.
        characters: in all of them.
        ratio: characters a token, by family.
        error: of the estimate over the whole class, in per cent, by family.
        worst: of the text that is farthest off, among those of 500 characters or more.
        four: of four characters a token.
        unknown: of the estimate for an unknown model, against the largest family.
    """

    name: str
    texts: int
    characters: int
    ratio: Mapping[str, float]
    error: Mapping[str, float]
    worst: Mapping[str, float]
    four: Mapping[str, float]
    unknown: float

    @property
    def holds(self) -> bool:
        """Say whether it is within the promise."""
        return self.unknown >= -UNDER and all(abs(e) <= WITHIN for e in self.error.values())


def digest(text: str) -> str:
    """Hash a text, by which a stored count knows it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def real_counts(by_class: Mapping[str, Sequence[str]]) -> tuple[Counts, str]:
    """Give the counts of the real tokenizers, and their source."""
    where = folder()
    if where is not None:
        count = load(where)
        made = {
            name: [{family: count[family](text) for family in KNOWN} for text in some]
            for name, some in by_class.items()
        }
        return made, "vocabularies"
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return {
        name: [stored[digest(text)] for text in some] for name, some in by_class.items()
    }, "stored counts"


def off(estimated: float, real: float) -> float:
    """Give the error of an estimate, in per cent."""
    return 100 * (estimated / real - 1)


def measure(by_class: Mapping[str, Sequence[str]], counts: Counts) -> list[Row]:
    """Measure every class against every family, the worst class first."""
    rows = []
    for name, some in by_class.items():
        size = sum(map(len, some))
        real = {f: sum(count[f] for count in counts[name]) for f in KNOWN}
        guess = {f: [estimate(text, f) for text in some] for f in (*KNOWN, "unknown")}
        long = [i for i, text in enumerate(some) if len(text) >= WHOLE] or range(len(some))
        rows.append(
            Row(
                name=name,
                texts=len(some),
                characters=size,
                ratio={f: size / real[f] for f in KNOWN},
                error={f: off(sum(guess[f]), real[f]) for f in KNOWN},
                worst={
                    f: max((off(guess[f][i], counts[name][i][f]) for i in long), key=abs)
                    for f in KNOWN
                },
                four={f: off(size / 4, real[f]) for f in KNOWN},
                unknown=off(sum(guess["unknown"]), max(real.values())),
            )
        )
    return sorted(rows, key=lambda row: -max(map(abs, row.error.values())))


def speed() -> dict[str, float]:
    """Measure characters a second, of the estimate and of tiktoken where it is there."""
    entries = read_messages(json.loads(SESSION.read_text(encoding="utf-8")))
    found = [text for one in entries for text in (one.text, *(call.args for call in one.calls))]
    size = sum(map(len, found))

    def a_second(count: Callable[[str], Any]) -> float:
        runs = []
        for _ in range(3):
            start = time.process_time()
            for text in found:
                count(text)
            runs.append(time.process_time() - start)
        return size / statistics.median(runs)

    family: Family = "o200k"
    result = {"estimate": a_second(lambda text: estimate(text, family))}
    where = folder()
    if where is not None:
        result["tiktoken"] = a_second(load(where)["o200k"])
    return result


def show(rows: Sequence[Row], source: str, rates: Mapping[str, float]) -> None:
    """Print the tables."""
    table = printed.table(
        "Estimates of tokens: % off the real count, and the worst single text",
        ("class", "texts", "chars", *KNOWN, "by 4", "unknown"),
        caption="by 4: what four characters a token would be off, at the worst family; "
        "unknown: against the largest family",
    )
    for row in rows:
        cells = [f"{row.error[f]:+.1f} ({row.worst[f]:+.1f})" for f in KNOWN]
        four = f"{max(row.four.values(), key=abs):+.0f}"
        table.add_row(
            row.name, str(row.texts), f"{row.characters:,}", *cells, four, f"{row.unknown:+.1f}"
        )
    real = printed.table("Characters a token, really", ("class", *KNOWN))
    for row in rows:
        real.add_row(row.name, *(f"{row.ratio[f]:.2f}" for f in KNOWN))
    printed.screen(112).print(table, real)
    cell, name, family = max((abs(r.error[f]), r.name, f) for r in rows for f in KNOWN)
    least = min(rows, key=lambda row: row.unknown)
    print(
        f"Reference: {source}. {WITHIN:.0f} % is allowed, and -{UNDER:.0f} % for an unknown model."
    )
    print(f"Worst cell: {cell:.1f} % ({name}, {family}).")
    print(f"Unknown model: lowest {least.unknown:+.1f} % ({least.name}).")
    said = ", ".join(f"{name} {rate / 1e6:.0f}" for name, rate in rates.items())
    print(f"Million characters of an agent's session a second: {said}.")
    wrong = [row.name for row in rows if not row.holds]
    print("holds" if not wrong else f"does not hold: {', '.join(wrong)}")


def store(by_class: Mapping[str, Sequence[str]]) -> None:
    """Write the counts of the real tokenizers beside the texts."""
    counts, source = real_counts(by_class)
    if source != "vocabularies":
        sys.exit("there are no vocabularies to count with: make bench-tokens gets them")
    lines = [
        f'"{digest(text)}": '
        + json.dumps({family: round(value, 1) for family, value in count.items()})
        for name, some in by_class.items()
        for text, count in zip(some, counts[name], strict=True)
    ]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> int:
    parser = printed.options(__doc__)
    parser.add_argument("--store", action="store_true", help="write the stored counts anew")
    given = parser.parse_args()
    by_class = texts()
    if given.store:
        store(by_class)
    counts, source = real_counts(by_class)
    rows = measure(by_class, counts)
    rates = speed()
    data = {"reference": source, "rows": [asdict(row) for row in rows], "characters": rates}
    good = all(row.holds for row in rows)
    return printed.end(given.json, lambda: data, lambda: show(rows, source, rates), good)


if __name__ == "__main__":
    sys.exit(main())
