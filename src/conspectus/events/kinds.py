"""Define the events: one frozen dataclass for each kind, without texts of messages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

SKIPPED = frozenset({"whose", "error_message", "models"})
"""Fields that the plain form of an event leaves out."""


@dataclass(frozen=True, slots=True)
class Whose:
    """The history of an event: its owner, the conversation, one agent's part of it."""

    tenant: str
    thread: str
    session: str


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Calls of one summarising model inside a compaction.

    Attributes:
        model: its name, or that of the summariser.
        calls: their number, with retries, readings of parts, merges and failed ones.
        input_tokens, output_tokens: of all calls together.
        cached_tokens, written_tokens, hour_tokens: of the input, as for `SummarizerCall`.
        price: their sum; None if one of them has no price.
    """

    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    hour_tokens: int = 0
    price: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        outcome: how it ended: `ok`; `error`, if it raised; `cancelled`, if its driver stopped;
            `interrupted`, if LangGraph left the node to ask a person; some kinds have more.
        seconds: how long it took; 0 for an event without a length.
        whose: its history; None if that is not known.
        error_type: class of the error that it ended with; empty for none.
        error_message: text of that error. It may quote messages, so no listener of ours shows it
            unless asked to. With `redact=` it is empty in events inside a compaction, and redacted
            in the event of the compaction itself.
    """

    name: ClassVar[str]

    outcome: str = "ok"
    seconds: float = 0.0
    whose: Whose | None = None
    error_type: str = ""
    error_message: str = ""

    def plain(self) -> dict[str, Any]:
        """Return its own fields as plain data, without empty ones and those in `SKIPPED`."""
        names = [one.name for one in fields(self)]
        if isinstance(self, WithCalls):  # results come before costs
            names.sort(key=WithCalls.__annotations__.__contains__)
        found = {name: getattr(self, name) for name in names if name not in SKIPPED}
        return {name: value for name, value in found.items() if value is not None and value != ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class WithCalls(Event):
    """An event that sums up the calls of summarising models inside it.

    Attributes:
        calls: their number, with retries, readings of parts, merges and failed ones.
        input_tokens, output_tokens: of all calls together.
        cached_tokens, written_tokens: input read from, and written to, a provider's cache.
        price: their sum, in `currency`; None without calls, and if one of them has no price.
        models: the same by model, in the order in which they were first asked.
        waited: seconds that the caller had to wait; all of them in the foreground.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    price: float | None = None
    currency: str = ""
    models: tuple[ModelUse, ...] = ()
    waited: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(WithCalls):
    """One plan carried out, or not.

    Attributes:
        outcome: `compacted`: a record is in force; `failed`: the history is as it was; `refused`: a
            person refused the summary; `overtaken`: another worker has compacted it meanwhile, and
            it is read again; `passing`: made for one request while the archive could not be
            reached, and never put in force.
        cause: `trigger`, `window`, `forced`, `adopted` (another library's summary was taken over)
            or `gathered` (short-term memory).
        tokens_before: tokens of the view before it.
        tokens_after: tokens of the view after it; None if it did not take effect.
        budget: most tokens of the view; None if no window is known.
        evicted: messages that were to leave the view.
        clipped: messages that were to be shown short.
        redacted: secrets that were taken out of those; None without a redactor, or if it failed.
        record: id of the record in force.
        by: name of the summariser; empty if messages were only shown short.
        failure: its obstacle: `archive`, `redaction`, `timeout`, `overflow`, `rejected` or
            `summary`.
        tries_failed: tries of summarisers that failed, also before a later success.
    """

    name: ClassVar[str] = "compaction"
    cause: str = ""
    tokens_before: int = 0
    tokens_after: int | None = None
    budget: int | None = None
    evicted: int = 0
    clipped: int = 0
    redacted: int | None = None
    record: str = ""
    by: str = ""
    failure: str = ""
    tries_failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing(WithCalls):
    """Notes that are prepared in the background, from their beginning to their end.

    Attributes:
        outcome: also `failed`: no summary could be made, or `dropped`: a finished one was not used.
        step: `began`; `finished`: a draft waits for the trigger, or none could be made; `dropped`:
            it does not fit the history as it is now; `waited`: the agent waited for it; `went_on`:
            the trigger was reached, and the agent continued without it; `swapped_in`: it is in
            force; `topped_up`: likewise, with later messages read by the embedded summariser.
        reason: why it was dropped, or why there is nothing to prepare.
        messages: that it stands for.
    """

    name: ClassVar[str] = "preparing"
    step: str = ""
    reason: str = ""
    messages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStep(Event):
    """One step inside a compaction; an access to the archive is an `ArchiveOperation`.

    Attributes:
        outcome: also `refused`: the checks or a person refused the summary.
        step: `summarize` (one try of one summariser), `check`, `preview` or `commit`.
        by: the summariser, if there is one.
        problems: checks that failed; None if nothing is checked.
        tokens: size of the summary message, once measured.
    """

    name: ClassVar[str] = "compaction_step"
    step: str = ""
    by: str = ""
    problems: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizerCall(Event):
    """One call of a summarising model, or of a user's own function or summariser.

    Attributes:
        outcome: also `timeout`, `overflow` (the request was too long for its window) and
            `rejected` (the answer was cut off, refused, empty or no text).
        summarizer: its name.
        model, provider: of the model that was asked, such as `openai`; empty if unknown.
        input_tokens, output_tokens: as the model reports them, else as estimated; 0 for a call that
            failed, other than late or cancelled.
        cached_tokens, written_tokens: input read from, and written to, a cache, as reported.
        hour_tokens: those of `written_tokens` that were written for an hour.
        reasoning_tokens: output tokens of reasoning, as reported.
        estimated: the tokens are an estimate.
        calls: the number of calls that it stands for; other than 1 only for a user's own summariser
            that reports its cost.
        price: in `currency`; None if it has none.
        request: `cached` for the agent's last request with an instruction after it, `smallest` for
            no more than the text to read; empty if no chat model of ours was asked.
    """

    name: ClassVar[str] = "summarizer_call"
    summarizer: str = ""
    model: str = ""
    provider: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    hour_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    calls: int = 1
    price: float | None = None
    currency: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOperation(Event):
    """One operation on the archive.

    Attributes:
        operation: `write`, `read_back`, `read`, `commit`, `save_draft`, `find_draft`, `chain`,
            `find_head`, `move_head`, `copy` or `forget`.
        items: originals that were asked for; None for other operations.
    """

    name: ClassVar[str] = "archive_operation"
    operation: str = ""
    items: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Event):
    """A search for archived originals.

    Attributes:
        kind: `query`, `id` or `range`.
        results: messages that were found and fit.
        tokens: size of the text.
        truncated: something was shortened or left out for lack of room.
    """

    name: ClassVar[str] = "recall"
    kind: str = ""
    results: int = 0
    tokens: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFit(Event):
    """A request that did not fit, made to.

    Attributes:
        outcome: also `stuck`: nothing made it fit.
        rescue: the provider had refused it as too long.
        tokens_before, tokens_after: of its messages, and of those that are sent instead.
        budget: most tokens of messages; None if it is unknown.
    """

    name: ClassVar[str] = "guard_fit"
    rescue: bool = False
    tokens_before: int = 0
    tokens_after: int | None = None
    budget: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSent(Event):
    """A request that the guard has let through, before the model answers.

    Attributes:
        tokens: size of messages, system prompt and tools.
        window: input limit of the model; None if it is unknown.
        share: `tokens` as a share of `window`.
    """

    name: ClassVar[str] = "request_sent"
    tokens: int = 0
    window: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStuck(Event):
    """A history that does not fit and cannot be made to.

    Attributes:
        tokens: its size.
        needed: fewest tokens of the part that must stay; None if a summary failed.
        budget: most tokens of the history.
    """

    name: ClassVar[str] = "history_stuck"
    tokens: int = 0
    needed: int | None = None
    budget: int | None = None
