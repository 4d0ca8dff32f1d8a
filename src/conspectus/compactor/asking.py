"""Ask one summariser within its time, and raise failures as our errors."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from conspectus._core.choices import EMBEDDED
from conspectus._core.items import Compact
from conspectus._core.records import Draft
from conspectus._drive import Flow, Io, StepTimeout
from conspectus.compactor.checking import cut, refused
from conspectus.compactor.engine import Engine
from conspectus.compactor.material import Material, reading_flow
from conspectus.compactor.observed import observed_call
from conspectus.errors import RedactionError, SummarizerTimeout, SummaryError
from conspectus.events import Seen
from conspectus.summarize import (
    EmbeddedSummarizer,
    Form,
    Summarizer,
    SummaryRequest,
    composed,
    for_model,
    wrong_with,
)
from conspectus.summarize.provider_errors import is_way_out


def request_of(material: Material, spent: int) -> SummaryRequest:
    """Make the request for a summariser; `spent` is the cost of earlier tries, in tokens."""
    engine, lengths = material.engine, material.lengths
    return SummaryRequest(
        entries=material.entries,
        standing=material.standing,
        ledger=material.ledger,
        limit=engine.text_within(lengths.asked),
        count=engine.meter.text,
        focus=material.focus,
        kept=material.staying,
        ahead=material.ahead,
        spent=spent,
        most=engine.text_within(lengths.fine),
        shares=engine.shares,
        archived=engine.archive is not None,
    )


def answer_flow(engine: Engine, by: str, request: SummaryRequest, seen: Seen) -> Flow[object]:
    """Ask a summariser: by its own steps where it has some, else by one call."""
    summarizer, form = engine.summarizers[by], _form_of(engine.summarizers[by])
    if form != "notes" and request.shares.parts:
        request = for_model(request, whole=form == "whole")
    if isinstance(summarizer, EmbeddedSummarizer):
        return reading_flow(
            lambda: summarizer.summarize(request), [*request.entries, *request.kept]
        )
    if (steps := getattr(summarizer, "summarize_flow", None)) is not None:
        answer: Flow[object] = steps(request)  # it sets a time for each of its own calls
        return answer
    call, acall = partial(summarizer.summarize, request), partial(summarizer.asummarize, request)
    return observed_call(Io(call, acall, engine.timeout), by, request, seen)


def in_notes_flow(
    material: Material, by: str, draft: Draft, request: SummaryRequest
) -> Flow[Draft]:
    """Put the text of a summariser into the notes."""
    engine, lengths = material.engine, material.lengths
    form = _form_of(engine.summarizers[by])
    if form == "notes":
        return draft
    if wrong := wrong_with(draft.text, request.entries, prompted=bool(draft.request)):
        raise refused(by, draft, wrong)
    draft = cut(material, draft)
    if not request.shares.parts:
        return draft
    # The notes shorten its lines until the rest fits, so its length is checked before.
    if wrong := lengths.problems(draft, material.size(draft.text)):
        raise refused(by, draft, wrong)
    most, whole = engine.text_within(lengths.most), form == "whole"
    live = draft.request == "cached"
    text, facts = yield from reading_flow(
        lambda: composed(request, draft.text, whole=whole, most=most, live=live), request.entries
    )
    material.ledger = material.ledger.merged(facts)
    return replace(draft, text=text, binding=tuple(fact.to_json() for fact in facts))


def _form_of(summarizer: Summarizer) -> Form:
    form: Form = getattr(summarizer, "form", "whole")
    return form


def as_ours(error: Exception, by: str, engine: Engine) -> Exception:
    """Turn the error of a summariser into the one to raise; remember a pause that it asks for."""
    if isinstance(error, SummaryError):
        if asked := asked_for(error):
            engine.memory.rest(by, asked)
        return error
    if isinstance(error, RedactionError):
        return error
    if is_way_out(error) and not isinstance(error, StepTimeout):
        return error
    made = SummaryError(f"{by} failed: {type(error).__name__}: {error}")
    if isinstance(error, StepTimeout):
        made = SummarizerTimeout(f"{by} did not answer within {engine.timeout:g} seconds")
    made.__cause__ = error
    return made


def asked_for(failure: SummaryError) -> float:
    """Return the seconds that a provider asks to wait, or 0."""
    asked: object = getattr(failure, "retry_after", None)
    return float(asked) if isinstance(asked, (int, float)) and asked > 0 else 0.0


def resting(by: str, seconds: float) -> SummaryError:
    """Make the error of a summariser whose provider has asked for a pause."""
    error = SummaryError(
        f"{by} is not asked: its provider wants to be left alone for another "
        f"{math.ceil(seconds)} s; try again then, or give a fallback"
    )
    error.transient, error.retry_after = True, seconds
    return error


def ladder_of(engine: Engine, plan: Compact) -> tuple[str, ...]:
    """Return the summarisers to ask in turn; the embedded one last if the window is full."""
    roomy = plan.budget is None or plan.tokens <= plan.budget
    if engine.on_failure != "degrade" or roomy or EMBEDDED in engine.order:
        return engine.order
    return (*engine.order, EMBEDDED)
