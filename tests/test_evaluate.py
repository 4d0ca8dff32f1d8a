"""Retention: what is needed later, what is asked at the end, and a comparison with before."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from conspectus.errors import InputError, PolicyError
from conspectus_lab.evaluate import (
    Compacted,
    ConspectusSystem,
    Evaluation,
    LangChainSystem,
    Question,
    Transcript,
    evaluate,
    read_config,
    read_questions,
    worse,
)
from recorded_sessions import CODE_LINE, EXAM, PATH, PATH_LINE, agent

MEASURED: dict[str, Any] = {"keep": ("messages", 4), "summary_tokens": (256,), "minimum": 500}
QUESTIONS = [Question(str(q["question"]), tuple(map(tuple, q["evidence"]))) for q in EXAM]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Notes:
    """A system that keeps the tail after a message with fixed notes, and recalls one text."""

    notes: str
    name: str = "notes"
    ours: bool = True
    recalled: str = ""

    @contextmanager
    def compacted(
        self, messages: Sequence[BaseMessage], keep: Any, summary_tokens: int
    ) -> Iterator[Compacted]:
        view = [HumanMessage(self.notes, id="notes"), *messages[-4:]]
        yield Compacted(
            view, len(messages) - 4, summary_tokens=len(self.notes), recall=lambda *_: self.recalled
        )


def of_notes(notes: str, **more: Any) -> Any:
    session = Transcript.of("a", agent(), QUESTIONS)
    found = evaluate([session], [Notes(notes, **more)], **MEASURED)
    return found.results[0]


@pytest.mark.parametrize(
    ("notes", "quoted"),
    [
        (f"- {PATH_LINE}\n- {CODE_LINE}", 1.0),
        (f"- {PATH_LINE}", 0.5),
        (PATH, 0.0),  # a bare list of identifiers
        ("nothing", 0.0),
    ],
)
def test_what_is_needed_later_counts_where_its_words_stand(notes, quoted):
    found = of_notes(notes)
    assert (found.quoted, found.needed) == (quoted, 3 * 2)


def test_a_question_counts_where_its_evidence_is_in_view_or_recalled():
    found = of_notes("never push to the branch CALLED 'main'", recalled=CODE_LINE)
    assert (found.in_view, found.with_recall, found.asked) == (0.5, 1.0, 2)
    assert of_notes("nothing").with_recall == 0.0


def test_a_summary_above_its_limit_and_a_parted_call_are_failures():
    found = of_notes("word " * 256)
    assert found.over == found.contexts == 4
    assert found.broken == 0
    parted = agent()[:-1]
    measured = evaluate([Transcript.of("a", parted, QUESTIONS)], [Notes("x")], **MEASURED)
    assert measured.results[0].broken > 0


def test_what_a_transcript_is_left_out_for():
    short, said = Transcript.of("short", agent(3)), Transcript.of("said", agent(last="done"))
    found = evaluate([short, said], [Notes("x")], **{**MEASURED, "minimum": 1_000})
    assert [one.skipped for one in found.transcripts] == [
        "fewer than 1,000 tokens",
        "nothing far is needed again",
    ]
    assert found.results == ()


@pytest.mark.slow
def test_our_compactor_keeps_what_the_user_said_and_loses_nothing():
    found = evaluate([Transcript.of("told", agent(told=True), QUESTIONS)], **MEASURED)
    ours, theirs = found.results
    assert (ours.name, theirs.name) == ("conspectus", "langchain")
    assert (ours.quoted, ours.in_view) == (1.0, 1.0)
    assert (ours.read, ours.recoverable, ours.over, ours.broken) == (1.0, 1.0, 0, 0)
    assert theirs.recoverable == 0.0
    hidden = evaluate(
        [Transcript.of("shown", agent(), QUESTIONS)], [ConspectusSystem()], **MEASURED
    )
    assert hidden.results[0].with_recall > hidden.results[0].in_view
    assert {one.recalled for one in hidden.lost} >= {True}


def test_bad_settings_are_refused_before_anything_is_measured():
    session = [Transcript.of("a", agent())]
    for more in ({"summary_tokens": (0,)}, {"minimum": -1}, {"recall_tokens": "x"}):
        with pytest.raises(PolicyError, match="whole numbers of tokens"):
            evaluate(session, **{**MEASURED, **more})
    with pytest.raises(PolicyError, match="two systems are called"):
        evaluate(session, [Notes("x"), Notes("y")], **MEASURED)
    with pytest.raises(PolicyError, match="max_summary_tokens"):
        evaluate(session, **{**MEASURED, "summary_tokens": (5,)})


# Before and after


@pytest.fixture(scope="module")
def before() -> Evaluation:
    session = Transcript.of("a", agent(), QUESTIONS)
    return evaluate([session], [Notes(f"- {PATH_LINE}"), LangChainSystem()], **MEASURED)


def changed(found: Evaluation, place: int, **figures: Any) -> Evaluation:
    results = list(found.results)
    results[place] = replace(results[place], **figures)
    return replace(found, results=tuple(results))


def test_a_measurement_goes_to_json_and_back(before):
    assert Evaluation.from_json(json.loads(json.dumps(before.to_json()))) == before
    for wrong in ({}, [], {**before.to_json(), "schema": 1}, {**before.to_json(), "results": 3}):
        with pytest.raises(InputError, match="measurement"):
            Evaluation.from_json(wrong)


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({}, []),
        ({"quoted": 0.495}, []),
        ({"quoted": 0.4}, ["notes, 256: quoted fell from 0.500 to 0.400"]),
        ({"in_view": None}, ["notes, 256: in_view fell from 0.000 to 0.000"]),
        ({"over": 1}, ["notes, 256: over rose from 0 to 1"]),
    ],
)
def test_what_got_worse_is_named(before, figures, said):
    assert worse(before, changed(before, 0, **figures)) == said


def test_only_our_own_can_fail_and_only_like_is_compared_with_like(before):
    assert worse(before, changed(before, 1, quoted=0.0, read=0.0)) == []
    other = replace(before, settings=replace(before.settings, keep="messages:9"))
    fewer = replace(before, transcripts=())
    gone = replace(before, results=before.results[1:])
    for now in (other, fewer, gone):
        with pytest.raises(InputError):
            worse(before, now)


# What a user writes


def test_a_configuration_holds_arguments_of_the_compactor(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text('keep = "messages:10"\nmax_summary_tokens = 300\n')
    system = read_config(file)
    assert (system.name, system.settings["keep"]) == ("small", ("messages", 10))


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.toml", "keep = ", "is no TOML"),
        ("a.json", "[]", "must hold settings"),
        ("a.json", '{"kep": 3}', "kep"),
        ("a.json", '{"keep": "pages:3"}', "keep cannot be"),
        ("a.json", '{"window": -1}', "window"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(tmp_path: Path, name, text, why):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=why):
        read_config(tmp_path / name)


def test_a_broken_exam_says_where_and_how_it_is_written(tmp_path):
    file = tmp_path / "a.exam.json"
    file.write_text(json.dumps(EXAM))
    assert [one.question for one in read_questions(file)] == [one["question"] for one in EXAM]
    file.write_text('[{"question": "Who?"}]')
    with pytest.raises(InputError, match=r"a.exam.json: 0.evidence: .*write \[\{"):
        read_questions(file)
