"""Hold the findings of a replay as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conspectus_lab.billing import Bill

SCHEMA = 2
"""Version of the plain form."""


@dataclass(frozen=True, slots=True)
class Original:
    """One message that left the view.

    Attributes:
        cite: its name in summaries.
        role: `user`, `assistant`, `tool`, `system` or `other`.
        name: of the speaker or the tool; empty for none.
        text: its whole text, tool calls included.
        tokens: its size.
        read: characters of it that the summariser was given.
    """

    id: str
    cite: str
    role: str
    name: str
    text: str
    tokens: int
    read: int = 0


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction.

    Attributes:
        step: the model call of which it was a part, from 1.
        cause: in words.
        before, after: tokens of the messages.
        left: the messages that left the view, in order.
        summary: the whole text of the summary message.
        shortened: messages that are clipped, with a pointer to their originals.
    """

    step: int
    cause: str
    before: int
    after: int
    left: tuple[Original, ...]
    summary: str
    shortened: int = 0

    @property
    def characters(self) -> int:
        """Return the length of all texts that left."""
        return sum(len(original.text) for original in self.left)

    @property
    def read(self) -> int:
        """Return how many characters of them the summariser was given."""
        return sum(original.read for original in self.left)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the model, measured on the request that was really sent.

    Attributes:
        number: from 1.
        tokens: of the whole request: system prompt, tools and messages.
        messages: of the request.
        compacted: a compaction came with it.
        broken: tool calls and results without their partner.
        over: tokens beyond the window; 0 if it fits.
        waited: seconds of its preparation on this machine; steps are compared without it.
    """

    number: int
    tokens: int
    messages: int
    compacted: bool
    broken: int
    over: int
    waited: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """One transcript under one policy.

    Attributes:
        policy: its name, such as `conspectus`, `langchain`, or `none` for no compaction.
        title: the same in words.
        missing: originals that are neither in view nor in the archive at the end.
        stopped: the reason for an early end.
        bills: cost of the whole session, one for each model of `priced_as`.
        summarizer_calls, summarizer_tokens: of a model that summarised.
    """

    policy: str
    title: str
    steps: tuple[Step, ...]
    compactions: tuple[Compaction, ...]
    missing: int
    stopped: str = ""
    bills: tuple[Bill, ...] = ()
    summarizer_calls: int = 0
    summarizer_tokens: int = 0

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
        """Return the share of the evicted text that a summariser was given; None without any."""
        whole = sum(compaction.characters for compaction in self.compactions)
        return sum(one.read for one in self.compactions) / whole if whole else None


@dataclass(frozen=True, slots=True)
class Replay:
    """One transcript under several policies, with equal input, budget and summariser.

    Attributes:
        messages, tokens: its size.
        window: of the model that answers, in tokens.
        trigger, keep: in words.
        summarizer: its name.
        runs: one for each policy.
        without: cost of the session without any compaction in an unlimited window, one for each
            model.
    """

    name: str
    messages: int
    tokens: int
    window: int
    trigger: str
    keep: str
    summarizer: str
    runs: tuple[PolicyRun, ...] = ()
    without: tuple[Bill, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON data, the totals of each run included."""
        data = {"schema": SCHEMA, **asdict(self)}
        for plain, run in zip(data["runs"], self.runs, strict=True):
            plain["totals"] = run.totals
            plain["bills"] = [bill.to_json() for bill in run.bills]
        data["without"] = [bill.to_json() for bill in self.without]
        return data


def totals(runs: Sequence[PolicyRun]) -> dict[str, Any]:
    """Add up the figures of one policy over several transcripts; the peak is the highest."""
    compactions = [compaction for run in runs for compaction in run.compactions]
    characters = sum(compaction.characters for compaction in compactions)
    read = sum(compaction.read for compaction in compactions)
    return {
        "requests": sum(len(run.steps) for run in runs),
        "compactions": len(compactions),
        "peak_tokens": max((run.peak for run in runs), default=0),
        "sent_tokens": sum(step.tokens for run in runs for step in run.steps),
        "summarizer_calls": sum(run.summarizer_calls for run in runs),
        "summarizer_tokens": sum(run.summarizer_tokens for run in runs),
        "read_share": read / characters if characters else None,
        "broken": sum(run.broken for run in runs),
        "over": sum(run.over for run in runs),
        "missing": sum(run.missing for run in runs),
        "waited_seconds": sum(step.waited for run in runs for step in run.steps),
    }


def is_bad(figure: str, value: float | None) -> bool:
    """Return whether one of the `totals` reports a failure."""
    if figure == "read_share":
        return value is not None and value < 1
    return figure in ("broken", "over", "missing") and bool(value)


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
    return [f"{replay.name}: {what}" for what, holds in checks.items() if holds]
