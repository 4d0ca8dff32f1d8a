"""Read transcripts and settings for the lab's commands; print and write results."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conspectus.cli import output
from conspectus.errors import InputError, MessageError, PolicyError

if TYPE_CHECKING:
    from conspectus.observe import Price
    from conspectus_lab.replay import ComparedPolicy, Replay
    from conspectus_lab.report import Table

QUESTIONS = ".exam.json"
"""Ending of the file of questions next to `NAME.json`."""

ENDINGS = (".json", ".jsonl")
"""Endings of transcripts in a folder."""

STDIN = "-"
SHOWN_WARNINGS = 5  # warnings of the library, at the end
REPLAYED_SETTINGS = (
    "trigger",
    "keep",
    "token_counter",
    "pin",
    "rules",
    "skills",
    "stale_results",
    "history",
    "max_summary_tokens",
    "trim_tokens_to_summarize",
    "notes",
)
"""Settings of a YAML section that are used for a recording, in which no model is asked."""


def _files(paths: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield name and path of each file once, and whether the caller has named that file."""
    seen_files: set[Path] = set()
    names: set[str] = set()
    for path in dict.fromkeys(paths):
        root = Path(path)
        if path != STDIN and not root.exists():
            raise InputError(f"{path} cannot be read: there is no such file; check its path")
        names_by_file = {path: "standard input" if path == STDIN else root.name}
        if root.is_dir():
            files = sorted(p for p in root.rglob("*") if p.suffix in ENDINGS and p.is_file())
            names_by_file = {str(file): file.relative_to(root).as_posix() for file in files}
        for file, name in names_by_file.items():
            is_hidden = root.is_dir() and any(part[0] == "." for part in name.split("/"))
            if is_hidden or name.endswith(QUESTIONS) or Path(file).resolve() in seen_files:
                continue
            seen_files.add(Path(file).resolve())
            unique_name = name if name not in names else file
            names.add(unique_name)
            yield unique_name, file, not root.is_dir()


def run(paths: Sequence[str], **settings: Any) -> tuple[list[Replay], list[str]]:
    """Replay transcripts; return the replays, and notes to print at the end, none of them twice.

    A file of a folder that is no transcript is left out, and a note says so.
    """
    from conspectus.transcripts import read_history
    from conspectus_lab.questions import read_questions
    from conspectus_lab.replay import replay

    replays: list[Replay] = []
    notes: list[str] = []
    with _kept_warnings() as warnings:
        for name, file, is_named in list(_files(paths)):
            question_file = Path(file).with_name(Path(file).stem + QUESTIONS)
            questions = read_questions(question_file) if question_file.is_file() else ()
            try:
                with output.working(f"Replaying {output.printable(name)} …"):
                    history = read_history(file)
                    options = {"name": name, "questions": questions, **settings}
                    replays.append(replay(history.messages, **options))
            except (InputError, MessageError) as error:
                if is_named:
                    raise
                notes.append(f"{name} is left out: {error}")
            else:
                notes += (f"{name}: {remark}" for remark in history.remarks)
    if not replays and not notes:
        raise InputError(f"there are no transcripts in {', '.join(paths)}: no .json, no .jsonl")
    if not replays:
        raise InputError(f"nothing can be replayed: {notes[0]}")
    stops = [
        f"ended early: {replayed.name}, {run.title}: {run.stopped}"
        for replayed in replays
        for run in replayed.runs
        if run.stopped
    ]
    distinct_warnings = list(dict.fromkeys(warning.getMessage() for warning in warnings))
    return replays, [*stops, *notes, *distinct_warnings[:SHOWN_WARNINGS]]


def notes_on_questions(replays: Sequence[Replay]) -> list[str]:
    """Return a note if there are no questions.

    Raises:
        InputError: nothing was compacted either, so there is nothing to measure.
    """
    from conspectus_lab.questions import EXAM_FORM

    runs = [run.totals for replayed in replays for run in replayed.runs]
    if any(run["asked"] for run in runs):
        return []
    remedy = f"write questions into NAME.exam.json beside NAME.json, as {EXAM_FORM}"
    if any(run["needed"] or run["compactions"] for run in runs):
        return [f"without questions, 'in view' and 'with recall' are empty; {remedy}"]
    reason = f"nothing is compacted in a window of {replays[0].window:,} tokens, without questions"
    raise InputError(f"nothing to measure: {reason}; give a smaller --window; {remedy}")


def policies_of(files: Sequence[Path]) -> Iterator[tuple[ComparedPolicy, str]]:
    """Make a policy of each YAML section, named after its file, with a note on when it compacts.

    Settings are left out that a recording cannot show: background, recall, redaction.
    """
    from conspectus.config import load_config
    from conspectus.config.building import settings_of
    from conspectus_lab.replay import ours

    for file in files:
        section = load_config(file, optional_variables=("archive",))
        if not section.enabled:
            raise InputError(f"{file} switches nothing on; write 'enabled: true', and a trigger")
        settings = settings_of(section)
        policy = ours(file.stem, file.stem, **{name: settings[name] for name in REPLAYED_SETTINGS})
        trigger = " or ".join(map(str, section.policy().trigger))
        unit, amount = section.keep.pair
        yield policy, f"{file} has its own settings: trigger {trigger}, keep {amount:g} {unit}"


def read_prices(file: Path) -> Mapping[str, Price]:
    """Read a user's prices, which replace those of the providers."""
    from conspectus.observe import Price
    from conspectus_lab.questions import read_data

    advice = f'{file} holds no prices; write {{"my-model": {{"input": 0.25, "output": 2.0}}}}'
    rows = read_data(file, f"; {advice}")
    try:
        return {model: Price(**row) for model, row in rows.items()}
    except (AttributeError, TypeError, PolicyError) as error:
        raise InputError(f"{advice}: {error}") from error


def read_measurement(file: Path) -> Any:
    """Read a file that `-o` has written; raise `InputError` if it is another file."""
    from conspectus_lab.questions import read_data

    data = read_data(file, advice="; give the file that 'conspectus eval -o FILE' wrote")
    if not isinstance(data, dict) or "replays" not in data:
        raise InputError(f"{file}: no measurement; make one with eval -o FILE")
    return data


def check_files(report: Path | None, out: Path | None) -> None:
    """Check that files can be written, before the work is done."""
    for file in (report, out):
        output.check_output(file)
    if report is not None:
        from conspectus_lab.report import environment

        environment()


def finish(
    replays: Sequence[Replay],
    tables: Iterable[Table],
    notes: Iterable[str],
    data: dict[str, Any],
    report: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write the page and the figures to files; print the figures, or tables with notes."""
    if out is not None:
        output.write_file(out, json.dumps(data, indent=1) + "\n")
    if report is not None:
        from conspectus_lab.report import replay_page

        output.write_file(report, replay_page(replays))
    if as_json:
        output.print_json(data)
        return
    for table in tables:
        output.print_table([table.columns, *table.rows], bad=table.bad)
        output.say(f"{table.note}\n", dim=True)
    first = replays[0]
    output.say(
        f"Window {first.window:,} tokens, trigger {first.trigger}, keep {first.keep}, "
        f"summariser {first.summarizer}, for all but files of --config.",
        dim=True,
    )
    for note in notes:
        output.say(f"Note: {note}", fg="yellow")
    if report is not None:
        output.say(f"Report: {report}", bold=True)


@contextmanager
def _kept_warnings() -> Iterator[list[logging.LogRecord]]:
    """Keep the library's warnings for the end, so that they do not run into tables."""
    logger = logging.getLogger("conspectus")
    handler = BufferingHandler(sys.maxsize)
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield handler.buffer
    finally:
        logger.removeHandler(handler)
