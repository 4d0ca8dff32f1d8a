"""Say when a configuration would have summarised: `conspectus config explain`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli import options, output
from conspectus.cli.config import FileArgument, read, refuse, show_notes
from conspectus.cli.failures import DONE, STUCK
from conspectus.cli.options import JsonOption, WindowOption
from conspectus.errors import ConfigError, InputError
from conspectus_lab.commands.terminal import SummarizerOption

if TYPE_CHECKING:
    from conspectus_lab.commands.config_replay import Explained, Fired


def explain(
    file: FileArgument,
    transcript: Annotated[
        list[str],
        typer.Option(
            "--transcript",
            metavar="FILE",
            help="A recorded conversation; - for standard input. Repeat it for several.",
        ),
    ],
    window: WindowOption = None,
    summarizer: SummarizerOption = "embedded",
    full: Annotated[bool, typer.Option("--full", help="Show each summary whole.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say when a configuration would have summarised a transcript, and what it would have kept.

    The transcript runs again through a real agent with the middleware that the file asks for. Its
    model and its tools answer as was recorded, the embedded summariser writes, and nothing is kept.
    """
    from conspectus.transcripts import read_history
    from conspectus_lab.commands.config_replay import explained

    try:
        config, limit, known = read(file, window)
    except ConfigError as error:
        refuse(file, error, as_json)
    if not config.enabled:
        raise InputError(f"{file}: summarisation is off; write 'enabled: true' to see what it does")
    writes = options.summarizer_of(summarizer)
    found = []
    for name in dict.fromkeys(transcript):
        history = read_history(name)
        with output.working(f"Replaying {output.shown(name)} …"):
            found.append(explained(config, name, history.messages, limit, writes))
    if as_json:
        output.print_json(
            {"file": str(file), "window": limit, "transcripts": [asdict(one) for one in found]}
        )
    else:
        for one in found:
            _explain(one, limit, known, full)
    wrong = any(one.stopped or one.over for one in found)
    raise typer.Exit(STUCK if wrong else DONE)


def _share(part: float) -> str:
    return "all" if part >= 1 else f"{int(part * 1000) / 10:g}%"  # never rounded up to all


def _done(event: Fired) -> Iterator[str]:
    """Tell one compaction, part by part."""
    yield event.cause
    if event.left:
        left = "1 message leaves" if event.left == 1 else f"{event.left} messages leave"
        yield f"{left}, {event.kept} stay in the request"
    else:
        yield f"nothing leaves, {event.kept} messages stay in the request"
    if event.shortened:
        yield f"{event.shortened} shown short"
    yield f"{event.before:,} -> {event.after:,} tokens"
    if event.left:
        yield f"{_share(event.read)} read"


def _explain(one: Explained, window: int | None, known: str, full: bool) -> None:
    say = output.say
    size = f"{one.messages:,} messages, {one.counted:,} tokens as the trigger counts"
    say(f"{one.name}: {size}", "bold")
    say(f"Window {window:,} tokens, {known}." if window is not None else f"Window {known}.", "dim")
    for event in one.compactions:
        say(f"  request {event.request} of {one.requests}: {'; '.join(_done(event))}")
        if event.left:
            say(f"    leaves up to {event.up_to}", "dim")
        for line in event.summary.splitlines() if full else ():
            say(f"    | {line}", "dim")
    say(one.verdict, "bold")
    show_notes(list(one.advice))
