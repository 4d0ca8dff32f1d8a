"""Which sentences of a user bind."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from conspectus.rules import find_rules
from conspectus.rules.detection import MOST_RULES, READ_CHARACTERS

EXAMPLES = tomllib.loads((Path(__file__).parent / "rule_examples.toml").read_text("utf-8"))
TERSE = tomllib.loads((Path(__file__).parent / "rule_examples_terse.toml").read_text("utf-8"))


def found(text: str) -> list[str]:
    return [rule.text for rule in find_rules(text)]


@pytest.mark.parametrize("language", EXAMPLES)
def test_sentences_that_bind_are_found(language: str) -> None:
    missed = [text for text in EXAMPLES[language]["binds"] if not find_rules(text)]

    assert missed == []


def test_terse_sentences_that_bind_are_found() -> None:
    sentences = [text for texts in TERSE.values() for text in texts]
    missed = [text for text in sentences if not find_rules(text)]

    assert len(missed) <= len(sentences) // 20, missed


def test_the_full_stop_of_a_title_ends_no_sentence() -> None:
    text = "Do not contact Mr. Olsen directly."

    assert found(text) == [text]


def test_few_other_sentences_are_taken_for_rules() -> None:
    free = [text for examples in EXAMPLES.values() for text in examples["free"]]
    taken = [text for text in free if find_rules(text)]

    assert len(taken) <= len(free) // 20, taken


@pytest.mark.parametrize("language", EXAMPLES)
def test_a_rule_is_found_between_requests(language: str) -> None:
    rule = EXAMPLES[language]["binds"][0]
    before, *_, after = EXAMPLES[language]["free"]
    text = f"{before} {rule} {after}"

    assert rule in " ".join(found(text))


def test_a_rule_is_a_slice_of_the_text() -> None:
    text = "The build is green.\n\n  Never push to main!  \nWhat is next?"

    [rule] = find_rules(text)

    assert text[rule.start : rule.start + len(rule.text)] == rule.text == "Never push to main!"


def test_a_sentence_that_points_back_is_found_with_its_subject() -> None:
    text = "I have put a list of names into people.csv. They must not leave this machine."

    assert found(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Always\u200b use tabs.",
        "Al\u00adways use tabs.",
        "\u2068Never\u2069 push to main.",
        "\u202eNever\u202c push to main.",
        "Ｎｅｖｅｒ push to main.",
    ],
)
def test_signs_that_nobody_sees_hide_no_rule(text: str) -> None:
    assert [rule.text for rule in find_rules(text)] == [text]


def test_items_under_a_heading_of_rules_bind() -> None:
    text = "Rules for this project:\n- two spaces\n- one class a file\n\nNow open the first file."

    assert found(text) == ["Rules for this project:", "- two spaces", "- one class a file"]


def test_code_holds_no_rules() -> None:
    text = "Have a look:\n```\n# you must never call this\n```\nDoes it compile?"

    assert found(text) == []


def test_words_of_others_in_quotation_marks_do_not_bind() -> None:
    text = 'The page reads "Visitors must never feed the animals in the park" at its top.'

    assert found(text) == []


def test_the_day_before_a_month_ends_no_sentence() -> None:
    text = "Die Abgabe ist spätestens am 18. September um zwölf."

    assert found(text) == [text]


def test_both_ends_of_a_long_text_are_read() -> None:
    filling = "The quick fox sleeps. " * READ_CHARACTERS
    text = f"Never push to main. {filling}Always ask first."

    assert found(text) == ["Never push to main.", "Always ask first."]


def test_a_document_of_rules_has_an_end() -> None:
    text = "\n".join(f"You must never open door {number}." for number in range(2 * MOST_RULES))

    assert len(find_rules(text)) == MOST_RULES


def test_a_long_line_is_taken_apart_at_its_clauses() -> None:
    text = "we looked at this and that, " * 40 + "and you must never push to main"

    [rule] = find_rules(text)

    assert rule.text.endswith("you must never push to main")
    assert len(rule.text) < len(text) / 2


@pytest.mark.parametrize("text", ["", " \n ", "```", "::::", "?" * 500, "‮‏", "\ud800 never"])
def test_any_text_is_read(text: str) -> None:
    assert len(find_rules(text)) <= 1
