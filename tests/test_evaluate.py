"""`evaluate` as a whole, on made transcripts whose figures are known."""

import functools
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from conspectus import InputError, PolicyError, SummaryError
from conspectus.messages import summary_text
from conspectus.tokens import TokenMeter
from conspectus_lab.evaluate import (
    ConspectusSystem,
    Evaluation,
    LangChainSystem,
    SystemResult,
    TailSystem,
    Transcript,
    compare,
    evaluate,
    questions_of,
    read_config,
)
from made_transcripts import CODE, CODE_LINE, KEEP, PATH, PATH_LINE, QUESTIONS, TALK, Notes, agent
from scripted_models import ScriptedChatModel

AGENT = Transcript.of("agent", agent())
TOLD = Transcript.of("agent", agent(told=True))
FRAME = count_tokens_approximately([HumanMessage(summary_text("", archived=True))])
"""What stands around the notes in the message that holds them, in tokens."""
ASKED = Transcript.of("talk", TALK, questions_of(QUESTIONS, "talk.qa.json"))


def measured(*systems: Any, transcripts: tuple[Transcript, ...] = (AGENT,), **more: Any) -> Any:
    more = {"summary_tokens": [256], "keep": KEEP, "minimum_tokens": 0, **more}
    return evaluate(transcripts, systems, **more)


# Future use


@pytest.mark.parametrize(
    ("notes", "far", "quoted"),
    [
        ("nothing at all", 0.0, 0.0),
        (f"- {PATH_LINE}\n- {CODE_LINE}", 1.0, 1.0),
        (f"- {PATH_LINE}\n- {CODE}", 1.0, 0.5),
        (f"{PATH} {CODE}", 1.0, 0.0),
        (f"ticket {CODE} tells more about it", 0.5, 0.5),
    ],
)
def test_future_use_is_what_the_notes_hold(notes, far, quoted):
    found = measured(Notes(notes)).systems[0].future_use
    assert (found.far.value, found.quoted.value) == (far, quoted)
    assert found.cuts == 3
    assert found.quoted_in == {"agent": quoted}


def test_kinds_and_distances_are_told_apart():
    found = measured(Notes(PATH_LINE)).systems[0].future_use
    shares = {kind: (share.held, share.wanted) for kind, share in found.by_kind.items()}
    assert shares == {"path": (3, 3), "opaque": (0, 3)}
    # Shown in message 4 of 41 and needed in message 39.
    bands = {band: (share.held, share.wanted) for band, share in found.by_distance.items()}
    assert bands == {"30 to 99": (3, 6)}


def test_the_mean_is_over_transcripts_and_not_over_identifiers():
    other = Transcript.of("other", agent(last=f"I close {CODE}"))
    found = measured(Notes(CODE_LINE), transcripts=(AGENT, other)).systems[0].future_use
    assert found.quoted_in == {"agent": 0.5, "other": 1.0}
    assert found.quoted.value == 0.75
    assert found.quoted.low < 0.75 < found.quoted.high


def test_keeping_everything_wins_nothing_as_it_is_over():
    found = measured(Notes(None)).systems[0].future_use
    assert found.quoted.value == 1.0
    assert found.contexts.over == found.cuts == 3


def test_a_system_that_keeps_less_is_allowed_less():
    notes = "word " * 400  # 500 tokens, and 256 are allowed
    assert measured(Notes(notes)).systems[0].future_use.contexts.over == 3
    assert measured(Notes(notes), summary_tokens=[600]).systems[0].future_use.contexts.over == 0
    # What another tail would have been allowed does not help.
    assert measured(Notes("word " * 305)).systems[0].future_use.contexts.over == 0
    small = Notes("word " * 305, keep=("messages", 2))
    assert measured(small, summary_tokens=[256]).systems[0].future_use.contexts.over == 3


def test_what_the_first_message_says_is_not_far():
    messages = agent()
    messages[0]["content"] += f" It is in {PATH}."
    found = measured(Notes("x"), transcripts=(Transcript.of("a", messages),)).systems[0].future_use
    assert {kind: share.wanted for kind, share in found.by_kind.items()} == {"opaque": 3}


def test_a_call_that_lost_its_result_is_broken():
    found = measured(Notes("x", torn=True), rounds=5).systems[0]
    assert found.future_use.contexts.broken == 3
    assert found.rounds.broken == 3 * 5


def test_truncation_keeps_nothing_far():
    found = measured(TailSystem(KEEP)).systems[0]
    assert found.summary_tokens == 0
    assert found.future_use.quoted.value == found.future_use.far.value == 0.0
    assert found.future_use.contexts.broken == found.future_use.contexts.over == 0


@pytest.mark.parametrize(
    ("messages", "more", "why"),
    [
        (agent(), {"minimum_tokens": 1_000_000}, "fewer than 1,000,000 tokens"),
        (agent(), {"keep": ("messages", 100)}, "all that stands before the cuts is kept"),
        (agent(last="the end"), {}, "nothing that has left is needed again"),
        ([{"role": "user", "content": "hi"}], {}, "does not act often enough"),
    ],
)
def test_what_cannot_be_measured_says_why(messages, more, why):
    found = measured(Notes("x"), transcripts=(Transcript.of("a", messages),), **more)
    assert why in found.transcripts[0].skipped
    assert found.systems[0].future_use is None


def test_our_compactor_archives_what_it_evicts_and_stays_in_its_budget():
    systems = ConspectusSystem(keep=KEEP), LangChainSystem(KEEP)
    found = measured(*systems, transcripts=(TOLD,))
    ours, theirs = (result.future_use for result in found.systems)
    contexts = ours.contexts
    assert contexts.evicted > 0
    assert contexts.read == contexts.recoverable == contexts.evicted
    assert 0 < contexts.cited <= contexts.evicted
    assert contexts.over == contexts.broken == 0
    assert 0 < contexts.largest_summary <= 256 + FRAME
    assert contexts.calls == contexts.input_tokens == contexts.output_tokens == 0
    assert ours.quoted.value == 1.0
    assert theirs.contexts.recoverable == theirs.contexts.cited == 0
    assert theirs.contexts.read > 0


def test_the_scripted_summariser_sees_what_langchain_trims_to():
    whole = measured(LangChainSystem(KEEP, trim=None)).systems[0].future_use
    trimmed = measured(LangChainSystem(KEEP, trim=200)).systems[0].future_use
    assert whole.contexts.read == whole.contexts.evicted
    # It hands over the newest from a message of the user on, and there is only the first one.
    assert trimmed.contexts.read == 0


def test_a_model_that_a_configuration_names_is_paid_for_in_the_figures():
    model = ScriptedChatModel(answers=[f"## Facts\n- {PATH_LINE} [m4]"] * 3)
    system = ConspectusSystem(keep=KEEP, settings={"summarizer": model, "notes": False})
    found = measured(system).systems[0].future_use
    assert found.quoted.value == 0.5
    assert found.contexts.calls == found.cuts == 3
    assert found.contexts.input_tokens > found.contexts.output_tokens > 0


def test_a_model_that_cannot_summarise_ends_the_measurement():
    sorry = ["I'm sorry, but I can't help with that."] * 2
    model = ScriptedChatModel(answers=sorry, cites=False)
    with pytest.raises(SummaryError):
        measured(ConspectusSystem(keep=KEEP, settings={"summarizer": model}))


# Answers


def test_answers_are_what_the_notes_and_recall_hold():
    name = "[8 May 2023] Ann: She is called Pepper and likes tuna"
    event = "[8 May 2023] Ann: I adopted a grey kitten yesterday"
    found = measured(Notes(name), transcripts=(ASKED,)).systems[0]
    assert found.future_use is None
    answers = found.answers
    assert answers.answers.value == pytest.approx(2 / 3)
    assert (answers.questions, answers.unmarked) == (3, 1)
    assert answers.by_category["2"].value == 0.0
    assert answers.evidence == pytest.approx(2 / 3)
    both = Notes(name, recalled=event)
    helped = measured(both, transcripts=(ASKED,), recall_tokens=64).systems[0].answers
    assert helped.answers.value == 1.0
    assert helped.evidence == 1.0
    assert helped.recall_over == 0
    assert helped.tokens > answers.tokens
    deaf = measured(both, transcripts=(ASKED,)).systems[0].answers
    assert deaf.answers.value == pytest.approx(2 / 3)


def test_the_gain_is_over_the_tail_with_a_plain_search():
    lost = measured(Notes("nothing"), transcripts=(ASKED,), recall_tokens=64).systems[0].answers
    assert lost.bm25.value == 1.0
    assert lost.gain.value == pytest.approx(lost.answers.value - lost.bm25.value) == -1.0
    without = measured(Notes("nothing"), transcripts=(ASKED,)).systems[0].answers
    assert without.bm25.value == without.gain.value == 0.0


def test_recall_that_gives_more_than_it_was_asked_for_is_counted():
    much = Notes("x", recalled="word " * 200)
    found = measured(much, transcripts=(ASKED,), recall_tokens=64).systems[0].answers
    assert found.recall_over == found.questions == 3


def test_a_question_without_a_word_finds_nothing_and_stops_nothing():
    rows = [*QUESTIONS, {**QUESTIONS[0], "question": "???"}, {**QUESTIONS[0], "question": ""}]
    talk = Transcript.of("talk", TALK, questions_of(rows, "talk.qa.json"))
    system = ConspectusSystem(keep=KEEP)
    found = measured(system, transcripts=(talk,), recall_tokens=64).systems[0].answers
    assert found.questions == 5
    thread = system.open(256)
    thread.compact(talk.messages)
    assert [bool(thread.recall(asked, 64)) for asked in ("kitten", "???", "")] == [1, 0, 0]
    thread.close()


def test_our_recall_keeps_to_its_tokens_and_finds_the_answers():
    system = ConspectusSystem(keep=KEEP)
    found = measured(system, transcripts=(ASKED,), recall_tokens=64).systems[0].answers
    assert found.recall_over == 0
    assert found.answers.value == 1.0


def test_an_agent_with_questions_is_measured_both_ways():
    asked = questions_of(
        [{"question": "Which ticket tells more?", "answer": CODE, "evidence": ["m4"]}], "q"
    )
    both = Transcript.of("both", agent(), asked)
    found = measured(Notes(f"{PATH_LINE}\n{CODE_LINE}"), transcripts=(both,)).systems[0]
    assert found.future_use.quoted.value == 1.0
    assert found.answers.answers.value == 1.0


# Rounds


def test_rounds_hold_many_compactions_against_one():
    system = ConspectusSystem(keep=KEEP)
    found = measured(system, transcripts=(TOLD,), rounds=5).systems[0].rounds
    assert found.cuts == 3
    assert found.skipped == 0
    assert 4 <= found.compactions <= 5
    assert found.one == 1.0
    assert found.ratio == found.many / found.one
    assert found.over == found.broken == 0
    assert 0 < found.largest_summary <= 256 + FRAME


def test_the_ratio_is_that_of_the_last_round_to_a_single_one():
    forgetful = Notes(f"{PATH_LINE}\n{CODE_LINE}", later=CODE_LINE)
    found = measured(forgetful, rounds=5).systems[0].rounds
    assert (found.one, found.many, found.ratio) == (1.0, 0.5, 0.5)
    assert measured(Notes("x", later=CODE_LINE), rounds=5).systems[0].rounds.ratio is None


def test_a_summary_over_its_limit_is_counted_in_every_round():
    large = Notes("word " * 400)
    found = measured(large, rounds=5).systems[0].rounds
    assert found.over == 3 * 5
    assert measured(large, rounds=5, summary_tokens=[600]).systems[0].rounds.over == 0


def test_cuts_with_too_little_for_so_many_rounds_are_left_out():
    found = measured(Notes("x"), rounds=20).systems[0].rounds
    assert found.skipped > 0
    assert found.skipped + found.cuts == 3
    assert measured(Notes("x"), rounds=500).systems[0].rounds is None


# The result


def without_seconds(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: without_seconds(value) for key, value in data.items() if key != "seconds"}
    return list(map(without_seconds, data)) if isinstance(data, list | tuple) else data


@functools.cache
def everything() -> Evaluation:
    systems = [ConspectusSystem(keep=KEEP), LangChainSystem(KEEP), TailSystem(KEEP)]
    return measured(*systems, transcripts=(TOLD, ASKED), rounds=2, recall_tokens=64)


def test_a_measurement_goes_to_json_and_back():
    found = everything()
    text = json.dumps(found.to_json())
    assert Evaluation.from_json(json.loads(text)) == found


def test_the_same_input_gives_the_same_figures():
    one, two = (without_seconds(each().to_json()) for each in (everything, everything.__wrapped__))
    assert json.dumps(one) == json.dumps(two)


def test_the_first_system_is_compared_pair_by_pair():
    found = everything()
    pairs = {(d.measure, d.second): d.difference.value for d in found.differences}
    ours = found.system("conspectus")
    theirs = found.system("langchain", 256)
    assert pairs["quoted", "tail"] == ours.future_use.quoted.value
    expected = ours.answers.answers.value - theirs.answers.answers.value
    assert pairs["answers", "langchain 256"] == pytest.approx(expected)
    assert len(pairs) == 4
    with pytest.raises(KeyError, match="no system 'other'"):
        found.system("other")


@pytest.mark.parametrize("data", [None, [], {}, {"v": 99}, {"v": 1, "settings": {}}])
def test_what_is_no_measurement_is_refused(data):
    with pytest.raises(InputError, match=r"measur"):
        Evaluation.from_json(data)


def test_progress_is_told_and_ends():
    told: list[tuple[int, int, str]] = []

    def tell(done: int, total: int, what: str) -> None:
        told.append((done, total, what))

    transcripts = (AGENT, ASKED)
    measured(Notes("x"), LangChainSystem(KEEP), transcripts=transcripts, rounds=2, progress=tell)
    steps = [step for step in told if not step[2].startswith("reading")]
    assert [done for done, _, _ in steps] == list(range(steps[0][1]))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"summary_tokens": []}, "at least one size"),
        ({"summary_tokens": [0]}, "at least one size"),
        ({"rounds": -1}, "rounds cannot be -1"),
        ({"recall_tokens": -1}, "recall_tokens cannot be -1"),
        ({"transcripts": (AGENT, AGENT)}, "two transcripts are called 'agent'"),
    ],
)
def test_what_means_nothing_is_refused(more, why):
    with pytest.raises(InputError, match=why):
        measured(Notes("x"), **more)


def test_two_systems_of_one_name_are_refused():
    with pytest.raises(InputError, match="two systems are called 'notes'"):
        measured(Notes("x"), Notes("y"))


def test_bad_settings_are_refused_before_anything_is_measured():
    with pytest.raises(PolicyError):
        measured(ConspectusSystem(settings={"clip_over": -5}))


# Transcripts


def test_the_same_talk_in_anthropics_form_and_in_langchains_scores_the_same():
    openai = agent()
    anthropic: list[dict[str, Any]] = []
    langchain: list[Any] = []
    for row in openai:
        if row["role"] == "assistant":
            (call,) = row["tool_calls"]
            args = json.loads(call["function"]["arguments"])
            use = {"type": "tool_use", "id": call["id"], "name": "look", "input": args}
            text = {"type": "text", "text": row["content"]}
            anthropic.append({"role": "assistant", "content": [text, use]})
            calls = [{"id": call["id"], "name": "look", "args": args}]
            langchain.append(AIMessage(row["content"], tool_calls=calls))
        elif row["role"] == "tool":
            block = {
                "type": "tool_result",
                "tool_use_id": row["tool_call_id"],
                "content": row["content"],
            }
            anthropic.append({"role": "user", "content": [block]})
            langchain.append(ToolMessage(row["content"], tool_call_id=row["tool_call_id"]))
        else:
            anthropic.append(row)
            langchain.append(HumanMessage(row["content"]))
    first, *others = (Transcript.of("agent", m) for m in (openai, anthropic, langchain))
    for other in others:
        assert other.messages == first.messages
        assert other.digest == first.digest


def test_several_results_in_one_message_become_several_messages():
    blocks = [{"type": "tool_result", "tool_use_id": n, "content": f"is {n}"} for n in ("a", "b")]
    talk = [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": n, "name": "look", "input": {}} for n in ("a", "b")
            ],
        },
        {"role": "user", "content": [*blocks, {"type": "text", "text": "go on"}]},
        {"role": "system", "content": "left out"},
    ]
    made = Transcript.of("t", talk).messages
    assert [(m.type, m.text, m.id) for m in made[1:]] == [
        ("tool", "is a", "m1"),
        ("tool", "is b", "m1.1"),
        ("human", "go on", "m1.2"),
    ]


def test_an_id_that_comes_again_gets_a_number():
    talk = [{"role": "user", "content": text, "id": "a"} for text in ("one", "two", "three")]
    made = Transcript.of("t", talk)
    assert [m.id for m in made.messages] == ["a", "a~2", "a~3"]
    assert made.words == {"a": "one", "a~2": "two", "a~3": "three"}


def test_who_said_it_when_stands_in_a_talk_with_questions_only():
    assert ASKED.messages[0].text == "[8 May 2023] Ann: I adopted a grey kitten yesterday"
    assert ASKED.words["D1:1"] == "I adopted a grey kitten yesterday"
    assert Transcript.of("talk", TALK).messages[0].text == "I adopted a grey kitten yesterday"


@pytest.mark.parametrize("data", [{}, [1], [{"question": "?"}], [{**QUESTIONS[0], "evidence": 1}]])
def test_questions_of_another_form_are_refused(data):
    with pytest.raises(InputError, match=r"a\.qa\.json"):
        questions_of(data, "a.qa.json")


# Comparing


def changed(found: Evaluation, **figures: float) -> Evaluation:
    """The measurement with other figures for our own system."""
    data = found.to_json()
    ours = next(one for one in data["systems"] if one["family"] == "conspectus")
    for name, value in figures.items():
        use = ours["future_use"]
        if name in ("quoted", "far"):
            use[name] = {**use[name], "value": value}
        elif name == "answers":
            ours["answers"]["answers"] = {**ours["answers"]["answers"], "value": value}
        elif name == "ratio":
            ours["rounds"]["ratio"] = value
        else:
            use["contexts"][name] = value
    return Evaluation.from_json(data)


def test_what_got_worse_by_more_than_is_tolerated_is_named():
    found = everything()
    value = found.system("conspectus").future_use.quoted.value
    worse = changed(found, quoted=value - 0.02)
    (change,) = compare(worse, found).worse
    assert (change.system, change.measure) == ("conspectus 256", "quoted")
    assert change.now == pytest.approx(change.before - 0.02)
    assert compare(worse, found, tolerance=0.02).worse == ()
    assert compare(found, worse).worse == ()
    assert compare(found, found).worse == ()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["over", "broken"])
def test_a_single_failure_more_is_worse_whatever_is_tolerated(name):
    found = everything()
    (change,) = compare(changed(found, **{name: 1}), found, tolerance=0.5).worse
    assert change.measure == name


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("figures", "measure"),
    [
        ({"answers": 0.5}, "answers"),
        ({"ratio": 0.5}, "ratio of 2 rounds"),
        ({"recoverable": 0}, "recoverable"),
        ({"read": 0}, "read"),
    ],
)
def test_every_measure_can_get_worse(figures, measure):
    found = everything()
    assert [one.measure for one in compare(changed(found, **figures), found).worse] == [measure]


def test_systems_of_others_cannot_fail_a_comparison():
    found = everything()
    data = found.to_json()
    for one in data["systems"]:
        if one["family"] != "conspectus":
            one["future_use"]["quoted"]["value"] = 1.0
    assert compare(found, Evaluation.from_json(data)).worse == ()


def test_only_like_is_compared_with_like():
    found = everything()
    other = measured(ConspectusSystem(keep=KEEP), transcripts=(AGENT,))
    with pytest.raises(InputError, match="recall_tokens 64, now 0"):
        compare(other, found)
    same = {"rounds": 2, "recall_tokens": 64}
    with pytest.raises(InputError, match=r"not those of then \(talk\)"):
        compare(measured(ConspectusSystem(keep=KEEP), transcripts=(TOLD,), **same), found)
    with pytest.raises(InputError, match="'conspectus 256' was measured then"):
        compare(measured(LangChainSystem(KEEP), transcripts=(TOLD, ASKED), **same), found)
    with pytest.raises(InputError, match="tolerance"):
        compare(found, found, tolerance=-1)


# Configurations


def test_a_configuration_says_what_the_compactor_does(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(
        'keep = "tokens:500"\nsummary_tokens = [128, 256]\nwindow = 8000\nclip_over = false\n'
        'trigger = "messages:10"\nsummarizer = "embedded"\n'
    )
    system = read_config(file)
    assert (system.name, system.keep, system.sizes) == ("small", ("tokens", 500), (128, 256))
    policy = system.compactor(128).policy
    assert policy.clip_over is None
    same = tmp_path / "same.json"
    same.write_text(json.dumps({"name": "other", "summary_tokens": 99, "keep": ["messages", 3]}))
    assert read_config(same) == ConspectusSystem("other", ("messages", 3), (99,))
    found: SystemResult = measured(read_config(same), summary_tokens=[256]).systems[0]
    assert found.label == "other 99"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.toml", "x = 1", "unknown is 'x'"),
        ("a.toml", "keep = 'fraction:0.5'", "keep cannot be"),
        ("a.toml", "keep = ", "is no TOML"),
        ("a.json", "[]", "must hold settings"),
        ("a.json", "{", "is no JSON"),
        ("a.toml", "summary_tokens = 0", "summary_tokens cannot be 0"),
        ("a.toml", "name = ''", "name must be a text"),
        ("a.toml", "window = -1", r"a\.toml: window must be a whole number of at least 1, got -1"),
        ("a.toml", "stale_results = {leas = 5}", r"a\.toml: stale_results must be"),
        ("a.yaml", "", r"\.toml or a \.json"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(tmp_path, name, text, why):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=why):
        read_config(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "nowhere.toml")


def test_another_counter_counts_for_all_systems():
    meter = TokenMeter()

    def estimate(messages: Any) -> int:
        return meter.messages(list(messages))

    systems = ConspectusSystem(keep=KEEP, count=estimate), LangChainSystem(KEEP, count=estimate)
    found = measured(*systems, count=estimate, counter="estimate")
    assert (
        found.transcripts[0].tokens
        == estimate(AGENT.messages)
        != measured(Notes("x")).transcripts[0].tokens
    )
    assert found.settings.counter == "estimate"
    assert all(result.future_use.contexts.over == 0 for result in found.systems)
