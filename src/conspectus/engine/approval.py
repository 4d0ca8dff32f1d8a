"""A person reads the summary before it takes effect, and may change or decline it."""

from __future__ import annotations

from dataclasses import replace

from conspectus._turns import others_may_compute
from conspectus.core.records import Draft
from conspectus.engine.failures import SummaryDeclined
from conspectus.engine.hooks import Preview, PreviewRequest
from conspectus.engine.leaving import Leaving
from conspectus.engine.summary import WrittenDraft
from conspectus.errors import SummaryError
from conspectus.messages.framing import framed_body
from conspectus.notes.data import Notes
from conspectus.observe import observing

MOST_ASKED = 20
"""The most unusable answers of a preview. After these the compaction fails."""


async def ask_for_approval(leaving: Leaving, written: WrittenDraft) -> Draft:
    """Return the draft as a person approved it; unchanged if no preview is set.

    The person is asked again until the text fits. The question is asked in the caller's context, so
    that `interrupt()` of a graph works in it.

    Raises:
        SummaryDeclined: the person does not want it.
        SummaryError: no answer can be used.
    """
    ask = leaving.engine.preview
    if ask is None or not leaving.plan.makes_summary:
        return written.draft
    draft = written.draft
    limit = leaving.room.hard
    request = PreviewRequest(
        summary=draft.body,
        evict=len(leaving.leaving_keys),
        cause=str(leaving.plan.cause),
        limit=leaving.room_for_text(limit),
        by=draft.by,
        found=written.found,
    )
    problem = ""
    with observing("step", name="preview", by=draft.by, outcome="declined") as observation:
        for _ in range(MOST_ASKED):
            answer = _ask_person(ask, replace(request, problem=problem))
            if answer is None:
                break
            if answer == draft.body:
                observation.add(outcome="ok")
                return draft
            edited = await _clean_answer(leaving, answer)
            tokens = leaving.summary_size(edited)
            if edited and tokens <= limit:
                observation.add(outcome="ok")
                notes = Notes(text=edited, edited=True).to_json()
                return replace(draft, body=edited, tokens=tokens, notes=notes)
            problem = f"it takes {tokens:,} tokens and there is room for {limit:,}; shorten it"
            if not edited:
                problem = "it is empty; decline it to leave the history as it is"
    if answer is None:
        raise SummaryDeclined("the person who was asked declined the summary")
    raise SummaryError(
        f"the preview answered {MOST_ASKED} times with a text that cannot be used ({problem}); "
        "answer with a text within `request.limit` tokens, such as the summary, or None to decline"
    )


async def _clean_answer(leaving: Leaving, answer: str) -> str:
    """Return what a person has written as the text of a summary, framed and redacted."""
    return await leaving.clean(framed_body(answer))


def _ask_person(ask: Preview, request: PreviewRequest) -> str | None:
    """Ask the person; None means that the person declines."""
    with others_may_compute():
        answer = ask(request)
    if answer is not None and not isinstance(answer, str):
        raise SummaryError(f"answer a preview by text, or None to decline it: not {answer!r:.70}")
    return answer
