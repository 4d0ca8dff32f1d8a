"""What a replay found, as frozen plain data: numbers first, rendered elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from conspectus_lab.billing import Bill
from conspectus_lab.billing.session import CURRENCY

SCHEMA = 1
"""Version of the plain form."""


@dataclass(frozen=True, slots=True)
class Original:
    """One message that left the view.

    Attributes:
        id: its id.
        cite: how a summary names it.
        role: `user`, `assistant`, `tool`, `system` or `other`.
        name: of the speaker or the tool; empty if there is none.
        text: what it says, tool calls included, whole.
        tokens: its size.
    """

    id: str
    cite: str
    role: str
    name: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One exact fact that stands in a summary, word for word."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction.

    Attributes:
        step: the model call before which, or in which, it happened, from 1.
        cause: what asked for it, in words.
        before: tokens of the messages before it.
        after: and after it.
        left: the messages that left the view, in order.
        read: characters of `left` that the summariser was given.
        characters: characters of `left`.
        summary: the whole text of the summary message.
        carried: exact facts of the ledger that stand in the summary.
        calls: calls of the summariser.
        summarizer_tokens: tokens that the summariser was sent and answered.
        by: name of the summariser.
        shortened: messages that are in view, shown short, with a pointer to their originals.
    """

    step: int
    cause: str
    before: int
    after: int
    left: tuple[Original, ...]
    read: int
    characters: int
    summary: str
    carried: tuple[Fact, ...]
    calls: int
    summarizer_tokens: int
    by: str
    shortened: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the model, measured on the request that was really sent.

    Attributes:
        number: from 1.
        tokens: of the whole request: system prompt, tools and messages.
        messages: of the request.
        compacted: whether a compaction came with it.
        broken: tool calls and results in the request that have lost their partner.
        over: tokens by which the request exceeds the window; 0 if it fits.
        waited: seconds that it took to prepare, compactions included, on this machine; steps are
            compared without it.
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
        policy: `conspectus`, `langchain`, or `none` for no compaction.
        title: the same in words.
        steps: every call of the model.
        compactions: every compaction.
        missing: originals that are neither in view nor in the archive at the end.
        stopped: why the run ended early; empty if it did not.
        seconds: of the whole run.
        bills: what the whole session costs, one for each model whose prices were asked for.
    """

    policy: str
    title: str
    steps: tuple[Step, ...]
    compactions: tuple[Compaction, ...]
    missing: int
    stopped: str = ""
    seconds: float = 0.0
    bills: tuple[Bill, ...] = ()

    @property
    def peak(self) -> int:
        """Tokens of the largest request."""
        return max((step.tokens for step in self.steps), default=0)

    @property
    def sent(self) -> int:
        """Tokens of all requests together."""
        return sum(step.tokens for step in self.steps)

    @property
    def broken(self) -> int:
        """Requests with a tool call or result that has lost its partner."""
        return sum(step.broken > 0 for step in self.steps)

    @property
    def over(self) -> int:
        """Requests larger than the window."""
        return sum(step.over > 0 for step in self.steps)

    @property
    def read_share(self) -> float | None:
        """Share of the text that left which a summariser was given; None if none left."""
        whole = sum(one.characters for one in self.compactions)
        return sum(one.read for one in self.compactions) / whole if whole else None

    @property
    def summarizer_calls(self) -> int:
        """Calls of the summariser."""
        return sum(one.calls for one in self.compactions)

    @property
    def summarizer_tokens(self) -> int:
        """Tokens that the summariser was sent and answered."""
        return sum(one.summarizer_tokens for one in self.compactions)

    @property
    def waited(self) -> float:
        """Seconds that the agent waited for its context before all of its requests."""
        return sum(step.waited for step in self.steps)

    @property
    def carried(self) -> int:
        """Exact facts in the summary in force at the end."""
        return len(self.compactions[-1].carried) if self.compactions else 0


@dataclass(frozen=True, slots=True)
class Replay:
    """One transcript under several policies, with the same input, budget and summariser.

    Attributes:
        name: of the transcript.
        messages: it has.
        tokens: it has.
        window: of the model that answers, in tokens.
        trigger: when to compact, in words.
        keep: what stays, in words.
        summarizer: the name of the summariser that all policies use.
        runs: one for each policy.
        without: what the session would have cost without any compaction, had the window been large
            enough; one for each model.
    """

    name: str
    messages: int
    tokens: int
    window: int
    trigger: str
    keep: str
    summarizer: str
    runs: tuple[PolicyRun, ...] = field(default_factory=tuple)
    without: tuple[Bill, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, the totals of each run included."""
        data = {"schema": SCHEMA, **asdict(self)}
        for plain, run in zip(data["runs"], self.runs, strict=True):
            plain["totals"] = {
                "peak_tokens": run.peak,
                "sent_tokens": run.sent,
                "summarizer_calls": run.summarizer_calls,
                "summarizer_tokens": run.summarizer_tokens,
                "read_share": run.read_share,
                "carried": run.carried,
                "broken": run.broken,
                "over": run.over,
                "missing": run.missing,
                "requests": len(run.steps),
                "waited_seconds": run.waited,
            }
            _plain_bills(plain["bills"], run.bills)
        _plain_bills(data["without"], self.without)
        return data


def _plain_bills(plain: Sequence[dict[str, Any]], bills: Sequence[Bill]) -> None:
    for data, bill in zip(plain, bills, strict=True):
        data["cached_share"], data["summarizer"] = bill.cached_share, bill.summarizer.to_json()
        data["currency"] = CURRENCY
