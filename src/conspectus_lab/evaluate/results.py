"""Hold a measurement as plain data, and compare it with an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from conspectus.errors import InputError

SCHEMA = 2
"""Version of the plain form."""

SHARES = ("quoted", "in_view", "with_recall", "read", "recoverable")
FAILURES = ("over", "broken")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that are the same for all systems: the kept tail as text, and sizes in tokens."""

    keep: str
    recall_tokens: int
    minimum: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One transcript: its size, and why it was left out; `skipped` is empty for one that counts."""

    name: str
    digest: str
    messages: int
    tokens: int
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A question whose evidence is not in view.

    Attributes:
        missing: the first text of each group of evidence that is not there.
        recalled: whether the question itself recalls it.
    """

    system: str
    transcript: str
    question: str
    missing: tuple[str, ...]
    recalled: bool


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one system with one size of summary.

    Attributes:
        contexts: compactions measured.
        quoted: share of the identifiers needed again that the view holds in the words around them:
            mean over transcripts.
        needed: those identifiers.
        in_view: share of the questions whose evidence is in view.
        with_recall: the same, or in what the question recalls.
        read: share of the evicted messages that the summariser read whole.
        recoverable: share of them that came back from the archive unchanged.
        over: summaries larger than their limit.
        broken: tool calls and results without their partner.
        tokens: of the view; the median.
        seconds: of one compaction, on average; the only figure that differs from run to run.
    """

    name: str
    ours: bool
    summary_tokens: int
    contexts: int
    quoted: float | None
    needed: int
    in_view: float | None
    with_recall: float | None
    asked: int
    read: float | None
    recoverable: float | None
    over: int
    broken: int
    tokens: int
    seconds: float

    @property
    def label(self) -> str:
        """Return the system and its size of summary."""
        return f"{self.name}, {self.summary_tokens:,}"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A measurement."""

    settings: Settings
    transcripts: tuple[Measured, ...]
    results: tuple[Result, ...]
    lost: tuple[Lost, ...] = ()
    schema: int = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Evaluation:
        """Read the plain form.

        Raises:
            InputError: it is no measurement of this version.
        """
        try:
            read = _READER.validate_python(data)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"])) or "it"
            raise InputError(f"no measurement ({where}); make one with eval -o FILE") from error
        if read.schema != SCHEMA:
            raise InputError("a measurement of another version; make a new one with eval -o FILE")
        return read


_READER = TypeAdapter(Evaluation)


def worse(before: Evaluation, after: Evaluation, tolerance: float = 0.01) -> list[str]:
    """List what got worse under our systems, a sentence each.

    Args:
        tolerance: how much a share may fall; a count of failures may not rise at all.

    Raises:
        InputError: the two measured different things.
    """
    if before.settings != after.settings:
        raise InputError("the earlier measurement had other settings; make a new one")
    if [(m.name, m.digest) for m in before.transcripts] != [
        (m.name, m.digest) for m in after.transcripts
    ]:
        raise InputError("the earlier measurement had other transcripts; make a new one")
    now = {(result.name, result.summary_tokens): result for result in after.results}
    found: list[str] = []
    for old in before.results:
        if not old.ours:
            continue
        new = now.get((old.name, old.summary_tokens))
        if new is None:
            raise InputError(f"nothing was measured for {old.label}, as it was before")
        found += _fallen(old, new, tolerance)
    return found


def _fallen(old: Result, new: Result, tolerance: float) -> Iterator[str]:
    for name in SHARES:
        was, now = getattr(old, name), getattr(new, name)
        if was is not None and (now is None or was - now > tolerance):
            yield f"{new.label}: {name} fell from {was:.3f} to {0.0 if now is None else now:.3f}"
    for name in FAILURES:
        was, now = getattr(old, name), getattr(new, name)
        if now > was:
            yield f"{new.label}: {name} rose from {was} to {now}"
