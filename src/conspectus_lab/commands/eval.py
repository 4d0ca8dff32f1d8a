"""Measure retention: `conspectus eval`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import output
from conspectus.cli.failures import DONE, WORSE, complain
from conspectus.cli.options import JsonOption
from conspectus.errors import InputError, MessageError
from conspectus_lab.commands.terminal import (
    OutputOption,
    ReportOption,
    check_files,
    print_table,
    write_files,
)
from conspectus_lab.files import read_data

if TYPE_CHECKING:
    from conspectus_lab.evaluate import Comparison, Evaluation, Noted, System, Transcript
    from conspectus_lab.evaluate.exams import Asked
    from conspectus_lab.evaluate.texts import TokenCount

NONE = "none"
QUESTIONS = ".qa.json"
"""Ending of the file of questions beside `NAME.json`."""

EXAM = ".exam.json"
"""Ending of the file of questions that a run in a window must leave answerable."""

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
            help="What a summary may take, in tokens. Repeat it for several.",
            show_default="512, 1024 and 2048",
        ),
    ] = None,
    recall_tokens: Annotated[
        int, typer.Option(help="What recall may add for a question, in tokens; 0 for no recall.")
    ] = 0,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A configuration (.toml or .json). Repeat it to compare several; the first is "
            "compared with the others.",
            show_default="the settings of Compactor",
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            help="What is measured beside it: langchain (its own middleware), tail (plain "
            "truncation), none. Repeat it for both.",
            show_default="langchain",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Also compact each thread so many times while it grows.")
    ] = 0,
    minimum: Annotated[
        int, typer.Option(help="Leave transcripts of fewer tokens out of future use.")
    ] = 10_000,
    window: Annotated[
        int,
        typer.Option(
            help="Also run each transcript step by step in a window of so many tokens, and name "
            "what is missed at its end: answers to NAME.exam.json, and --statements."
        ),
    ] = 0,
    statements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What a user says by the way (JSON); planted for --window."
        ),
    ] = None,
    counter: Annotated[
        str,
        typer.Option(
            help="What counts tokens: approximate (LangChain's, by characters) or estimate (ours, "
            "by script)."
        ),
    ] = "approximate",
    seed: Annotated[int, typer.Option(help="For the intervals.")] = 1,
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
    NAME.qa.json beside NAME.json holds questions about it, NAME.exam.json what whoever goes on from
    a run in a --window must be able to answer. No model is asked, unless a
    configuration names one; nothing is changed and nothing is kept.
    """
    check_files(report, out)
    from conspectus_lab.evaluate import compare, planted_of
    from conspectus_lab.evaluate import evaluate as measure
    from conspectus_lab.evaluate.config import size_of
    from conspectus_lab.report import evaluation_page

    before = _read_measurement(against) if against is not None else None
    if statements is not None and not window:
        raise InputError("--statements are planted in runs in a window; give --window TOKENS, too")
    planted = () if statements is None else planted_of(read_data(statements), str(statements))
    count = _counter(counter)
    size = size_of(keep, "--keep")
    systems = _systems(size, config or [], beside, count)
    with _progress() as progressed:
        transcripts, unread = read_transcripts(paths)
        exams = _exams(paths) if window else {}
        found = measure(
            transcripts,
            systems,
            summary_tokens=summary_tokens or (512, 1024, 2048),
            keep=size,
            recall_tokens=recall_tokens,
            rounds=rounds,
            minimum_tokens=minimum,
            count=count,
            counter=counter,
            seed=seed,
            progress=progressed,
            window=window,
            exams=exams,
            planted=planted,
        )
    found = replace(found, transcripts=(*found.transcripts, *unread))
    if all(noted.skipped for noted in found.transcripts) and not found.going_on:
        raise InputError(f"{_unmeasured(found)}; {_way_out(found)}")
    compared = compare(found, before, tolerance) if before is not None else None
    data = found.to_json()
    write_files(report, lambda: evaluation_page(found), out, data)
    if as_json:
        if compared is not None:
            data["against"] = _compared(compared)
        output.print_json(data)
    else:
        _print(found, compared)
    if compared is not None and compared.worse:
        complain(f"{output.many(len(compared.worse), 'figure')} got worse than {against}")
        raise typer.Exit(WORSE)
    raise typer.Exit(DONE)


def _unmeasured(found: Evaluation) -> str:
    """Explain why nothing can be measured, as the first part of a sentence."""
    if len(found.transcripts) == 1:
        [one] = found.transcripts
        return f"{one.name} cannot be measured, because {one.skipped}"
    reasons = Counter(one.skipped for one in found.transcripts).most_common()
    each = ", ".join(
        f"{count:,} because {'each ' if why.startswith('it ') else ''}{why.removeprefix('it ')}"
        for why, count in reasons
    )
    return f"none of the {len(found.transcripts):,} transcripts can be measured: {each}"


def _way_out(found: Evaluation) -> str:
    """Advise how to measure something."""
    least = found.settings.minimum_tokens
    sizes = [one.tokens for one in found.transcripts if one.tokens < least and one.messages]
    if sizes:
        return f"give a lower --minimum, as the longest of those has {max(sizes):,} tokens"
    return (
        "give a smaller --keep, a longer transcript of an agent that uses what it found before, or "
        "questions beside it (NAME.qa.json)"
    )


def read_transcripts(paths: list[str]) -> tuple[list[Transcript], list[Noted]]:
    """Read transcripts from files and folders, and list unreadable files in folders.

    Raises:
        InputError: a path is missing, a named file cannot be read, or there is nothing.
        MessageError: a message in a named file cannot be understood.
    """
    from conspectus_lab.evaluate import Noted

    transcripts: list[Transcript] = []
    unread: list[Noted] = []
    for name, file, named in _files(paths):
        try:
            transcripts.append(_read(name, file))
        except (InputError, MessageError) as error:
            if named:
                raise
            why = str(error).replace(str(file), "it").split(";")[0]
            unread.append(Noted(name, "", 0, 0, 0, 0, f"it cannot be read: {why}"))
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
                if not p.name.endswith((QUESTIONS, EXAM))
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


def _read(name: str, file: Path) -> Transcript:
    from conspectus.transcripts import read_history
    from conspectus_lab.evaluate import Transcript, questions_of

    history = read_history(file)
    asked = file.with_name(file.stem + QUESTIONS)
    questions = questions_of(read_data(asked), str(asked)) if asked.is_file() else ()
    return Transcript.of(name, history.messages, questions)


def _exams(paths: list[str]) -> dict[str, Sequence[Asked]]:
    """Read the questions beside the transcripts, by transcript."""
    from conspectus_lab.evaluate.exams import asked_of

    beside = ((name, file.with_name(file.stem + EXAM)) for name, file, _ in _files(paths))
    return {name: asked_of(read_data(file), str(file)) for name, file in beside if file.is_file()}


def _read_measurement(file: Path) -> Evaluation:
    from conspectus_lab.evaluate import Evaluation

    advice = "; give the file that 'conspectus eval -o FILE' wrote"
    data = read_data(file, advice=advice)
    if isinstance(data, dict):
        data.pop("against", None)
    try:
        return Evaluation.from_json(data)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def _counter(name: str) -> TokenCount:
    """Return the counter that `--counter` names."""
    if name == "approximate":
        from langchain_core.messages.utils import count_tokens_approximately

        return count_tokens_approximately
    if name == "estimate":
        from conspectus.tokens import TokenMeter

        meter = TokenMeter()
        return lambda messages: meter.messages(list(messages))
    raise InputError(f"--counter cannot be {name!r}; write approximate or estimate")


def _systems(
    keep: tuple[str, int], configs: list[Path], others: list[str] | None, count: TokenCount
) -> list[System]:
    """Make our configurations, then the other systems."""
    from conspectus_lab.evaluate import ConspectusSystem, beside, read_config

    names: list[Any] = [name for name in others or ["langchain"] if name != NONE]
    ours = [read_config(file, keep, count) for file in configs]
    return [*(ours or [ConspectusSystem(keep=keep, count=count)]), *beside(names, keep, count)]


@contextlib.contextmanager
def _progress() -> Iterator[Any]:
    """Show a bar on a terminal, and nothing elsewhere."""
    screen = output.console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def progressed(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=output.shown(what))

        yield progressed


def _print(found: Evaluation, compared: Comparison | None) -> None:
    from rich.text import Text

    from conspectus_lab.report.tables import lost_of, measured_how, skipped, tables_of

    screen = output.console()
    for table in tables_of(found):
        screen.print(Text(table.title, "bold"))
        screen.print(Text(table.note, "dim"))
        print_table(screen, table)
    screen.print(measured_how(found))
    for one in found.going_on[:1]:
        for line in lost_of(one):
            screen.print(output.shown(line), soft_wrap=True)
    for why, count in skipped(found):
        screen.print(f"{count:,} left out: {output.shown(why)}", soft_wrap=True)
    if compared is not None:
        _print_compared(compared, screen)


def _print_compared(compared: Comparison, screen: Any) -> None:
    from conspectus_lab.report.tables import Table

    if not compared.worse:
        screen.print(
            f"\nNone of {len(compared.changes)} figures got worse by more than "
            f"{compared.tolerance:g}."
        )
        return
    screen.print("\nGot worse:", style="bold red")
    rows = tuple(
        (
            one.system,
            one.measure,
            f"{one.before:.4g}",
            f"{one.now:.4g}",
            f"{one.now - one.before:+.4g}",
        )
        for one in compared.worse
    )
    print_table(screen, Table("", "", ("system", "measure", "before", "now", "change"), rows))


def _compared(compared: Comparison) -> dict[str, Any]:
    return {
        "tolerance": compared.tolerance,
        "worse": [asdict(change) for change in compared.worse],
        "figures": len(compared.changes),
    }
