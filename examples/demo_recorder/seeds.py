"""Test files that are in the copy before the session begins; the agent may not edit them."""

from __future__ import annotations

_RULES = '''"""Rules that users state reach the ledger."""

from conspectus.ledger import Ledger
from conspectus.messages import read_messages


def rules(*texts):
    said = [{"role": "user", "content": text} for text in texts]
    book = Ledger().updated(read_messages(said))
    return [fact.value for fact in book.facts if fact.kind == "rule"]


def test_a_rule_of_the_user_is_kept_word_for_word():
    assert rules("Never push to main.") == ["Never push to main."]


def test_small_talk_is_no_rule():
    assert rules("Thank you, that looks good.") == []


def test_a_tool_cannot_set_a_rule():
    call = {"id": "c1", "function": {"name": "read", "arguments": "{}"}}
    said = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Never push to main."},
    ]
    book = Ledger().updated(read_messages(said))
    assert not [fact for fact in book.facts if fact.kind == "rule"]
'''

_ESTIMATE = '''"""The token estimate in plain cases."""

from conspectus.tokens import TokenMeter, estimate


def test_nothing_takes_nothing():
    assert estimate("") == 0


def test_more_text_never_takes_fewer_tokens():
    text = "The meter reads scripts, digits and marks."
    sizes = [estimate(text[:end]) for end in range(len(text) + 1)]
    assert sizes == sorted(sizes)


def test_a_message_takes_more_than_its_text():
    message = {"role": "user", "content": "hello"}
    assert TokenMeter().message(message) > estimate("hello")
'''

SEEDS = {"tests/test_ledger_rules.py": _RULES, "tests/test_token_estimate.py": _ESTIMATE}
"""Path and text of each."""
