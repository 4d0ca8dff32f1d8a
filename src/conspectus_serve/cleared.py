"""Tell what a client has left of a message from a message of its own.

Clients clear old results of tools, cut them, and drop thoughts. Where an id names its call alone, a
shorter result behind it is what is left of the longer one. Many servers and gateways begin their
ids anew in each turn (`call_0`), give the tool's name or none at all. Behind such an id a shorter
result may be another one, which nobody has read yet, so it counts as cleared only if its words say
so: it is a notice, or the known text with a notice in its place. In doubt it is a message of its
own.
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

NOTICE = 200  # most characters of a notice
HEAD = 40  # least characters of a known text that stand before a notice

_VERB = (
    r"(?:clear|remov|omit|truncat|prun|trimm|elid|snipp|compact|mask|hidden|dropp|expire|collaps"
    r"|stripp|shorten)"
)
_NOUN = (
    r"(?:tool|function|result|output|content|observation|response|context|message|char|line|token"
    r"|byte)"
)
_BEGIN, _END = r"(?:[\[(<{*]|\.\.\.|…)", r"(?:[\])>}*]|\.\.\.|…)"
_NOTICE = re.compile(
    rf"(?ix) {_BEGIN} (?: \W* {_VERB} \w* \W* | (?=.*{_NOUN}) .* {_VERB} .* ) {_END}"
    rf"| (?:old|previous|earlier) \b (?=.*{_NOUN}) .* {_VERB} .*"
)
"""All of a text that says that another one stood in its place, such as `[Cleared]`."""

_CUT_BEGINS = re.compile(_BEGIN)
_CUT_ENDS = re.compile(_END)
_ELLIPSIS = re.compile(r"\.\.\.|…")
_SAYS_CUT = re.compile(_VERB, re.IGNORECASE)


def is_left_of(message: Any, original: Any) -> bool:
    """Return whether a message has the words of another one, but for results that were cleared.

    Thoughts may be missing, and reminders differ; what else it says, calls or answers is the same.
    """
    if message == original:
        return True
    here, there = read_message(message), read_message(original)
    same_calls = [one[1:] for one in here.calls] == [one[1:] for one in there.calls]
    return (
        same_calls
        and here.answers == there.answers
        and _contains(_media(original), _media(message))
        and _contains(_thoughts(original), _thoughts(message))
        and _results_are_left(here, there)
    )


def is_notice(text: str) -> bool:
    """Return whether a text only says that another one was taken out.

    Example:
        >>> is_notice("[Old tool result content cleared]"), is_notice("[]"), is_notice("done")
        (True, False, False)
    """
    text = text.strip()
    return len(text) <= NOTICE and _NOTICE.fullmatch(text) is not None


def _results_are_left(here: Message, there: Message) -> bool:
    if not here.answers:
        return True
    now, before = _results(here), _results(there)
    return len(now) == len(before) and all(map(_is_rest, now, before))


def _results(entry: Message) -> list[tuple[str, bool]]:
    """Return the text of each result, and whether it says that its call failed."""
    return [(one.text, one.failed) for one in entry.results] or [(entry.text, False)]


def _is_rest(result: tuple[str, bool], known: tuple[str, bool]) -> bool:
    text, whole = result[0], known[0]
    if text == whole or is_notice(text):
        return True
    begin = _alike(text, whole)
    end = _alike(text[: begin - 1 : -1], whole[: begin - 1 : -1]) if begin else 0
    middle = text[begin : len(text) - end]
    return begin >= HEAD and len(middle) <= NOTICE and _is_cut(middle)


def _is_cut(middle: str) -> bool:
    """Tell whether a text in the middle of another one says that something was cut out there."""
    letters = [index for index, sign in enumerate(middle) if sign.isalnum() or sign == "_"]
    if not letters:
        return _ELLIPSIS.search(middle) is not None
    signs_before = middle[: letters[0]]
    signs_after = middle[letters[-1] + 1 :]
    is_framed = _CUT_BEGINS.search(signs_before) and _CUT_ENDS.search(signs_after)
    return bool(is_framed and _SAYS_CUT.search(middle))


def _alike(first: Iterable[str], second: Iterable[str]) -> int:
    """Return how many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(bool, map(eq, first, second)))


def _contains(whole: list[Any], part: list[Any]) -> bool:
    return all(one in whole for one in part)


def _media(message: Any) -> list[Any]:
    return [one for one in blocks_of(message) if kind_of(one).media]


def _thoughts(message: Any) -> list[Any]:
    blocks = [
        one
        for one in blocks_of(message)
        if isinstance(one, Mapping) and one.get("type") in THOUGHTS
    ]
    fields = message if isinstance(message, Mapping) else {}
    return blocks + [fields[name] for name in THOUGHTS if fields.get(name)]
