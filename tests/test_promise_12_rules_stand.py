"""Promises 6 and 12, for rules: what the user has laid down stands word for word, or is named."""

import logging
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_support import error_line, read_json, run
from conspectus import Compactor, PolicyError
from conspectus.langchain import Skills
from histories import assistant, call_and_result, user
from stateful.budgets import few

RULE = "Never push to main without asking me."


def chat(turns: int, said: dict[int, str], seed: int = 3) -> list[dict[str, Any]]:
    """Requests of a user and answers, with other words of the user at some places."""
    draw = random.Random(seed)
    things = "plan letter table photo garden budgeted invoice poster timeline menu".split()
    messages: list[dict[str, Any]] = []
    for number in range(turns):
        thing = draw.choice(things)
        words = said.get(number, f"Could you look at {thing} {number} and tell me its colour?")
        messages.append({"role": "user", "content": words, "id": f"u{number}"})
        messages.append(
            {"role": "assistant", "content": f"The {thing} is blue. " * 6, "id": f"a{number}"}
        )
    return messages


def play(
    messages: list[dict[str, Any]], window: int = 4_000, steps: int = 6, **settings: Any
) -> Any:
    """Compact a history as it grows, as a loop does; return the last result."""
    with Compactor(window=window, archive="memory:", **settings) as compactor:
        view: list[Any] = []
        size = len(messages) // steps + 1
        for start in range(0, len(messages), size):
            view = [*view, *messages[start : start + size]]
            result = compactor.compact(view, thread_id="t", force=True)
            view = list(result.messages)
        return result


def text_of(result: Any) -> str:
    return "\n".join(str(message["content"]) for message in result.messages)


@pytest.mark.parametrize("window", [2_000, 4_000, 8_000])
@pytest.mark.parametrize("turn", [0, 5, 60, 110])
def test_a_rule_said_once_stands_after_many_compactions(window, turn):
    result = play(chat(120, {turn: f"Thanks, good. {RULE} What is next?"}), window)

    assert RULE in text_of(result)
    assert result.rules_left_out == ()


def test_rules_stand_before_all_other_words_of_the_user():
    said = {n: f"You must never open door {n * 7919}." for n in range(3, 60, 4)}

    result = play(chat(120, said), 4_000)

    missing = [rule for rule in said.values() if rule not in text_of(result)]
    assert missing == []


def test_a_long_message_gives_way_around_its_rule():
    story = "We walked along the river and had some tea with our neighbours. " * 60
    result = play(chat(60, {4: f"{story}{RULE} {story}"}), 4_000)

    assert RULE in text_of(result)
    assert story.strip() not in text_of(result)


def test_rules_that_have_no_room_are_named(caplog):
    said = flood(118)
    caplog.set_level(logging.WARNING, "conspectus")

    result = play(chat(120, said), 2_000)

    in_view = text_of(result)
    assert result.rules_left_out
    left_out = {rule.text: rule.id for rule in result.rules_left_out}
    for turn, rule in said.items():
        assert (rule in in_view) != (rule in left_out), rule
        assert left_out.get(rule, f"u{turn}") == f"u{turn}"
    newest_left_out = max(int(name[1:]) for name in left_out.values())
    assert all(turn > newest_left_out for turn, rule in said.items() if rule in in_view)
    assert f"({len(left_out)} rules left out; recall u2, u3, " in in_view
    events = [getattr(record, "conspectus", {}).get("event") for record in caplog.records]
    assert "rules_left_out" in events


def test_a_rule_that_stays_in_view_is_not_left_out():
    rule = "You must never open the door of room 4711."
    settings: Any = {"notes": False, "summarizer": lambda _: "Fine.", "check_summaries": False}
    with Compactor(window=2_000, archive="memory:", **settings) as c:
        messages = chat(60, {10: rule, 59: rule})
        result = c.compact(messages, thread_id="t", force=True)

    assert rule in text_of(result)
    assert result.rules_left_out == ()


def test_a_text_that_stands_alone_names_the_rules_that_it_misses():
    settings: Any = {"notes": False, "summarizer": lambda _: "Fine.", "check_summaries": False}
    with Compactor(window=4_000, **settings) as c:
        result = c.compact(chat(60, {10: RULE}), thread_id="t", force=True)

    assert [tuple(rule) for rule in result.rules_left_out] == [("u10", RULE)]


def test_a_later_statement_stands_behind_the_rule_that_it_changes():
    first = "Always send the figures of Quexley to Ottoline."
    later = "About Quexley, Bram takes it over."
    result = play(chat(120, {10: first, 40: f"Good. {later} Go on."}), 2_000)

    in_view = text_of(result)
    assert first in in_view
    assert in_view.find(later) > in_view.find(first)


def test_what_only_names_what_a_rule_names_draws_no_further_sentences():
    said = {4: "Always send the figures of Quexley to Ottoline."}
    for n in range(5, 60):
        said[n] = (
            f"Tell me of Town{n} and of Town{n + 1}, as of Quexley."
            if n == 5
            else (f"What do you know about Town{n} and Town{n + 1}, which lie by the sea?")
        )
    result = play(chat(120, said), 2_000)

    lines = result.record.notes["lines"]
    bound = [line["ids"][0] for line in lines if line.get("rules")]
    assert bound == ["u4", "u5"]


def test_a_system_message_in_the_middle_stands():
    messages = chat(60, {})
    order = {"role": "system", "content": "Be polite.\nThe shop closes at six.", "id": "s1"}
    result = play([*messages[:20], order, *messages[20:]], 4_000)

    assert "Be polite." in text_of(result)
    assert "The shop closes at six." in text_of(result)


FILE = (
    "# Notes\nThe project began in May.\nYou must sign each commit with your key.\n"
    + "It has a long story. " * 200
)


@pytest.mark.parametrize(
    ("path", "asked", "stands"),
    [
        ("docs/CONTRIBUTING.md", "Please follow CONTRIBUTING.md in all you do.", True),
        ("docs/CONTRIBUTING.md", "Please look around.", False),
        ("/mnt/skills/git/SKILL.md", "Please look around.", True),
    ],
)
def test_what_a_named_file_lays_down_stands(path, asked, stands):
    messages = [
        user(asked),
        *call_and_result("read_file", {"path": path}, FILE, "r1"),
        assistant("I see."),
        *chat(80, {}),
    ]
    result = play(messages, 4_000, skills=Skills(("read_file",)))

    assert ("You must sign each commit with your key." in text_of(result)) == stands


def test_sentences_of_the_program_stand_in_each_summary():
    result = play(chat(80, {}), 2_000, rules=["Write British English."])

    assert "Write British English." in result.summary


def flood(turns: int) -> dict[int, str]:
    """So many rules that only the newest have room."""
    return {
        n: f"You must never open door {n * 7919} of the house number {n * 104729}, whoever asks "
        f"for it, and whatever the neighbours of house {n * 1299709} say about it at night."
        for n in range(2, turns)
    }


def test_a_function_says_what_binds():
    odd = "Blue is the colour of doors 3 and 4."
    said = flood(118) | {9: odd}
    result = play(chat(120, said), 2_000, rules=lambda text: [odd] if odd in text else [])

    assert odd in result.summary
    assert result.rules_left_out == ()


@pytest.mark.parametrize("rules", ["Be brief.", [""], [3], 7, list])
def test_what_is_no_rules_is_refused(rules):
    with pytest.raises(PolicyError, match="rules"):
        Compactor(rules=rules)


@pytest.mark.parametrize("rules", [lambda text: 1 / 0, lambda text: [3]])
def test_a_function_that_fails_is_an_error_with_a_remedy(rules):
    with pytest.raises(PolicyError, match=r"rules= .*list of"):
        Compactor(rules=rules, on_failure="raise").compact(chat(60, {}), thread_id="t", force=True)


def test_a_sentence_that_nobody_wrote_is_left_out_and_logged(caplog):
    with Compactor(rules=lambda text: ["Always whistle."]) as compactor:
        result = compactor.compact(chat(20, {}), thread_id="t", force=True)
    assert "whistle" not in result.summary
    [record] = [r for r in caplog.records if r.conspectus["event"] == "rules_not_in_text"][:1]
    assert "Always whistle." in record.getMessage()
    assert "letter for letter" in record.getMessage()


@pytest.fixture
def archive(tmp_path):
    return tmp_path / "a.db"


def compact_into(archive, turns):
    with Compactor(window=4_000, archive=str(archive)) as compactor:
        return compactor.compact(
            chat(turns, {5: f"Fine. {RULE} Go on."}), thread_id="t", force=True
        )


def test_the_command_lists_rules_and_where_they_were_said(archive):
    compact_into(archive, 60)

    [rule] = read_json("rules", "--archive", archive, "--thread", "t")

    assert (rule["text"], rule["message"], rule["position"]) == (RULE, "u5", 11)
    assert (rule["in_summary"], rule["removed"], rule["thread"]) == (True, False, "t")
    assert RULE in run("rules", "--archive", archive).stdout


def test_a_rule_is_taken_out_and_put_back(archive):
    messages = chat(120, flood(118))
    rule = messages[2 * 115]["content"]

    def summary() -> str:
        with Compactor(window=2_000, archive=str(archive), keep=("messages", 2)) as compactor:
            return compactor.compact(messages, thread_id="t", force=True).summary

    def change(option: str) -> str:
        [listed] = [
            r
            for r in read_json("rules", "--archive", archive, "--thread", "t")
            if r["text"] == rule
        ]
        run("rules", "--archive", archive, "--thread", "t", option, listed["id"])
        messages.extend([user("Go on."), assistant("I go on. " * 30)])
        return summary()

    assert rule in summary()
    assert rule not in change("--remove")
    assert rule in change("--restore")


def test_an_unknown_rule_is_an_error_with_a_remedy(archive):
    compact_into(archive, 60)

    line = error_line("rules", "--archive", archive, "--thread", "t", "--remove", "nothing")

    assert "conspectus rules --thread t" in line
    assert "--thread" in error_line("rules", "--archive", archive, "--remove", "nothing")


NAMES = "Quexley Ottoline Brambury Vantreel Hoskin Merriweld Tolvane Ashgrove".split()
BINDING = [
    "Never send the figures of {name} to anybody.",
    "From now on write {name} in capitals.",
    "Die Unterlagen von {name} dürfen auf keinen Fall gelöscht werden.",
    "Le budget de {name} ne doit jamais dépasser 500 euros.",
    "El informe de {name} siempre debe ir en español.",
    "{name} のファイルは絶対に削除しないでください。",
    "绝不要删除 {name} 的文件。",
    "You must not touch {name} before Friday.",
]
BINDING_ANYWHERE = [rule for rule in BINDING if not rule.startswith(("Die", "El"))]
AROUND = ["", "Thanks, good. ", "The weather is fine here, and we walked along the river. " * 12]


@st.composite
def histories_with_rules(draw: Any) -> tuple[list[dict[str, Any]], dict[str, str], dict[str, str]]:
    """A talk, the rules that were said in it by their messages, and what takes some back."""
    turns = draw(st.integers(30, 60))
    number = draw(st.integers(1, 3))  # of rules about each name
    names = [
        f"{name}-{place}x"
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
        for place in range(number)
    ]
    said: dict[int, str] = {}
    rules: dict[str, str] = {}
    revoked: dict[str, str] = {}
    for name in names:
        turn = draw(st.sampled_from([place for place in range(turns - 1) if place not in said]))
        before = draw(st.sampled_from(AROUND))
        behind = draw(st.sampled_from(AROUND))
        # Among many words of another language not each rule is taken for one.
        binding = BINDING if len(before + behind) < 100 else BINDING_ANYWHERE
        rule = draw(st.sampled_from(binding)).format(name=name)
        said[turn] = f"{before}{rule} {behind}"
        rules[f"u{turn}"] = rule
        later = [place for place in range(turn + 1, turns) if place not in said]
        if later and draw(st.booleans()):
            revocation = f"What I said about {name} holds no more."
            place = draw(st.sampled_from(later))
            said[place] = f"{draw(st.sampled_from(AROUND))}{revocation}"
            revoked[rule] = revocation
            rules[f"u{place}"] = revocation
    return chat(turns, said, seed=draw(st.integers(0, 99))), rules, revoked


@settings(max_examples=few(40))
@given(histories_with_rules(), st.sampled_from([2_000, 3_000, 4_000, 8_000]), st.integers(1, 8))
def test_each_rule_stands_or_is_named_after_each_round(history, window, rounds):
    messages, rules, revoked = history
    with Compactor(window=window, archive="memory:") as compactor:
        view: list[Any] = []
        size = len(messages) // rounds + 1
        for start in range(0, len(messages), size):
            view = [*view, *messages[start : start + size]]
            result = compactor.compact(view, thread_id="t", force=True)
            view = list(result.messages)
            in_view = text_of(result)
            left_out = "\n".join(rule.text for rule in result.rules_left_out)
            said = {message["id"] for message in messages[: start + size]}
            for message_id, rule in rules.items():
                if message_id in said:
                    assert (rule in in_view) != (rule in left_out), rule
            said_rules = {rules[message_id] for message_id in said & rules.keys()}
            for rule, later in revoked.items():
                if rule in in_view and later in said_rules:
                    assert in_view.rfind(later) > in_view.find(rule), rule


@pytest.mark.parametrize("number_of_rules", [9, 10, 14, 40])
def test_one_rule_too_many_leaves_the_others_and_the_summary(number_of_rules):
    rules = [
        f"Rule {n}: never do thing {n} without asking the boss." for n in range(number_of_rules)
    ]
    text = "The user asked to look at each part of the plan about billing-api, from part 0 on."
    request = "Please look at part {} of the plan about billing-api, and tell me what is missing. "
    messages = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": request.format(n) * 6}
        for n in range(100)
    ]
    with Compactor(
        summarizer=lambda _: text,
        window=8_000,
        keep=("messages", 2),
        max_summary_tokens=400,
        rules=rules,
    ) as compactor:
        result = compactor.compact(messages, thread_id="t", force=True)
    left_out = [rule.text for rule in result.rules_left_out]
    assert [rule for rule in rules if rule not in result.summary] == left_out
    assert len(rules) - len(left_out) >= min(8, number_of_rules)
    assert text in result.summary
