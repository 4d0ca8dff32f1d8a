"""Our measures are those of an outside script, to four digits, where that script is there.

It is looked for in `CONSPECTUS_SHARED`, or in `shared` beside the repository, with its data.
"""

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from conspectus_lab.commands.eval import read_transcripts
from conspectus_lab.evaluate import (
    ConspectusSystem,
    System,
    SystemResult,
    beside,
    evaluate,
    identifiers,
    texts,
    words,
)
from conspectus_lab.pairs import broken_pairs

SHARED = Path(os.environ.get("CONSPECTUS_SHARED") or Path(__file__).parents[2] / "shared")
KEEP = ("messages", 20)

pytestmark = pytest.mark.skipif(
    not (SHARED / "retention.py").is_file(),
    reason="the outside script is not there; set CONSPECTUS_SHARED to its folder",
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("outside_retention", SHARED / "retention.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(kind: str, start: str) -> list[str]:
    """The transcripts of a kind whose names begin so; at least one, or the test has nothing."""
    found = sorted(str(p) for p in (SHARED / "data" / kind).glob(f"{start}*.json"))
    found = [path for path in found if not path.endswith(".qa.json")]
    if not found:
        pytest.skip(f"there are no transcripts {start}* in {SHARED / 'data' / kind}")
    return found


class Adapter:
    """Our compactor as the script takes a policy."""

    def __init__(self, keep: tuple[str, int], summary_tokens: int) -> None:
        self._thread: Any = ConspectusSystem(keep=keep).open(summary_tokens)

    def compact(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        return self._thread.compact(messages).messages

    def recall(self, query: str, tokens: int) -> str:
        return self._thread.recall(query, tokens)


def ours(paths: list[str], systems: list[System], size: int, recall: int = 0) -> SystemResult:
    transcripts, _ = read_transcripts(paths)
    return evaluate(
        transcripts, systems, summary_tokens=[size], keep=KEEP, recall_tokens=recall
    ).systems[0]


@pytest.mark.slow
def test_words_identifiers_and_pairs_are_read_alike(script):
    looked_at = 0
    for kind in ("agent", "locomo", "crosswoz"):
        for path in files(kind, "")[::4]:
            messages = script.load(path)
            (transcript,), _ = read_transcripts([path])
            assert len(broken_pairs(messages)) == script.broken_pairs(messages)
            if kind == "agent":
                assert [texts.text_of(m) for m in transcript.messages] == [
                    script.text_of(m) for m in messages
                ]
                assert [m.id for m in transcript.messages] == [m.id for m in messages]
            for message in messages[:60]:
                text = script.text_of(message)
                assert set(identifiers(text)) == set(script.identifiers(text))
                assert words.terms(text) == script.terms(text)
                assert words.dates(text) == script.dates(text)
                looked_at += 1
    assert looked_at > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conspectus", "langchain", "tail"])
def test_future_use_is_the_same_to_four_digits(script, name):
    paths = files("agent", "miniswe-gemini3pro__sphinx-doc__sphinx-8") + files("agent", "deerflow")
    size = 0 if name == "tail" else 1024
    factory = Adapter if name == "conspectus" else script.policy_factory(name)
    theirs = script.measure_agent(paths, factory, KEEP, size)
    systems: list[System] = (
        [ConspectusSystem(keep=KEEP)] if name == "conspectus" else beside([name], KEEP)  # type: ignore[list-item]
    )
    found = ours(paths, systems, 1024).future_use
    assert theirs == {
        "far": round(found.far.value, 4),
        "quoted": round(found.quoted.value, 4),
        "tokens": found.contexts.tokens,
        "over": found.contexts.over,
        "broken": found.contexts.broken,
        "trajectories": found.quoted.count,
        "cuts": found.cuts,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "recall"),
    [
        ("crosswoz", "conspectus", 128),
        ("crosswoz", "conspectus", 0),
        ("crosswoz", "langchain", 128),
        ("locomo", "conspectus", 512),
    ],
)
def test_answers_are_the_same_to_four_digits(script, kind, name, recall):
    paths = files(kind, "conv-")[:1]
    factory = Adapter if name == "conspectus" else script.policy_factory(name)
    theirs = script.measure_locomo(paths, factory, KEEP, 512, recall)
    systems: list[System] = (
        [ConspectusSystem(keep=KEEP)] if name == "conspectus" else beside(["langchain"], KEEP)
    )
    found = ours(paths, systems, 512, recall).answers
    gain = (found.gain.low, found.gain.value, found.gain.high)
    assert theirs == {
        "answers": round(found.answers.value, 4),
        "bm25": round(found.bm25.value, 4),
        "gain": [round(value, 4) for value in gain if value is not None],
        "over": found.contexts.over,
        "evid": round(found.evidence, 4),
        "tokens": found.tokens,
        "broken": found.contexts.broken,
        "questions": found.questions,
    }


def test_the_command_prints_what_the_script_prints(script, tmp_path):
    from typer.testing import CliRunner

    from conspectus.cli.app import app

    paths = files("agent", "miniswe-gemini3pro__sphinx-doc__sphinx-86")
    theirs = script.measure_agent(paths, script.policy_factory("langchain"), KEEP, 512)
    done = CliRunner().invoke(app, ["eval", *paths, "--summary-tokens", "512", "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["systems"][1]
    assert found["name"] == "langchain"
    assert round(found["future_use"]["quoted"]["value"], 4) == theirs["quoted"]
