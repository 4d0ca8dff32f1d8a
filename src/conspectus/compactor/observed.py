"""Make the events and log lines of a compaction: cause, progress, failures, calls."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from conspectus._core.records import Cost
from conspectus.archive import Scope
from conspectus.bridge import StepTimeout
from conspectus.compactor.engine import Engine
from conspectus.compactor.result import CompactionResult, Done
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    RedactionError,
    SummarizerOverflow,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)
from conspectus.events import Seen, SummarizerCall, Whose, tell
from conspectus.events.hub import ended_by
from conspectus.events.notes import log, noted
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.calls import cost_fields, outcome_of

logger = logging.getLogger("conspectus")


def whose_of(scope: Scope) -> Whose:
    return Whose(scope.tenant, scope.thread, scope.session)


def cause_of(cause: str) -> str:
    """Shorten a plan's cause to one word.

    Example:
        >>> cause_of("trigger: 8,000 tokens"), cause_of("1,024 tokens have gathered")
        ('trigger', 'gathered')
    """
    return next((c for c in ("window", "forced", "trigger") if cause.startswith(c)), "gathered")


def log_failures(found: Done | CompactionResult) -> None:
    """Log a line for each failed try before a later one succeeded."""
    if found.record is None:
        return
    by = found.record.by  # empty where no summary was needed after all
    for trouble in found.failures:
        what = trouble.removesuffix("; try again later")
        if by and (f"{by} " in trouble or f"{by}: " in trouble):
            log("summarizer_retried", "%s; another try succeeded", what, level=logging.INFO)
        else:
            done = f"the summary is by {by}" if by else "messages were only shown short"
            log("summarizer_failed", "%s; %s", what, done)


def emit(engine: Engine, scope: Scope, event: str, data: Mapping[str, Any]) -> None:
    """Call the user's `on_event`; if it fails, log that and go on."""
    data = {**data, "thread_id": scope.thread, "session": scope.session}
    log("compaction_progress", "%s %s", event, data, level=logging.DEBUG)
    if engine.on_event is None:
        return
    try:
        engine.on_event(event, data)
    except Exception:
        logger.exception("on_event failed at %r", event, extra=noted("on_event_failed"))


def by_name(by: str, error: Exception) -> str:
    """Return the text of an error with the name of the summariser in it once."""
    return str(error) if f"{by} " in str(error) else f"{by}: {error}"


def said_once(error: ArchiveError) -> str:
    """Return that the archive failed, and why; errors of a store begin with the former."""
    text = str(error)
    return text if text.startswith("The archive failed") else f"the archive failed: {text}"


def failed(error: Exception, *, refused: bool = False) -> dict[str, Any]:
    """Return the fields of an event that say why a compaction did not take effect."""
    if refused:
        return {"outcome": "refused"}
    if isinstance(error, ArchiveOvertaken):
        return {"outcome": "overtaken"}
    said = error.__cause__ if isinstance(error.__cause__, Exception) else error
    kinds = (
        (ArchiveError, "archive"),
        (RedactionError, "redaction"),
        (SummarizerTimeout, "timeout"),
        (SummarizerOverflow, "overflow"),
        (SummaryRejected, "rejected"),
    )
    return {
        "outcome": "failed",
        "failure": next((name for kind, name in kinds if isinstance(error, kind)), "summary"),
        "error_type": type(said).__qualname__,
        "error_message": str(error)[:500],
    }


async def observed_call(
    step: Awaitable[object], by: str, request: SummaryRequest, around: Seen
) -> object:
    """Call a summariser of the user's own, as one event.

    There is no event if it uses one of ours, whose calls have their own.
    """
    if not around:
        return await step
    start, facts = time.perf_counter(), dict[str, Any]()
    try:
        answer: object = await step
        facts = _reported(answer, request)
        return answer
    except BaseException as error:
        facts = ended_by(error)
        if isinstance(error, StepTimeout):
            facts["outcome"] = "timeout"
        elif isinstance(error, SummaryError):
            facts["outcome"] = outcome_of(error)
        raise
    finally:
        if not around.calls:
            seconds = time.perf_counter() - start
            tell(SummarizerCall, summarizer=by, seconds=seconds, **facts)


def _reported(answer: object, request: SummaryRequest) -> dict[str, Any]:
    if not isinstance(answer, Summary) or not isinstance(answer.text, str):
        return {"outcome": "rejected"}
    if isinstance(answer.cost, Cost) and answer.cost.calls:
        return {**cost_fields(answer.cost), "calls": answer.cost.calls}
    read = sum(request.count(entry.reading) for entry in request.entries)
    return {
        "input_tokens": read + request.count(request.notes),
        "output_tokens": request.count(answer.text),
        "estimated": True,
    }
