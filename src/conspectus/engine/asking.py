"""Ask one summariser within its time, put its text into the notes, and raise failures as ours."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial

from conspectus.bridge import StepTimeout, io
from conspectus.core.items import Compact
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Draft
from conspectus.engine.checking import body_of, refused, uncited, within_cap
from conspectus.engine.engine import Engine
from conspectus.engine.material import Material
from conspectus.engine.observed import observed_call
from conspectus.errors import RedactionError, SummarizerTimeout, SummaryError
from conspectus.messages import Entry
from conspectus.messages.framing import as_notes
from conspectus.model.answers import answer_of
from conspectus.model.base import Form, Summarizer, Summary, SummaryRequest
from conspectus.model.checks import FLOOR, wrong_with
from conspectus.model.embedded import EmbeddedSummarizer
from conspectus.model.provider_errors import is_way_out
from conspectus.notes.cutting import cut, cut_lines, one_line
from conspectus.notes.lines import cited, section
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Answer, Segment
from conspectus.observe import Observation

LARGEST = 4_096
"""Tokens that a model is asked for at most."""

CONTEXT = 2_000
"""Tokens of earlier notes that a model is shown at most, beside findings that it writes anew."""

ASKED, LEAST, OUTGROWN = 0.42, 0.15, 0.4
"""Shares of the notes' room: what a model is asked for at most and at least; and of its findings so
far, beyond which it writes them anew."""

IN_VIEW, AHEAD = "Said by the user, and still in view", 3_000
"""Heading of the user's message that stays although later ones leave, and its characters."""

BEGINS = 60
"""Characters by which the notes name a message of the user's that follows them."""

TRIES = 5
"""How often notes are rendered again, shorter, where their message is too long."""

HEADINGS = 24
"""Tokens of the headings around a text that stands alone."""


def request_of(material: Material, by: str) -> SummaryRequest:
    """Make the request for a summariser."""
    engine, lengths = material.engine, material.lengths
    limit, count = engine.text_within(lengths.asked), engine.meter.text
    foreign = "\n".join(material.foreign)
    beside = count(foreign) <= CONTEXT  # a longer one is read in parts, with the messages
    request = SummaryRequest(
        entries=material.read() if beside else material.entries,
        notes=material.standing,
        limit=limit,
        count=count,
        form="whole",
        focus=material.focus,
        kept=material.staying,
        ahead=material.ahead,
        most=engine.text_within(lengths.fine),
        archived=engine.archive is not None,
    )
    if not engine.notes:
        return request
    request = replace(request, limit=max(1, min(int(limit * ASKED), LARGEST)))
    notes = Notes(material.segments)
    if _form_of(engine.summarizers[by]) == "whole":
        last = notes.summary  # one that is too long for the request is read with the messages
        last = "\n".join(filter(None, (last, foreign * beside)))
        return replace(request, notes=last if count(last) <= max(limit, CONTEXT) else "")
    size = sum(count(line.text) for line in notes.findings)
    anew = size > limit * OUTGROWN
    asked = request.limit if anew else max(request.limit - size, int(limit * LEAST), 1)
    request = replace(request, limit=min(request.limit, asked))
    shown = notes.render(CONTEXT + 2 * size, count, archived=True, deeds=False)
    ahead = [one for one in material.staying[: material.ahead] if one.role == "user"]
    said = [cited(cut_lines(as_notes(one.own), AHEAD), [one.cite]) for one in ahead[-1:]]
    shown = "\n".join(filter(None, (shown, *section(IN_VIEW, said), foreign * beside)))
    return replace(request, notes=shown, form="findings", anew=anew)


def answer_flow(
    engine: Engine, by: str, request: SummaryRequest, seen: Observation
) -> Awaitable[object]:
    """Ask a summariser: by its own steps where it has some, else by one call."""
    summarizer = engine.summarizers[by]
    if isinstance(summarizer, EmbeddedSummarizer):
        return _nothing(request)
    if (steps := getattr(summarizer, "summarize_flow", None)) is not None:
        answer: Awaitable[object] = steps(request)  # it sets a time for each of its own calls
        return answer
    call, acall = partial(summarizer.summarize, request), partial(summarizer.asummarize, request)
    return observed_call(io(call, acall, engine.timeout), by, request, seen)


async def _nothing(request: SummaryRequest) -> object:
    """Answer with no text: the notes are written from the messages alone."""
    return Summary("", tuple(entry.key for entry in request.entries))


def in_notes(material: Material, by: str, draft: Draft, request: SummaryRequest) -> Draft:
    """Put the text of a summariser into the notes.

    Raises:
        SummaryRejected: the text is no summary.
    """
    engine, lengths = material.engine, material.lengths
    if isinstance(engine.summarizers[by], EmbeddedSummarizer):
        return _with_notes(material, draft, None, engine.text_within(lengths.asked))
    own = getattr(engine.summarizers[by], "min_tokens", None)
    if wrong := wrong_with(draft.text, request, min_tokens=own):
        raise refused(by, draft, wrong)
    draft = within_cap(material, draft)
    text = body_of(draft.text)
    if engine.archive is None and request.form == "whole":
        text = uncited(text, {entry.cite for entry in request.entries})
    if not engine.notes:
        return replace(draft, text=text, segment=Segment(text=text, alone=True).to_json())
    if wrong := lengths.problems(draft, material.size(draft.text)):
        raise refused(by, draft, wrong)
    most = engine.text_within(lengths.most)
    room = engine.text_within(lengths.asked)
    room = max(1, min(most, max(room, request.count(text) + HEADINGS)))
    answer = text if request.form == "whole" else answer_of(draft.text, request)
    return _with_notes(material, draft, answer, room, anew=request.anew)


def _with_notes(
    material: Material, draft: Draft, answer: Answer | str | None, room: int, *, anew: bool = False
) -> Draft:
    """Return a draft with the notes that the next record holds, as data and as text."""
    entries = [material.originals[key] for key in material.keys]
    segment = _segment(material, entries, answer, anew=anew)
    segment, text = _rendered(material, segment, room)
    return replace(draft, text=text, segment=segment.to_json())


def _segment(
    material: Material, entries: Sequence[Entry], answer: Answer | str | None, *, anew: bool
) -> Segment:
    engine, given = material.engine, answer if isinstance(answer, Answer) else None
    segment = read_segment(
        entries,
        material.staying,
        given,
        user=_user(material),
        tools=engine.tools,
        skills=engine.skills,
    )
    if isinstance(answer, str):
        segment = replace(segment, text=answer, summary=True)
    elif material.foreign:
        segment = replace(segment, text="\n".join(material.foreign))
    segment = replace(
        segment, ahead=_ahead(material, entries), anew=anew and bool(given and given.found)
    )
    history = material.history
    if material.rewritten or engine.archive is None or (history.before and not history.chain):
        # The records before it may not be at hand when it is read again.
        before = Notes(material.segments).segments
        # A new summary takes the place of the texts that stood alone, and is shown in their place.
        whole = segment.summary
        earlier = tuple(
            replace(one, alone=False, earlier=(), text="" if whole and one.replaced else one.text)
            if one.alone or one.earlier or (whole and one.replaced)
            else one
            for one in before
        )
        segment = replace(segment, alone=True, earlier=earlier)
    return segment


def _ahead(material: Material, entries: Sequence[Entry]) -> str:
    """Say which message of the user that stays came before the last one that leaves."""
    users = [one for one in material.staying[: material.ahead] if one.role == "user"]
    if not users or not entries:
        return ""
    begins = cut(one_line(users[-1].own), BEGINS)
    last = f"[{entries[-1].cite}]" if material.engine.archive is not None else "the last of these"
    return f'the message of the user that begins "{begins}" came before {last}'


def _user(material: Material) -> str | None:
    """Return the name under which the user speaks, as the first compaction found it."""
    return next(
        (one.user for one in Notes(material.segments).segments if one.user is not None), None
    )


def _rendered(material: Material, segment: Segment, room: int) -> tuple[Segment, str]:
    """Return the segment as the record keeps it, and the text of all notes."""
    count, archived = material.engine.meter.text, material.engine.archive is not None
    before = () if segment.alone else material.segments
    notes = Notes([*before, segment])
    most = min(material.lengths.most, max(material.lengths.replaced, FLOOR))
    for _ in range(TRIES):
        text = notes.render(room, count, archived=archived)
        over = material.size(body_of(text)) - most  # a message may count for more than its text
        if over <= 0:
            break
        room = max(1, min(room, count(text)) - over)
    return notes.kept(), text


def topped_up(material: Material, ready: Draft, later: Sequence[Entry]) -> Draft:
    """Add notes on later messages to a draft that was prepared before they came."""
    engine, before = material.engine, Segment.from_json(ready.segment)
    added = read_segment(
        later, material.staying, user=before.user, tools=engine.tools, skills=engine.skills
    )
    segment = replace(
        before,
        lines=(*before.lines, *added.lines),
        ahead=_ahead(material, later),
        todo=before.todo if added.todo is None else added.todo,
        skills=tuple(dict.fromkeys((*before.skills, *added.skills))),
    )
    room = engine.text_within(material.lengths.fine)
    segment, text = _rendered(material, segment, room)
    read = (*ready.read, *(entry.key for entry in later))
    return replace(ready, text=text, segment=segment.to_json(), read=read)


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
