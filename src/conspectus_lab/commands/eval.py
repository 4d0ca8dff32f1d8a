"""Measure retention: `conspectus eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.failures import DONE, WORSE, complain
from conspectus.cli.options import JsonOption
from conspectus.errors import InputError
from conspectus_lab.commands import running
from conspectus_lab.commands.running import (
    ConfigOption,
    KeepOption,
    OutputOption,
    PathsArgument,
    ReportOption,
    SummarizerOption,
    SummaryOption,
    TriggerOption,
    WindowOption,
)


def evaluate(
    paths: PathsArgument,
    window: WindowOption = 8_000,
    trigger: TriggerOption = None,
    keep: KeepOption = "messages:20",
    config: ConfigOption = None,
    langchain: Annotated[
        bool, typer.Option(help="Also measure LangChain's own middleware.")
    ] = True,
    summarizer: SummarizerOption = "embedded",
    summary_tokens: SummaryOption = None,
    recall_tokens: Annotated[
        int, typer.Option(help="What a question may recall, in tokens.")
    ] = 512,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Fail where it got worse than this measurement (-o)."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="How much a share may fall before it counts as worse.")
    ] = 0.01,
    report: ReportOption = None,
    out: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how much of what is needed later survives compaction.

    PATH is a transcript in any form that compact reads, or a folder, which is searched through.
    NAME.exam.json beside NAME.json holds questions about its end. Each transcript is replayed as
    by `conspectus replay`; nothing is changed and nothing is kept.
    """
    running.check_files(report, out)
    from conspectus_lab.replay import TRIGGER, worse
    from conspectus_lab.report import retention_tables
    from conspectus_lab.results import all_as_json

    before = None if against is None else _baseline(against)
    ours: list[Any] = running.policies_of(config or (), window) or ["conspectus"]
    replays, notes = running.run(
        paths,
        window=window,
        trigger=options.triggers(trigger or []) or TRIGGER,
        keep=options.size(keep, "--keep"),
        policies=[*ours, *(["langchain"] if langchain else [])],
        summarizer=options.summarizer_of(summarizer),
        summary_tokens=summary_tokens,
        recall_tokens=recall_tokens,
        priced_as=(),
    )
    data = all_as_json(replays)
    fallen = [] if before is None else worse(before, data, tolerance)
    data["worse"] = fallen
    running.finish(replays, retention_tables(replays), notes, data, report, out, as_json)
    if before is not None and not fallen and not as_json:
        output.say(f"Nothing got worse by more than {tolerance:g}.")
    for what in fallen:
        complain(f"worse than {against}: {what}")
    raise typer.Exit(WORSE if fallen else DONE)


def _baseline(file: Path) -> Any:
    from conspectus_lab.questions import read_data

    data = read_data(file, advice="; give the file that 'conspectus eval -o FILE' wrote")
    if not isinstance(data, dict) or "replays" not in data:
        raise InputError(f"{file}: no measurement; make one with eval -o FILE")
    return data
