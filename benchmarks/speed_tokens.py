"""The estimate of tokens: characters a second, and its error in texts that it was not fitted to.

Estimates are compared with the tokenizers of four families (`vocabularies.py`); that of an unknown
model with the one that takes most. None of the texts was used for the fit: kinds that are held back
or unseen (`token_kinds`), prose and sources in `token_texts/`, and an agent's transcript.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately
from tables import ROOT, Row
from threads import agent, objects
from token_kinds import ALL, UNSEEN, is_held_back, texts_of
from token_kinds.kind import Kind
from token_texts import texts
from vocabularies import Counter, families

from conspectus.messages import read_messages
from conspectus.tokens import FAMILIES, KNOWN, Family, estimate

SPEED = 12.0  # Million characters a second
TOO_LOW, TOO_HIGH = -0.05, 0.40
MOST_TOO_HIGH = 0.05  # Share of the kinds, for each family
MEAN, WORST = 6.0, 10.0  # Percent, of prose and transcripts
SIZES = [40, 120, 300, 600, 900, 1_200, 1_600]  # Characters of the texts of a kind
PROSE = (
    "English", "European prose", "Greek", "Hebrew", "Thai", "Chinese", "Japanese", "Korean",
    "Russian", "Arabic", "Hindi",
)  # fmt: skip


def rows(quick: bool) -> Iterator[Row]:
    """Measure speed and error."""
    yield _speed()
    counters = families()
    held = [kind for name, kind in ALL.items() if is_held_back(name)]
    for name, kinds in (("held", held), ("unseen", UNSEEN)):
        yield from _kinds(counters, name, kinds[:: 4 if quick else 1])
    yield from _prose_and_transcripts(counters)


def _errors(counters: Mapping[str, Counter], some: Sequence[str]) -> dict[Family, float]:
    """Return the error of the estimate of some texts together, by family."""
    real: dict[Family, float] = dict.fromkeys(FAMILIES, 0.0)
    for text in some:
        counts = {family: counters[family](text) for family in KNOWN}
        for family in KNOWN:
            real[family] += counts[family]
        real["unknown"] += max(counts.values())
    return {
        family: sum(estimate(text, family) for text in some) / real[family] - 1
        for family in FAMILIES
    }


def _kinds(counters: Mapping[str, Counter], which: str, kinds: Sequence[Kind]) -> Iterator[Row]:
    """Count the kinds that are estimated too low or too high."""
    errors = {kind.name: _errors(counters, texts_of(kind, SIZES)) for kind in kinds}
    for family in FAMILIES:
        ordered = sorted(errors, key=lambda name: errors[name][family])
        low = [name for name in ordered if errors[name][family] < TOO_LOW]
        high = [name for name in ordered if errors[name][family] > TOO_HIGH]
        of_all = f"of {len(kinds)} {which} kinds"
        for direction, found, asked, ends in (
            ("low", low, 0, ordered[:3]),
            ("high", high, int(MOST_TOO_HIGH * len(kinds)), ordered[:-4:-1]),
        ):
            limit = TOO_LOW if direction == "low" else TOO_HIGH
            detail = "; ".join(f"{name} {errors[name][family]:+.0%}" for name in ends)
            name = f"tokens: {of_all}, more than {abs(limit):.0%} too {direction}: {family}"
            yield Row(name, len(found), asked, "", detail)


def _prose_and_transcripts(counters: Mapping[str, Counter]) -> Iterator[Row]:
    """Measure the error of prose in many languages, and of an agent's messages."""
    classes: dict[str, Sequence[str]] = {n: some for n, some in texts().items() if n in PROSE}
    path = ROOT / "examples" / "data" / "demo-transcript.json"
    content: Any = json.loads(path.read_text(encoding="utf-8"))
    messages = content["messages"] if isinstance(content, dict) else content
    classes["transcript"] = [entry.reading for entry in read_messages(messages) if entry.reading]
    found: list[tuple[float, str]] = []
    for name, some in classes.items():
        for family, error in _errors(counters, some).items():
            if family != "unknown":
                found.append((100 * error, f"{name} {error:+.1%} ({family})"))
    found.sort(key=lambda one: -abs(one[0]))
    mean = statistics.mean(abs(error) for error, _ in found)
    detail = "; ".join(text for _, text in found[:4])
    what = f"{len(classes)} kinds of prose and transcripts"
    yield Row(f"tokens: mean error, {what}", mean, MEAN, "%")
    yield Row(f"tokens: worst error, {what}", abs(found[0][0]), WORST, "%", detail)


def _speed() -> Row:
    """Count an agent's messages, each a text of its own that was not counted before."""
    ours, other = [], []
    for seed in range(3):
        dicts = agent(1_001, seed)
        messages, pieces = objects(dicts), [message["content"] for message in dicts]
        size = sum(map(len, pieces)) / 1e6
        began = time.process_time()
        for piece in pieces:
            estimate(piece, "o200k")
        ours.append(size / (time.process_time() - began))
        began = time.process_time()
        count_tokens_approximately(messages)
        other.append(size / (time.process_time() - began))
    detail = f"LangChain's estimate {statistics.median(other):,.0f}"
    name = "tokens: million characters a second of an agent's texts"
    return Row(name, statistics.median(ours), SPEED, "", detail, at_least=True)
