"""Which answers are taken for summaries: labelled texts for conversations in many languages.

    make bench ONLY=summaries

Each text is what a summariser answers for its conversation, once from a function and once from a
chat model that gets our prompt. A true summary should be put in force. An answer that is none, such
as a refusal, an essay or one more turn of the conversation, should not.

The gate's trees were fitted to these texts. So each conversation is judged here by trees that were
fitted to the others alone (`fit_summaries.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tables import ROOT, Row, ScriptedChatModel

from conspectus import Compactor
from conspectus.model import gate

EXAMPLES = ROOT / "tests" / "summary_examples"
FOLDS = ROOT / "benchmarks" / "summary_folds.json"
KEPT_MESSAGES = 4  # the newest, which stay and are not summarised
WINDOW = 64_000  # tokens: no text is refused for its length


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled answer and the conversation that it was given for."""

    conversation: str  # its name
    messages: list[dict[str, Any]]
    text: str
    is_summary: bool
    group: str  # the form of a summary, or what an answer is instead


def read_examples(folder: Path = EXAMPLES) -> Iterator[Example]:
    """Read all examples, one file for each conversation."""
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        messages = [
            _as_openai(number, message) for number, message in enumerate(content["messages"])
        ]
        for summary in content["summaries"]:
            group = "with citations" if summary["citations"] else "without citations"
            yield Example(content["name"], messages, summary["text"], True, group)
        for answer in content["others"]:
            yield Example(content["name"], messages, answer["text"], False, answer["kind"])


def _as_openai(number: int, message: dict[str, str]) -> dict[str, Any]:
    """Return a message without calls; the result of a tool is shown as the agent's report."""
    if message["role"] == "tool":
        return {"role": "assistant", "content": f"Result {number}:\n{message['content']}"}
    return {"role": message["role"], "content": message["content"]}


def is_put_in_force(example: Example, summarizer: dict[str, Any]) -> bool:
    """Compact the conversation with a summariser that gives the text; tell whether it stands."""
    compactor = Compactor(
        **summarizer,
        window=WINDOW,
        max_summary_tokens=WINDOW // 8,
        trigger=("messages", KEPT_MESSAGES + 1),
        keep=("messages", KEPT_MESSAGES),
        archive="memory:",
        on_failure="keep",
    )
    result = compactor.compact(example.messages, thread_id="summaries")
    return result.outcome == "compacted"


def held_out_trees() -> dict[str, Any]:
    """Return, by the name of each conversation, trees that have seen nothing of it."""
    stored = gate.read_trees()
    return {
        conversation: {**stored, "start": fold["start"], "trees": fold["trees"]}
        for fold in json.loads(FOLDS.read_text(encoding="utf-8"))
        for conversation in fold["conversations"]
    }


def by_function(text: str) -> dict[str, Any]:
    """Return the arguments of a compactor whose summariser is a function."""
    return {"summarizer": lambda messages: text}


def by_model(text: str) -> dict[str, Any]:
    """Return the arguments of a compactor whose summariser is a chat model."""
    return {"model": ScriptedChatModel(answers=lambda _: text, cites=False)}


SUMMARIZERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "a function": by_function,
    "a model with our prompt": by_model,
}
MOST_REFUSED = 1.0  # percent of true summaries
MOST_ACCEPTED = {"a function": 8.0, "a model with our prompt": 2.0}  # percent of other answers


def rows(quick: bool) -> Iterator[Row]:
    """Yield the share of summaries that are refused, and of other answers that are accepted."""
    examples = list(read_examples())[:: 8 if quick else 1]
    trees = held_out_trees()
    for name, arguments_for in SUMMARIZERS.items():
        wrong: Counter[str] = Counter()
        counts = Counter(example.is_summary for example in examples)
        errors = Counter[bool]()
        for example in examples:
            unseen = trees[example.conversation]
            with mock.patch.object(gate, "read_trees", return_value=unseen):
                is_accepted = is_put_in_force(example, arguments_for(example.text))
            if is_accepted != example.is_summary:
                errors[example.is_summary] += 1
                wrong[example.group] += 1
        for is_summary, title, asked in (
            (True, f"true summaries refused, by {name}", MOST_REFUSED),
            (False, f"answers that are no summaries accepted, by {name}", MOST_ACCEPTED[name]),
        ):
            groups = {example.group for example in examples if example.is_summary is is_summary}
            found = ", ".join(f"{group} {wrong[group]}" for group in sorted(groups) if wrong[group])
            share = 100 * errors[is_summary] / counts[is_summary]
            yield Row(title, share, asked, "%", f"of {counts[is_summary]}: {found or 'none'}")
