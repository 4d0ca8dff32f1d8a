"""Name and check the draft of a summary, and let a person approve it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conspectus.core.records import Cost, Draft
from conspectus.engine.engine import SLACK
from conspectus.engine.hooks import Preview, PreviewRequest
from conspectus.engine.material import Material
from conspectus.engine.redacting import redacted_summary_flow
from conspectus.errors import SummaryError, SummaryRejected
from conspectus.messages import SUMMARY_LINE
from conspectus.messages.codec import sendable
from conspectus.messages.framing import as_notes
from conspectus.model.base import Summary
from conspectus.model.checks import cut_short
from conspectus.notes.segment import Segment
from conspectus.observe import observing

MOST_ASKED = 20
"""Answers that do not fit, after which a preview is given up."""


def refused(by: str, draft: Draft, wrong: tuple[str, ...]) -> SummaryRejected:
    """Make the error of a text that failed its checks, with the cost of the text."""
    error = SummaryRejected(f"the summary by {by} was refused: {'; '.join(wrong)}", wrong)
    error.cost = draft.cost
    return error


def checked(material: Material, draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """Measure and check a draft; return it and the problems found."""
    with observing("step", name="check", by=draft.by) as seen:
        entries, text = material.read(), body_of(draft.text)
        tokens = material.size(text)
        found = material.lengths.problems(draft, tokens, entries)
        outcome = "refused" if found else "ok"
        seen.add(problems=len(found), tokens_after=tokens, outcome=outcome)
    return replace(draft, text=text, tokens=tokens), found


def within_cap(material: Material, draft: Draft) -> Draft:
    """Cut a text at the end of a line if it exceeds the caller's limit."""
    lengths, count = material.lengths, material.engine.meter.text
    room, text = lengths.most - material.engine.frame - SLACK, draft.text
    while lengths.may_be_cut and (over := material.size(text) - lengths.most) > 0 and room > 0:
        text, _ = cut_short(draft.text, room, count)
        room -= over  # a message may count for more than its parts
    return replace(draft, text=text, cut=count(draft.text) - count(text))


async def approved_flow(
    ask: Preview, material: Material, draft: Draft, cause: str, kept: bool
) -> Draft | None:
    """Return the draft as a person approved it, or None if it was refused.

    The person is asked in the caller's own thread and context, where a graph's interrupt works, and
    again until the text fits.
    """
    limit, problem = material.lengths.most, ""
    request = PreviewRequest(
        summary=draft.text,
        evict=len(material.keys),
        cause=cause,
        limit=material.engine.text_within(limit),
        by=draft.by,
        kept=kept,
    )
    for _ in range(MOST_ASKED):
        text = ask(replace(request, problem=problem))
        if text is None or text == draft.text:
            return draft if text is not None else None
        edited = body_of(text)
        tokens = material.size(edited)
        if edited and tokens <= limit:
            clean = await redacted_summary_flow(material.redaction, edited)
            segment = Segment(text=clean, alone=True).to_json()
            return replace(draft, text=clean, tokens=material.size(clean), segment=segment)
        problem = (
            f"it takes {tokens:,} tokens and there is room for {limit:,}; shorten it"
            if edited
            else "it is empty; refuse it to leave the history as it is"
        )
    raise SummaryError(
        f"the preview answered {MOST_ASKED} times with a text that cannot be used ({problem}); "
        "answer with the summary, with a text within `request.limit` tokens, or with None to refuse"
    )


def draft_name(
    parent: str | None,
    keys: Sequence[str],
    limit: int,
    identity: str,
    standing: str,
) -> str:
    """Name the draft of a plan, so that any process finds it again.

    `limit` is the size that the summary is asked to have, in tokens; `identity` says all else that
    would change it, such as prompts, focus and model.
    """
    return hash_of([parent, keys, limit, identity, standing])


def hash_of(parts: Sequence[Any]) -> str:
    """Hash plain data, the same in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def draft_of(answer: object, by: str) -> Draft:
    """Make a draft of a summariser's answer; raise `SummaryError` if that is no `Summary`."""
    kinds = {"text": str, "cost": Cost, "read": tuple, "request": str}
    if not isinstance(answer, Summary) or not all(
        isinstance(getattr(answer, name), kind) for name, kind in kinds.items()
    ):
        raise SummaryError(
            f"{by} must answer with a Summary(text, read: tuple of keys, cost), and "
            f"answered with {answer!r:.200}"
        )
    cost = cost_by(by, answer.cost)
    return Draft(answer.text, by, answer.read, cost, request=answer.request)


def cost_by(by: str, cost: Cost) -> Cost:
    """Name the summariser in a cost that names no model."""
    return cost.asked_of(by) if cost.calls and not cost.models else cost


def body_of(text: str) -> str:
    """Frame the text of a summary as data, without the line that marks it."""
    return as_notes(sendable(text).strip().removeprefix(SUMMARY_LINE).strip())


def uncited(text: str, cites: set[str]) -> str:
    """Remove the ids that a summary cites: without an archive they lead nowhere."""

    def known(match: re.Match[str]) -> str:
        named = {name.strip() for name in match[1].split(",")}
        return "" if named <= cites else match[0]

    return re.sub(r"(?<![ \t])[ \t]*\[([^\[\]\n]{1,200})\]", known, text)
