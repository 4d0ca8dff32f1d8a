"""Try a configuration on a transcript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.config import SummarizationConfig
from conspectus.config.building import counter_of, pin_of, sizes_of, skills_of
from conspectus.config.schema import in_words
from conspectus.messages import Source
from conspectus.middleware.counting import Counting
from conspectus_lab.replay import Compaction, Original, Policy, PolicyRun, ours, replay
from conspectus_lab.replay.recording import Recording

UNLIMITED = 1_000_000_000
"""Tokens of a window that nothing reaches, for a model with an unknown one."""

PASSED_ON = ("history max_summary_tokens trim_tokens_to_summarize reserved_tokens notes").split()
"""Settings that the middleware takes under the same name."""

START = 60
"""Characters of a message that identify it for a reader."""

LONG = 2
"""Multiple of the reading size from which several readings of a span are worth a note."""


@dataclass(frozen=True, slots=True)
class Fired:
    """One compaction.

    Attributes:
        request: the call of the model before it, from 1.
        before, after: estimated tokens of the messages.
        left: messages that left the view.
        shortened: messages shown short.
        kept: messages of the next request, the summary and the system prompt included.
        read: share of the evicted text that the summariser read.
        up_to: id, speaker and start of the newest message that left.
    """

    request: int
    cause: str
    before: int
    after: int
    left: int
    shortened: int
    kept: int
    read: float
    up_to: str
    summary: str


@dataclass(frozen=True, slots=True)
class Explained:
    """One transcript under a configuration.

    Attributes:
        counted: tokens at its end without a summary, as the trigger counts.
        requests: calls of the model.
        peak: estimated tokens of the largest request, system prompt and tools included.
        over: requests larger than the window.
        stopped: the reason for an early end.
        verdict: the outcome in one sentence.
        advice: changes that help.
    """

    name: str
    messages: int
    counted: int
    requests: int
    peak: int
    over: int
    compactions: tuple[Fired, ...]
    stopped: str
    verdict: str
    advice: tuple[str, ...]


def explained(
    config: SummarizationConfig,
    name: str,
    messages: Sequence[Source],
    window: int | None,
    summarizer: Any = None,
) -> Explained:
    """Run a transcript under a configuration.

    Args:
        config: enabled.
        window: of the model that answers, in tokens; None if unknown.
        summarizer: as for `replay`. Default: the embedded one.

    Raises:
        ConfigError: a counter or a function cannot be loaded, or all of the trigger is a fraction
            of an unknown window.
        InputError, MessageError: the transcript cannot be replayed.
    """
    found = replay(
        messages,
        name=name,
        window=window if window is not None else UNLIMITED,
        summarizer=summarizer,
        policies=[_configured(config, window)],
        **sizes_of(config, window),
    )
    run = found.runs[0]
    recording = Recording.of(messages)
    counting = Counting(counter_of(config), None)
    counted = counting.base + sum(map(counting.message, recording.messages))
    fired = tuple(_fired(one, run) for one in run.compactions)
    return Explained(
        name=name,
        messages=len(messages),
        counted=counted,
        requests=len(run.steps),
        peak=run.peak,
        over=run.over if window is not None else 0,
        compactions=fired,
        stopped=run.stopped,
        verdict=_verdict(config, run, fired, counted, len(recording.messages)),
        advice=tuple(_advice(config, run, window)),
    )


def _configured(config: SummarizationConfig, window: int | None) -> Policy:
    """Make the middleware of a configuration, with a replay's summariser and store.

    Recall is left out, as the agent of a transcript repeats its recorded words; so are the
    background, redaction and the provider's cache. In an unknown window nothing is too large.
    """
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


def _fired(one: Compaction, run: PolicyRun) -> Fired:
    return Fired(
        request=one.step,
        cause=one.cause,
        before=one.before,
        after=one.after,
        left=len(one.left),
        shortened=one.shortened,
        kept=run.steps[one.step - 1].messages,
        read=one.read / one.characters if one.characters else 1.0,
        up_to=_named(one.left[-1]) if one.left else "",
        summary=one.summary,
    )


def _named(one: Original) -> str:
    start = " ".join(one.text.split())
    start = start if len(start) <= START else start[: START - 1] + "…"
    return f"[{one.cite}] {one.name or one.role}: {start}"


def _verdict(
    config: SummarizationConfig, run: PolicyRun, fired: Sequence[Fired], counted: int, messages: int
) -> str:
    trigger = " or ".join(map(in_words, config.conditions))
    if run.stopped:
        return f"It ended early: {run.stopped}"
    if not fired:
        return (
            f"It never fires: the trigger is {trigger}, and the transcript ends with "
            f"{counted:,} tokens as the trigger counts, in {messages:,} messages."
        )
    least = min(run.steps[one.request - 1].messages for one in fired)
    times = "once" if len(fired) == 1 else f"{len(fired):,} times"
    if short := sum(not one.left for one in fired):
        times += f", {short:,} of them without a summary,"
    return (
        f"It fires {times} in {len(run.steps):,} requests; after that at least {least:,} "
        f"messages are in the request; the largest request has {run.peak:,} tokens."
    )


def _advice(config: SummarizationConfig, run: PolicyRun, window: int | None) -> list[str]:
    said = []
    if run.over and window is not None:
        said.append(
            f"{run.over:,} requests do not fit the window of {window:,} tokens: what must stay is "
            "too much; lower 'keep', or raise 'window' if the model takes more"
        )
    often = len(run.compactions)
    asked = sum(one.cause == "window" for one in run.compactions)
    if asked:
        said.append(
            f"{asked:,} of {often:,} summaries were asked for by the window before the trigger was "
            "met, which counts less than is sent: lower the trigger, or set 'token_counter'"
        )
    if often >= 3 and often * 4 > len(run.steps):
        said.append("it fires at more than one request in four: lower 'keep', or raise the trigger")
    trim = config.trim_tokens_to_summarize
    largest = max((sum(o.tokens for o in one.left) for one in run.compactions), default=0)
    if trim is not None and largest > LONG * trim:
        said.append(
            f"up to {largest:,} tokens leave at once, in readings of {trim:,}: if a summary takes "
            "too long, raise 'trim_tokens_to_summarize', or write null"
        )
    return said
