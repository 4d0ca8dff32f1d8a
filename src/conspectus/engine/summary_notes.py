"""What a summariser is asked for, and how its answer becomes the notes of a record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from conspectus.core.policy import EMBEDDED, SLACK
from conspectus.core.records import Draft
from conspectus.engine.leaving import Leaving
from conspectus.errors import SummaryRejected
from conspectus.messages import Message
from conspectus.messages.framing import framed_body
from conspectus.messages.harmless import as_notes
from conspectus.messages.users import is_by_user
from conspectus.model.answers import answer_of
from conspectus.model.base import SummaryRequest
from conspectus.model.gate import reason_not_a_summary
from conspectus.model.sentences import repeats_itself, shortened
from conspectus.notes.cutting import cut, one_line, section
from conspectus.notes.data import Answer, Notes
from conspectus.notes.extraction import extract_notes
from conspectus.notes.rendering import NotesRenderer
from conspectus.rules import rule_id

# What is asked for

LARGEST_ANSWER = 4_096
"""The most tokens that a model is asked for."""

CONTEXT = 2_000
"""Tokens of earlier notes that a model is shown, in addition to findings that it rewrites."""

BRIEF_CONTEXT = 300
"""A shorter context, used if the messages then need fewer requests. If the findings are rewritten,
it leaves out the user's words."""

RULES_SHOWN = 400
"""Tokens of standing rules that a model is shown."""

CITATION_FACTOR = 1.25
"""Findings with their citations take so many times the tokens of their text."""

MOST_ASKED_SHARE = 0.42
"""The most of the notes' room that a model is asked for."""

LEAST_ASKED_SHARE = 0.15
"""The least of the notes' room that a model is asked for."""

OUTGROWN_SHARE = 0.4
"""If the findings take more than this share of the notes' room, they are rewritten."""

# What is quoted

IN_VIEW = "Said by the user, and still in view"
"""The heading above the user's message that stays although later messages leave."""

IN_VIEW_CHARACTERS = 3_000
"""The most characters of that message that are quoted."""

NAMED_BY_CHARACTERS = 60
"""The most characters by which the notes name a message below them."""

# How the notes are made to fit

SHORTER_BY = 16
"""A summary that is too long loses at least one part in so many at a time."""

GROWTH_FOR_RULES = 1.25
"""Factor by which the room grows at a time where rules of the user have none."""

RENDERINGS = 5
"""How often notes are rendered again, shorter, if their message is too long."""

HEADINGS = 24
"""Tokens of the headings around a text that is the whole notes."""

_CITED = re.compile(r"(?<![ \t])[ \t]*\[([^\[\]\n]{1,200})\]")


# The request


def request_for(leaving: Leaving, by: str) -> SummaryRequest:
    """Make the request for the summariser of this name."""
    engine = leaving.engine
    count = engine.meter.count_text
    foreign = "\n".join(leaving.texts.foreign_summaries)
    # A longer text is read in parts, with the messages.
    foreign_fits = count(foreign) <= CONTEXT
    entries = leaving.evicted_messages if foreign_fits else leaving.leaving_messages
    limit = leaving.room_for_text(leaving.room.target)
    traits = engine.traits_of(by)
    request = SummaryRequest(
        entries=entries,
        summary_so_far=leaving.previous_summary,
        limit=limit,
        count=count,
        form="whole",
        focus=leaving.texts.focus,
        kept=leaving.kept_messages,
        kept_before_last_evicted=leaving.kept_before_last_evicted,
        accepted_up_to=leaving.room_for_text(leaving.room.soft),
        archived=leaving.view.history.store.keeps_originals,
        tokens=sum(map(engine.meter.count_entry, entries)),
        rules=_standing_rules(leaving, min(limit, RULES_SHOWN)),
        check_summaries=engine.settings.check_summaries and traits.check_summaries,
    )
    if engine.settings.notes:
        shown_foreign = foreign if foreign_fits else ""
        if traits.form == "whole":
            request = _asking_for_text(leaving, request, shown_foreign)
        else:
            request = _asking_for_findings(leaving, request, shown_foreign)
    return request.within(traits.answer_limit)


def _standing_rules(leaving: Leaving, room: int) -> tuple[str, ...]:
    """Return what the user has laid down, and stands in the notes: the newest in so many tokens."""
    engine = leaving.engine
    so_far = replace(
        leaving.texts.notes, rules=engine.program_rules, removed_rules=leaving.removed_rules
    )
    rules = [*NotesRenderer([so_far]).rules, *(rule for _, rule in _rules_that_leave(leaving))]
    shown: list[str] = []
    for rule in reversed(dict.fromkeys(rules)):
        room -= engine.meter.count_text(rule)
        if room < 0:
            break
        shown.append(rule)
    return tuple(reversed(shown))


def _rules_that_leave(leaving: Leaving) -> list[tuple[str, str]]:
    """Return the rules in the messages that leave, each with the id of its message."""
    return [
        (message.cite, rule)
        for message in leaving.evicted_messages
        if is_by_user(message)
        for rule in leaving.engine.find_rules(message.own.strip())
        if rule_id(rule) not in leaving.removed_rules
    ]


def _asking_for_text(leaving: Leaving, request: SummaryRequest, foreign: str) -> SummaryRequest:
    """Ask for a text that replaces the last one; the model sees the last one."""
    last_text = "\n".join(filter(None, (NotesRenderer([leaving.texts.notes]).summary, foreign)))
    # A text that is too long for the request is read with the messages.
    is_shown = request.count(last_text) <= max(request.limit, CONTEXT)
    asked = _within_asked_share(request.limit)
    return replace(request, limit=asked, summary_so_far=last_text if is_shown else "")


def _asking_for_findings(leaving: Leaving, request: SummaryRequest, foreign: str) -> SummaryRequest:
    """Ask for findings in addition to those in the notes, or for all anew if there are many."""
    count = request.count
    earlier = NotesRenderer([leaving.texts.notes])
    findings_size = sum(count(line.text) for line in earlier.findings)
    rewrites_findings = findings_size > request.limit * OUTGROWN_SHARE
    asked = _within_asked_share(request.limit)
    if not rewrites_findings:
        least = max(asked - findings_size, int(request.limit * LEAST_ASKED_SHARE), 1)
        asked = min(asked, least)

    def context_of(text: str) -> str:
        return "\n".join(filter(None, (text, *_users_message_in_view(leaving), foreign)))

    # The user's words take up to half of the room, so twice their size has room for all findings.
    summary_so_far = earlier.render(CONTEXT + 2 * findings_size, count, calls=False)
    if rewrites_findings:
        room_of_findings = BRIEF_CONTEXT + int(findings_size * CITATION_FACTOR)
        brief_summary = earlier.render(room_of_findings, count, calls=False, words=False)
    else:
        brief_summary = earlier.render(BRIEF_CONTEXT + 2 * findings_size, count, calls=False)
    return replace(
        request,
        limit=asked,
        summary_so_far=context_of(summary_so_far),
        brief_summary=context_of(brief_summary),
        form="findings",
        rewrites_findings=rewrites_findings,
    )


def _within_asked_share(limit: int) -> int:
    """Return the most tokens to ask a model for, if the notes have room for so many."""
    return max(1, min(int(limit * MOST_ASKED_SHARE), LARGEST_ANSWER))


def _users_message_in_view(leaving: Leaving) -> list[str]:
    """Quote the user's message that stays although later ones leave."""
    words = _kept_words_of_user(leaving)
    if words is None:
        return section(IN_VIEW, [])
    quoted = cut(as_notes(words.own), IN_VIEW_CHARACTERS)
    return section(IN_VIEW, [f"{quoted} [{words.cite}]"])


# What is made of the answer


def rejection(draft: Draft, reasons: Sequence[str]) -> SummaryRejected:
    """Return the error of a text that cannot be used."""
    return SummaryRejected(f"the summary by {draft.by} was rejected: {'; '.join(reasons)}")


def rejection_reasons(
    draft: Draft, entries: Sequence[Message], *, tokens: int, replaced: int, limit: int
) -> list[str]:
    """Say why a draft cannot be used, one sentence for each reason; empty if it can.

    All of `entries` must have been read. `tokens` is the size of the message, `replaced` the most
    tokens by what it replaces, `limit` the most by the room for it.
    """
    if not draft.body.strip():
        return ["it is empty"]
    reasons: list[str] = []
    unread = {entry.key for entry in entries} - set(draft.read)
    if unread:
        reasons.append(f"{len(unread)} of {len(entries)} messages were not read")
    if tokens > limit:
        allowed = f"{limit:,} (by max_summary_tokens or the window) are allowed"
        reasons.append(f"it takes {tokens:,} tokens and {allowed}")
    if tokens > replaced:
        reasons.append(f"it takes {tokens:,} tokens and what it replaces only {replaced:,}")
    return reasons


def merge_answer(
    leaving: Leaving, draft: Draft, request: SummaryRequest, *, checked: bool = False
) -> Draft:
    """Return a draft of the notes with what a summariser has written, cut to its room.

    Without an archive, citations are removed, because they would lead nowhere. A text that was
    `checked` by its summariser is not read again.

    Raises:
        SummaryRejected: the answer is no summary, or is too long.
    """
    engine = leaving.engine
    reason = "" if checked else reason_not_a_summary(draft.body, request)
    if reason:
        raise rejection(draft, (reason,))
    draft = _cut_to_fit(leaving, draft)
    text = framed_body(draft.body)
    if not leaving.view.history.store.keeps_originals and request.form == "whole":
        text = _without_citations(text, request)
    if not engine.settings.notes:
        notes = Notes(text=text, edited=True, rules_left_out=_rules_not_in(text, leaving))
        return replace(draft, body=text, notes=notes.to_json())
    # The text alone must fit. With the notes it is checked once more, by `check_draft`.
    size = leaving.summary_size(draft.body)
    replaced = leaving.most_by(draft.by)
    reasons = rejection_reasons(draft, (), tokens=size, replaced=replaced, limit=leaving.room.hard)
    if reasons:
        raise rejection(draft, reasons)
    # A text above the target may use the room that the lines would have had, up to `room.roomy`.
    room_of_text = engine.meter.count_text(text) + HEADINGS
    room_of_text = min(leaving.room_for_text(leaving.room.roomy), room_of_text)
    room = max(1, leaving.room_for_text(leaving.room.target), room_of_text)
    if request.form == "whole":
        return add_notes(leaving, draft, room, text=text)
    answer = answer_of(draft.body, request)
    return add_notes(
        leaving, draft, room, answer=answer, rewrites_findings=request.rewrites_findings
    )


def _rules_not_in(text: str, leaving: Leaving) -> tuple[tuple[str, str], ...]:
    """Return the rules that leave and do not stand in a text that alone is the summary."""
    stated = [("", rule) for rule in leaving.engine.program_rules]
    stated += _rules_that_leave(leaving)
    words = " ".join(text.split())
    return tuple(pair for pair in stated if " ".join(pair[1].split()) not in words)


def notes_without_model(leaving: Leaving) -> Draft:
    """Make notes of the messages alone, without a model."""
    draft = Draft(body="", by=EMBEDDED, read=leaving.leaving_keys)
    return add_notes(leaving, draft, leaving.room_for_text(leaving.room.target))


def _without_citations(text: str, request: SummaryRequest) -> str:
    """Remove ids of messages, which lead nowhere without an archive."""
    cites = {entry.cite for entry in request.entries}

    def kept(match: re.Match[str]) -> str:
        cited = {cite.strip() for cite in match[1].split(",")}
        return "" if cited <= cites else match[0]

    return _CITED.sub(kept, text)


def _cut_to_fit(leaving: Leaving, draft: Draft) -> Draft:
    """Cut a text that is too long after the last sentence that fits.

    Raises:
        SummaryRejected: it repeats itself without an end.
    """
    count = leaving.engine.meter.count_text
    limit = leaving.room.hard
    text = draft.body
    if leaving.summary_size(text) > limit and repeats_itself(text):
        raise rejection(draft, ("it is too long, and says the same over and over",))
    room = limit - leaving.engine.empty_summary_tokens - SLACK
    while (excess := leaving.summary_size(text) - limit) > 0 and room > 0:
        text = shortened(draft.body, room, count)
        room -= excess  # a message may count more than its parts
    if text == draft.body:
        return draft
    return replace(draft, body=text, cut=draft.cut + count(draft.body) - count(text))


def add_notes(
    leaving: Leaving,
    draft: Draft,
    room: int,
    *,
    text: str = "",
    answer: Answer | None = None,
    rewrites_findings: bool = False,
) -> Draft:
    """Return a draft with the notes that the next record holds, as data and as text.

    Args:
        leaving: what the notes are about.
        draft: who has written, and what it cost.
        room: tokens of the text of the notes.
        text: what a summariser has written as one text.
        answer: what it has written as findings.
        rewrites_findings: these take the place of all earlier ones.
    """
    engine = leaving.engine
    added = extract_notes(
        leaving.evicted_messages,
        leaving.kept_messages,
        answer,
        before=leaving.texts.notes,
        kept_between=leaving.kept_between,
        tools=engine.tools,
        skills=engine.settings.skills,
        find_rules=engine.find_rules,
    )
    added = replace(
        added,
        rules=engine.program_rules,
        removed_rules=leaving.removed_rules,
        summary=text,
        text="" if text else "\n".join(leaving.texts.foreign_summaries),
        rewrites_findings=rewrites_findings and bool(answer and answer.found),
        below=_what_is_below(leaving, added),
        how_to_recall=engine.caller_format.how_to_recall
        if leaving.view.history.store.keeps_originals
        else "",
    )
    renderer = NotesRenderer([leaving.texts.notes, added])
    limit = min(leaving.room.hard, leaving.most_by(draft.by))
    rendered = _rendered_within(leaving, renderer, room, limit)
    largest = leaving.room_for_text(min(leaving.room.soft, limit))
    # Rules may take of the room that is kept free.
    while renderer.rules_left_out and room < largest:
        room = min(largest, int(room * GROWTH_FOR_RULES) + 1)
        rendered = _rendered_within(leaving, renderer, room, limit)
    return replace(draft, body=rendered, notes=renderer.recorded().to_json())


def _rendered_within(leaving: Leaving, renderer: NotesRenderer, room: int, limit: int) -> str:
    """Render notes in `room` tokens of text, or in fewer until their message fits its limit."""
    meter = leaving.engine.meter
    archived = leaving.view.history.store.keeps_originals
    text = ""
    for _ in range(RENDERINGS):
        text = renderer.render(room, meter.count_text, archived=archived)
        # A message may count more than its text.
        excess = leaving.summary_size(framed_body(text)) - limit
        if excess <= 0:
            break
        if meter.counts_lists:  # which may count in steps
            excess = max(excess, room // SHORTER_BY)
        room = max(1, min(room, meter.count_text(text)) - excess)
    return text


def shorten_draft(leaving: Leaving, draft: Draft, limit: int) -> Draft:
    """Return a finished draft whose message takes at most `limit` tokens, if that is possible.

    No summariser is asked: its notes are rendered again, or its text is cut after a sentence.
    """
    count = leaving.engine.meter.count_text
    archived = leaving.view.history.store.keeps_originals
    notes = Notes.from_json(draft.notes)
    renderer = NotesRenderer([notes]) if notes.lines else None
    room = count(draft.body)
    for _ in range(RENDERINGS):
        excess = leaving.summary_size(draft.body) - limit
        if excess <= 0 or room <= 1:
            break
        room = max(1, room - max(excess, room // SHORTER_BY))
        if renderer is not None:
            body = framed_body(renderer.render(room, count, archived=archived))
            shown = replace(notes, rules_left_out=renderer.rules_left_out)
            draft = replace(draft, body=body, notes=shown.to_json())
            continue
        text = shortened(draft.body, room, count)
        if not text.strip():
            break
        cut_tokens = draft.cut + count(draft.body) - count(text)
        notes_of_text = Notes(text=text, edited=True).to_json()
        draft = replace(draft, body=text, notes=notes_of_text, cut=cut_tokens)
    return replace(draft, tokens=leaving.summary_size(draft.body))


def _what_is_below(leaving: Leaving, added: Notes) -> str:
    """Say what is below the notes although it came before the last evicted message.

    This is the user's last message, and calls without a result. Empty if there is none.
    """
    if not leaving.leaving_messages:
        return ""
    names: list[str] = []
    keys: list[str] = []
    words = _kept_words_of_user(leaving)
    if words is not None:
        keys.append(words.key)
        quoted = cut(one_line(words.own), NAMED_BY_CHARACTERS)
        names.append(f'the message of the user "{quoted}"')
    answered = {call for message in leaving.kept_messages for call in message.answers}
    for message in leaving.kept_messages[: leaving.kept_before_last_evicted]:
        for call in message.calls:
            if call.id not in answered:
                keys.append(message.key)
                name = cut(one_line(call.name), NAMED_BY_CHARACTERS)
                names.append(f"the call of {name} without a result")
    if not names:
        return ""
    are_below = "is below, although it" if len(names) == 1 else "are below, although they"
    last = leaving.leaving_messages[-1].cite
    followed_by = (kept.followed_by for kept in added.kept_places if kept.key in keys)
    first = next(followed_by, last)
    noted = f"[{last}]" if first == last else f"[{first}] to [{last}]"
    if not leaving.view.history.store.keeps_originals:
        noted = "the last messages"
    return f"{' and '.join(names)} {are_below} came before {noted} above"


def _kept_words_of_user(leaving: Leaving) -> Message | None:
    """Return the user's last message that stays and came before the last evicted one."""
    before = leaving.kept_messages[: leaving.kept_before_last_evicted]
    return next((message for message in reversed(before) if is_by_user(message)), None)
