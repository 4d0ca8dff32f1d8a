"""Tell the remainder of a cleared message from a new message.

Clients clear old results of tools, cut them, and drop thoughts. If the id of a call is unique, a
shorter result with this id is the remainder of the longer one. But many servers and gateways use
the same ids in each turn (`call_0`), use the tool's name as id, or no id at all. Then a shorter
result may be a new one that nobody has read. It counts as cleared only if its words say so: it is a
notice, or the known text with a notice in it. In doubt, it is a new message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from operator import eq
from typing import Any

from conspectus.messages import Message, read_message
from conspectus.messages.blocks import blocks_of, kind_of

THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_details")
"""Types of blocks and items, and fields of messages."""

LONGEST_NOTICE = 200
"""The most characters of a notice."""

LEAST_HEAD = 40
"""The fewest characters of a known text before a notice."""

_REMOVAL_VERB = (
    r"(?:clear|remov|omit|truncat|prun|trimm|elid|snipp|compact|mask|hidden|dropp|expire|collaps"
    r"|stripp|shorten)"
)
_CONTENT_NOUN = (
    r"(?:tool|function|result|output|content|observation|response|context|message|char|line|token"
    r"|byte)"
)
_OPENING = r"(?:[\[(<{*]|\.\.\.|…)"
_CLOSING = r"(?:[\])>}*]|\.\.\.|…)"
_SAYS_REMOVED = rf"(?=.*{_CONTENT_NOUN}) .* {_REMOVAL_VERB} .*"
_NOTICE = re.compile(
    rf"(?ix) {_OPENING} (?: \W* {_REMOVAL_VERB} \w* \W* | {_SAYS_REMOVED} ) {_CLOSING}"
    rf"| (?:old|previous|earlier) \b {_SAYS_REMOVED}"
)
"""A whole text that says that another text was in its place, such as `[Cleared]`."""

_CUT_BEGINS = re.compile(_OPENING)
_CUT_ENDS = re.compile(_CLOSING)
_ELLIPSIS = re.compile(r"\.\.\.|…")
_SAYS_CUT = re.compile(_REMOVAL_VERB, re.IGNORECASE)


def is_remainder_of(message: Any, original: Any) -> bool:
    """Tell whether a message is the remainder of another one, after parts were cleared.

    Results may be cleared, thoughts missing, and reminders different. All else is the same.
    """
    if message == original:
        return True
    sent = read_message(message)
    whole = read_message(original)
    return (
        [call[1:] for call in sent.calls] == [call[1:] for call in whole.calls]
        and sent.answers == whole.answers
        and _contains(_media(original), _media(message))
        and _contains(_thoughts(original), _thoughts(message))
        and (not sent.answers or _results_are_remainders(sent, whole))
    )


def is_notice(text: str) -> bool:
    """Tell whether a text only says that another text was removed.

    Example:
        >>> is_notice("[Old tool result content cleared]"), is_notice("[]"), is_notice("done")
        (True, False, False)
    """
    text = text.strip()
    return len(text) <= LONGEST_NOTICE and _NOTICE.fullmatch(text) is not None


def has_notice(entry: Message) -> bool:
    """Tell whether one of a message's results is only a notice."""
    return bool(entry.answers) and any(map(is_notice, _result_texts(entry)))


def _results_are_remainders(sent: Message, whole: Message) -> bool:
    sent_results = _result_texts(sent)
    whole_results = _result_texts(whole)
    if len(sent_results) != len(whole_results):
        return False
    return all(map(_is_remainder_of_result, sent_results, whole_results))


def _result_texts(entry: Message) -> list[str]:
    return [result.text for result in entry.results] or [entry.text]


def _is_remainder_of_result(text: str, whole: str) -> bool:
    """Tell whether a result is the whole one, a notice, or the whole one cut with a notice."""
    if text == whole or is_notice(text):
        return True
    head = _common_prefix_length(text, whole)
    if head < LEAST_HEAD:
        return False
    tail = _common_prefix_length(text[: head - 1 : -1], whole[: head - 1 : -1])
    middle = text[head : len(text) - tail]
    return len(middle) <= LONGEST_NOTICE and _is_cut(middle)


def _is_cut(middle: str) -> bool:
    """Tell whether a text in the middle of another text says that a part was cut out there."""
    letters = [index for index, sign in enumerate(middle) if sign.isalnum() or sign == "_"]
    if not letters:
        return _ELLIPSIS.search(middle) is not None
    signs_before = middle[: letters[0]]
    signs_after = middle[letters[-1] + 1 :]
    is_framed = _CUT_BEGINS.search(signs_before) and _CUT_ENDS.search(signs_after)
    return bool(is_framed and _SAYS_CUT.search(middle))


def _common_prefix_length(first: Iterable[str], second: Iterable[str]) -> int:
    """Return how many characters at the beginning two texts have in common."""
    return sum(1 for _ in takewhile(bool, map(eq, first, second)))


def _contains(whole: list[Any], parts: list[Any]) -> bool:
    return all(part in whole for part in parts)


def _media(message: Any) -> list[Any]:
    return [block for block in blocks_of(message) if kind_of(block).media]


def _thoughts(message: Any) -> list[Any]:
    blocks = [
        block
        for block in blocks_of(message)
        if isinstance(block, Mapping) and block.get("type") in THOUGHTS
    ]
    fields = message if isinstance(message, Mapping) else {}
    return blocks + [fields[name] for name in THOUGHTS if fields.get(name)]
