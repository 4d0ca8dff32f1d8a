"""Write the summary of one compaction: ask summarisers in turn, put the answer into the notes."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.bridge import StepTimeout, io, pause
from conspectus.core.items import Size
from conspectus.core.plan import foreseen
from conspectus.core.policy import EMBEDDED, SLACK
from conspectus.core.records import Cost, Draft
from conspectus.engine.cached_request import after_last_request
from conspectus.engine.material import Material, body_of
from conspectus.engine.thread import alone
from conspectus.errors import RedactionError, SummarizerTimeout, SummaryError, SummaryRejected
from conspectus.messages import Message
from conspectus.messages.framing import as_notes
from conspectus.messages.requests import is_users
from conspectus.model.answers import answer_of, wrong_with
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.lengths import repeats_itself, shortened
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Answer, Segment
from conspectus.notes.text import cut, one_line, section
from conspectus.observe import observing
from conspectus.observe.events import as_text, is_way_out

RETRY_AFTER, LONGEST_WAIT = (0.5, 2.0), 20.0
"""Seconds before the second and the third try of one summariser, and at most on its provider's
request; if that asks for more, the summariser is not tried again."""

LARGEST, CONTEXT, BRIEF = 4_096, 2_000, 300
"""Tokens that a model is asked for at most; that it is shown of earlier notes, beside findings that
it writes anew; and of these where all messages are then read at once."""

ASKED, LEAST, OUTGROWN = 0.42, 0.15, 0.4
"""Shares of the notes' room: what a model is asked for at most and at least; and of its findings so
far, beyond which it writes them anew."""

IN_VIEW, AHEAD = "Said by the user, and still in view", 3_000
"""Heading of the user's message that stays although later ones leave, and its characters."""

_CITED = re.compile(r"(?<![ \t])[ \t]*\[([^\[\]\n]{1,200})\]")

BEGINS = 60  # Characters by which the notes name a request that is below them
SHORTER = 16  # A summary that is too long loses at least one part in this many at a time
TRIES = 5  # How often notes are rendered again, shorter, where their message is too long
HEADINGS = 24  # Tokens of the headings around a text that stands alone


async def write(material: Material) -> tuple[Draft, bool]:
    """Take the draft of the plan, if there is one; else ask each summariser in turn.

    Return it, and whether it was there already. What was spent and what failed is added to the
    material. Raise `SummaryError` if no summariser succeeded.
    """
    thread, start, engine = material.thread, time.monotonic(), material.thread.engine
    alone_here = engine.preview is None and material.ready is None and not thread.draft_only
    if alone_here and [*engine.writers] == [EMBEDDED]:
        return await _written(material), False  # it is as cheap to write as to look for
    # By this name of all that would change it, any process finds the draft.
    identity = engine.identity(material.focus)
    parts = [material.history.head_id, material.keys, material.wanted, identity, material.standing]
    name = hash_of(parts)
    async with alone(thread, name):
        draft = material.ready or await thread.find_draft(name)
        if draft is not None:
            with suppress(SummaryRejected):
                if draft.segment and material.size(body_of(draft.text)) > material.most:
                    draft = in_less_room(material, draft, material.most)
                ready = checked(material, draft)
                material.spent = Cost() if material.ready is None else draft.cost
                return ready, True
            material.spent += draft.cost  # it was refused now, and paid for all the same
        draft = await _written(material)
        # Tries that failed were paid for too; the record is all that says so.
        seconds = round(time.monotonic() - start, 3)
        draft = replace(draft, cost=material.spent, seconds=seconds)
        # What the embedded one writes is written again as cheaply, but a person may approve it.
        if draft.by != EMBEDDED or draft.cost.calls or engine.preview is not None:
            await thread.save_draft(name, draft)
    return draft, False


def hash_of(parts: Sequence[Any]) -> str:
    """Hash plain data, the same in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


async def _written(material: Material) -> Draft:
    """Ask each summariser in turn, up to three times where its failure may pass."""
    thread, engine, plan = material.thread, material.thread.engine, material.plan
    if plan.budget is None:  # the trigger alone bounds a history whose window nobody knows
        half = foreseen(thread.trigger_size or material.history.size, 2.0)
        over = engine.policy.fired(half, None) is not None  # even half of it would be due
    else:
        over = plan.tokens > plan.budget
    last_resort = (
        over and engine.settings.on_failure == "degrade" and EMBEDDED not in engine.writers
    )
    names = [*engine.writers]
    if window_alone_asks(material):
        names = [EMBEDDED]
    elif last_resort:
        names.append(EMBEDDED)
    error = SummaryError("no summariser was given")
    try:
        for by in names:
            last = engine.memory.of(thread.scope).last_request
            for wait in (*RETRY_AFTER, None):
                request = _request_of(material, by) if by != EMBEDDED else None
                if request and engine.cached and (last is not None or not material.failures):
                    request = after_last_request(material, by, request, last)
                last = None  # a failed one is followed by the smallest request
                try:
                    with observing("step", name="summarize", by=by):
                        draft = await _draft_by(by, material, request)
                    draft = checked(material, draft)
                    material.spent += draft.cost
                    return draft
                except SummaryError as failure:
                    error = failure
                material.spent += _cost_by(by, getattr(error, "cost", Cost()))
                reason, seconds = str(error), error.retry_after or 0.0
                material.failures += (reason if f"{by} " in reason else f"{by}: {reason}",)
                await material.tell("attempt_failed", by=by, reason=reason)
                late = isinstance(error, SummarizerTimeout)  # so would it be again
                cached = request is not None and request.last is not None
                again = cached or (error.transient and not late)
                if wait is None or not again or seconds > LONGEST_WAIT:
                    break
                if error.transient or seconds:
                    await pause(max(wait, seconds))
        raise error
    finally:
        del error  # it holds this frame


def window_alone_asks(material: Material) -> bool:
    """Tell whether a compaction is due by the window alone, so that no model is asked for it.

    A trigger in tokens says how often a model is asked. The window may ask earlier: in text that
    takes more tokens than the trigger's counter says, or beside a large system prompt. The notes on
    what leaves then are made by rules. The model is asked again, and reads these notes, once all
    that has come since its last summary reaches the trigger.

    Where the trigger counts as the window does, the window asks first only if less of it is left
    than the trigger says. No compaction would then be the trigger's, and a model is asked for each.
    """
    thread = material.thread
    engine = thread.engine
    is_asked_for = material.plan.cause != "window" or engine.preview is not None
    if is_asked_for or not engine.settings.notes or thread.room is None:
        return False
    if thread.trigger_size is None:
        return False  # the trigger counts as the window does
    limit = thread.room.limit
    thresholds = [clause.threshold(limit) for clause in engine.policy.trigger]
    if not any(threshold is not None and threshold <= limit for threshold in thresholds):
        return False  # no trigger counts tokens, or none can be reached in this window
    history = material.history
    size = thread.trigger_size
    evicted_tokens = 0
    evicted_messages = 0
    for record in reversed(history.chain):
        if record.by not in ("", EMBEDDED):
            break
        evicted_tokens += max(0, record.tokens_before - record.tokens_after)
        evicted_messages += len(record.covers)
    # The trigger may count in its own way.
    trigger_share = size.tokens / max(1, history.size.tokens)
    not_summarised = Size(
        size.tokens + int(evicted_tokens * trigger_share), size.messages + evicted_messages
    )
    return engine.policy.fired(not_summarised, limit) is None


async def _draft_by(by: str, material: Material, request: SummaryRequest | None) -> Draft:
    """Have one summariser answer, by its own steps where it has some, and make notes of it.

    Without a request, the notes are made of the messages alone. Raise `SummaryError` if that fails.
    """
    engine = material.thread.engine
    if request is None:
        draft = Draft("", EMBEDDED, material.keys)
        return _with_notes(material, draft, "", None, material.text_within(material.wanted))
    summarizer = engine.writers[by]
    steps = getattr(summarizer, "summarize_flow", None)
    try:
        if steps is not None:  # it sets a time for each of its calls, and reports them
            answer = await steps(request)
        else:
            answer = await _call(summarizer, by, request, engine.settings.summarizer_timeout)
    except Exception as error:
        if isinstance(error, (SummaryError, RedactionError)) or is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {as_text(error)}") from error
    cost = _cost_by(by, answer.cost)
    try:
        text = await material.clean(answer.text)
    except RedactionError:
        material.spent += cost  # the call is paid for, whatever is left of its answer
        raise
    draft = Draft(text, by, answer.read, cost, request=answer.request, cut=answer.cut)
    return _in_notes(material, draft, request)


async def _call(summarizer: Any, by: str, request: SummaryRequest, timeout: float | None) -> Any:
    """Call a summariser of the caller's own within its time; return its `Summary`."""
    ask, aask = partial(summarizer.summarize, request), partial(summarizer.asummarize, request)
    with observing("model_call", name=by, summarizer=by) as seen:
        spent = Cost(1).asked_of(by)
        try:
            answer = await io(ask, aask, timeout)
            if not isinstance(answer, Summary):
                seen.add(outcome="rejected")
                raise SummaryError(f"{by} must answer with a Summary, not with {answer!r:.200}")
            spent = _cost_by(by, answer.cost) if answer.cost.calls else spent
            return answer
        except StepTimeout as error:
            seen.add(outcome="timeout")
            late = f"{by} did not answer within {timeout:g} seconds"
            raise SummarizerTimeout(late) from error
        finally:  # the calls of a summariser of ours that it uses have events of their own
            seen.add(cost=Cost() if seen.spent.calls else spent, name=", ".join(spent.models) or by)


def _cost_by(by: str, cost: Cost) -> Cost:
    """Name the summariser in a cost that names no model."""
    return cost.asked_of(by) if cost.calls and not cost.models else cost


# The request, and what is made of the answer


def _request_of(material: Material, by: str) -> SummaryRequest:
    """Make the request for a summariser."""
    engine = material.thread.engine
    limit, count = material.text_within(material.wanted), engine.meter.text
    foreign = "\n".join(material.foreign)
    beside = count(foreign) <= CONTEXT  # a longer one is read in parts, with the messages
    entries = material.to_read if beside else material.entries
    request = SummaryRequest(
        entries=entries,
        notes=material.standing,
        limit=limit,
        count=count,
        form="whole",
        focus=material.focus,
        kept=material.staying,
        ahead=material.ahead,
        fine=material.text_within(material.fine),
        archived=engine.archive is not None,
        tokens=sum(map(engine.meter.entry, entries)),
    )
    most = getattr(engine.writers[by], "answer_limit", None)
    if not engine.settings.notes:
        return request.within(most)
    request = replace(request, limit=max(1, min(int(limit * ASKED), LARGEST)))
    notes = Notes([material.notes])
    if getattr(engine.writers[by], "form", "whole") == "whole":
        last = notes.summary  # one that is too long for the request is read with the messages
        last = "\n".join(filter(None, (last, foreign * beside)))
        request = replace(request, notes=last if count(last) <= max(limit, CONTEXT) else "")
        return request.within(most)
    size = sum(count(line.text) for line in notes.findings)
    anew = size > limit * OUTGROWN
    least = request.limit if anew else max(request.limit - size, int(limit * LEAST), 1)
    request = replace(request, limit=min(request.limit, least))
    text = notes.render(CONTEXT + 2 * size, count, archived=True, calls=False)
    ahead = _ahead(material)
    words = [f"{cut(as_notes(ahead.own), AHEAD)} [{ahead.cite}]"] if ahead else []
    brief = notes.render(BRIEF + 2 * size, count, archived=True, calls=False)
    text, brief = (
        "\n".join(filter(None, (one, *section(IN_VIEW, words), foreign * beside)))
        for one in (text, brief)
    )
    return replace(request, notes=text, brief=brief, form="findings", anew=anew).within(most)


def checked(material: Material, draft: Draft) -> Draft:
    """Measure a draft and check it; raise `SummaryRejected` if it cannot be used."""
    with observing("step", name="check", by=draft.by) as seen:
        text = body_of(draft.text)
        tokens = material.size(text)
        replaced = material.largest_by(draft.by)
        wrong = problems(draft, material.to_read, tokens, replaced, material.most)
        outcome = "refused" if wrong else "ok"
        seen.add(problems=len(wrong), tokens_after=tokens, outcome=outcome)
    if wrong:
        raise _refused(draft, wrong)
    return replace(draft, text=text, tokens=tokens)


def problems(
    draft: Draft, entries: Sequence[Message], tokens: int, replaced: int, limit: int
) -> list[str]:
    """Say why a draft cannot be used, a sentence for each reason; empty if it can.

    All of `entries` must have been read. `tokens` is the size of its message, `replaced` the most
    by what it replaces, and `limit` the most by the room for it.
    """
    if not draft.text.strip():
        return ["it is empty"]
    unread, takes = {e.key for e in entries} - set(draft.read), f"it takes {tokens:,} tokens"
    wrong = [f"{len(unread)} of {len(entries)} messages were not read"] if unread else []
    if tokens > limit:
        wrong.append(f"{takes} and {limit:,} (by max_summary_tokens or the window) are allowed")
    if tokens > replaced:
        wrong.append(f"{takes} and what it replaces only {replaced:,}")
    return wrong


def _refused(draft: Draft, wrong: Sequence[str]) -> SummaryRejected:
    """Return the error of a text in which something is wrong, with the cost of the text."""
    why = f"the summary by {draft.by} was refused: {'; '.join(wrong)}"
    error = SummaryRejected(why)
    error.cost = draft.cost
    return error


def _in_notes(material: Material, draft: Draft, request: SummaryRequest) -> Draft:
    """Put the text of a summariser into the notes; raise `SummaryRejected` if it is no summary."""
    engine, most = material.thread.engine, material.most
    count, room = engine.meter.text, material.text_within(material.wanted)
    least = getattr(engine.writers[draft.by], "min_tokens", None)
    if wrong := wrong_with(draft.text, request, min_tokens=least, cut=bool(draft.cut)):
        raise _refused(draft, (wrong,))
    draft = _fitted(material, draft)
    text = body_of(draft.text)
    if engine.archive is None and request.form == "whole":  # its ids would lead nowhere
        cites = {entry.cite for entry in request.entries}
        text = _CITED.sub(
            lambda m: "" if {one.strip() for one in m[1].split(",")} <= cites else m[0], text
        )
    if not engine.settings.notes:
        return replace(draft, text=text, segment=Segment(text=text, edited=True).to_json())
    replaced = material.largest_by(draft.by)
    if reasons := problems(draft, (), material.size(draft.text), replaced, most):
        raise _refused(draft, reasons)
    # A longer text has the room of the lines beside it, and no more than leaves two fifths free.
    room = max(1, room, min(material.text_within(material.paying), count(text) + HEADINGS))
    if request.form == "whole":
        return _with_notes(material, draft, text, None, room)
    return _with_notes(material, draft, "", answer_of(draft.text, request), room, request.anew)


def _fitted(material: Material, draft: Draft) -> Draft:
    """Cut a text that is too long for its room behind the last sentence that fits.

    Raise `SummaryRejected` for one that never comes to an end.
    """
    engine, count = material.thread.engine, material.thread.engine.meter.text
    room = material.most - engine.frame - SLACK
    text = draft.text
    if material.size(text) > material.most and repeats_itself(text):
        raise _refused(draft, ("it is too long, and says the same over and over",))
    while (over := material.size(text) - material.most) > 0 and room > 0:
        text = shortened(draft.text, room, count)
        room -= over  # a message may count for more than its parts
    cut = count(draft.text) - count(text) if text != draft.text else 0
    return replace(draft, text=text, cut=draft.cut + cut)


def _with_notes(
    material: Material,
    draft: Draft,
    summary: str,
    answer: Answer | None,
    room: int,
    anew: bool = False,
) -> Draft:
    """Return a draft with the notes that the next record holds, as data and as text."""
    engine, count = material.thread.engine, material.thread.engine.meter.text
    archived = engine.archive is not None
    segment = read_segment(
        material.to_read,
        material.staying,
        answer,
        before=material.notes,
        tools=engine.tools,
        skills=engine.settings.skills,
    )
    segment = replace(
        segment,
        summary=summary,
        text="" if summary else "\n".join(material.foreign),
        anew=anew and bool(answer and answer.found),
    )
    if material.entries and (names := _older(material)):
        last = f"[{material.entries[-1].cite}], " if archived else ""
        came = "is below, although it" if len(names) == 1 else "are below, although they"
        below = f"{came} came before {last}the last message noted above"
        segment = replace(segment, ahead=f"{' and '.join(names)} {below}")
    notes = Notes([material.notes, segment])
    most = min(material.most, material.largest_by(draft.by))
    for _ in range(TRIES):
        text = notes.render(room, count, archived=archived)
        over = material.size(body_of(text)) - most  # a message may count for more than its text
        if over <= 0:
            break
        if engine.meter.counts_lists:  # which may count in steps
            over = max(over, room // SHORTER)
        room = max(1, min(room, count(text)) - over)
    return replace(draft, text=text, segment=notes.recorded().to_json())


def in_less_room(material: Material, draft: Draft, most: int) -> Draft:
    """Return a finished draft whose message takes at most so many tokens, if that can be.

    Nobody is asked again: its notes are rendered once more, or its text is cut behind a sentence.
    """
    engine = material.thread.engine
    count = engine.meter.text
    own = Segment.from_json(draft.segment)
    notes = Notes([own]) if own.lines else None
    room = count(draft.text)
    for _ in range(TRIES):
        over = material.size(draft.text) - most
        if over <= 0 or room <= 1:
            break
        room = max(1, room - max(over, room // SHORTER))
        if notes is not None:
            text = body_of(notes.render(room, count, archived=engine.archive is not None))
            draft = replace(draft, text=text)
        else:
            text = shortened(draft.text, room, count)
            if not text.strip():
                break
            segment = Segment(text=text, edited=True).to_json()
            cut = draft.cut + count(draft.text) - count(text)
            draft = replace(draft, text=text, segment=segment, cut=cut)
    return replace(draft, tokens=material.size(draft.text))


def _older(material: Material) -> list[str]:
    """Name what stays although later messages leave: the user's last words, and open calls."""
    ahead, stay = _ahead(material), material.staying
    names = [f'the message of the user "{cut(one_line(ahead.own), BEGINS)}"'] if ahead else []
    answered = {call for message in stay for call in message.answers}
    calls = (call for message in stay[: material.ahead] for call in message.calls)
    waiting = [cut(one_line(call.name), BEGINS) for call in calls if call.id not in answered]
    return [*names, *(f"the call of {name} without a result" for name in waiting)]


def _ahead(material: Material) -> Message | None:
    """Return the user's last message that stays and came before the last one that leaves."""
    stayed_before = material.staying[: material.ahead]
    return next((message for message in reversed(stayed_before) if is_users(message)), None)
