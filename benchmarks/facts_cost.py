"""What carrying facts costs: the share of the summary that it takes, and what that buys.

    make bench-facts-cost       or: python benchmarks/facts_cost.py --json

The embedded summariser gets the ledger's standing facts (rules, limits, what users have decided)
and writes them word for word; what it leaves out is appended. Here each summary is written twice
from the same request with the same limit: with the ledger, and without it. Counted are the standing
facts that stand in the context, and, for agents, what of their future use is quoted. The exit code
is 1 if carrying loses standing facts, and 0 where there are no transcripts in `CONSPECTUS_DATA`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately as count
from rich import box
from rich.console import Console
from rich.table import Table

from conspectus import Compactor, ExtractiveSummarizer, Ledger, Summary, SummaryRequest
from conspectus.cli.eval import read_transcripts
from conspectus.evaluate.cases import Yardstick
from conspectus.evaluate.conspectus_system import carried_share
from conspectus.evaluate.future_use import held_by, quoted
from conspectus.evaluate.texts import text_of
from conspectus.messages import is_summary_message, summary_text

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
KEEP = ("messages", 20)
SIZES = (512, 1024, 2048)
MINIMUM = 10_000


@dataclass(frozen=True, slots=True)
class Row:
    """All compactions of one folder at one size.

    Attributes:
        folder: which transcripts.
        size: the most that a summary message may take, in tokens.
        compactions: how many summaries were written, each in two ways.
        facts: standing facts known to the ledger, in all.
        share: mean share of a summary's tokens that are standing facts.
        kept_with: share of the standing facts that stand in the context word for word.
        kept_without: the same for summaries that were given no ledger.
        quoted_with: mean share of far identifiers quoted, for agents.
        quoted_without: the same for summaries that were given no ledger.
        tokens_with: mean size of a summary's body, in tokens.
        tokens_without: the same for summaries that were given no ledger.
    """

    folder: str
    size: int
    compactions: int
    facts: int
    share: float
    kept_with: float | None
    kept_without: float | None
    quoted_with: float | None
    quoted_without: float | None
    tokens_with: float
    tokens_without: float


class Listening:
    """The embedded summariser, which also keeps what it was asked."""

    name = "extractive"
    identity = "extractive-listening"

    def __init__(self) -> None:
        self.asked: list[SummaryRequest] = []
        self._own = ExtractiveSummarizer()

    def summarize(self, request: SummaryRequest) -> Summary:
        """What the embedded summariser answers."""
        self.asked.append(request)
        return self._own.summarize(request)

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """The same on an event loop."""
        return self.summarize(request)


@dataclass(slots=True)
class Pair:
    """One compaction in two ways, as counts and shares."""

    facts: int
    kept: tuple[int, int]
    share: float
    tokens: tuple[int, int]
    quoted: tuple[float, float] | None


def one_pair(
    prefix: Sequence[BaseMessage], size: int, wanted: Sequence[str], number: int
) -> Pair | None:
    """A history compacted with and without its ledger; None where nothing had to leave.

    Args:
        prefix: the history.
        size: the most that the summary may take, in tokens.
        wanted: the far identifiers, for agents.
        number: names the thread.
    """
    listening = Listening()
    compactor = Compactor(
        listening,
        keep=KEEP,
        max_summary_tokens=size,
        token_counter=count,
        archive="memory:",
    )
    result = compactor.compact(list(prefix), thread_id=f"t{number}", force=True)
    if not listening.asked or not result.summary:
        return None
    request = listening.asked[-1]
    plain = ExtractiveSummarizer().summarize(replace(request, ledger=Ledger())).text
    facts = request.ledger.standing()
    contexts = (result.messages, with_summary(result.messages, plain))
    texts = [" ".join(" ".join(text_of(m) for m in context).split()) for context in contexts]
    values = [" ".join(fact.value.split()) for fact in facts]
    kept = [sum(value in text for value in values) for text in texts]
    shares = [
        len(quoted(held_by(c) & set(wanted), c, prefix)) / len(wanted) for c in contexts if wanted
    ]
    return Pair(
        facts=len(facts),
        kept=(kept[0], kept[1]),
        share=carried_share(result.summary, facts, count),
        tokens=(request.count(result.summary), request.count(plain)),
        quoted=(shares[0], shares[1]) if shares else None,
    )


def with_summary(messages: Sequence[Any], body: str) -> list[BaseMessage]:
    """A context with another summary in the place of its own."""
    text = summary_text(body, archived=True)
    return [HumanMessage(text) if is_summary_message(m) else m for m in messages]


def measure(data: Path, sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """One row for each folder and size."""
    folders = [f for f in sorted(data.glob("*")) if f.is_dir() and any(f.glob("*.json"))]
    yardstick = Yardstick(KEEP, count, 0, MINIMUM)
    for folder in folders:
        transcripts, _ = read_transcripts([str(folder)])
        histories: list[tuple[Sequence[BaseMessage], list[str]]] = []
        for transcript in transcripts:
            cuts = yardstick.case(transcript).cuts if transcript.acts else ()
            histories += [(cut.prefix, [need.value for need in cut.far]) for cut in cuts]
            if not cuts:
                histories.append((transcript.messages, []))
        for size in sizes:
            pairs = [one_pair(h, size, wanted, n) for n, (h, wanted) in enumerate(histories)]
            done = [pair for pair in pairs if pair is not None]
            if done:
                yield row_of(folder.name, size, done)


def row_of(folder: str, size: int, pairs: Sequence[Pair]) -> Row:
    """The means and sums of many compactions."""
    facts = sum(pair.facts for pair in pairs)
    quotes = [pair.quoted for pair in pairs if pair.quoted is not None]
    return Row(
        folder=folder,
        size=size,
        compactions=len(pairs),
        facts=facts,
        share=statistics.fmean(pair.share for pair in pairs),
        kept_with=sum(pair.kept[0] for pair in pairs) / facts if facts else None,
        kept_without=sum(pair.kept[1] for pair in pairs) / facts if facts else None,
        quoted_with=statistics.fmean(q for q, _ in quotes) if quotes else None,
        quoted_without=statistics.fmean(q for _, q in quotes) if quotes else None,
        tokens_with=statistics.fmean(pair.tokens[0] for pair in pairs),
        tokens_without=statistics.fmean(pair.tokens[1] for pair in pairs),
    )


def show(rows: Sequence[Row], screen: Console) -> None:
    """The table."""
    table = Table(
        title="What carrying standing facts costs, and what it buys",
        caption="facts kept, quoted, tokens: with the ledger / without it, in the same room",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    names = ("folder", "summary", "compactions", "facts", "share", "facts kept", "quoted", "tokens")
    for place, name in enumerate(names):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)

    def both(one: float | None, other: float | None) -> str:
        return "-" if one is None or other is None else f"{one:.3f} / {other:.3f}"

    for row in rows:
        table.add_row(
            row.folder,
            f"{row.size:,}",
            f"{row.compactions:,}",
            f"{row.facts:,}",
            f"{row.share:.3f}",
            both(row.kept_with, row.kept_without),
            both(row.quoted_with, row.quoted_without),
            f"{row.tokens_with:,.0f} / {row.tokens_without:,.0f}",
        )
    screen.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it as a command; gives the exit code."""
    parser = argparse.ArgumentParser(description="What carrying facts costs, and what it buys.")
    parser.add_argument("--json", action="store_true", help="print the numbers as data")
    given = parser.parse_args(arguments)
    data = Path(os.environ.get("CONSPECTUS_DATA") or DATA)
    rows = list(measure(data))
    if not rows:
        why = "there are no transcripts; set CONSPECTUS_DATA to a folder of folders of *.json"
        print(json.dumps({"skipped": why}) if given.json else f"skipped: {why}")
        return 0
    if given.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1))
    else:
        show(rows, Console(width=None if sys.stdout.isatty() else 126))
    return 1 if any((row.kept_with or 0) < (row.kept_without or 0) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
