"""Hold the findings of a measurement, and convert them to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from conspectus.errors import InputError
from conspectus_lab.evaluate.intervals import Mean
from conspectus_lab.evaluate.systems import Family

FORMAT = 1
"""Version of the plain form; a reader refuses another one."""


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of another."""

    held: int
    wanted: int

    @property
    def share(self) -> float | None:
        """Return the share, from 0 to 1; None if nothing was wanted."""
        return self.held / self.wanted if self.wanted else None


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts of a system, together.

    Attributes:
        tokens: median size, in tokens.
        largest: size of the largest, in tokens.
        over: contexts larger than allowed: kept messages, the first one and the limit of the
            summary, with 5 % and 40 tokens of slack. One is a failure: a system that keeps
            everything would score best.
        broken: tool calls and results without their partner.
        evicted: messages that left the view.
        read: those of them that a summariser read whole.
        recoverable: those of them that came back from the archive unchanged.
        cited: those of them that a summary names, so that they can be recalled by id.
        summary_tokens, largest_summary: median and largest summary message, in tokens.
        calls: calls of a model.
        input_tokens, output_tokens: tokens to and from a model.
        seconds: mean time of one compaction, the only figure that differs from run to run.
    """

    count: int
    tokens: float
    largest: int
    over: int
    broken: int
    evicted: int
    read: int
    recoverable: int
    cited: int
    summary_tokens: float
    largest_summary: int
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FutureUse:
    """The part of later needs that was kept.

    Attributes:
        quoted: share of far identifiers that stand in the context in their old words; the mean over
            transcripts of the mean over their cuts. The headline.
        far: share of far identifiers that stand in it at all.
        by_kind, by_distance: quoted ones of all transcripts, by kind and by messages until needed.
        quoted_in: `quoted` by transcript.
    """

    quoted: Mean
    far: Mean
    by_kind: dict[str, Share]
    by_distance: dict[str, Share]
    cuts: int
    contexts: Contexts
    quoted_in: dict[str, float]


@dataclass(frozen=True, slots=True)
class Answers:
    """The part of the right answers that was kept.

    Attributes:
        answers: mean share of an answer that stands in the context and the recalled text.
        bm25: the same for the tail and a plain BM25 recall.
        gain: our share less that, question by question.
        evidence: mean share of evidence messages that stand whole.
        tokens: median size of context and recalled text together.
        questions: number of questions marked.
        unmarked: number of those that could not be.
        by_category: mean share by category of question.
        recall_over: recalls larger than requested.
    """

    answers: Mean
    bm25: Mean
    gain: Mean
    evidence: float
    tokens: float
    questions: int
    unmarked: int
    by_category: dict[str, Mean]
    recall_over: int
    contexts: Contexts


@dataclass(frozen=True, slots=True)
class Rounds:
    """A growing thread compacted again and again, and once at its end.

    Attributes:
        one: `quoted` after one compaction at the end; mean over transcripts of that over cuts.
        many: `quoted` after all rounds.
        ratio: `many` in `one`; None if `one` is 0.
        over: summaries larger than their limit.
        largest_summary: in tokens.
        broken: tool calls and results without their partner.
        compactions: mean number of rounds of a cut that compacted something.
        cuts: number of cuts measured.
        skipped: cuts before which fewer messages leave than there are rounds.
    """

    rounds: int
    one: float
    many: float
    ratio: float | None
    over: int
    largest_summary: int
    broken: int
    compactions: float
    cuts: int
    skipped: int


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system with one size of summary.

    Attributes:
        family: its makers.
        keep: the newest history that stays, as `messages:20`.
        summary_tokens: limit of its summary, in tokens; 0 without one.
        future_use: None if no transcript could be measured so.
        answers: None without questions.
        rounds: None if not requested.
    """

    name: str
    family: Family
    keep: str
    summary_tokens: int
    future_use: FutureUse | None = None
    answers: Answers | None = None
    rounds: Rounds | None = None

    @property
    def label(self) -> str:
        """Return the unique name and size."""
        return f"{self.name} {self.summary_tokens}" if self.summary_tokens else self.name

    @property
    def contexts(self) -> dict[str, Contexts]:
        """Return the contexts of each measure, by its name."""
        parts = {"future use": self.future_use, "answers": self.answers}
        return {name: part.contexts for name, part in parts.items() if part is not None}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first system less another one, on the same transcripts or questions.

    Attributes:
        measure: `quoted` or `answers`.
        first, second: labels of the systems.
        difference: the mean with its interval; above 0 the first is better.
    """

    measure: str
    first: str
    second: str
    difference: Mean


@dataclass(frozen=True, slots=True)
class Lost:
    """A question or statement whose evidence does not stand in view.

    Attributes:
        what: `question` or `statement`.
        missing: the missing texts of a question; the id of a statement's message.
        recalled: its own words recall it.
    """

    transcript: str
    what: str
    kind: str
    text: str
    missing: tuple[str, ...]
    recalled: bool


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Evidence that stands in view after whole runs in a window, or one recall away.

    Attributes:
        window: tokens.
        transcripts: number of transcripts larger than the window, which were run.
        in_view: questions whose evidence stands in view.
        with_recall: the same, or in the question's own recall.
        statements: planted statements that stand.
        stale: statements with the old value behind the new one, or without it.
        lasting: questions and statements whose evidence once stood in the notes, and those of them
            that stand at the end.
        rounds: mean number of compactions of a transcript.
        tokens: median size of the view at the end.
        fullest: the largest of them, as a share of the window.
        over: requests larger than the window. One is a failure.
        cached: share of their tokens that repeat the start of the request before.
        cost: tokens to pay for each, a repeated one counting a tenth.
        lost: evidence that is not in view.
    """

    name: str
    window: int
    transcripts: int = 0
    in_view: Share = Share(0, 0)
    with_recall: Share = Share(0, 0)
    statements: Share = Share(0, 0)
    stale: int = 0
    lasting: Share = Share(0, 0)
    rounds: float = 0.0
    by_kind: dict[str, Share] = field(default_factory=dict)
    tokens: float = 0.0
    fullest: float = 0.0
    over: int = 0
    requests: int = 0
    cached: float = 0.0
    cost: float = 0.0
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """The outcome of one transcript.

    Attributes:
        digest: changes with its messages or questions.
        messages: number of its messages, without system messages.
        cuts: number of its cuts measured.
        questions: number of its questions marked.
        skipped: the reason if nothing was measured.
    """

    name: str
    digest: str
    messages: int
    tokens: int
    cuts: int
    questions: int
    skipped: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a measurement; only equal ones can be compared.

    Attributes:
        keep: the tail that counts as near, as `messages:20`.
        recall_tokens: limit of recall for a question; 0 for no recall.
        minimum_tokens: transcripts smaller than this are left out of future use.
        rounds: number of rounds; 0 for none.
        counter: the token counter.
        seed: for the intervals.
    """

    keep: str
    recall_tokens: int
    minimum_tokens: int
    rounds: int
    counter: str
    seed: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A whole measurement.

    Attributes:
        systems: findings for each system and size.
        differences: the first system less the others, size by size.
        going_on: whole runs in a window, if requested.
    """

    settings: Settings
    transcripts: tuple[Noted, ...]
    systems: tuple[SystemResult, ...]
    differences: tuple[Difference, ...] = ()
    going_on: tuple[GoingOn, ...] = ()

    def system(self, name: str, summary_tokens: int | None = None) -> SystemResult:
        """Return the result of one system; its size is only needed if it has several.

        Raises:
            KeyError: there is none.
        """
        for found in self.systems:
            if found.name == name and summary_tokens in (None, found.summary_tokens):
                return found
        raise KeyError(f"no system {name!r} with {summary_tokens} tokens was measured")

    def to_json(self) -> dict[str, Any]:
        """Convert the measurement to plain JSON data."""
        return {"v": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: object) -> Evaluation:
        """Read the measurement that `to_json` wrote.

        Raises:
            InputError: another version wrote it, or it is no measurement.

        Example:
            >>> settings = Settings("messages:20", 0, 10_000, 0, "approximate", 1)
            >>> empty = Evaluation(settings, (), ())
            >>> Evaluation.from_json(empty.to_json()) == empty
            True
        """
        if not isinstance(data, Mapping) or data.get("v") != FORMAT:
            raise InputError(
                "this is no measurement of 'conspectus eval --json' of this version; measure again"
            )
        try:
            return _READER.validate_python({k: v for k, v in data.items() if k != "v"})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise InputError(f"this measurement is damaged at {where}: {first['msg']}") from error


_READER = TypeAdapter(Evaluation)
