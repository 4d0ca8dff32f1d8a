"""Compare a measurement with an earlier one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from conspectus.errors import InputError
from conspectus_lab.evaluate.results import Evaluation, SystemResult

TOLERANCE = 0.01
"""Fall of a share that is not yet worse."""

WHERE = {"future use": "", "answers": " (answers)"}
"""Additions to the names of figures, by measure."""


@dataclass(frozen=True, slots=True)
class Change:
    """One figure then and now; `worse` if it fell by more than the tolerance."""

    system: str
    measure: str
    before: float
    now: float
    worse: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """All figures of our own systems that both measurements have."""

    changes: tuple[Change, ...]
    tolerance: float

    @property
    def worse(self) -> tuple[Change, ...]:
        """Return the figures that got worse."""
        return tuple(change for change in self.changes if change.worse)


def compare(now: Evaluation, before: Evaluation, tolerance: float = TOLERANCE) -> Comparison:
    """Compare two measurements of the same transcripts under the same settings.

    Shares (`quoted`, `far`, `answers`, `evidence`, `recoverable`, `read`, the ratio of rounds) may
    fall by the tolerance. Counts of failures (`over`, `broken`, `recall over`) may not rise at all.
    Other systems and new figures are ignored.

    Args:
        now: the new measurement.
        before: the earlier one.
        tolerance: fall of a share that is allowed, from 0 to 1.

    Raises:
        InputError: transcripts or settings differ, a system is missing now, or the tolerance is
            invalid.

    Example:
        >>> from conspectus_lab.evaluate import Settings
        >>> empty = Evaluation(Settings("messages:20", 0, 0, 0, "approximate", 1), (), ())
        >>> compare(empty, empty).worse
        ()
    """
    if not 0 <= tolerance < 1:
        raise InputError(f"the tolerance cannot be {tolerance}; give a share from 0 to below 1")
    _check(now, before)
    known = {result.label: result for result in now.systems}
    changes = []
    for old in before.systems:
        if old.family != "conspectus":
            continue
        new = known.get(old.label)
        if new is None:
            raise InputError(
                f"{old.label!r} was measured then and is not measured now; measure the same "
                "configurations, or make a new baseline"
            )
        for read in (_shares, _failures):
            here = read(new)
            for name, was in read(old).items():
                value = here.get(name)
                if value is None:
                    raise InputError(f"{name} of {old.label!r} was measured then and is not now")
                # A hair of slack, so that a fall of just the tolerance is not one of more.
                worse = was - value > tolerance + 1e-9 if read is _shares else value > was
                changes.append(Change(old.label, name, was, value, worse))
    return Comparison(tuple(changes), tolerance)


def _check(now: Evaluation, before: Evaluation) -> None:
    if now.settings != before.settings:
        then, here = asdict(before.settings), asdict(now.settings)
        other = [
            f"{name} {then[name]!r}, now {here[name]!r}"
            for name in then
            if then[name] != here[name]
        ]
        raise InputError(
            f"then it was measured with {', '.join(other)}; use the same options, or make a new "
            "baseline"
        )
    known = {noted.name: noted.digest for noted in before.transcripts}
    given = {noted.name: noted.digest for noted in now.transcripts}
    if known != given:
        names = sorted(
            name for name in known.keys() | given.keys() if known.get(name) != given.get(name)
        )
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise InputError(
            f"the transcripts are not those of then ({', '.join(names[:3])}{more}); give the same "
            "files, or make a new baseline"
        )


def _shares(result: SystemResult) -> dict[str, float]:
    found: dict[str, float] = {}
    if (future := result.future_use) is not None:
        found |= {"quoted": future.quoted.value, "far": future.far.value}
    if (answers := result.answers) is not None:
        found |= {"answers": answers.answers.value, "evidence": answers.evidence}
    for name, contexts in result.contexts.items():
        if contexts.evicted:
            for what in ("recoverable", "read"):
                found[what + WHERE[name]] = getattr(contexts, what) / contexts.evicted
    if result.rounds is not None and result.rounds.ratio is not None:
        found[f"ratio of {result.rounds.rounds} rounds"] = result.rounds.ratio
    return found


def _failures(result: SystemResult) -> dict[str, float]:
    found: dict[str, float] = {
        what + WHERE[name]: getattr(contexts, what)
        for name, contexts in result.contexts.items()
        for what in ("over", "broken")
    }
    if result.answers is not None:
        found["recall over"] = result.answers.recall_over
    if result.rounds is not None:
        found["over (rounds)"] = result.rounds.over
        found["broken (rounds)"] = result.rounds.broken
    return found
