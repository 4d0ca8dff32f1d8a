"""The results of a replay, as plain data, and the comparison with an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conspectus.errors import InputError
from conspectus_lab.billing import Bill, summed

SCHEMA = 4
"""Version of the plain form."""

SHARES = ("quoted_share", "in_view_share", "with_recall_share", "read_share")
FAILURES = ("broken", "over", "missing")
"""Figures that must not fall, and that must not rise."""


@dataclass(frozen=True, slots=True)
class Original:
    """One evicted message."""

    id: str
    cite: str  # its name in summaries
    role: str  # `user`, `assistant`, `tool`, `system` or `other`
    name: str  # of the speaker or the tool; empty for none
    text: str  # its whole text, tool calls included
    tokens: int  # its size
    read: int = 0  # characters of it that the summariser read


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction."""

    step: int  # the number of its model call, from 1
    cause: str  # the cause in words
    before: int  # tokens of the messages
    after: int
    left: tuple[Original, ...]  # the messages that left the view, in order
    summary: str  # the whole text of the summary message
    shortened: int = 0  # messages that are clipped, with a pointer to their originals

    @property
    def characters(self) -> int:
        """Return the length of all evicted texts."""
        return sum(len(original.text) for original in self.left)

    @property
    def read(self) -> int:
        """Return how many characters of them the summariser read."""
        return sum(original.read for original in self.left)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the model, measured on the request that was sent.

    Attributes:
        waited: seconds of its preparation on this machine; steps are compared without it.
    """

    number: int  # from 1
    tokens: int  # of the whole request: system prompt, tools and messages
    messages: int  # of the request
    compacted: bool  # a compaction came with it
    broken: int  # tool calls and results without their partner
    over: int  # tokens beyond the window; 0 if it fits
    needed: int = 0  # identifiers in the answer that only evicted messages show
    quoted: int = 0  # those of them that the request quotes in the words around them
    waited: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Lost:
    """A question whose evidence is not in the last request."""

    question: str
    missing: tuple[str, ...]  # the first text of each missing group of evidence
    recalled: bool  # whether a recall with the question finds it


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """One transcript under one policy."""

    policy: str  # its name, such as `conspectus`, `langchain`, or `none` for no compaction
    title: str  # the same in words
    steps: tuple[Step, ...]
    compactions: tuple[Compaction, ...]
    missing: int  # originals that are neither in view nor in the archive at the end
    stopped: str = ""  # the reason for an early end
    bill: Bill | None = None  # the cost of the whole session, if a price is known
    summarizer_calls: int = 0  # of a model that summarised
    summarizer_tokens: int = 0
    asked: int = 0  # questions about the end
    lost: tuple[Lost, ...] = ()  # those that the last request does not answer
    ours: bool = False  # whether the promises of this library are checked on it

    @property
    def totals(self) -> dict[str, Any]:
        """Return the figures of the run by name."""
        return totals([self])

    @property
    def peak(self) -> int:
        """Return the tokens of the largest request."""
        return max((step.tokens for step in self.steps), default=0)

    @property
    def broken(self) -> int:
        """Count requests with a tool call or result without its partner."""
        return sum(step.broken > 0 for step in self.steps)

    @property
    def over(self) -> int:
        """Count requests larger than the window."""
        return sum(step.over > 0 for step in self.steps)

    @property
    def read_share(self) -> float | None:
        """Return the share of the evicted text that a summariser read; None if none was evicted."""
        share: float | None = self.totals["read_share"]
        return share


@dataclass(frozen=True, slots=True)
class Replay:
    """One transcript under several policies, with equal input, budget and summariser.

    Attributes:
        without: cost of the session without any compaction in an unlimited window.
    """

    name: str
    digest: str  # a hash of the transcript and the questions about it
    messages: int  # its size
    tokens: int
    window: int  # of the model that answers, in tokens
    trigger: str  # in words
    keep: str
    summarizer: str  # its name
    runs: tuple[PolicyRun, ...] = ()  # one for each policy
    without: Bill | None = None

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON data, the totals of each run included."""
        data = {"schema": SCHEMA, **asdict(self)}
        for plain, run in zip(data["runs"], self.runs, strict=True):
            plain["totals"] = run.totals
            plain["bill"] = _plain(run.bill)
        data["without"] = _plain(self.without)
        return data


def all_as_json(replays: Sequence[Replay]) -> dict[str, Any]:
    """Convert replays to plain JSON data, with the totals of each policy."""
    sums = {
        name: {**totals(runs), "bill": _plain(summed(run.bill for run in runs))}
        for name, runs in by_policy(replays).items()
    }
    return {
        "replays": [replay.to_json() for replay in replays],
        "totals": sums,
        "without": _plain(summed(replay.without for replay in replays)),
    }


def _plain(bill: Bill | None) -> dict[str, Any] | None:
    return None if bill is None else bill.to_json()


def totals(runs: Sequence[PolicyRun]) -> dict[str, Any]:
    """Add up the figures of one policy over several transcripts; the peak is the highest."""
    compactions = [compaction for run in runs for compaction in run.compactions]
    steps = [step for run in runs for step in run.steps]
    lost = [lost for run in runs for lost in run.lost]
    needed = sum(step.needed for step in steps)
    asked = sum(run.asked for run in runs)
    answered_in_view = asked - len(lost)
    answered_by_recall = sum(question.recalled for question in lost)
    return {
        "requests": len(steps),
        "compactions": len(compactions),
        "peak_tokens": max((run.peak for run in runs), default=0),
        "sent_tokens": sum(step.tokens for step in steps),
        "summarizer_calls": sum(run.summarizer_calls for run in runs),
        "summarizer_tokens": sum(run.summarizer_tokens for run in runs),
        "read_share": _share(
            sum(compaction.read for compaction in compactions),
            sum(compaction.characters for compaction in compactions),
        ),
        "broken": sum(run.broken for run in runs),
        "over": sum(run.over for run in runs),
        "missing": sum(run.missing for run in runs),
        "needed": needed,
        "quoted_share": _share(sum(step.quoted for step in steps), needed),
        "asked": asked,
        "in_view_share": _share(answered_in_view, asked),
        "with_recall_share": _share(answered_in_view + answered_by_recall, asked),
        "waited_seconds": sum(step.waited for step in steps),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def is_bad(figure: str, value: float | None) -> bool:
    """Tell whether one of the `totals` reports a failure."""
    if figure == "read_share":
        return value is not None and value < 1
    return figure in FAILURES and bool(value)


def by_policy(replays: Iterable[Replay]) -> dict[str, list[PolicyRun]]:
    """Group the runs of several transcripts by policy."""
    grouped: dict[str, list[PolicyRun]] = {}
    for run in (run for replay in replays for run in replay.runs):
        grouped.setdefault(run.policy, []).append(run)
    return grouped


def broken_promises(replay: Replay, run: PolicyRun) -> list[str]:
    """List the promises that a run under our policy has broken, a sentence each."""
    share = run.read_share
    checks = {
        f"it ended early: {run.stopped}": bool(run.stopped),
        f"{run.over:,} requests do not fit the window of {replay.window:,} tokens": run.over > 0,
        f"{run.broken:,} requests have broken pairs of calls and results": run.broken > 0,
        f"{run.missing:,} originals are neither in view nor in the archive": run.missing > 0,
        f"of the text that left only {share or 0:.1%} was read": share is not None and share < 1,
    }
    return [f"{replay.name}: {sentence}" for sentence, is_broken in checks.items() if is_broken]


def worse(
    before: Mapping[str, Any], after: Mapping[str, Any], tolerance: float = 0.01
) -> list[str]:
    """List what got worse under our policies, a sentence each.

    Args:
        before: plain data of `all_as_json`.
        after: likewise.
        tolerance: how much a share may fall; a count of failures may not rise at all.

    Raises:
        InputError: they measured different things, or one is no measurement.
    """
    if _settings(before) != _settings(after):
        raise InputError(
            "the earlier measurement had other transcripts or settings; make a new one"
        )
    runs = [run for replay in before["replays"] for run in replay["runs"]]
    ours = {run["policy"] for run in runs if run["ours"]}
    fallen: list[str] = []
    for policy in sorted(ours):
        if policy not in after["totals"]:
            raise InputError(f"nothing was measured for {policy}, as it was before")
        fallen += _fallen(policy, before["totals"][policy], after["totals"][policy], tolerance)
    return fallen


def _settings(data: Mapping[str, Any]) -> list[Any]:
    try:
        names = ("schema", "name", "digest", "window", "trigger", "keep", "summarizer")
        return [[replay[name] for name in names] for replay in data["replays"]]
    except (KeyError, TypeError) as error:
        raise InputError("no measurement of this version; make one with eval -o FILE") from error


def _fallen(
    policy: str, old: Mapping[str, Any], new: Mapping[str, Any], tolerance: float
) -> Iterator[str]:
    for name in SHARES:
        old_share = old[name]
        new_share = new[name]
        if old_share is not None and (new_share is None or old_share - new_share > tolerance):
            yield f"{policy}: {name} fell from {old_share:.3f} to {new_share or 0.0:.3f}"
    for name in FAILURES:
        if new[name] > old[name]:
            yield f"{policy}: {name} rose from {old[name]} to {new[name]}"
