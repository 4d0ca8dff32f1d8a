"""The draft of a summary: what a summariser is asked for, and what is made of its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.records import Draft
from conspectus.engine.hooks import Preview, PreviewRequest
from conspectus.engine.material import Material
from conspectus.engine.settings import SLACK
from conspectus.errors import RedactionError, SummaryError, SummaryRejected
from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.codec import sendable
from conspectus.messages.framing import as_notes
from conspectus.model.answers import answer_of
from conspectus.model.base import EmbeddedSummarizer, SummaryRequest
from conspectus.model.checks import FLOOR, cut_short, problems, wrong_with
from conspectus.notes.cutting import cited, cut, one_line, section
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Answer, Segment
from conspectus.observe import observing

LARGEST = 4_096  # Tokens that a model is asked for at most

CONTEXT = 2_000
"""Tokens of earlier notes that a model is shown at most, beside findings that it writes anew."""

ASKED, LEAST, OUTGROWN = 0.42, 0.15, 0.4
"""Shares of the notes' room: what a model is asked for at most and at least; and of its findings so
far, beyond which it writes them anew."""

IN_VIEW, AHEAD = "Said by the user, and still in view", 3_000
"""Heading of the user's message that stays although later ones leave, and its characters."""

BEGINS = 60  # Characters by which the notes name a request that stands below them
TRIES = 5  # How often notes are rendered again, shorter, where their message is too long
HEADINGS = 24  # Tokens of the headings around a text that stands alone
MOST_ASKED = 20  # Answers that do not fit, after which a preview is given up


def request_of(material: Material, by: str) -> SummaryRequest:
    """Make the request for a summariser."""
    engine = material.thread.engine
    limit, count = engine.text_within(material.asked), engine.meter.text
    foreign = "\n".join(material.foreign)
    beside = count(foreign) <= CONTEXT  # a longer one is read in parts, with the messages
    request = SummaryRequest(
        entries=material.read if beside else material.entries,
        notes=material.standing,
        limit=limit,
        count=count,
        form="whole",
        focus=material.focus,
        kept=material.staying,
        ahead=material.ahead,
        most=engine.text_within(material.fine),
        archived=engine.archive is not None,
    )
    if not engine.notes:
        return request
    request = replace(request, limit=max(1, min(int(limit * ASKED), LARGEST)))
    notes = Notes([material.notes])
    if getattr(engine.summarizers[by], "form", "whole") == "whole":
        last = notes.summary  # one that is too long for the request is read with the messages
        last = "\n".join(filter(None, (last, foreign * beside)))
        return replace(request, notes=last if count(last) <= max(limit, CONTEXT) else "")
    size = sum(count(line.text) for line in notes.findings)
    anew = size > limit * OUTGROWN
    asked = request.limit if anew else max(request.limit - size, int(limit * LEAST), 1)
    request = replace(request, limit=min(request.limit, asked))
    shown = notes.render(CONTEXT + 2 * size, count, archived=True, calls=False)
    ahead = [one for one in material.staying[: material.ahead] if one.role == "user"]
    said = [cited(cut(as_notes(one.own), AHEAD), [one.cite]) for one in ahead[-1:]]
    shown = "\n".join(filter(None, (shown, *section(IN_VIEW, said), foreign * beside)))
    return replace(request, notes=shown, form="findings", anew=anew)


def refused(by: str, draft: Draft, wrong: tuple[str, ...]) -> SummaryRejected:
    """Make the error of a text that failed its checks, with the cost of the text."""
    error = SummaryRejected(f"the summary by {by} was refused: {'; '.join(wrong)}", wrong)
    error.cost = draft.cost
    return error


async def clean_summary(material: Material, text: str) -> str:
    """Redact the text of a summary; raise `RedactionError` if nothing is left of it."""
    redaction = material.redaction
    if redaction is None:
        return text
    [clean] = await redaction.texts([text])
    if text.strip() and not clean.strip():
        raise RedactionError(
            f"the redactor {redaction.name} left nothing of the summary; let it answer with the "
            "text that may be kept"
        )
    return clean


def checked(material: Material, draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """Measure and check a draft; return it and what is wrong with it."""
    with observing("step", name="check", by=draft.by) as seen:
        text = body_of(draft.text)
        tokens = material.size(text)
        wrong = problems(
            draft, material.read, tokens=tokens, replaced=material.replaced, limit=material.most
        )
        outcome = "refused" if wrong else "ok"
        seen.add(problems=len(wrong), tokens_after=tokens, outcome=outcome)
    return replace(draft, text=text, tokens=tokens), wrong


def body_of(text: str) -> str:
    """Frame the text of a summary as data, without the line that marks it."""
    return as_notes(sendable(text).strip().removeprefix(SUMMARY_LINE).strip())


def in_notes(material: Material, by: str, draft: Draft, request: SummaryRequest) -> Draft:
    """Put the text of a summariser into the notes.

    Raises:
        SummaryRejected: the text is no summary.
    """
    engine = material.thread.engine
    if isinstance(engine.summarizers[by], EmbeddedSummarizer):
        return _with_notes(material, draft, None, engine.text_within(material.asked))
    least = getattr(engine.summarizers[by], "min_tokens", None)
    if wrong := wrong_with(draft.text, request, min_tokens=least):
        raise refused(by, draft, wrong)
    count, whole, shorter = engine.meter.text, draft.text, draft.text
    room = material.most - engine.frame - SLACK
    if material.plan.summary_cap is not None:  # whoever sets a length prefers a cut text to none
        while (over := material.size(shorter) - material.most) > 0 and room > 0:
            shorter, _ = cut_short(whole, room, count)
            room -= over  # a message may count for more than its parts
        draft = replace(draft, text=shorter, cut=count(whole) - count(shorter))
    text = body_of(draft.text)
    if engine.archive is None and request.form == "whole":
        text = _uncited(text, {entry.cite for entry in request.entries})
    if not engine.notes:
        return replace(draft, text=text, segment=Segment(text=text, edited=True).to_json())
    tokens = material.size(draft.text)
    if wrong := problems(draft, (), tokens=tokens, replaced=material.replaced, limit=material.most):
        raise refused(by, draft, wrong)
    most = engine.text_within(material.most)
    room = max(engine.text_within(material.asked), request.count(text) + HEADINGS)
    answer = text if request.form == "whole" else answer_of(draft.text, request)
    return _with_notes(material, draft, answer, max(1, min(most, room)), anew=request.anew)


def _uncited(text: str, cites: set[str]) -> str:
    """Remove the ids that a summary cites: without an archive they lead nowhere."""

    def known(match: re.Match[str]) -> str:
        named = {name.strip() for name in match[1].split(",")}
        return "" if named <= cites else match[0]

    return re.sub(r"(?<![ \t])[ \t]*\[([^\[\]\n]{1,200})\]", known, text)


def _with_notes(
    material: Material, draft: Draft, answer: Answer | str | None, room: int, *, anew: bool = False
) -> Draft:
    """Return a draft with the notes that the next record holds, as data and as text."""
    engine, entries = material.thread.engine, material.entries
    archived, count = engine.archive is not None, engine.meter.text
    given = answer if isinstance(answer, Answer) else None
    segment = read_segment(
        entries,
        material.staying,
        given,
        user=material.notes.user,
        tools=engine.tools,
        skills=engine.skills,
    )
    segment = replace(
        segment,
        summary=answer if isinstance(answer, str) else "",
        text="" if isinstance(answer, str) else "\n".join(material.foreign),
        ahead=_ahead(material, entries),
        anew=anew and bool(given and given.found),
    )
    notes = Notes([material.notes, segment])
    most = min(material.most, max(material.replaced, FLOOR))
    for _ in range(TRIES):
        text = notes.render(room, count, archived=archived)
        over = material.size(body_of(text)) - most  # a message may count for more than its text
        if over <= 0:
            break
        room = max(1, min(room, count(text)) - over)
    return replace(draft, text=text, segment=notes.kept().to_json())


def _ahead(material: Material, entries: Sequence[Message]) -> str:
    """Say which message of the user that stays is older than the last one that leaves."""
    users = [one for one in material.staying[: material.ahead] if one.role == "user"]
    if not users or not entries:
        return ""
    begins = cut(one_line(users[-1].own), BEGINS)
    last = f", up to [{entries[-1].cite}]" if material.thread.engine.archive is not None else ""
    return f'the request "{begins}", which stands below: the work on it so far is noted above{last}'


class Refused(SummaryError):
    """A person has refused the summary, which raises nothing."""


async def approved(ask: Preview, material: Material, draft: Draft, stored: bool) -> Draft:
    """Return the draft as a person approved it.

    The person is asked in the caller's own thread and context, where a graph's interrupt works, and
    again until the text fits.

    Raises:
        Refused: the person does not want it.
        SummaryError: no answer can be used.
    """
    limit, problem = material.most, ""
    request = PreviewRequest(
        summary=draft.text,
        evict=len(material.keys),
        cause=material.plan.cause,
        limit=material.thread.engine.text_within(limit),
        by=draft.by,
        kept=stored,
    )
    with observing("step", name="preview", by=draft.by, outcome="refused") as seen:
        for _ in range(MOST_ASKED):
            text = ask(replace(request, problem=problem))
            if text is None:
                break
            edited = body_of(text)
            tokens = material.size(edited)
            if text == draft.text or (edited and tokens <= limit):
                seen.add(outcome="ok")
                if text == draft.text:
                    return draft
                clean = await clean_summary(material, edited)
                segment = Segment(text=clean, edited=True).to_json()
                return replace(draft, text=clean, tokens=material.size(clean), segment=segment)
            problem = (
                f"it takes {tokens:,} tokens and there is room for {limit:,}; shorten it"
                if edited
                else "it is empty; refuse it to leave the history as it is"
            )
    if text is None:
        raise Refused("the summary was refused by the person who was asked")
    raise SummaryError(
        f"the preview answered {MOST_ASKED} times with a text that cannot be used ({problem}); "
        "answer with the summary, with a text within `request.limit` tokens, or with None to refuse"
    )
