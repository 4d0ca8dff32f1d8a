"""The count of tokens: characters a second, and its error by script and kind of text.

The counts of four families' tokenizers are stored with the texts in `token_texts/counts.json`, by
the first 16 digits of a text's SHA-256. Claude's are those of its last published tokenizer, scaled
to today's 3.3 characters a token of English prose. None of the texts was used to fit the estimate.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Iterator

from langchain_core.messages.utils import count_tokens_approximately
from tables import HERE, Row
from threads import agent, objects
from token_texts import texts

from conspectus.tokens import estimate

FAMILIES = ("o200k", "cl100k", "deepseek", "claude")
WITHIN = 12.0
SPEED = 20.0


def rows(quick: bool) -> Iterator[Row]:
    """Measure speed and error."""
    yield _speed()
    stored = json.loads((HERE / "token_texts" / "counts.json").read_text(encoding="utf-8"))
    worst: list[tuple[float, str]] = []
    for name, some in texts().items():
        counts = [stored[hashlib.sha256(text.encode()).hexdigest()[:16]] for text in some]
        errors = {
            family: 100 * (sum(estimate(text, family) for text in some)
                           / sum(count[family] for count in counts) - 1)
            for family in FAMILIES
        }  # fmt: skip
        family = max(errors, key=lambda name: abs(errors[name]))
        worst.append((abs(errors[family]), f"{name} {errors[family]:+.1f} ({family})"))
    worst.sort(reverse=True)
    detail = "; ".join(text for _, text in worst[:4])
    yield Row(f"tokens: worst error of {len(worst)} kinds", worst[0][0], WITHIN, "%", detail)


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
