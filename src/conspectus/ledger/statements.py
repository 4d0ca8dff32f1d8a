"""What the sentences of a message state: rules, preferences, decisions, open and finished work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from conspectus.ledger.phrases import CJK, Phrases, clear
from conspectus.ledger.scanning import remembered
from conspectus.ledger.sentences import sentences
from conspectus.ledger.wording import LANGUAGES
from conspectus.ledger.wording.marks import (
    ASKS,
    EXCLAIMS,
    HEDGED,
    LOG_LINE,
    LOGGED,
    NEEDS_NUMBER,
    NUMBERED,
    WEAK,
    WORK_MARK,
)

Stated = Literal["rule", "preference", "decision", "task", "done"]

STATEMENT = 600
"""Characters up to which a sentence is carried as a statement."""

SAYS, WIDE_SAYS = 4, 2
"""Letters that a rule must have beside the words that make a rule of it; the second in scripts of
syllables or words."""

LEAST, WIDE_LEAST = 22, 9
"""Characters below which a sentence gives no reason worth keeping; the second where a character
is a syllable or a word."""

_RULE = Phrases(w.rule for w in LANGUAGES)
_NOT_RULE = Phrases(w.not_rule for w in LANGUAGES)
_PREFERENCE = Phrases(w.preference for w in LANGUAGES)
_NOT_PREFERENCE = Phrases(w.not_preference for w in LANGUAGES)
_DECISION = Phrases(w.decision for w in LANGUAGES)
_NOT_DECISION = Phrases(w.not_decision for w in LANGUAGES)
_TASK = Phrases(w.task for w in LANGUAGES)
_NOT_TASK = Phrases(w.not_task for w in LANGUAGES)
_DONE = Phrases(w.done for w in LANGUAGES)
_NOT_DONE = Phrases(w.not_done for w in LANGUAGES)
_OFTEN = Phrases(w.often for w in LANGUAGES)
_ORDER = Phrases(w.order for w in LANGUAGES)
_UNREAL = Phrases(w.unreal for w in LANGUAGES)
_MIXED = Phrases(w.mixed for w in LANGUAGES)
_CAUSE = Phrases(w.cause for w in LANGUAGES)
_BECAUSE = Phrases(w.because for w in LANGUAGES)
_GROUNDS = Phrases(w.grounds for w in LANGUAGES)
_TROUBLE = Phrases(w.trouble for w in LANGUAGES)
_CHOICE = Phrases(w.choice for w in LANGUAGES)
_NOT_CAUSE = Phrases(w.not_cause for w in LANGUAGES)
_DUTY = Phrases(w.duty for w in LANGUAGES)
_NOT_DUTY = Phrases(w.not_duty for w in LANGUAGES)
_STANDING = Phrases(w.standing for w in LANGUAGES)
_IDLE = Phrases(w.idle for w in LANGUAGES)
_ALLOW = Phrases(w.allow for w in LANGUAGES)
_TOLD = Phrases(w.told for w in LANGUAGES)
_REASON = Phrases(w.reason for w in LANGUAGES)
_CHANGE = Phrases(w.change for w in LANGUAGES)
_NOT_CHANGE = Phrases(w.not_change for w in LANGUAGES)
_HEADINGS: tuple[tuple[Stated, Phrases], ...] = (
    ("rule", Phrases(w.heading_rule for w in LANGUAGES)),
    ("task", Phrases(w.heading_task for w in LANGUAGES)),
    ("done", Phrases(w.heading_done for w in LANGUAGES)),
)

_QUESTION = re.compile(
    r"[?？][\"'”’»)」』]*\s*$|(?:ですか|ますか|でしょうか|ませんか|까요|나요|吗|呢)[。.!]?$"
)
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]|\d")
_WIDE = re.compile(f"[{CJK}]")
_VALUE = re.compile(r"\d|@|[\w.]/[\w.]")
_QUOTED = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』\n]{8,300})[\"”“»」』]")
_FENCE = re.compile(r"^(?:```|~~~)[^\n]*\n.*?(?:^(?:```|~~~)[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_CITED = re.compile(r"^>.*$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*•+–]\s|\d{1,2}[.)]\s|[（(]?\d{1,2}[）)、]|[①-⑳]|・)")
_BOX = re.compile(r"^\s*[-*•+]\s+\[([ xX])\]\s+(.+)$")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+.{1,60}|\*\*.{1,60}\*\*:?|.{1,160}[:：])\s*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message and what it states.

    Attributes:
        text: the sentence as it stands.
        states: what it states; empty if nothing.
        changes: whether it says that something takes the place of something else: 2 if plainly, 1
            if it might.
        before: the two sentences before it in the message.
    """

    text: str
    states: Stated | Literal[""] = ""
    changes: int = 0
    before: str = ""


def is_rule(text: str) -> bool:
    """Whether a text states a rule, a limit or a preference."""
    text = bare(text)
    return bool(_rules_in(text) or clear(_PREFERENCE, _NOT_PREFERENCE, text))


def _rules_in(text: str) -> list[tuple[int, int]]:
    """Where a text says something that sets a rule: "always" and the like only in an order, a word
    of limits only with a number, and nothing in an idiom, a habit or an exclamation."""
    places = clear(_RULE, _NOT_RULE, text)
    often = clear(_OFTEN, _NOT_RULE, text)
    if often and (places or text in _ORDER):
        places += often
    if not places or EXCLAIMS.match(text) or text in _IDLE:
        return []
    if HEDGED.search(text) and not ASKS.search(text):
        return []
    if not NUMBERED.search(text):
        places = [p for p in places if not NEEDS_NUMBER.fullmatch(text[p[0] : p[1]].strip())]
    return places if places and _says_something(text, places) else []


def _says_something(text: str, places: list[tuple[int, int]]) -> bool:
    """Whether there is more in a text than the words that make a rule of it."""
    start, end = min(a for a, _ in places), max(b for _, b in places)
    wide = _WIDE.search(text) is not None
    least = WIDE_SAYS if wide else SAYS
    return len(_LETTERS.findall(text[:start] + text[end:])) >= least or end - start >= 4 * least


def is_decision(text: str) -> bool:
    """Whether a text states a decision or the cause of something."""
    text = bare(text)
    return bool(clear(_DECISION, _NOT_DECISION, text)) or _caused(text, "", True) > -2


def _caused(text: str, before: str, own: bool) -> int:
    """Where a text gives the reason of something wrong or chosen; -2 if it does not.

    Args:
        text: the sentence.
        before: what was said before it, which may name what is wrong.
        own: the agent says it, which gives causes where it was asked for them.
    """
    wide = _WIDE.search(text) is not None
    if len(text) < (WIDE_LEAST if wide else LEAST) or text in _NOT_CAUSE:
        return -2
    plain = _CAUSE.places(text)
    if plain and (own or not wide or text in _TROUBLE or before in _TROUBLE):
        return min(plain)[0]
    reasons = _BECAUSE.places(text)
    if reasons:
        wrong = _TROUBLE.places(text)
        if any(all(b <= c or d <= a for c, d in reasons) for a, b in wrong):
            return min(reasons)[0]
    if (reasons := reasons + _GROUNDS.places(text)) and text in _CHOICE and text not in _OFTEN:
        return min(reasons)[0]
    return -2


def _leads(places: list[tuple[int, int]], reason: int, text: str) -> bool:
    """Whether something stands in the main clause of a sentence, outside of the reason given."""
    if reason < 0:
        return True
    if reason <= 2 or _WIDE.search(text):
        return max(places)[0] > reason + 2
    return min(places)[0] < reason


@remembered
def change_in(text: str) -> int:
    """Whether a text says that something takes the place of something else: 2 plainly, 1 maybe."""
    text = bare(text)
    if text in _MIXED:
        return 0
    places = clear(_CHANGE, _NOT_CHANGE, text)
    if all(WEAK.fullmatch(text[start:end]) for start, end in places):
        return 1 if places else 0
    return 2


@remembered
def is_done(text: str) -> bool:
    """Whether a text says that something has been done."""
    return bool(clear(_DONE, _NOT_DONE, bare(text)))


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    return _QUESTION.search(text) is not None


def bare(text: str) -> str:
    """The text without what it quotes, at the same places: what others said is nobody's rule."""
    if not any(mark in text for mark in '"“„«「『'):
        return text
    return _QUOTED.sub(lambda m: "\0" * len(m[0]), text)


def read(text: str, role: str) -> Iterator[Sentence]:
    """The sentences of a message with what each states.

    Args:
        text: the speaker's own words.
        role: who speaks: only users and systems set rules, state preferences and ask for work.
    """
    text = (
        _FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
        if "```" in text or "~~~" in text
        else text
    )
    if text.startswith(">") or "\n>" in text:
        text = _CITED.sub("", text)
    heading: Stated | Literal[""] = ""
    before = last = ""
    for line in text.split("\n"):
        if not line.strip() or LOG_LINE.match(line):
            continue
        if box := _BOX.match(line):
            boxed: Stated = "done" if box[1] in "xX" else "task"
            yield Sentence(box[2].strip(), boxed, 0, before)
            continue
        item = _ITEM.match(line) is not None
        if not item and _HEADING.match(line):
            heading = _headed(line)
            if heading or len(line) < 40:
                before = line.strip()
                continue
        elif not item:
            heading = ""
        if item and heading and (heading != "rule" or role in ("user", "system")):
            whole = next(iter(sentences(line, whole=True)), "")
            whole = line.strip() if not whole else line.strip()[line.strip().index(whole) :]
            if 0 < len(whole) <= STATEMENT:
                yield Sentence(whole, heading, change_in(whole), before)
            before = whole
            continue
        pending: Sentence | None = None
        for sentence in sentences(line, whole=True):
            if pending is not None:
                if _gives_reason(sentence) and (at := line.find(pending.text)) >= 0:
                    whole = line[at : line.find(sentence, at) + len(sentence)]
                    pending = replace(pending, text=whole)
                    yield pending
                    pending, before, last = None, sentence, sentence
                    continue
                yield pending
                pending = None
            if len(sentence) <= STATEMENT:
                states = stated(sentence, role, before)
                one = Sentence(sentence, states, _changes(sentence, before, states), before)
                if one.states == "decision":
                    pending = one
                else:
                    yield one
            before, last = f"{last} {sentence}".strip(), sentence
        if pending is not None:
            yield pending


def _changes(sentence: str, before: str, states: str) -> int:
    """How plainly a sentence changes something, on its own or after what was said before it."""
    own = change_in(sentence)
    if states == "rule" and own < 2 and sentence not in _MIXED and _allowed(sentence):
        return 2
    if own == 2 or sentence in _MIXED or not before:
        return own
    if states or _VALUE.search(sentence):
        return max(own, change_in(before))
    return own


def _gives_reason(sentence: str) -> bool:
    """Whether a sentence does nothing but give the reason of the one before."""
    places = _REASON.places(sentence)
    wide = any(start >= len(sentence) - 12 for start, _ in places)
    return any(start == 0 for start, _ in places) or (wide and not sentence.isascii())


def _headed(line: str) -> Stated | Literal[""]:
    for states, words in _HEADINGS:
        if words.places(line):
            return states
    return ""


@remembered
def stated(sentence: str, role: str, before: str = "") -> Stated | Literal[""]:
    """What one sentence states, as said by a role.

    Of several things a sentence is first an order for work, then a decision, then a rule or a
    preference, whichever it says first.

    Args:
        sentence: the sentence.
        role: who says it.
        before: what was said before it in the same message.

    Example:
        >>> stated("Never push to main.", "user"), stated("Never mind.", "user")
        ('rule', '')
    """
    if (
        is_question(sentence)
        or LOGGED.match(sentence)
        or role not in ("user", "system", "assistant")
    ):
        return ""
    text = bare(sentence)
    if _marked(text):
        return "task"
    likes = clear(_PREFERENCE, _NOT_PREFERENCE, text) if role != "assistant" else []
    if text in _UNREAL:
        return "preference" if likes else ""
    if clear(_DECISION, _NOT_DECISION, text):
        return "decision"
    reason = _caused(text, before, role == "assistant")
    if role == "assistant":
        return "decision" if reason > -2 else ""
    rules = _rules_in(text)
    work, duty = clear(_TASK, _NOT_TASK, text), clear(_DUTY, _NOT_DUTY, text)
    if (work or duty) and _leads(work + duty, reason, text):
        # "We must still order chairs" is work, although "must" alone would be a rule.
        rest = [p for p in rules if not any(p[0] < b and a < p[1] for a, b in work)]
        if not (rest and text in _STANDING):
            return "task" if work or text not in _STANDING else ""
    main = [kind for kind in (rules, likes) if kind and _leads(kind, reason, text)]
    if reason > -2 and not main:
        return "decision"
    if rules and (not likes or min(rules) <= min(likes)):
        return "rule"
    if likes:
        return "preference"
    return "rule" if _allowed(text) else ""


def _allowed(text: str) -> bool:
    """Whether a text passes on that so much is allowed, or enough: a limit by another name."""
    return bool(_DIGIT.search(text) and text in _ALLOW and text in _TOLD and text not in _IDLE)


def _marked(text: str) -> bool:
    return WORK_MARK.match(text) is not None
