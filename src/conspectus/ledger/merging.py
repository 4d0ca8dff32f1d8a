"""Facts put on top of each other, one after the other: what is merged, replaced, or finished."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from conspectus.ledger import supersede, tasks
from conspectus.ledger.fact import Fact
from conspectus.ledger.facts import Answered, AskedAfter, Listed, Note, Reported
from conspectus.ledger.likeness import PAIR, reading, shared, size
from conspectus.ledger.priority import LIMIT, best
from conspectus.ledger.statements import change_in
from conspectus.ledger.supersede import PLAIN, Change
from conspectus.ledger.values import values
from conspectus.ledger.wording.marks import NOTED

CROWDED = 40
"""Times `LIMIT` that a ledger may hold while it is being made; then the lesser half goes."""

COMPARED = 200
"""Statements, or values, that a change is compared with: the latest, so that the work stays
linear."""

GONE = 200
"""Replaced statements and values that are remembered: the latest."""

FINISHED, WIDE_FINISHED = 0.45, 0.35
"""Share of its words that a task has in common with the report that it is done; the second where
endings and joined words leave fewer in common."""

BARE, WIDE_BARE = 1.5, 2.5
"""Words up to which a report says only that something is done, and not what; the second where the
endings of words count too."""

WAITS, CANCELS = "waits", "cancels"
"""Stand in the call of work that is known by an id, before the id: what its answer may do to it."""

Key = tuple[str, str]


class Merging:
    """A ledger while it is being made.

    Args:
        facts: what it holds so far, in order.
        gone: what has been replaced so far.
    """

    def __init__(self, facts: Iterable[Fact], gone: Iterable[str]) -> None:
        self._load(facts)
        self._gone: dict[str, None] = dict.fromkeys(gone)
        self._replacing = (-1, "")
        self._barred: tuple[int, set[str]] = (-1, set())

    def _load(self, facts: Iterable[Fact]) -> None:
        """Hold these facts and no others."""
        self._book: dict[Key, Fact] = {}
        self._statements: dict[Key, Fact] = {}
        self._subjects: dict[object, dict[Key, Fact]] = {}
        self._open: dict[Key, Fact] = {}
        for fact in facts:
            self._put(fact)

    def facts(self) -> list[Fact]:
        """What it holds."""
        return list(self._book.values())

    def gone(self) -> tuple[str, ...]:
        """What has been replaced, the latest last."""
        return tuple(self._gone)[-GONE:]

    def retire(self, texts: Iterable[str]) -> None:
        """Statements and values that a later ledger knows to be replaced."""
        for text in texts:
            for key in [key for key in self._book if key[1] == text]:
                self._drop(key)
            self._gone[text] = None

    def trim(self) -> None:
        """Keep within bounds."""
        if len(self._book) > CROWDED * LIMIT:
            self._load(best(list(self._book.values()), CROWDED * LIMIT // 2))
            self._gone = dict.fromkeys(self.gone())

    def take(self, note: Note) -> None:
        """Put what one message tells on top."""
        match note:
            case Fact() if note.kind in PLAIN:
                self._state(note)
            case Fact() if note.kind in ("task", "delegation"):
                self._work(note)
            case Fact():
                self._value(note)
            case Reported():
                self._reported(note)
            case Answered():
                self._answered(note)
            case AskedAfter():
                self._asked_after(note)
            case Listed():
                self._listed(note)

    # Statements

    def _state(self, fact: Fact) -> None:
        known = self._book.get((fact.kind, fact.value))
        if known is not None:
            self._again(known, fact)
            return
        self._gone.pop(fact.value, None)
        subject = supersede.same_subject(fact)
        alike = self._subjects.get(subject, {}) if subject else {}
        for old in reversed(list(islice(reversed(alike.values()), COMPARED))):
            if supersede.replaces(fact, old):
                self._replace(old, fact.value)
                self._replacing = (fact.order, fact.value)
        self._put(fact)

    def _reported(self, note: Reported) -> None:
        sentence = note.sentence
        if note.done:
            self._finish(sentence.text, note.order)
        if not sentence.changes:
            return
        change = Change(
            sentence.text,
            note.role,
            note.order,
            f"{sentence.before} {sentence.text}" if sentence.before else sentence.text,
            sentence.changes > 1,
            sentence.states,
        )
        told = note.role != "assistant" or sentence.states == "decision"
        if self._replacing == (note.order, sentence.text):
            told = False  # it has found what it replaces
        latest = list(islice(reversed(self._statements.values()), COMPARED)) if told else []
        own = next((f for f in latest if f.value == sentence.text), None)
        for old in supersede.replaced(change, [f for f in latest if f is not own]):
            self._replace(old, sentence.text)
            if own is not None and {own.kind, old.kind} == {"rule", "preference"}:
                # A wish in other words is still a wish, and a limit a limit.
                self._drop((own.kind, own.value))
                own = replace(own, kind=old.kind)
                self._put(own)
            elif own is None and not sentence.states:
                # It takes the place of a statement, so it is one.
                own = replace(
                    old,
                    value=sentence.text,
                    quote=sentence.text,
                    source=note.source,
                    role=note.role,
                    order=note.order,
                    used=0,
                    told=1,
                )
                self._gone.pop(sentence.text, None)
                self._put(own)
        recent = islice(reversed(self._book.values()), 4 * COMPARED)
        pool = [f for f in recent if f.kind in supersede.CORRECTED and f.order < note.order]
        for old in supersede.corrected(change, pool[:COMPARED]):
            if supersede.outranks(note.role, old.role) and not self._elsewhere(old):
                self._retire(old)
        named = {value for _, _, value in reading(sentence.text).old}
        if named:
            self._bar(note.order, named)

    def _bar(self, order: int, named: set[str]) -> None:
        """What a correction names as wrong or old is in force no longer, and not noted again."""
        if self._barred[0] != order:
            self._barred = (order, set())
        self._barred[1].update(named)
        for kind in supersede.KINDS_OF_VALUES:
            for value in named:
                if (old := self._book.get((kind, value))) is not None and old.order < order:
                    self._retire(old)

    def _replace(self, old: Fact, by: str) -> None:
        """A statement goes, and with it the values that stood nowhere else."""
        self._drop((old.kind, old.value))
        self._gone.pop(old.value, None)
        self._gone[old.value] = None
        for kind, value, _ in values(old.value):
            bare = self._book.get((kind, value))
            if bare is None or value in by or bare.told > 1 or self._elsewhere(bare):
                continue
            self._retire(bare)

    def _elsewhere(self, bare: Fact) -> bool:
        """Whether a statement in force has a value in it."""
        latest = islice(reversed(self._statements.values()), COMPARED)
        return any(bare.value in fact.value for fact in latest)

    def _retire(self, bare: Fact) -> None:
        self._drop((bare.kind, bare.value))
        self._gone.pop(bare.value, None)
        self._gone[bare.value] = None

    # Values

    def _value(self, fact: Fact) -> None:
        if self._barred[0] == fact.order and fact.value in self._barred[1]:
            return
        if fact.value in self._gone:
            if fact.role not in ("user", "system"):
                return  # the agent and its tools may still speak of what has been replaced
            self._gone.pop(fact.value)
        known = self._book.get((fact.kind, fact.value))
        if known is None:
            self._put(fact)
        else:
            self._again(known, fact)

    def _again(self, known: Fact, fact: Fact) -> None:
        """The same fact once more."""
        # The first place tells most, except that a user's words outweigh a tool's.
        better = fact if known.role == "tool" and fact.role != "tool" else known
        once = fact.order == known.order and fact.told + fact.used == 1
        self._drop((known.kind, known.value))
        # Made at once, as `dataclasses.replace` takes three times as long and this comes often.
        self._put(
            Fact(
                better.kind,
                better.value,
                better.quote,
                better.source,
                better.role,
                max(known.used, fact.used) if once else known.used + fact.used,
                fact.order,
                known.state,
                max(known.told, fact.told) if once else known.told + fact.told,
                known.call,
                known.result,
            )
        )

    # Work

    def _work(self, fact: Fact) -> None:
        known = self._book.get((fact.kind, fact.value))
        if known is None:
            if (
                fact.state == "done"
                and fact.kind == "task"
                and self._finish(fact.value, fact.order)
            ):
                return
            self._put(fact)
        else:
            self._set(known, state=fact.state, call=fact.call or known.call, order=fact.order)

    def _listed(self, note: Listed) -> None:
        now = {fact.value for fact in note.tasks if fact.state}
        for old in list(self._open.values()):
            if old.kind == "task" and old.call == "list" and old.value not in now:
                self._drop((old.kind, old.value))
        for fact in note.tasks:
            if fact.state:
                self._work(replace(fact, call="list"))

    def _answered(self, note: Answered) -> None:
        for old in list(self._open.values()):
            call, kind, task = _known_by(old)
            if old.kind == "delegation" and call and call == note.call:
                task = task or tasks.handle(note.text)
                waits = f"\n{WAITS} {task}" if task else ""
                if tasks.under_way(note.text):
                    self._set(old, call=waits)
                elif note.failed or tasks.failed(note.text):
                    # It is still to be done, and why it was not is worth knowing.
                    self._set(old, call=waits, result=tasks.came_back(note.text))
                elif kind == CANCELS or tasks.status(note.text) == "cancelled":
                    self._drop((old.kind, old.value))
                else:
                    self._set(old, state="done", call="", result=tasks.came_back(note.text))

    def _asked_after(self, note: AskedAfter) -> None:
        for old in list(self._open.values()):
            if old.kind == "delegation" and _known_by(old)[2] == note.task:
                kind = CANCELS if note.gives_up else WAITS
                self._set(old, call=f"{note.call}\n{kind} {note.task}")

    def _finish(self, report: str, order: int) -> bool:
        """The open task that a report says is done, if one is plainly meant, is done."""
        said = reading(report)
        found: list[tuple[float, Fact]] = []
        for work in islice(reversed(self._open.values()), COMPARED):
            if work.value == report:
                continue
            task = reading(work.value)
            both = shared(said.words, task.words)
            both += len({v for _, _, v in said.gives} & {v for _, _, v in task.gives})
            least = max(1.0, min(size(said.words), size(task.words)))
            few, share = (1.5, FINISHED) if report.isascii() else (2 * PAIR, WIDE_FINISHED)
            if both >= few - 1e-9 and both / least >= share:
                found.append((both / least + both / 10, work))
        if not found and (last := self._just_said(report, order)) is not None:
            found.append((0.0, last))
        if not found:
            return False
        self._set(max(found, key=lambda one: one[0])[1], state="done")
        return True

    def _just_said(self, report: str, order: int) -> Fact | None:
        """The task that "done" or "I've cut them" means: the only one set a moment ago."""
        said = reading(report).words
        if NOTED.search(report):
            return None
        if size(said) > (BARE if report.isascii() else WIDE_BARE):
            return None
        latest = islice(reversed(self._open.values()), COMPARED)
        near = [f for f in latest if f.kind == "task" and 0 < order - f.order <= supersede.NEAR]
        near = [f for f in near if not f.call and f.value != report]
        more = len(report.split()) > 2 or re.search("[を을를把]", report)
        if len(near) > 1 or (said and more):
            near = [f for f in near if shared(said, reading(f.value).words) >= PAIR - 1e-9]
        return near[0] if len(near) == 1 else None

    # The book

    def _set(self, fact: Fact, **new: object) -> None:
        self._drop((fact.kind, fact.value))
        self._put(replace(fact, **new))  # type: ignore[arg-type]

    def _put(self, fact: Fact) -> None:
        key = (fact.kind, fact.value)
        self._book[key] = fact
        if fact.kind in PLAIN:
            self._statements[key] = fact
            if subject := supersede.same_subject(fact):
                self._subjects.setdefault(subject, {})[key] = fact
        elif fact.state == "open":
            self._open[key] = fact

    def _drop(self, key: Key) -> None:
        fact = self._book.pop(key, None)
        if fact is None:
            return
        self._statements.pop(key, None)
        self._open.pop(key, None)
        if fact.kind in PLAIN and (subject := supersede.same_subject(fact)):
            self._subjects.get(subject, {}).pop(key, None)


__all__ = ["COMPARED", "CROWDED", "GONE", "Merging", "change_in"]


def _known_by(work: Fact) -> tuple[str, str, str]:
    """The call whose answer tells of work, what that may do, and the id to ask after it by."""
    call, _, rest = work.call.partition("\n")
    kind, _, task = rest.partition(" ")
    return call, kind, task
