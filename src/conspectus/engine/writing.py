"""Write the summary of one compaction: ask summarisers in turn, put the answer into the notes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from conspectus.bridge import StepTimeout, home, io, pause
from conspectus.core.policy import EMBEDDED
from conspectus.core.records import Cost, Draft
from conspectus.engine.hooks import Preview, PreviewRequest
from conspectus.engine.material import Material
from conspectus.engine.riding import size_of, why_not
from conspectus.engine.settings import SLACK, Engine
from conspectus.engine.thread import Thread
from conspectus.errors import (
    ArchiveError,
    ArchiveUnconfirmed,
    RedactionError,
    SummarizerTimeout,
    SummaryError,
    SummaryRejected,
)
from conspectus.messages import SUMMARY_LINE, Entry
from conspectus.messages.codec import sendable
from conspectus.messages.framing import as_notes
from conspectus.model.answers import answer_of
from conspectus.model.base import Summary, SummaryRequest
from conspectus.model.calls import outcome_of
from conspectus.model.checks import FLOOR, cut_short, problems, wrong_with
from conspectus.model.embedded import EmbeddedSummarizer
from conspectus.model.provider_errors import is_way_out
from conspectus.notes.cutting import cut, cut_lines, one_line
from conspectus.notes.lines import cited, section
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes
from conspectus.notes.segment import Answer, Segment
from conspectus.observe import Observation, emit, log, observing
from conspectus.observe.events import ended_by

RETRY_AFTER = (0.5, 2.0)
"""Seconds before the second and the third try of one summariser, unless its provider asks for
more."""

LONGEST_WAIT = 20.0
"""Most seconds to wait on a provider's request; if it asks for more, its summariser is not tried
again."""

LOOK_AGAIN, LONGEST_LOOK = 0.02, 600.0
"""Seconds between two checks of a summary that another worker is writing, and until its task is
taken to be lost."""

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

MOST_ASKED = 20
"""Answers that do not fit, after which a preview is given up."""


class Failed(Exception):
    """A compaction that leaves the history as it was.

    Attributes:
        reason: why, as one sentence.
        error: the error to raise where failures raise.
        spent: what its tries cost; `failures` are those, one sentence each.
        refused: a person refused the summary, which raises nothing.
    """

    def __init__(
        self,
        reason: str,
        error: Exception,
        spent: Cost | None = None,
        failures: tuple[str, ...] = (),
        refused: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason, self.error, self.refused = reason, error, refused
        self.spent, self.failures = spent or Cost(), failures


class Written(NamedTuple):
    """A draft, what it cost in this call, tries that failed, and whether it was there already."""

    draft: Draft
    spent: Cost
    failures: tuple[str, ...]
    stored: bool


async def write(material: Material, ready: Draft | None = None) -> Written:
    """Take the draft of the plan, if there is one; else ask each summariser in turn.

    Raises:
        Failed: no summariser succeeded, or a draft could not be read or stored.
        RedactionError: the redactor failed.
    """
    thread, engine = material.thread, material.thread.engine
    plan, start = draft_name(material), time.monotonic()
    mine = ready is None and await _claimed(thread, plan)
    try:
        draft = ready or await thread.find_draft(plan)
        spent, failures, paid = Cost(), tuple[str, ...](), Cost()
        if draft is not None:
            draft, wrong = _checked(material, draft)
            if not wrong:
                return Written(draft, Cost() if ready is None else draft.cost, (), stored=True)
            paid = draft.cost
        error: Exception = SummaryError("no summariser was given")
        for by in _ladder(material):
            last = engine.memory.of(thread.scope).last_request
            for tries, wait in enumerate((*RETRY_AFTER, None)):
                asked, cached, transient = 0.0, False, False
                try:
                    with observing("step", name="summarize", by=by) as seen:
                        # After a pause asked for here, which has waited, it is tried again.
                        if not tries and (rest := engine.memory.rests(by)):
                            raise _resting(by, rest)
                        request = _request(material, by)
                        if not failures or last is not None:
                            request = _riding(material, by, request, last)
                        cached, last = request.last is not None, None
                        draft = await _answer(material, by, request, seen)
                        draft = _in_notes(material, by, draft, request)
                    spent += draft.cost
                    draft, wrong = _checked(material, draft)
                    if not wrong:
                        # Tries that failed were paid for too; the record is all that says so.
                        seconds = round(time.monotonic() - start, 3)
                        draft = replace(draft, cost=paid + spent, seconds=seconds)
                        await thread.save_draft(plan, draft)
                        return Written(draft, spent, failures, stored=False)
                    error = _refused(by, draft, wrong)
                except ArchiveError as failure:
                    reason = f"the draft could not be written: {failure}"
                    raise Failed(reason, failure, spent, failures) from failure
                except SummaryError as failure:
                    error, transient, asked = failure, failure.transient, _pause_asked(failure)
                    spent += _cost_by(by, getattr(failure, "cost", Cost()))
                reason = str(error)
                named = reason if f"{by} " in reason else f"{by}: {reason}"
                failures = (*failures, named)
                await tell(material, "attempt_failed", by=by, reason=reason)
                if wait is None or not (cached or transient) or asked > LONGEST_WAIT:
                    break
                if transient or asked:
                    await pause(max(wait, asked))
        raise Failed(str(error), error, spent, failures) from error
    except ArchiveError as trouble:
        raise Failed(archive_failed(trouble), trouble) from trouble
    finally:
        if mine:
            engine.memory.writers.pop((thread.scope, plan), None)
        error = None  # type: ignore[assignment]  # it holds this frame


async def confirm(material: Material) -> None:
    """Archive what leaves or is shown short, and read it back: a store may forget.

    Raises:
        ArchiveError: the archive has not confirmed it.
    """
    archive, scope = material.thread.engine.archive, material.thread.scope
    originals = list(material.originals.values())
    if archive is None or not originals:
        return
    await archive.flow(archive.put, scope, originals)
    if missing := await archive.flow(archive.missing, scope, originals):
        raise ArchiveUnconfirmed(
            f"the store took {len(originals)} messages and did not give {len(missing)} of them "
            "back; check its disk, its quota and its time to live"
        )


def draft_name(material: Material) -> str:
    """Name the draft of a plan by all that would change it, so that any process finds it again."""
    identity = material.thread.engine.identity(material.focus)
    parent, limit = material.history.head_id, material.asked
    return hash_of([parent, material.keys, limit, identity, material.standing])


def hash_of(parts: Sequence[Any]) -> str:
    """Hash plain data, the same in every process."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


async def _claimed(thread: Thread, plan: str) -> bool:
    """Claim the summary of a plan for this worker, who must then take the claim back.

    If another worker of this process has it, wait and return False: its draft is there then, or it
    has failed. Nobody waits for a thread that has ended, or that waits for this one.
    """
    memory, name = thread.engine.memory, (thread.scope, plan)
    until = time.monotonic() + LONGEST_LOOK
    with memory.lock:
        if name not in memory.writers:
            memory.writers[name] = home()
            return True
    while (owner := memory.writers.get(name)) is not None and time.monotonic() < until:
        lives = any(one.ident == owner for one in threading.enumerate())

        def wait(owner: int = owner, lives: bool = lives) -> bool:
            if owner == home() or not lives:
                return False
            time.sleep(LOOK_AGAIN)
            return True

        if not await io(wait, partial(asyncio.sleep, LOOK_AGAIN, lives)):
            break
    return False


def _ladder(material: Material) -> tuple[str, ...]:
    """Return the summarisers to ask in turn; the embedded one last if the window is full."""
    engine, plan = material.thread.engine, material.plan
    roomy = plan.budget is None or plan.tokens <= plan.budget
    if engine.on_failure != "degrade" or roomy or EMBEDDED in engine.order:
        return engine.order
    return (*engine.order, EMBEDDED)


# What is asked


def _request(material: Material, by: str) -> SummaryRequest:
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
    notes = Notes(material.segments)
    if getattr(engine.summarizers[by], "form", "whole") == "whole":
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


def _riding(material: Material, by: str, request: SummaryRequest, last: Any) -> SummaryRequest:
    """Add the agent's last request to a summariser's, if the summary may use the cache."""
    engine, head = material.thread.engine, material.history.head
    rides = getattr(engine.summarizers[by], "rides", None)
    if not engine.cached or rides is None:
        return request
    notes = head.summary if head is not None else ""
    why = why_not(engine, last, by, material.leaving, material.entries, notes)
    tokens = 0 if why else size_of(last, engine.meter)
    if why := why or rides(last, tokens, request):
        log("smallest_request", "the smallest request is sent: %s", why, level=10)
        return request
    return replace(request, last=last, last_tokens=tokens)


async def _answer(material: Material, by: str, request: SummaryRequest, seen: Observation) -> Draft:
    """Ask a summariser, by its own steps where it has some, else by one call, within its time.

    Raises:
        SummaryError: it failed.
        RedactionError: nothing is left of its answer.
    """
    engine = material.thread.engine
    summarizer, answer = engine.summarizers[by], None
    if isinstance(summarizer, EmbeddedSummarizer):  # the notes are written from messages alone
        return Draft("", by, tuple(entry.key for entry in request.entries))
    start, facts = time.perf_counter(), dict[str, Any]()
    own = getattr(summarizer, "summarize_flow", None)  # it sets a time for each of its own calls
    try:
        if own is not None:
            answer = await own(request)
        else:
            call = partial(summarizer.summarize, request)
            answer = await io(call, partial(summarizer.asummarize, request), engine.timeout)
        if not isinstance(answer, Summary) or not (
            isinstance(answer.text, str)
            and isinstance(answer.read, tuple)
            and isinstance(answer.cost, Cost)
            and isinstance(answer.request, str)
        ):
            facts = {"outcome": "rejected"}
            raise SummaryError(
                f"{by} must answer with a Summary(text, read: tuple of keys, cost), and "
                f"answered with {answer!r:.200}"
            )
        cost = _cost_by(by, answer.cost)
        draft = Draft(answer.text, by, answer.read, cost, request=answer.request)
        facts = {"cost": cost} if cost.calls else {}
        if seen and own is None and not cost.calls:
            read = sum(request.count(entry.reading) for entry in request.entries)
            sent, got = read + request.count(request.notes), request.count(answer.text)
            facts["cost"] = Cost(1, sent, got, estimated_calls=1).asked_of(by)
    except StepTimeout as error:
        facts = {"outcome": "timeout"}
        late = f"{by} did not answer within {engine.timeout:g} seconds"
        raise SummarizerTimeout(late) from error
    except SummaryError as error:
        facts = facts or {**ended_by(error), "outcome": outcome_of(error)}
        if asked := _pause_asked(error):
            engine.memory.rest(by, asked)
        raise
    except BaseException as error:
        facts = ended_by(error)
        if not isinstance(error, Exception) or isinstance(error, RedactionError):
            raise
        if is_way_out(error):
            raise
        raise SummaryError(f"{by} failed: {type(error).__name__}: {error}") from error
    finally:
        # A summariser that uses one of ours has events of its own.
        if seen and own is None and not seen.calls:
            spent = facts.pop("cost", None) or Cost(1).asked_of(by)
            name, seconds = ", ".join(spent.models) or by, time.perf_counter() - start
            emit("model_call", name=name, summarizer=by, seconds=seconds, cost=spent, **facts)
    return replace(draft, text=await clean_summary(material, draft.text))


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


def _pause_asked(error: SummaryError) -> float:
    """Return the seconds that a provider asks to wait, or 0."""
    seconds: object = error.retry_after
    return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else 0.0


def _resting(by: str, seconds: float) -> SummaryError:
    """Make the error of a summariser whose provider has asked for a pause."""
    error = SummaryError(
        f"{by} is not asked: its provider wants to be left alone for another "
        f"{math.ceil(seconds)} s; try again then, or give a fallback"
    )
    error.transient, error.retry_after = True, seconds
    return error


def _refused(by: str, draft: Draft, wrong: tuple[str, ...]) -> SummaryRejected:
    """Make the error of a text that failed its checks, with the cost of the text."""
    error = SummaryRejected(f"the summary by {by} was refused: {'; '.join(wrong)}", wrong)
    error.cost = draft.cost
    return error


def _cost_by(by: str, cost: Cost) -> Cost:
    """Name the summariser in a cost that names no model."""
    return cost.asked_of(by) if cost.calls and not cost.models else cost


# What is made of the answer


def _checked(material: Material, draft: Draft) -> tuple[Draft, tuple[str, ...]]:
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


def _in_notes(material: Material, by: str, draft: Draft, request: SummaryRequest) -> Draft:
    """Put the text of a summariser into the notes.

    Raises:
        SummaryRejected: the text is no summary.
    """
    engine = material.thread.engine
    if isinstance(engine.summarizers[by], EmbeddedSummarizer):
        return _with_notes(material, draft, None, engine.text_within(material.asked))
    least = getattr(engine.summarizers[by], "min_tokens", None)
    if wrong := wrong_with(draft.text, request, min_tokens=least):
        raise _refused(by, draft, wrong)
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
        return replace(draft, text=text, segment=Segment(text=text, alone=True).to_json())
    tokens = material.size(draft.text)
    if wrong := problems(draft, (), tokens=tokens, replaced=material.replaced, limit=material.most):
        raise _refused(by, draft, wrong)
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
    engine, entries, history = material.thread.engine, material.entries, material.history
    archived, count = engine.archive is not None, engine.meter.text
    before = Notes(material.segments).segments
    given = answer if isinstance(answer, Answer) else None
    user = next((one.user for one in before if one.user is not None), None)
    segment = read_segment(
        entries, material.staying, given, user=user, tools=engine.tools, skills=engine.skills
    )
    if isinstance(answer, str):
        segment = replace(segment, text=answer, summary=True)
    elif material.foreign:
        segment = replace(segment, text="\n".join(material.foreign))
    segment = replace(
        segment, ahead=_ahead(material, entries), anew=anew and bool(given and given.found)
    )
    segments = material.segments
    if material.rewritten or not archived or (history.before and not history.chain):
        # The records before it may not be at hand when it is read again. A new summary takes the
        # place of the texts that stood alone, and is shown in their place.
        earlier = tuple(
            replace(
                one,
                alone=False,
                earlier=(),
                text="" if segment.summary and one.replaced else one.text,
            )
            for one in before
        )
        segment, segments = replace(segment, alone=True, earlier=earlier), ()
    notes = Notes([*segments, segment])
    most = min(material.most, max(material.replaced, FLOOR))
    for _ in range(TRIES):
        text = notes.render(room, count, archived=archived)
        over = material.size(body_of(text)) - most  # a message may count for more than its text
        if over <= 0:
            break
        room = max(1, min(room, count(text)) - over)
    return replace(draft, text=text, segment=notes.kept().to_json())


def _ahead(material: Material, entries: Sequence[Entry]) -> str:
    """Say which message of the user that stays came before the last one that leaves."""
    users = [one for one in material.staying[: material.ahead] if one.role == "user"]
    if not users or not entries:
        return ""
    begins = cut(one_line(users[-1].own), BEGINS)
    archived = material.thread.engine.archive is not None
    last = f"[{entries[-1].cite}]" if archived else "the last of these"
    return f'the message of the user that begins "{begins}" came before {last}'


async def approved(ask: Preview, material: Material, written: Written) -> Draft | None:
    """Return the draft as a person approved it, or None if it was refused.

    The person is asked in the caller's own thread and context, where a graph's interrupt works, and
    again until the text fits.
    """
    draft, limit, problem = written.draft, material.most, ""
    request = PreviewRequest(
        summary=draft.text,
        evict=len(material.keys),
        cause=material.plan.cause,
        limit=material.thread.engine.text_within(limit),
        by=draft.by,
        kept=written.stored,
    )
    for _ in range(MOST_ASKED):
        text = ask(replace(request, problem=problem))
        if text is None or text == draft.text:
            return draft if text is not None else None
        edited = body_of(text)
        tokens = material.size(edited)
        if edited and tokens <= limit:
            clean = await clean_summary(material, edited)
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


# What is told


async def tell(material: Material, event: str, **data: Any) -> None:
    """Call the user's `on_event`, without secrets; if it fails, log that and go on."""
    engine, scope = material.thread.engine, material.thread.scope
    words = {key: value for key, value in data.items() if isinstance(value, str)}
    clean = await engine.redacted(list(words.values()), material.redaction)
    data = {**data, **dict(zip(words, clean, strict=True))}
    call_listener(engine, event, {**data, "thread_id": scope.thread, "session": scope.session})


def call_listener(engine: Engine, event: str, data: dict[str, Any]) -> None:
    """Call the user's `on_event`; if it fails, log that and go on."""
    log("compaction_progress", "%s %s", event, data, level=10)
    try:
        if engine.on_event is not None:
            engine.on_event(event, data)
    except Exception:
        log("on_event_failed", "on_event failed at %r", event, exc_info=True)


def archive_failed(error: ArchiveError) -> str:
    """Return that the archive failed, and why; errors of a store begin with the former."""
    text = str(error)
    return text if text.startswith("The archive failed") else f"the archive failed: {text}"
