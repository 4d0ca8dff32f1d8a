"""A person reads a summary before it takes effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from conspectus._core.records import Draft
from conspectus.compactor.drafts import body_of
from conspectus.errors import SummaryError

MOST_ASKED = 20
"""Answers that do not fit before a preview is given up: a function may never make one that does."""


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """What a person is asked before a summary takes effect.

    Attributes:
        summary: the text that would stand for what leaves.
        evict: messages that would leave the view.
        cause: what asked for the compaction.
        limit: the most that the text may take, in tokens.
        by: name of the summariser.
        problem: what is wrong with the answer before; empty the first time.
        kept: it was made at an earlier time and kept since, so it may have been read already.
    """

    summary: str
    evict: int
    cause: str
    limit: int
    by: str
    problem: str = ""
    kept: bool = False


Preview = Callable[[PreviewRequest], str | None]
"""Answers with the text that is to take effect, or None to refuse it."""


def approved(
    ask: Preview, request: PreviewRequest, draft: Draft, size: Callable[[str], int], limit: int
) -> Draft | None:
    """The draft as a person approved it; None where it was refused.

    It runs in the caller's own thread and context: a graph's interrupt works nowhere else.

    Args:
        ask: the person, who is asked again until the text fits.
        request: the first question.
        draft: what it is about.
        size: tokens of the message that shows a text.
        limit: the most of these.

    Raises:
        SummaryError: no answer of `MOST_ASKED` fitted.
    """
    for _ in range(MOST_ASKED):
        text = ask(request)
        if text is None or text == draft.text:
            return draft if text is not None else None
        edited = body_of(text)
        tokens = size(edited)
        if edited and tokens <= limit:
            return replace(draft, text=edited, tokens=tokens)
        problem = (
            f"it takes {tokens:,} tokens and there is room for {limit:,}; shorten it"
            if edited
            else "it is empty; refuse it to leave the history as it is"
        )
        request = replace(request, problem=problem)
    raise SummaryError(
        f"the preview answered {MOST_ASKED} times with a text that cannot be used ({problem}); "
        "answer with the summary, with a text within `request.limit` tokens, or with None to refuse"
    )
