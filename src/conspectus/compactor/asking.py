"""One summariser is asked, of whichever kind, within its time; what goes wrong are our errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from conspectus._core import flow
from conspectus._core.records import Draft
from conspectus._drive import Flow, Io, StepTimeout
from conspectus.compactor.drafts import draft_of
from conspectus.compactor.observed import observed_call
from conspectus.compactor.redacting import written_flow
from conspectus.compactor.tools import Tools
from conspectus.errors import RedactionError, SummarizerTimeout, SummaryError
from conspectus.events import Seen
from conspectus.messages import Entry
from conspectus.redaction import Redaction
from conspectus.summarize import EmbeddedSummarizer, SummaryRequest
from conspectus.summarize.provider_errors import is_way_out

MANY, LONG = 50, 20_000
"""Messages, and characters of them, that are read on the event loop itself at most."""

T = TypeVar("T")


def asked_flow(
    tools: Tools, redaction: Redaction | None, by: str, request: SummaryRequest, seen: Seen
) -> Flow[Draft]:
    """What a summariser answers, less the secrets that it has written.

    Where its provider asks to be left alone, that is remembered for all sessions.

    Args:
        tools: what the compaction works with.
        redaction: what takes secrets out; None for nothing.
        by: name of the summariser.
        request: what it is to read.
        seen: the step as listeners are told of it.

    Raises:
        SummaryError: there is no summary, or none in time.
        RedactionError: the summary could not be redacted.
    """
    summarizer, timeout = tools.summarizers[by], tools.timeout
    steps = getattr(summarizer, "summarize_flow", None)
    answer: object
    try:
        if isinstance(summarizer, EmbeddedSummarizer):
            answer = yield from reading_flow(
                lambda: summarizer.summarize(request), [*request.entries, *request.kept]
            )
        elif steps is not None:  # it sets a time for each of its own calls
            answer = yield from steps(request)
        else:
            answer = yield from observed_call(
                Io(
                    lambda: summarizer.summarize(request),
                    lambda: summarizer.asummarize(request),
                    timeout,
                ),
                by,
                request,
                seen,
            )
        draft = draft_of(answer, by)
        return replace(draft, text=(yield from written_flow(redaction, draft.text)))
    except SummaryError as error:
        if asked := flow.asked_for(error):
            tools.memory.rest(by, asked)
        raise
    except RedactionError:
        raise
    except StepTimeout as error:
        raise SummarizerTimeout(f"{by} did not answer within {timeout:g} seconds") from error
    except Exception as error:
        if is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {error}") from error


def reading_flow(work: Callable[[], T], entries: Sequence[Entry]) -> Flow[T]:
    """Work of our own on these messages: where there is much of it, off the event loop, which has
    others to serve."""
    if len(entries) > MANY or sum(len(entry.reading) for entry in entries) > LONG:
        return cast("T", (yield Io(work)))
    return work()
