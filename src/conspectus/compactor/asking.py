"""One summariser is asked, of whichever kind, within its time; what goes wrong are our errors."""

from __future__ import annotations

import math
from dataclasses import replace

from conspectus._core.records import Draft
from conspectus._drive import Flow, Io, StepTimeout
from conspectus.compactor.checking import cut, refused
from conspectus.compactor.material import Material, reading_flow
from conspectus.compactor.observed import observed_call
from conspectus.compactor.tools import Tools
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
    """What a summariser is to read, and how much it may write.

    Args:
        material: all that the compaction reads.
        spent: what its earlier tries have cost, in tokens.
    """
    tools, lengths = material.tools, material.lengths
    return SummaryRequest(
        entries=[material.originals[key] for key in material.keys],
        standing=material.standing,
        ledger=material.ledger,
        limit=tools.text_within(lengths.asked),
        count=tools.meter.text,
        focus=material.focus,
        kept=material.staying,
        spent=spent,
        most=tools.text_within(lengths.fine),
        shares=tools.shares,
        archived=tools.archive is not None,
    )


def answer_flow(tools: Tools, by: str, request: SummaryRequest, seen: Seen) -> Flow[object]:
    """What a summariser answers: its own steps where it has some, else one call.

    Args:
        tools: what the compaction works with.
        by: name of the summariser.
        request: what it is to read.
        seen: the step as listeners are told of it.
    """
    summarizer, form = tools.summarizers[by], _form_of(tools.summarizers[by])
    if form != "notes" and request.shares.parts:
        request = for_model(request, whole=form == "whole")
    if isinstance(summarizer, EmbeddedSummarizer):
        return reading_flow(
            lambda: summarizer.summarize(request), [*request.entries, *request.kept]
        )
    if (steps := getattr(summarizer, "summarize_flow", None)) is not None:
        answer: Flow[object] = steps(request)  # it sets a time for each of its own calls
        return answer
    step = Io(
        lambda: summarizer.summarize(request), lambda: summarizer.asummarize(request), tools.timeout
    )
    return observed_call(step, by, request, seen)


def in_notes_flow(
    material: Material, by: str, draft: Draft, request: SummaryRequest
) -> Flow[Draft]:
    """What a summariser has written, in its place in the notes.

    Raises:
        SummaryRejected: it cannot be used.
    """
    tools, lengths = material.tools, material.lengths
    form = _form_of(tools.summarizers[by])
    if form == "notes":
        return draft
    if wrong := wrong_with(draft.text, request.entries, prompted=bool(draft.request)):
        raise refused(by, draft, wrong)
    draft = cut(draft, lengths, tools, material.size)
    if not request.shares.parts:
        return draft
    # In the notes its lines would give way until the rest fits, so it is judged before.
    if wrong := lengths.exceeded_by(draft, material.size(draft.text)):
        raise refused(by, draft, wrong)
    most, whole = tools.text_within(lengths.most), form == "whole"
    live = draft.request == "cached"
    text, facts = yield from reading_flow(
        lambda: composed(request, draft.text, whole=whole, most=most, live=live), request.entries
    )
    material.ledger = material.ledger.merged(facts)
    return replace(draft, text=text, binding=tuple(fact.to_json() for fact in facts))


def _form_of(summarizer: Summarizer) -> Form:
    """What its text is; a whole summary where it does not say."""
    form: Form = getattr(summarizer, "form", "whole")
    return form


def as_ours(error: Exception, by: str, tools: Tools) -> Exception:
    """The error to raise where a summariser, or what reads its answer, has raised one.

    Where its provider asks to be left alone, that is remembered for all sessions.

    Args:
        error: as it was raised.
        by: name of the summariser.
        tools: what the compaction works with.
    """
    if isinstance(error, SummaryError):
        if asked := asked_for(error):
            tools.memory.rest(by, asked)
        return error
    if isinstance(error, RedactionError):
        return error
    made: SummaryError
    if isinstance(error, StepTimeout):
        made = SummarizerTimeout(f"{by} did not answer within {tools.timeout:g} seconds")
    elif is_way_out(error):
        return error
    else:
        made = SummaryError(f"{by} failed: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def asked_for(failure: SummaryError) -> float:
    """Seconds that a provider asks to wait; a user's own summariser may say what is no number."""
    asked: object = getattr(failure, "retry_after", None)
    return float(asked) if isinstance(asked, (int, float)) and asked > 0 else 0.0


def resting(by: str, seconds: float) -> SummaryError:
    """The failure of a summariser that is not asked, as its provider has asked for a pause."""
    error = SummaryError(
        f"{by} is not asked: its provider wants to be left alone for another "
        f"{math.ceil(seconds)} s; try again then, or give a fallback"
    )
    error.transient, error.retry_after = True, seconds
    return error
