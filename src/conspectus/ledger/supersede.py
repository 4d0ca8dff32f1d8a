"""Which statement or value a later one takes the place of.

Losing a rule costs more than carrying two. So without a word of change the subject must be the
same, word for word, and only the value another; with one, most of the words, or the unit and the
subject, must be shared, and no other statement may fit as well.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conspectus.ledger.fact import Fact
from conspectus.ledger.likeness import PAIR, Reading, reading, shared, size, subject, unit
from conspectus.ledger.statements import change_in, is_rule
from conspectus.ledger.wording.marks import AT_LEAST, AT_MOST, FROM_NOW

ALIKE = 0.6
"""Share of its words that a statement must have in common with one that it changes."""

SOME = 0.4
FEW = 5
"""Such a share of the words of the older one, or of so many, where a word of change says that
something is replaced: the sentence itself must have it, as what stands before it may be about
another thing."""

NAMES = frozenset({"path", "url", "id", "symbol", "command"})
"""Kinds of values that stand beside each other, where a limit or a date replaces another."""

NEAREST = 40
"""Values of one kind that a correction is compared with: the latest."""

CLOSE = 0.05
"""Two statements that fit a change so nearly as well leave it open which is meant."""

NEAR = 6
"""Messages within which "it" means what was said last."""

KINDS_OF_VALUES = frozenset({"path", "url", "id", "number", "date", "symbol", "error", "command"})
_AMOUNT = re.compile(
    r"\b(?:at most|at least|than|exceed|max\w*|min\w*|limit\w*|cap|up to|to|below|under|above"
    r"|over|only|found|got|received|gefunden|erhalten|trouvé|reçu|höchstens"
    r"|mindestens|als|unter|über|auf|máximo|mínimo|más de|menos de|plus de|moins de|au plus|à)\s+\d"
    r"|(?:最多|至少|不超过|超过|上限|最大|最低|以内|최대|최소)\D{0,3}\d|\d+\D{0,2}(?:以内|以下|이내|이하|を超え)",
    re.IGNORECASE,
)
PLAIN = frozenset({"rule", "preference", "decision"})
"""Kinds that are statements, one of which may take the place of another."""

CORRECTED = frozenset({"path", "url", "id", "number", "date"})
"""Kinds of values that a correction may replace, where no statement holds them."""


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence that may replace something.

    Attributes:
        text: the sentence.
        role: who said it.
        order: where, in messages.
        context: the sentence before it, and itself.
        strong: it says plainly that it replaces something.
        states: what it states itself.
    """

    text: str
    role: str
    order: int
    context: str
    strong: bool
    states: str = ""


def outranks(newer: str, older: str) -> bool:
    """Whether what one role says may replace what another has said."""
    if older == "system":
        return newer == "system"
    if older == "user":
        return newer in ("user", "system")
    return True


def same_subject(fact: Fact) -> tuple[str, frozenset[str]] | None:
    """What a statement is about, as a key; None where it says too little to tell."""
    read = reading(fact.value)
    words = subject(read) or read.words
    return (fact.role, words) if words else None


def replaces(newer: Fact, older: Fact) -> bool:
    """Whether of two statements about the very same thing the later gives another value."""
    new, old = reading(newer.value), reading(older.value)
    if newer.value == older.value or not outranks(newer.role, older.role):
        return False
    if {_bound(newer.value), _bound(older.value)} == {"least", "most"}:
        return False  # a range has two ends
    given, given_before = _values(new), _values(old)
    if not given and not given_before:
        return new.never != old.never
    more, fewer = given - given_before, given_before - given
    if len(more) != 1 or len(fewer) != 1:
        return False
    (kind, measure, _), (kind_before, measure_before, _) = next(iter(more)), next(iter(fewer))
    # Other ids, other things; the same unit, the same thing with another value.
    if kind != kind_before or measure != measure_before:
        return False
    named = kind in ("number", "figure") and not measure and not _is_amount(newer.value)
    return not named and kind not in ("id", "symbol", "command")


def _bound(text: str) -> str:
    """Which end of a range a statement sets; empty where it says neither or both."""
    least, most = AT_LEAST.search(text), AT_MOST.search(text)
    return "" if bool(least) == bool(most) else "least" if least else "most"


def _is_amount(text: str) -> bool:
    """Whether a number without a unit is an amount, and not the name of something."""
    return _AMOUNT.search(text) is not None


def replaced(change: Change, statements: Sequence[Fact]) -> list[Fact]:
    """The statements that a sentence with a word of change takes the place of."""
    new, around = reading(change.text), reading(change.context)
    named = {value for _, _, value in (*new.old, *around.old)}
    found: list[tuple[float, Fact]] = []
    for old in statements:
        if old.order == change.order or not outranks(change.role, old.role):
            continue
        if (score := _score(change, new, around, named, old)) > 0:
            found.append((score, old))
    found.sort(key=lambda one: (one[0], one[1].order), reverse=True)
    if not found or (len(found) > 1 and found[1][0] >= found[0][0] - CLOSE):
        return []  # it could be either: better two rules than none
    return [found[0][1]]


def _score(change: Change, new: Reading, around: Reading, named: set[str], old: Fact) -> float:
    """How sure it is that a change means a statement; 0 if it does not."""
    before = reading(old.value)
    both = shared(new.words, before.words)
    near = shared(around.words, before.words)
    same = shared(subject(around), subject(before))
    cover = both / max(1.0, min(size(new.words), size(before.words)))
    given, given_before = _values(new), _values(before)
    units = {(k, u) for k, u, _ in given} & {(k, u) for k, u, _ in given_before}
    more = {one for one in given - given_before if one[:2] in units}
    if any(value in old.value for value in named):
        return 4 + cover if near > 0 or change.strong else 0.0
    if units and not more:
        return 0.0
    if more:
        measured = any(kind not in NAMES for kind, _, _ in more)
        if change.strong and near >= PAIR and (both > 0 or measured):
            return 2 + cover + 0.2 * near
        if same >= 1 and cover >= ALIKE / 2:
            return 1.5 + cover
        alone = all(word.startswith("=") for word in subject(new))
        if alone and "language" in {kind for kind, _, _ in more}:
            return 1.0 + cover
        # A limit with the same unit that is raised or lowered: it must be this one, unless that
        # one is itself a change to something else.
        limits = old.kind == "rule" and is_rule(change.text) and not change_in(old.value)
        return 1.0 + cover if change.strong and limits and measured else 0.0
    if given or (given_before and cover < ALIKE):
        return 0.0  # what names a value that the older one does not is narrower: an exception
    if cover >= ALIKE and both >= 1 and (change.strong or both >= 2):
        return 1 + cover
    # A word in common is enough where the kind is the same; a noun of two characters is one pair.
    enough = PAIR if any(word > "\u3000" for word in before.words) else 1
    own = both >= enough and both >= SOME * min(FEW, max(1.0, size(before.words)))
    if change.strong and own and same >= enough and _like(old.kind, change.states):
        return min(1.0, near / max(1.0, size(before.words))) + 0.1 * near
    return 0.0


def _like(kind: str, other: str) -> bool:
    """Whether one kind of statement may take the place of the other."""
    return kind == other or {kind, other} == {"rule", "preference"}


def corrected(change: Change, facts: Iterable[Fact]) -> list[Fact]:
    """The bare values that a sentence with a word of change corrects."""
    new = reading(change.text)
    around = reading(change.context)
    gone: list[Fact] = []
    named = {(kind, value) for kind, _, value in new.old}
    pool = [f for f in facts if f.kind in CORRECTED and f.value not in change.text]
    for kind, measure, value in new.gives:
        if kind not in CORRECTED or any(kind == k for k, _ in named):
            continue
        best: tuple[float, Fact | None] = (0.0, None)
        second = 0.0
        same = [old for old in pool if old.kind == kind and _unit(old) == measure][:NEAREST]
        for old in same:
            score = _nearness(change, around, value, old) + (0.3 if len(same) == 1 else 0.0)
            if measure == "@" and len(same) == 1 and FROM_NOW.search(change.text):
                score += 1  # the only address there was: it has another one now
            if score > best[0]:
                best, second = (score, old), best[0]
            elif score > second:
                second = score
        if best[1] is not None and best[0] >= (1.0 if change.strong else 1.5) and best[0] > second:
            gone.append(best[1])
    return gone


def _nearness(change: Change, around: Reading, value: str, old: Fact) -> float:
    """How likely a value replaces an earlier one of its kind: words around, likeness, distance."""
    alike = old.kind in ("path", "url", "id", "date") or value.count(".") > 1
    like = _alike(value[:200], old.value[:200]) if alike else 0.0
    if old.kind == "id" and "@" not in value and like < 0.5:
        return 0.0
    words = reading(old.quote).words
    context = shared(around.words, words)
    score = min(2.0, context * 0.7)
    if alike:
        score += max(0.0, like - 0.5) * 2
        if old.kind == "path" and value.rsplit("/", 1)[-1] == old.value.rsplit("/", 1)[-1]:
            score += 1
        if old.kind == "id" and "@" not in value and context < 1:
            return 0.0
    elif context < PAIR:
        return 0.0
    distance = change.order - old.order
    if distance <= NEAR:
        score += 0.5
    return score


def _alike(value: str, old: str) -> float:
    """How much two values look like each other, from 0 to 1; 0 for those not half alike."""
    if min(len(value), len(old)) * 2 <= 0.5 * (len(value) + len(old)):
        return 0.0  # not half alike by their lengths alone
    matcher = difflib.SequenceMatcher(None, value, old)
    return matcher.ratio() if matcher.quick_ratio() > 0.5 else 0.0


def _unit(fact: Fact) -> str:
    return unit(fact.kind, fact.value)


def _values(read: Reading) -> frozenset[tuple[str, str, str]]:
    return frozenset((str(kind), measure, value) for kind, measure, value in read.gives)
