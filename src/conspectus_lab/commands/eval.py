"""Measure retention: `conspectus eval`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli import output
from conspectus.cli.failures import DONE, WORSE, complain
from conspectus.cli.options import JsonOption
from conspectus.errors import InputError, MessageError
from conspectus_lab.commands.terminal import (
    OutputOption,
    ReportOption,
    check_files,
    print_tables,
    write_files,
)

if TYPE_CHECKING:
    from conspectus_lab.evaluate import Evaluation, Measured, System, Transcript

QUESTIONS = ".exam.json"
"""Ending of the file of questions beside `NAME.json`."""

ENDINGS = (".json", ".jsonl")
"""Endings of transcripts in a folder."""


def evaluate(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Transcripts, or folders of them.")
    ],
    keep: Annotated[
        str, typer.Option(help="How much of the newest history stays: messages:20 or tokens:4000.")
    ] = "messages:20",
    summary_tokens: Annotated[
        list[int] | None,
        typer.Option(
            help="What a summary may take, in tokens. Repeat it for several.", show_default="1024"
        ),
    ] = None,
    recall_tokens: Annotated[
        int, typer.Option(help="What a question may recall, in tokens.")
    ] = 512,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Settings of Compactor (.toml or .json). Repeat it to compare several.",
            show_default="the settings of Compactor",
        ),
    ] = None,
    langchain: Annotated[
        bool, typer.Option(help="Also measure LangChain's own middleware.")
    ] = True,
    minimum: Annotated[
        int, typer.Option(help="Cut no transcript of fewer tokens; its questions count.")
    ] = 10_000,
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
    """Measure how much of what is needed later survives a compaction.

    PATH is a transcript in any form that compact reads, or a folder, which is searched through.
    NAME.exam.json beside NAME.json holds questions about its end. No model is asked, unless a
    configuration names one; nothing is changed and nothing is kept.
    """
    check_files(report, out)
    from conspectus_lab.evaluate import ConspectusSystem, LangChainSystem, read_config, worse
    from conspectus_lab.evaluate import evaluate as measure
    from conspectus_lab.evaluate.inputs import size_of
    from conspectus_lab.report import evaluation_page
    from conspectus_lab.report.tables import evaluation_tables

    before = _baseline(against) if against is not None else None
    size = size_of(keep, "--keep")
    systems: list[System] = [read_config(file) for file in config or []] or [ConspectusSystem()]
    if langchain:
        systems.append(LangChainSystem())
    transcripts, unread = read_transcripts(paths)
    with output.working("Measuring …"):
        found = measure(
            transcripts,
            systems,
            keep=size,
            summary_tokens=summary_tokens or (1_024,),
            recall_tokens=recall_tokens,
            minimum=minimum,
        )
    found = replace(found, transcripts=(*found.transcripts, *unread))
    if not found.results:
        raise InputError(_unmeasured(found))
    fallen = [] if before is None else worse(before, found, tolerance)
    data = found.to_json()
    write_files(report, lambda: evaluation_page(found), out, data)
    if as_json:
        output.print_json({**data, "worse": fallen})
    else:
        print_tables(evaluation_tables(found))
        used = sum(not one.skipped for one in found.transcripts)
        output.say(f"{used:,} of {len(found.transcripts):,} transcripts measured; keep {keep}.")
        if before is not None and not fallen:
            output.say(f"Nothing got worse by more than {tolerance:g}.")
        if report is not None:
            output.say(f"Report: {report}", "bold")
    for what in fallen:
        complain(f"worse than {against}: {what}")
    raise typer.Exit(WORSE if fallen else DONE)


def _unmeasured(found: Evaluation) -> str:
    """Explain why nothing can be measured, and how to measure something."""
    first = found.transcripts[0]
    many = len(found.transcripts)
    said = f"{first.name} cannot be measured: {first.skipped}"
    if many > 1:
        said = f"none of the {many:,} transcripts can be measured; {said}"
    return f"{said}; give a lower --minimum, a smaller --keep, or questions in NAME{QUESTIONS}"


def read_transcripts(paths: list[str]) -> tuple[list[Transcript], list[Measured]]:
    """Read transcripts from files and folders, and list unreadable files in folders.

    Raises:
        InputError: a path is missing, a named file cannot be read, or there is nothing.
        MessageError: a message in a named file cannot be understood.
    """
    from conspectus.transcripts import read_history
    from conspectus_lab.evaluate import Measured, Transcript, read_questions

    transcripts: list[Transcript] = []
    unread: list[Measured] = []
    for name, file, named in _files(paths):
        asked = file.with_name(file.stem + QUESTIONS)
        questions = read_questions(asked) if asked.is_file() else ()
        try:
            transcripts.append(Transcript.of(name, read_history(file).messages, questions))
        except (InputError, MessageError) as error:
            if named:
                raise
            unread.append(Measured(name, "", 0, 0, f"it cannot be read: {error}"))
    if not transcripts and not unread:
        raise InputError(f"there are no transcripts in {', '.join(paths)}: no .json, no .jsonl")
    return transcripts, unread


def _files(paths: list[str]) -> Iterator[tuple[str, Path, bool]]:
    """Yield name and path of each file once, and whether the caller named it."""
    seen: set[Path] = set()
    names: set[str] = set()
    for path in map(Path, dict.fromkeys(paths)):
        if path.is_dir():
            inside = (p for p in path.rglob("*") if p.suffix in ENDINGS and p.is_file())
            found = [
                (p.relative_to(path).as_posix(), p)
                for p in sorted(inside)
                if not p.name.endswith(QUESTIONS)
                and not any(part.startswith(".") for part in p.relative_to(path).parts)
            ]
        else:
            found = [(path.name, path)]
        for name, file in found:
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            unique = name if name not in names else file.as_posix()
            names.add(unique)
            yield unique, file, not path.is_dir()


def _baseline(file: Path) -> Evaluation:
    from conspectus_lab.evaluate import Evaluation
    from conspectus_lab.evaluate.inputs import read_data

    data = read_data(file, advice="; give the file that 'conspectus eval -o FILE' wrote")
    if isinstance(data, dict):
        data.pop("worse", None)
    try:
        return Evaluation.from_json(data)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
