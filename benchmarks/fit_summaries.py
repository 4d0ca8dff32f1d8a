"""Fit anew what tells a summary from an answer that is none.

    python benchmarks/fit_summaries.py

Needs `scikit-learn` beside what development needs; takes some minutes. It fits trees to the
labelled texts of `tests/summary_examples`, and to texts that are made of them: summaries of the
beginning of a conversation, of two conversations in a row, and of a conversation whose beginning
was summarised already. The trees are stored in `src/conspectus/model/summary_trees.json`, with the
limits below which a text is refused. The limits are taken from scores that were held out: the score
of a text comes from trees that have seen no text of its conversation. These trees are stored in
`benchmarks/summary_folds.json`, by which `make bench ONLY=summaries` judges each conversation.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier

from conspectus.model.gate import begins_as_asked, reason_by_grounds
from conspectus.model.grounds import grounds_of, without_citations

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "tests" / "summary_examples"
OUT = ROOT / "src" / "conspectus" / "model" / "summary_trees.json"
FOLDS_OUT = ROOT / "benchmarks" / "summary_folds.json"

KEPT = 4  # the newest messages, which stay
TREES, DEPTH, RATE = 150, 3, 0.08
MADE_WEIGHT = 0.15  # of a text that was made of examples, beside those that people have written
JOINED = 3  # conversations that each one is joined with
FOLDS = 10  # groups of conversations that are held out in turn
REFUSED = 0.008  # the share of true summaries that may be refused
SEED = 1


@dataclass(frozen=True)
class Sample:
    """A text, its measures, and whether it is a summary."""

    features: dict[str, float]
    is_summary: bool
    conversations: frozenset[str]  # whose texts it has
    kind: str
    text: str
    is_found: bool  # not made of others
    is_plainly_none: bool  # refused without any measure
    has_form: bool


def measured(
    text: str,
    messages: list[tuple[str, str]],
    kept: int,
    is_summary: bool,
    names: set[str],
    kind: str,
    is_found: bool = False,
) -> Sample:
    """Measure a text against a conversation, of which the last `kept` messages stay."""
    texts = [content for _, content in messages]
    last_user = max((i for i, (role, _) in enumerate(messages) if role == "user"), default=0)
    grounds = grounds_of(text, texts[:-kept], texts[-kept:], last_user)
    return Sample(
        grounds.features,
        is_summary,
        frozenset(names),
        kind,
        text,
        is_found,
        bool(reason_by_grounds(text, grounds)),
        begins_as_asked(text),
    )


def conversations() -> list[dict[str, Any]]:
    """Read all conversations with their labelled texts."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(EXAMPLES.glob("*.json"))]


def messages_of(conversation: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in conversation["messages"]]


def samples() -> Iterator[Sample]:
    """Yield the labelled texts, and those that are made of them."""
    chance = random.Random(SEED)
    read = conversations()
    for conversation in read:
        name, messages = conversation["name"], messages_of(conversation)
        for summary in conversation["summaries"]:
            kind = f"{summary['form']}{', cited' if summary['citations'] else ''}"
            yield measured(summary["text"], messages, KEPT, True, {name}, kind, is_found=True)
        for answer in conversation["others"]:
            yield measured(
                answer["text"], messages, KEPT, False, {name}, answer["kind"], is_found=True
            )
        yield from beginnings(conversation, chance)
        for length in range(3, len(messages) - 1, 4):
            role, following = messages[length]
            yield measured(following, messages[:length], 1, False, {name}, f"next {role}")
        others = [other for other in read if other is not conversation]
        for other in chance.sample(others, JOINED):
            both = [*messages, *messages_of(other)]
            names = {name, other["name"]}
            for _ in range(3):
                first, second = (
                    chance.choice(c["summaries"])["text"] for c in (conversation, other)
                )
                yield measured(f"{first}\n\n{second}", both, KEPT, True, names, "joined")
            for answer in chance.sample(other["others"], 4):
                yield measured(answer["text"], both, KEPT, False, names, answer["kind"])


def beginnings(conversation: dict[str, Any], chance: random.Random) -> Iterator[Sample]:
    """Yield summaries of the beginning, and whole ones beside the summary of the beginning."""
    name, messages = conversation["name"], messages_of(conversation)
    lengths = (4, 6, len(messages) // 3, len(messages) // 2, 2 * len(messages) // 3)
    for summary in conversation["summaries"]:
        if not summary["citations"]:
            continue
        for length in lengths:
            text = up_to(summary["text"], length)
            if text.count("[m") < 2 or len(text) < 100:
                continue
            if chance.random() < 0.5:
                text = without_citations(text)
            yield measured(text, messages[: length + 1], 1, True, {name}, "beginning")
            if chance.random() < 0.4:
                later = [("summary", text), *messages[length:]]
                yield measured(summary["text"], later, 2, True, {name}, "rolling")


def up_to(text: str, length: int) -> str:
    """Return the sentences of a summary that cite the first messages alone, with the headings."""
    kept = []
    for sentence in re.split(r"(?<=\])[.。;；]?\s+|\n", text):
        cited = [int(number) for number in re.findall(r"m(\d+)", sentence)]
        if sentence.startswith("#") or (cited and max(cited) <= length):
            kept.append(sentence)
    return "\n".join(kept)


def fitted(found: list[Sample], names: list[str]) -> GradientBoostingClassifier:
    classifier = GradientBoostingClassifier(
        n_estimators=TREES,
        max_depth=DEPTH,
        learning_rate=RATE,
        subsample=0.7,
        max_features=0.3,
        min_samples_leaf=5,
        random_state=0,
    )
    weights = [1.0 if sample.is_found else MADE_WEIGHT for sample in found]
    return classifier.fit(matrix(found, names), labels(found), sample_weight=weights)


def matrix(found: list[Sample], names: list[str]) -> np.ndarray:
    return np.array([[sample.features[name] for name in names] for sample in found])


def labels(found: list[Sample]) -> np.ndarray:
    return np.array([sample.is_summary for sample in found])


def held_out(found: list[Sample], names: list[str]) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Score each text by trees that have seen nothing of its conversation; return these, too."""
    scores = np.zeros(len(found))
    everywhere = sorted(frozenset.union(*(sample.conversations for sample in found)))
    folds = []
    for number in range(FOLDS):
        conversations = frozenset(everywhere[number::FOLDS])
        training = [sample for sample in found if not sample.conversations & conversations]
        places = [
            place
            for place, sample in enumerate(found)
            if len(sample.conversations) == 1 and sample.conversations <= conversations
        ]
        classifier = fitted(training, names)
        scores[places] = classifier.decision_function(matrix([found[i] for i in places], names))
        folds.append({"conversations": sorted(conversations), **plain_scorer(classifier)})
    return scores, folds


def limit_of(scores: np.ndarray, share: float) -> float:
    """Return the limit below which a share of the scores lies."""
    return float(np.sort(scores)[int(len(scores) * share)])


def plain_scorer(classifier: GradientBoostingClassifier) -> dict[str, Any]:
    """Return a classifier as plain data: its first score, and its trees.

    A tree is a list of nodes: `[feature, limit, left, right]`, or `[value]` for a leaf.
    """
    prior = float(classifier.init_.class_prior_[1])
    trees = [
        [
            [round(RATE * float(tree.value[node][0][0]), 4)]
            if tree.children_left[node] < 0
            else [
                int(tree.feature[node]),
                float(f"{tree.threshold[node]:.5g}"),
                int(tree.children_left[node]),
                int(tree.children_right[node]),
            ]
            for node in range(tree.node_count)
        ]
        for tree in (estimator.tree_ for estimator in classifier.estimators_[:, 0])
    ]
    return {"start": round(float(np.log(prior / (1 - prior))), 4), "trees": trees}


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")


def main() -> None:
    """Fit the trees, print what they get wrong, and write them into the package."""
    found = [sample for sample in samples() if not sample.is_plainly_none or sample.is_found]
    names = sorted(found[0].features)
    judged = [sample for sample in found if not sample.is_plainly_none]
    print(f"{len(found)} texts, {sum(s.is_plainly_none for s in found)} of them plainly none")
    plainly = [s for s in found if s.is_plainly_none and s.is_summary]
    print("summaries that are plainly none:", [sample.text[:80] for sample in plainly])
    scores, folds = held_out(judged, names)
    is_found = np.array([sample.is_found for sample in judged])
    is_summary = labels(judged)
    has_form = np.array([sample.has_form for sample in judged])
    others = sum(1 for sample in found if sample.is_found and not sample.is_summary)
    groups = {"function": is_found, "with_form": is_found & has_form}
    groups["without_form"] = is_found & ~has_form
    limits = {}
    for name, group in groups.items():
        limits[name] = limit_of(scores[group & is_summary], REFUSED)
        refused = (scores[group & is_summary] < limits[name]).sum()
        accepted = (scores[group & ~is_summary] >= limits[name]).sum()
        true = (group & is_summary).sum()
        print(f"{name}: limit {limits[name]:.3f}, refused {refused} of {true}, ", end="")
        print(f"accepted {accepted} of {others}")
    for kind in ("beginning", "rolling"):
        made = np.array([sample.kind == kind for sample in judged])
        print(f"{kind}: refused {(scores[made] < limits['function']).mean():.4f}")
    for place in np.argsort(scores):
        sample = judged[place]
        if sample.is_found and sample.is_summary != (scores[place] >= limits["function"]):
            print(f"{scores[place]:.2f} {sample.is_summary} {sample.kind}: {sample.text[:150]!r}")
    scorer = plain_scorer(fitted(judged, names))
    rounded = {name: round(limit, 3) for name, limit in limits.items()}
    write(OUT, {"features": names, "limits": rounded, **scorer})
    write(FOLDS_OUT, folds)


if __name__ == "__main__":
    main()
