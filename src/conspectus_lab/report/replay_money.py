"""What the page of a replay says of money: at the prices of the first model that was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from conspectus_lab.replay import PolicyRun, Replay
from conspectus_lab.report.tables import NOTHING


def cached(runs: Sequence[PolicyRun]) -> float | None:
    """Share of the input that came from the provider's cache."""
    bills = [run.bills[0] for run in runs if run.bills]
    whole = sum(bill.input_tokens for bill in bills)
    return sum(bill.cached_tokens for bill in bills) / whole if whole else None


def money(runs: Sequence[PolicyRun]) -> str:
    """What the sessions cost, as text."""
    bills = [run.bills[0] for run in runs if run.bills]
    return f"${sum(bill.money for bill in bills):,.3f}" if bills else NOTHING


def priced(replays: Sequence[Replay]) -> str:
    """Whose prices are meant, and the money in a window without end."""
    bills = [replay.without[0] for replay in replays if replay.without]
    if not bills:
        return ""
    whole = sum(bill.money for bill in bills)
    return (
        f" Money at the prices of {bills[0].model}, its prefix cache simulated; without "
        f"compaction, in a window without end: ${whole:,.3f}."
    )
