"""Make the events and log lines of a compaction: cause, progress, failures, calls."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from conspectus.archive import Scope
from conspectus.bridge import StepTimeout
from conspectus.core.records import Cost
from conspectus.engine.engine import Engine
from conspectus.errors import (
    ArchiveError,
    ArchiveOvertaken,
    RedactionError,
    SummarizerOverflow,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.calls import outcome_of
from conspectus.observe import Observation, log
from conspectus.observe import emit as emit_event
from conspectus.observe.events import ended_by, error_fields


def cause_of(cause: str) -> str:
    """Shorten a plan's cause to one word.

    Example:
        >>> cause_of("trigger: 8,000 tokens"), cause_of("1,024 tokens have gathered")
        ('trigger', 'gathered')
    """
    return next((c for c in ("window", "forced", "trigger") if cause.startswith(c)), "gathered")


def instead_of(by: str, failures: Sequence[str]) -> str:
    """Return why another summariser than was asked first has written; empty if none has."""
    others = [text for text in failures if not by or not (f"{by} " in text or f"{by}: " in text)]
    return others[-1].removesuffix("; try again later") if others else ""


def emit(engine: Engine, scope: Scope, event: str, data: Mapping[str, Any]) -> None:
    """Call the user's `on_event`; if it fails, log that and go on."""
    data = {**data, "thread_id": scope.thread, "session": scope.session}
    log("compaction_progress", "%s %s", event, data, level=logging.DEBUG)
    if engine.on_event is None:
        return
    try:
        engine.on_event(event, data)
    except Exception:
        log("on_event_failed", "on_event failed at %r", event, exc_info=True)


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
        **error_fields(error),
    }


async def observed_call(
    step: Awaitable[object], by: str, request: SummaryRequest, around: Observation
) -> object:
    """Call a summariser of the user's own, as one event.

    There is no event if it uses one of ours, whose calls have their own.
    """
    if not around:
        return await step
    start, facts = time.perf_counter(), dict[str, Any]()
    try:
        answer: object = await step
        facts = _reported(answer, request, by)
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
            facts.setdefault("cost", Cost(1).asked_of(by))
            name = ", ".join(facts["cost"].models) or by
            emit_event("model_call", name=name, summarizer=by, seconds=seconds, **facts)


def _reported(answer: object, request: SummaryRequest, by: str) -> dict[str, Any]:
    if not isinstance(answer, Summary) or not isinstance(answer.text, str):
        return {"outcome": "rejected"}
    if isinstance(answer.cost, Cost) and answer.cost.calls:
        return {"cost": answer.cost if answer.cost.models else answer.cost.asked_of(by)}
    read = sum(request.count(entry.reading) for entry in request.entries)
    sent, got = read + request.count(request.notes), request.count(answer.text)
    return {"cost": Cost(1, sent, got, estimated_calls=1).asked_of(by)}
