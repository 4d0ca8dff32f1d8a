"""Run transcripts through a real agent under each policy: `conspectus replay`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from conspectus.cli import options, output
from conspectus.cli.compact import KEEP, TRIGGER
from conspectus.cli.failures import DONE, STUCK, WORSE, complain
from conspectus.cli.options import JsonOption, OutOption
from conspectus_lab.commands import running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conspectus_lab.replay import Compaction, Replay

PATHS = "Files with transcripts, or folders; - is standard input."
POLICY = (
    "A policy to compare: none, langchain (LangChain's own middleware) or conspectus. You can "
    "repeat the option. Default: all three."
)
CONFIG = (
    "A YAML file with a section 'summarization', as another policy to compare. You can repeat the "
    "option."
)
SUMMARIZER = "What writes the summaries: embedded, which needs no model, or provider:model."
SUMMARY_TOKENS = "The most tokens of a summary. Default: an eighth of the window."
RECALL_TOKENS = "The most tokens that a question may recall."
PRICED_AS = (
    "The model whose prices and prefix cache are used for the bill. Default: claude-sonnet-5-5, if "
    "its price is known."
)
PRICES = (
    "A JSON file with your own prices, in US dollars for a million tokens: "
    '{"my-model": {"input": 0.25, "output": 2, "cached": 0.025, "written": 0.3}}.'
)
RETENTION = "Show how much of the needed information survives, instead of the bill."
AGAINST = (
    "An earlier measurement, written by -o. If a value is worse than in it, the exit code is 5."
)
TOLERANCE = "The difference up to which a lower value does not count as worse."
LIVE = "Show each compaction as it happens. Default: only on a terminal."
REPORT = "The HTML file to write, a page with charts."


def replay(
    paths: Annotated[list[str], Argument(metavar="PATH...", help=PATHS)],
    window: Annotated[int, options.tokens("Input limit of the model that answers.")] = 8_000,
    trigger: Annotated[list[str] | None, Option(help=TRIGGER, show_default=False)] = None,
    keep: Annotated[str, Option(help=KEEP)] = "messages:20",
    policy: Annotated[list[str] | None, Option(help=POLICY, show_default=False)] = None,
    config: Annotated[list[Path] | None, Option(metavar="FILE", help=CONFIG)] = None,
    summarizer: Annotated[str, Option(help=SUMMARIZER)] = "embedded",
    summary_tokens: Annotated[int | None, Option(help=SUMMARY_TOKENS)] = None,
    recall_tokens: Annotated[int, Option(help=RECALL_TOKENS)] = 512,
    priced_as: Annotated[str | None, Option(metavar="MODEL", help=PRICED_AS)] = None,
    prices: Annotated[Path | None, Option(metavar="FILE", help=PRICES)] = None,
    retention: Annotated[bool, Option("--retention", help=RETENTION)] = False,
    against: Annotated[Path | None, Option(metavar="FILE", help=AGAINST)] = None,
    tolerance: Annotated[float, Option(help=TOLERANCE)] = 0.01,
    live: Annotated[bool | None, Option("--live/--no-live", help=LIVE)] = None,
    report: Annotated[Path | None, Option(metavar="FILE", help=REPORT)] = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run transcripts again through a real agent, and compare what each policy does to them.

    PATH is a transcript in any form that compact reads, or a folder with transcripts. A file
    NAME.exam.json next to NAME.json has questions about its end. The model and the tools answer as
    recorded, so nothing leaves this machine unless --summarizer names a model. Nothing is archived.
    """
    running.check_files(report, out)
    from conspectus_lab.policies import POLICIES
    from conspectus_lab.replay import TRIGGER as USUAL
    from conspectus_lab.report import replay_tables, retention_tables
    from conspectus_lab.results import all_as_json, worse

    earlier = None if against is None else running.read_measurement(against)
    if live is None:
        live = sys.stderr.isatty()
    configured = dict(running.policies_of(config or ()))
    replays, notes = running.run(
        paths,
        window=window,
        trigger=options.triggers(trigger or []) or USUAL,
        keep=options.size(keep, "--keep"),
        policies=[*(policy or ([] if config else list(POLICIES))), *configured],
        summarizer=summarizer,
        summary_tokens=summary_tokens,
        recall_tokens=recall_tokens,
        priced_as=priced_as,
        prices=None if prices is None else running.read_prices(prices),
        on_compaction=_say if live else None,
    )
    notes[:0] = configured.values()
    if retention and earlier is None:
        notes += running.notes_on_questions(replays)
    data = all_as_json(replays)
    fallen = [] if earlier is None else worse(earlier, data, tolerance)
    data["worse"] = fallen
    if earlier is not None and not fallen:
        notes.append(f"Nothing got worse by more than {tolerance:g}.")
    tables = retention_tables if retention else replay_tables
    running.finish(replays, tables(replays), notes, data, report, out, as_json)
    broken = [] if retention else _broken_promises(replays)
    for complaint in (*broken, *(f"worse than {against}: {figure}" for figure in fallen)):
        complain(complaint)
    if fallen:
        raise Exit(WORSE)
    raise Exit(STUCK if broken else DONE)


def _broken_promises(replays: Sequence[Replay]) -> list[str]:
    """Return the promises that our runs have broken, each once."""
    from conspectus_lab.results import broken_promises

    runs = [(replayed, run) for replayed in replays for run in replayed.runs if run.ours]
    return list(dict.fromkeys(promise for pair in runs for promise in broken_promises(*pair)))


def _say(title: str, done: Compaction) -> None:
    """Describe a compaction in one line on standard error."""
    text = f"{title}, request {done.step:,}: {done.before:,} → {done.after:,} tokens ({done.cause})"
    if done.left:
        text += f"; {output.many(len(done.left), 'message')} evicted"
    output.say(f"{text}; {done.shortened:,} clipped" if done.shortened else text, err=True)
