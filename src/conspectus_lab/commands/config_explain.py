"""Say when a configuration would have summarised: `conspectus config explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.cli import options, output
from conspectus.cli.config import FileArgument, read, refuse, show_notes
from conspectus.cli.failures import DONE, STUCK
from conspectus.cli.options import JsonOption, WindowOption
from conspectus.errors import ConfigError, InputError
from conspectus_lab.commands.terminal import SummarizerOption

if TYPE_CHECKING:
    from conspectus.config import SummarizationConfig
    from conspectus.messages import Source
    from conspectus_lab.replay import Compaction, Policy, PolicyRun, Replay

UNLIMITED = 1_000_000_000
"""Tokens of a window that nothing reaches, for a model with an unknown one."""

START = 60
"""Characters of a message that identify it for a reader."""

PASSED_ON = "history max_summary_tokens trim_tokens_to_summarize reserved_tokens notes".split()
"""Settings that the middleware takes under the same name."""


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

    try:
        config, limit, known = read(file, window)
    except ConfigError as error:
        refuse(file, error, as_json)
    if not config.enabled:
        raise InputError(f"{file}: summarisation is off; write 'enabled: true' to see what it does")
    writes = options.summarizer_of(summarizer)
    replays = []
    for name in dict.fromkeys(transcript):
        history = read_history(name)
        with output.working(f"Replaying {output.shown(name)} …"):
            replays.append(replayed(config, name, history.messages, limit, writes))
    if as_json:
        rows = [_plain(one, config, limit) for one in replays]
        output.print_json({"file": str(file), "window": limit, "transcripts": rows})
    else:
        for one in replays:
            _show(one, config, limit, known, full)
    wrong = any(run.stopped or (limit and run.over) for one in replays for run in one.runs)
    raise typer.Exit(STUCK if wrong else DONE)


def replayed(
    config: SummarizationConfig,
    name: str,
    messages: Sequence[Source],
    window: int | None,
    summarizer: Any = None,
) -> Replay:
    """Run a transcript under a configuration; the window is in tokens, None if unknown."""
    from conspectus.config.building import sizes_of
    from conspectus_lab.replay import replay

    return replay(
        messages,
        name=name,
        window=window if window is not None else UNLIMITED,
        summarizer=summarizer,
        policies=[_configured(config, window)],
        priced_as=(),
        **sizes_of(config, window),
    )


def _configured(config: SummarizationConfig, window: int | None) -> Policy:
    """Make the middleware of a configuration, with a replay's summariser and store.

    Recall is left out, as the agent of a transcript repeats its recorded words; so are the
    background, redaction and the provider's cache. In an unknown window nothing is too large.
    """
    from conspectus.config.building import counter_of, pin_of, skills_of
    from conspectus_lab.replay import ours

    return ours(
        "configured",
        "this configuration",
        model=None,  # that of a recording has no tokenizer and no window of its own
        window=window,
        token_counter=counter_of(config),
        pin=pin_of(config),
        skills=skills_of(config),
        stale_results=config.stale_results,
        **{name: getattr(config, name) for name in PASSED_ON},
    )


def _plain(found: Replay, config: SummarizationConfig, window: int | None) -> dict[str, Any]:
    [run] = found.runs
    return {
        "name": found.name,
        "messages": found.messages,
        "requests": len(run.steps),
        "peak": run.peak,
        "over": run.over if window is not None else 0,
        "compactions": [_fired(done, run) for done in run.compactions],
        "stopped": run.stopped,
        "verdict": _verdict(found, config),
        "advice": list(_advice(run, window)),
    }


def _fired(done: Compaction, run: PolicyRun) -> dict[str, Any]:
    return {
        "request": done.step,
        "cause": done.cause,
        "before": done.before,
        "after": done.after,
        "left": len(done.left),
        "shortened": done.shortened,
        "kept": run.steps[done.step - 1].messages,
        "read": done.read / done.characters if done.characters else 1.0,
        "up_to": _newest(done),
        "summary": done.summary,
    }


def _newest(done: Compaction) -> str:
    """Identify the newest message that left; empty for none."""
    if not done.left:
        return ""
    last = done.left[-1]
    return f"[{last.cite}] {last.name or last.role}: {' '.join(last.text.split())[:START]}"


def _show(
    found: Replay, config: SummarizationConfig, window: int | None, known: str, full: bool
) -> None:
    [run] = found.runs
    say = output.say
    say(f"{found.name}: {found.messages:,} messages, {found.tokens:,} tokens", "bold")
    say(f"Window {window:,} tokens, {known}." if window is not None else f"Window {known}.", "dim")
    for done in run.compactions:
        parts = "; ".join(_parts(done, run))
        say(f"  request {done.step} of {len(run.steps)}: {parts}")
        if done.left:
            say(f"    leaves up to {_newest(done)}", "dim")
        for line in done.summary.splitlines() if full else ():
            say(f"    | {line}", "dim")
    say(_verdict(found, config), "bold")
    show_notes(list(_advice(run, window)))


def _parts(done: Compaction, run: PolicyRun) -> Iterator[str]:
    """Tell one compaction, part by part."""
    yield done.cause
    kept = run.steps[done.step - 1].messages
    if done.left:
        left = output.many(len(done.left), "message")
        yield f"{left} {'leaves' if len(done.left) == 1 else 'leave'}, {kept} stay in the request"
    else:
        yield f"nothing leaves, {kept} messages stay in the request"
    if done.shortened:
        yield f"{done.shortened} shown short"
    yield f"{done.before:,} -> {done.after:,} tokens"
    if done.left:
        share = done.read / done.characters if done.characters else 1.0
        yield "all read" if share >= 1 else f"{int(share * 100)}% read"


def _verdict(found: Replay, config: SummarizationConfig) -> str:
    from conspectus.config.schema import in_words

    [run] = found.runs
    trigger = " or ".join(map(in_words, config.conditions))
    if run.stopped:
        return f"It ended early: {run.stopped}"
    if not run.compactions:
        return (
            f"It never fires: the trigger is {trigger}, and the transcript ends with "
            f"{found.tokens:,} tokens in {found.messages:,} messages."
        )
    many = len(run.compactions)
    least = min(run.steps[done.step - 1].messages for done in run.compactions)
    return (
        f"It fires {'once' if many == 1 else f'{many:,} times'} in {len(run.steps):,} requests; "
        f"after that at least {least:,} messages are in the request; the largest request has "
        f"{run.peak:,} tokens."
    )


def _advice(run: PolicyRun, window: int | None) -> Iterator[str]:
    """Name changes that help."""
    if run.over and window is not None:
        yield (
            f"{run.over:,} requests do not fit the window of {window:,} tokens: what must stay is "
            "too much; lower 'keep', or raise 'window' if the model takes more"
        )
    many = len(run.compactions)
    if by_window := sum(done.cause == "window" for done in run.compactions):
        yield (
            f"{by_window:,} of {many:,} summaries were asked for by the window before the trigger "
            "was met, which counts less than is sent: lower the trigger, or set 'token_counter'"
        )
    if many >= 3 and many * 4 > len(run.steps):
        yield "it fires at more than one request in four: lower 'keep', or raise the trigger"
