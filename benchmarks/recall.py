"""What recall brings of your own talks, beside BM25 over passages of 120 words.

    python benchmarks/recall.py --data DIR [--tokens 512 2048]

DIR holds talks: NAME.json, a list of messages (`role`, `content`, `id`; perhaps `name` and
`timestamp`), and NAME.qa.json, a list of questions, each with the ids of its gold messages:
`{"question": ..., "evidence": ["m4"]}`. A file of LoCoMo's release (`locomo10.json`) is read, too.
All messages leave the view, so that nothing but recall can answer. A gold message counts as brought
if half of its runs of four words stand in what came back.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tables import Row, end, number

from conspectus import Compactor
from conspectus.tokens import estimate

PASSAGE = 120  # Words of a passage that BM25 ranks
RUN = 4  # Words of a run
SUMMARY = "They talked, and nothing of it stands in this summary: only recall can answer. " * 6
DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")

Messages = Sequence[Mapping[str, Any]]


def words(text: str) -> list[str]:
    """Return the words of a text; of Han, Kana and Hangul the pairs of characters."""
    pairs = (run[at : at + 2] for run in DENSE.findall(text) for at in range(max(1, len(run) - 1)))
    return [*re.findall(r"[a-z0-9]+", text.lower()), *pairs]


def runs(text: str) -> set[tuple[str, ...]]:
    """Return all runs of words in a text."""
    said = words(text)
    return {tuple(said[at : at + RUN]) for at in range(max(1, len(said) - RUN + 1))}


class Bm25:
    """What anybody would write first: passages of a fixed length, ranked by BM25."""

    def __init__(self, messages: Messages, k1: float = 1.2, b: float = 0.75) -> None:
        self._texts = list[str]()
        for message in messages:
            parts = message["content"].split()
            step = range(0, max(1, len(parts)), PASSAGE)
            self._texts += [" ".join(parts[at : at + PASSAGE]) for at in step]
        counts = [Counter(words(text)) for text in self._texts]
        sizes = [sum(each.values()) for each in counts]
        mean, total = statistics.mean(sizes) or 1, len(counts)
        holding = Counter(word for each in counts for word in each)
        self._weights = [
            {
                word: math.log(1 + (total - holding[word] + 0.5) / (holding[word] + 0.5))
                * (count * (k1 + 1) / (count + k1 * (1 - b + b * size / mean)))
                for word, count in each.items()
            }
            for each, size in zip(counts, sizes, strict=True)
        ]

    def recall(self, query: str, tokens: int) -> str:
        """Return the best passages that fit, best first."""
        asked, shown = set(words(query)), list[str]()
        scores = [sum(each.get(word, 0.0) for word in asked) for each in self._weights]
        for at in sorted(range(len(scores)), key=lambda at: -scores[at]):
            cost = estimate(self._texts[at]) + 4
            if scores[at] > 0 and cost <= tokens:
                shown.append(self._texts[at])
                tokens -= cost
        return "\n".join(shown)


def talks(folder: Path) -> Iterator[tuple[str, Messages, Messages]]:
    """Yield the name, the messages and the questions of each talk."""
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        questions = path.with_name(f"{path.stem}.qa.json")
        if questions.exists():
            yield path.stem, data, json.loads(questions.read_text("utf-8"))
        elif data and isinstance(data[0], dict) and "conversation" in data[0]:
            for sample in data:
                yield sample.get("sample_id", path.stem), *released(sample)


def released(sample: Mapping[str, Any]) -> tuple[Messages, Messages]:
    """Return the messages and the questions of a talk as LoCoMo releases it."""
    talk, messages = sample["conversation"], list[dict[str, Any]]()
    for session in range(1, 100):
        for turn in talk.get(f"session_{session}", ()):
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            said = {"role": role, "content": turn["text"], "id": turn["dia_id"]}
            when = talk.get(f"session_{session}_date_time", "")
            messages.append({**said, "name": turn["speaker"], "timestamp": when})
    return messages, sample["qa"]


def measure(messages: Messages, questions: Messages, sizes: Sequence[int]) -> dict[int, Any]:
    """Return, by tokens, the shares of gold messages that recall and BM25 bring, a pair each."""
    by_id = {message["id"]: runs(message["content"]) for message in messages}
    summary = {"summarizer": lambda _: SUMMARY, "notes": False, "keep": ("messages", 1)}
    compactor: Any = Compactor(**summary, archive="memory:")
    talk = [*messages, {"role": "user", "content": "The end."}]
    assert compactor.compact(talk, thread_id="talk", force=True).archived
    plain, pairs = Bm25(messages), dict[int, Any]()
    for size in sizes:
        pairs[size] = list[tuple[float, float]]()
        for question in questions:
            gold = [by_id[one] for one in question["evidence"] if one in by_id]
            if not gold or question.get("category") == 5:  # LoCoMo's questions without an answer
                continue
            asked = question["question"]
            ours = compactor.recall(asked, thread_id="talk", tokens=size).text
            both = (runs(ours), runs(plain.recall(asked, size)))
            share = [statistics.mean(len(g & there) >= len(g) / 2 for g in gold) for there in both]
            pairs[size].append(tuple(share))
    return pairs


def main() -> int:
    """Measure all talks of a folder, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of talks and questions")
    parser.add_argument("--tokens", type=int, nargs="+", default=[512, 2048])
    asked = parser.parse_args()
    every: dict[int, list[Any]] = {size: [] for size in asked.tokens}
    rows = list[Row]()
    for name, messages, questions in talks(asked.data):
        for size, pairs in measure(messages, questions, asked.tokens).items():
            every[size] += pairs
            rows += _row(f"{name}, {len(messages):,} messages, {size:,} tokens", pairs)
    for size, pairs in every.items():
        rows += _row(f"all talks, {size:,} tokens", pairs)
    if not rows:
        print(f"no talks with questions in {asked.data}; see --help", file=sys.stderr)
        return 2
    return end("Gold messages that recall brings, BM25 over passages = 1", rows, as_json=False)


def _row(name: str, pairs: Sequence[Any]) -> list[Row]:
    if not pairs:
        return []
    ours, theirs = (statistics.mean(each) for each in zip(*pairs, strict=True))
    detail = f"{number(ours)} of the gold, BM25 {number(theirs)}; {len(pairs):,} questions"
    return [Row(name, ours / theirs if theirs else math.inf, detail=detail)]


if __name__ == "__main__":
    sys.exit(main())
