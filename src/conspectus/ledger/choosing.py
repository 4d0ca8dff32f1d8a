"""Which of the users' words stand where not all of them fit.

Everything is read sentence by sentence and taken in this order while there is room: what binds; the
task as first set and as last changed; preferences, decisions, facts; the rest by how much it says.
A sentence that only repeats others in other figures waits until all the rest has had its turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, cast

from conspectus.ledger.book import Ledger
from conspectus.ledger.pieces import COMMENT, is_prose, marked_from
from conspectus.ledger.reading import PLAIN, Stated, Statement, statements
from conspectus.ledger.subjects import Subjects, about

GAP = " … "
"""What stands for words left out of a line."""

BREAK = "\n…\n"
"""What stands for lines left out."""

TASK_SHARE = 0.5
"""Share of the room that the task may take: two thirds as first set, the rest as last changed."""

BIND_SHARE = 0.6
"""Share of the room that what binds takes before anything else has had its turn."""

OPENING, CLOSING = 1_200, 4
"""Characters with which a task opens, and sentences with which it ends: its subject, and how it is
handed in."""

BLOCK = 600
"""Characters of a pasted block that stands with the sentence that announces it, at most."""

ADVICE_SHARE = 0.7
"""Share of the room up to which the rest of long messages stands: behind that deeds say more."""

HEADED = 0.2
"""How much less a sentence below the first heading of a long message counts."""

PASSES = 3
"""Times that the room is filled up: pieces that stand together take less than each by itself."""

SHORT = 1_200
"""Characters of a message that a person types by the way; harnesses and pastes are longer, and
give way to it: their task has a share of its own."""

NEW = 0.5
"""Share of a sentence's words that must be new beside what was chosen twice before."""

_ORDER = {"rule": 0.12, "task": 0.0, "preference": 0.08, "decision": 0.08, "fact": 0.04, "": -0.05}
_WORD = re.compile(r"[^\W\d_]+|[\u3040-\u30ff\u3400-\u9fff]")
_COLON = (":", "：", ":**")


_At = tuple[int, int]
"""A sentence: the place of its message, and its own in it."""


class Said(NamedTuple):
    """What a user or a system has said."""

    text: str
    role: str = "user"


class Kept(NamedTuple):
    """What stands of one message: its place among those given, and which of its words.

    Attributes:
        place: its index.
        spans: what stands of its text, in order.
        text: the same as one text, with a mark for what is left out.
        whole: whether nothing is left out.
    """

    place: int
    spans: tuple[tuple[int, int], ...]
    text: str
    whole: bool


def choose(
    said: Sequence[Said | str],
    room: int,
    count: Callable[[str], int],
    *,
    line: int = 4,
    known: Ledger | None = None,
) -> tuple[Kept, ...]:
    """Return the words that stand in a room, in their order.

    Args:
        said: the messages, in order.
        room: tokens for all of it.
        count: tokens of a text.
        line: tokens that a message takes beside its text.
        known: facts in force; a sentence that is one of them is of its kind.

    Example:
        >>> talk = ["Hi! Never push to main. Nice day.", "Lovely weather here today, is it not?"]
        >>> [kept.text for kept in choose(talk, 12, lambda text: len(text) // 4)]
        ['Hi! Never push to main. …']
    """
    talk = [one if isinstance(one, Said) else Said(one) for one in said]
    costs = [count(one.text) + line for one in talk]
    if sum(costs) <= room:
        return tuple(Kept(n, ((0, len(one.text)),), one.text, True) for n, one in enumerate(talk))
    kinds = {} if known is None else {fact.value: fact.kind for fact in known.facts}
    choice = _Choice(talk, room, count, line, kinds)
    kept: tuple[Kept, ...] = ()
    for turn in range(PASSES):
        choice.fill(first=turn == 0)
        while True:
            kept = choice.kept()
            if choice.fits(sum(count(one.text) + line for one in kept)):
                break
    return kept


class _Choice:
    """One choice in the making."""

    def __init__(
        self,
        talk: Sequence[Said],
        room: int,
        count: Callable[[str], int],
        line: int,
        kinds: Mapping[str, str],
    ) -> None:
        self._talk, self._room, self._count, self._line = talk, room, count, line
        self._read = [
            [_as_known(read, kinds) for read in statements(one.text, one.role)] for one in talk
        ]
        self._taken: list[set[int]] = [set() for _ in talk]
        self._left = room
        self._order: list[_At] = []
        self._words: Counter[str] = Counter()
        self._gap = count(GAP) + 1
        self._by: dict[_At, list[_At]] = {}
        self._gone: set[_At] = set()
        self._follow()

    def _follow(self) -> None:
        """Which sentences replace which: an older one stands only before the newer one."""
        subjects = Subjects[_At]()
        for place, read in enumerate(self._read):
            before, pending = "", list[_At]()
            for at, one in enumerate(read):
                if not one.own:
                    continue
                what, role = about(one.text, before), self._talk[place].role
                before = one.text
                if not (one.kind or pending or "change" in one.marks):
                    continue
                old, maybe = subjects.replaced(what, role)
                found = pending + maybe + ([] if old is None else [old])
                if old is not None:
                    subjects.drop(old)
                    self._gone.add(old)
                for key in found:
                    self._by.setdefault(key, []).append((place, at))
                if found:
                    read[at] = one = _raised(one, [self._read[a][b] for a, b in found])
                # "Forget the hall" says what goes; what comes is said in the next sentence.
                pending = (
                    []
                    if pending or {v for _, v in one.values} - _named(self._read, found)
                    else found
                )
                if one.kind:
                    subjects.add((place, at), what, role)

    def fill(self, *, first: bool) -> None:
        """Take what there is room for, in order of its worth."""
        later = list[tuple[int, int, bool]]()
        for binds, rank, place, at in sorted(self._ranked(), reverse=True):
            if first and not binds:
                self._task()
                first = False
            full = self._left < self._room * (1 - BIND_SHARE) if binds else rank < 0
            if full or not self._is_new(self._read[place][at]):
                later.append((place, at, rank < 0 and not binds))
            else:
                self._take(place, at)
        for place, at, advice in later:
            if not advice or self._left > self._room * (1 - ADVICE_SHARE):
                self._take(place, at)

    def _ranked(self) -> Iterator[tuple[bool, float, int, int]]:
        """Yield every sentence with its rank: whether it binds, its weight, its place.

        Of equals the later comes first, short messages before long ones, replaced sentences last.
        """
        for place, read in enumerate(self._read):
            short = len(self._talk[place].text) <= SHORT
            headed = len(read) if short else self._headed(place)
            for at, one in enumerate(read):
                gone = (place, at) in self._gone
                rank = -1.0 if gone else one.weight + _ORDER[one.kind] - (not short)
                rank -= HEADED * (at >= headed)
                if one.own:
                    yield one.kind == "rule" and rank >= PLAIN, rank, place, at

    def _task(self) -> None:
        users = [n for n, one in enumerate(self._talk) if one.role == "user"]
        places = [n for n in users if any(s.kind == "task" for s in self._read[n])] or users[:1]
        if not places:
            return
        share = min(self._room * TASK_SHARE, self._left)
        for place, part in ((places[0], 2 / 3), (places[-1], 1 / 3)):
            floor = self._left - share * part
            for _, at in sorted(self._task_order(place)):
                if self._left - self._cost(place, (at,)) >= floor:
                    self._take(place, at)

    def _task_order(self, place: int) -> Iterator[tuple[int, int]]:
        """Yield the sentences of a task, each with its turn.

        First come its opening and its end, then requests, the rest before its first heading, advice
        under headings, and lines that read like code; comments of a template never.
        """
        text, headed = self._talk[place].text, self._headed(place)
        closing = [at for at, one in enumerate(self._read[place]) if one.own][-CLOSING:]
        opening = OPENING
        for at, one in enumerate(self._read[place]):
            line = text[text.rfind("\n", 0, one.start) + 1 : one.start]
            if one.text.startswith(COMMENT) and one.text.endswith("-->"):
                opening += len(one.text)
            elif (one.end <= opening and (one.own or len(one.text) <= BLOCK)) or at in closing:
                yield 0, at
            elif one.own:
                asks = "ask" in one.marks and not line.strip()
                yield (1 if asks else 2 + (at >= headed) if is_prose(one.text) else 4), at

    def _headed(self, place: int) -> int:
        """Return the first sentence of a message under a heading, but for its first."""
        text, read = self._talk[place].text, self._read[place]
        starts = (text.rfind("\n", 0, one.start) + 1 for one in read)
        marks = ("#" in text[start : one.start] for start, one in zip(starts, read, strict=True))
        return next((at for at, mark in enumerate(marks) if mark and at), len(read))

    def _is_new(self, one: Statement) -> bool:
        words = _skeleton(one.text)
        fresh = sum(self._words[word] < 2 for word in words)
        return fresh >= NEW * len(words)

    def _cost(self, place: int, at: Sequence[int]) -> int:
        read = self._read[place]
        cost = sum(self._count(read[n].text) + self._gap for n in at)
        return cost + (0 if self._taken[place] else self._line + self._gap)

    def _take(self, place: int, at: int) -> None:
        """Take a sentence, after those that replace it: it does not stand without them."""
        chain = {(place, at): None}
        ahead = [(place, at)]
        for key in ahead:
            newer = [one for one in self._by.get(key, ()) if one not in chain]
            chain.update(dict.fromkeys(newer))
            ahead += newer
        for one in sorted(chain, reverse=True):
            if not self._add(*one):
                return

    def _add(self, place: int, at: int) -> bool:
        """Take one sentence, with those beside it that it needs if they fit; whether it stands."""
        taken, read = self._taken[place], self._read[place]
        if at in taken:
            return True
        group = [at]
        if at and read[at].kind and read[at - 1].text.endswith(_COLON) and at - 1 not in taken:
            group.insert(0, at - 1)
        if read[at].text.endswith(_COLON) and at + 1 < len(read) and at + 1 not in taken:
            group += [at + 1] * (len(read[at + 1].text) <= BLOCK)
        while group and self._cost(place, group) > self._left:
            group.pop(0 if group[0] != at else -1)
        if group:
            self._left -= self._cost(place, group)
        for n in group:
            taken.add(n)
            self._order.append((place, n))
            self._words.update(_skeleton(read[n].text))
        return bool(group)

    def fits(self, cost: int) -> bool:
        """Whether what stands fits the room; if not, what was taken last is given back."""
        self._left = self._room - cost
        fit = self._left >= 0
        while self._left < 0 and self._order:
            place, at = self._order.pop()
            self._taken[place].discard(at)
            self._left += self._count(self._read[place][at].text) + self._gap
        return fit or not self._order

    def kept(self) -> tuple[Kept, ...]:
        """Return the words chosen so far."""
        return tuple(self._shown(place, at) for place, at in enumerate(self._taken) if at)

    def _shown(self, place: int, taken: set[int]) -> Kept:
        text, read = self._talk[place].text, self._read[place]
        spans: list[tuple[int, int]] = []
        last = -2
        for at in sorted(taken):
            if at == last + 1:
                spans[-1] = (spans[-1][0], read[at].end)
            else:
                spans.append((read[at].start, read[at].end))
            last = at
        if len(taken) == len(read):
            return Kept(place, ((0, len(text)),), text, True)
        spans = [(marked_from(text, start), end) for start, end in spans]
        shown = text[slice(*spans[0])]
        for (_, end), (start, stop) in pairwise(spans):
            shown += (BREAK if "\n" in text[end:start] else GAP) + text[start:stop]
        before = GAP.lstrip() if 0 not in taken else ""
        after = GAP.rstrip() if len(read) - 1 not in taken else ""
        return Kept(place, tuple(spans), before + shown + after, False)


def _raised(one: Statement, old: Sequence[Statement]) -> Statement:
    """Return a sentence, as much worth as those whose place it takes."""
    best = max(old, key=lambda was: was.weight)
    return replace(one, kind=one.kind or best.kind, weight=max(one.weight, best.weight))


def _named(read: Sequence[Sequence[Statement]], keys: Sequence[_At]) -> set[str]:
    return {value for place, at in keys for _, value in read[place][at].values}


def _as_known(one: Statement, kinds: Mapping[str, str]) -> Statement:
    """Return a sentence, of the kind that the ledger has it as."""
    kind = kinds.get(one.text)
    if kind not in ("rule", "preference", "decision"):
        return one
    return replace(one, kind=cast("Stated", kind), weight=max(one.weight, PLAIN))


def _skeleton(text: str) -> set[str]:
    """Return the words of a sentence without figures: near-equal ones have the same."""
    return set(_WORD.findall(text.lower()))
