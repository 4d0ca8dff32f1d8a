"""What a user says once, in passing, and whether it stands at the end, word for word.

    make bench ONLY=rules    or: python benchmarks/speed.py --only rules

Fifteen kinds of rules in ten languages stand in `rule_statements.toml`. In each run all fifteen are
said once, each between two other sentences, in the first, the middle or the last third of a
history; then the history is played to `Compactor(window=...)` step by step, without a model.
Counted is which of them stand in the last view, and which of the others the results do not name.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import threads
from tables import Row

from conspectus import Compactor

Message = dict[str, Any]

STATEMENTS = Path(__file__).with_name("rule_statements.toml")
WINDOWS = (4_000, 8_000, 16_000, 32_000)
PLACES = ("top", "middle", "late")
ASKED = 0.99
"""The share of the rules that are to stand in view."""

TURNS = 340
"""Messages of the user in a chat."""

STEPS = 160
"""Calls of an agent."""

STEP = 6
"""Messages after which a history is sent to the compactor."""

TOPICS = (
    "hotel museum bakery train bridge market garden harbour castle theatre lake tower library "
    "school kitchen window carpet piano violin bicycle suitcase umbrella camera mirror basket "
    "ladder"
).split()
CITIES = "Lyon Porto Bergen Gdansk Turin Malmo Ghent Basel Cork Split Delft Trieste".split()
REQUESTS = (
    "How far is it from the {topic} in {city} to the {other}?",
    "Find me a {topic} in {city} that opens on Sunday, please.",
    "What does a ticket for the {topic} cost?",
    "My sister liked the {topic} in {city} a lot.",
    "And is there a {other} near it?",
    "Thanks. Tell me more about the {topic}.",
    "I saw a {topic} yesterday that looked like ours.",
    "Could you compare the {topic} in {city} with the {other}?",
    "Which of the two is older?",
    "The children want to see the {topic}, what do you think?",
)
ANSWERS = (
    "The {topic} in {city} is open from nine to five, and the {other} is ten minutes away on foot.",
    "People praise the {topic} for its light; tickets are sold at the door of the {other}.",
    "In {city} there are two of them, one by the river and one behind the {other}.",
)


@dataclass(frozen=True, slots=True)
class Planted:
    """A sentence that binds, and the message in which it is said."""

    rule: str
    words: str


def chat(seed: int, answers: int) -> list[Message]:
    """Make a chat of requests, whose answers have so many sentences."""
    draw = random.Random(seed)

    def filled(template: str) -> str:
        topic, other = draw.sample(TOPICS, 2)
        return template.format(topic=topic, other=other, city=draw.choice(CITIES))

    messages: list[Message] = []
    for number in range(TURNS):
        answer = " ".join(filled(draw.choice(ANSWERS)) for _ in range(answers))
        messages += [
            {"role": "user", "content": filled(draw.choice(REQUESTS)), "id": f"u{number}"},
            {"role": "assistant", "content": answer, "id": f"a{number}"},
        ]
    return messages


HISTORIES: Mapping[str, Callable[[], list[Message]]] = {
    "chat, short answers": lambda: chat(1, 1),
    "chat, long answers": lambda: chat(2, 5),
    "agent that reads": lambda: threads.agent(2 * STEPS + 1, 3),
    "agent that writes": lambda: _writing(threads.agent(2 * STEPS + 1, 4)),
}


def _writing(messages: list[Message]) -> list[Message]:
    """Return a run of an agent in which every other call writes what it has read."""
    for message in messages[3::4]:
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = "write_file"
    return messages


def statements() -> dict[str, dict[str, Planted]]:
    """Read the sentences by language and kind."""
    by_language: dict[str, dict[str, Planted]] = {}
    for language, table in tomllib.loads(STATEMENTS.read_text("utf-8")).items():
        before, behind = table.pop("around")
        by_language[language] = {
            kind: Planted(rule, f"{before} {rule} {behind}") for kind, rule in table.items()
        }
    return by_language


def chosen(number: int) -> list[Planted]:
    """Return a sentence of each kind, of ever other languages."""
    by_language = statements()
    languages = list(by_language)
    kinds = list(by_language[languages[0]])
    return [
        by_language[languages[(number + at) % len(languages)]][kind]
        for at, kind in enumerate(kinds)
    ]


def planted(messages: Sequence[Message], place: str, said: Sequence[Planted]) -> list[Message]:
    """Return a history in whose third the sentences are said, each behind an answer."""
    third = PLACES.index(place)
    first = len(messages) * third // len(PLACES)
    last = len(messages) * (third + 1) // len(PLACES) - 8
    ends = [
        at
        for at in range(max(first, 2), last)
        if messages[at]["role"] in ("assistant", "tool") and not messages[at].get("tool_calls")
    ]
    places = [ends[len(ends) * number // len(said)] for number in range(len(said))]
    result: list[Message] = []
    for at, message in enumerate(messages):
        result.append(message)
        for number, behind in enumerate(places):
            if behind == at:
                result += [
                    {"role": "user", "content": said[number].words, "id": f"rule-{number}"},
                    {"role": "assistant", "content": "All right.", "id": f"right-{number}"},
                ]
    return result


@dataclass(slots=True)
class Counts:
    """What became of the sentences of some runs."""

    said: int = 0
    in_view: int = 0
    unsaid: int = 0
    """Neither in view nor named as left out."""

    def __iadd__(self, other: Counts) -> Counts:
        self.said += other.said
        self.in_view += other.in_view
        self.unsaid += other.unsaid
        return self

    @property
    def share(self) -> float:
        """The share that stands in view."""
        return self.in_view / self.said


def run(messages: Sequence[Message], window: int, said: Sequence[Planted]) -> Counts:
    """Play a history, compact it once more at its end, and count."""
    left_out: set[str] = set()
    with Compactor(window=window, archive="memory:") as compactor:
        view: list[Any] = []
        for start in range(0, len(messages), STEP):
            view += messages[start : start + STEP]
            result = compactor.compact(view, thread_id="t")
            view = list(result.messages)
            left_out |= {rule.text for rule in result.rules_left_out}
        result = compactor.compact(view, thread_id="t", force=True)
    left_out |= {rule.text for rule in result.rules_left_out}
    text = _plain("\n".join(str(message["content"]) for message in result.messages))
    missing = [one.rule for one in said if _plain(one.rule) not in text]
    unsaid = [rule for rule in missing if not any(rule in other for other in left_out)]
    return Counts(len(said), len(said) - len(missing), len(unsaid))


def _plain(text: str) -> str:
    return " ".join(text.split())


def rows(quick: bool) -> Iterator[Row]:
    """Run every history with every window, the sentences at the top, in the middle and late."""
    everything = Counts()
    windows = WINDOWS[:1] if quick else WINDOWS
    for name, make in HISTORIES.items():
        for window in windows:
            counts = Counts()
            shares: list[str] = []
            for place in PLACES:
                number = list(product(HISTORIES, WINDOWS, PLACES)).index((name, window, place))
                said = chosen(number)
                found = run(planted(make(), place, said), window, said)
                counts += found
                shares.append(f"{place} {found.in_view} of {found.said}")
            everything += counts
            title = f"rules in view, {name}, window of {window:,}"
            yield Row(title, counts.share, None, "", ", ".join(shares))
    detail = f"{everything.in_view} of {everything.said}; 15 kinds, ten languages, said once"
    yield Row("rules in view at the end", everything.share, ASKED, "", detail, at_least=True)
    yield Row("rules neither in view nor named as left out", everything.unsaid, 0, "")
