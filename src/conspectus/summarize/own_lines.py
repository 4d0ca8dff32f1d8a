"""What has a place of its own in a summary: the goal, standing rules, what users say of themselves,
decisions, open work. It does not compete for room, and each kind has at most a share of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from conspectus.ledger import identifiers
from conspectus.ledger.facts import is_rule, sentences
from conspectus.messages.framing import as_notes
from conspectus.summarize.base import SECTIONS, SummaryRequest
from conspectus.summarize.need import held
from conspectus.summarize.snippets import SHORT, Snippet, snippets_of

OPENING = 3
"""Sentences of the user's first message that say what it is all about."""

TALK = 2_000
"""Characters up to which a user's message is talk, and not a document."""

LATEST = 300
"""Messages from the end of the span in which the latest decisions are looked for."""

STANDING = 0.02
"""What a piece of the standing summary is worth for having been picked once before."""

JOINED = " · "
"""Between pieces of one message."""

_HEADING = re.compile(r"^#{1,6}\s+(.*\S)")
_CITED = re.compile(r"\[([^\[\]\s]{1,64})\]$")
_OF_ONESELF = re.compile(
    r"\b(?:I|I'm|I've|I'd|my|mine|our|we|we're|us|mein\w*|unser\w*|ich|mi|mis|nuestr\w+|mon|ma|mes"
    r"|notre|nos|je)\b|我|咱|私|僕|俺|저는|제|나는|우리"
)


def goal(request: SummaryRequest, gone: set[str]) -> Iterator[Snippet]:
    """What the user asked for first, in a few sentences, and last, in one."""
    kept = [s for s in standing(request.standing) if s.section == "Goal"]
    yield from kept[:OPENING]
    asked = [entry for entry in request.entries if entry.role == "user" and entry.own]
    first = [] if kept else asked[:1]
    for entry in first + [e for e in asked[-1:] if e not in first]:
        told = 0
        for sentence in sentences(entry.own):
            text = " ".join(sentence.split())
            least = SHORT // 4 if entry in first or not text.isascii() else 2 * SHORT
            if len(text) < least or text in gone or text.startswith("<") or is_rule(text):
                continue
            yield Snippet(as_notes(text[:300]), "Goal", entry.cite, 0, 0.0)
            told += 1
            if told == (OPENING if entry in first else 1):
                break


def told(request: SummaryRequest, gone: set[str]) -> Iterator[Snippet]:
    """What users say of themselves and of what they need, and the ids they give, earliest first.

    Nobody else can say it again, so it does not compete with what tools have printed.
    """
    for snippet in standing(request.standing):
        if snippet.section == "Facts" and _OF_ONESELF.search(snippet.text):
            yield snippet
    for place, entry in enumerate(request.entries):
        if entry.role == "user" and len(entry.own) <= TALK:
            for sentence in sentences(entry.own):
                text = " ".join(sentence.split())
                tells = _OF_ONESELF.search(text) is not None or any(
                    kind in ("id", "number", "url") for kind, _, _ in identifiers(text)
                )
                if tells and text not in gone and not text.endswith(("?", "？")):
                    yield Snippet(as_notes(text[:300]), "Facts", entry.cite, place, 0.0)


def rules(request: SummaryRequest) -> Iterator[Snippet]:
    """Standing rules from the ledger, word for word, and what the user has decided."""
    for fact in request.ledger.standing():
        section = "Decisions" if fact.kind == "decision" else "Standing rules"
        yield Snippet(as_notes(" ".join(fact.value.split())), section, fact.source, 0, 0.0)


def decisions(request: SummaryRequest) -> Iterator[Snippet]:
    """What the agent has decided, and what it found to be the cause of something, latest first."""
    count = len(request.entries)
    for place in range(count - 1, max(-1, count - 1 - LATEST), -1):
        if request.entries[place].role == "assistant":
            for snippet in snippets_of(request.entries[place], place):
                if snippet.section == "Decisions":
                    yield replace(snippet, text=as_notes(snippet.text))
    yield from (s for s in standing(request.standing) if s.section == "Decisions")


def skills(request: SummaryRequest) -> Iterator[Snippet]:
    """References to the skill files that the agent has read, latest first."""
    for fact in request.ledger.skills():
        yield Snippet(as_notes(fact.shown), "Artifacts", fact.source, 0, 0.0)


def open_work(request: SummaryRequest) -> Iterator[Snippet]:
    """Work that was asked for and is not done, latest first."""
    for fact in reversed(request.ledger.open_work()):
        if fact.kind != "delegation":
            yield Snippet(as_notes(fact.shown), "Pending", fact.source, 0, 0.0)


def delegated(request: SummaryRequest) -> Iterator[Snippet]:
    """Work that was handed to other agents, with what came back, latest first."""
    for fact in request.ledger.delegations():
        section = "Done" if fact.state == "done" else "Pending"
        yield Snippet(as_notes(fact.shown), section, fact.source, 0, 0.0)


def standing(text: str) -> Iterator[Snippet]:
    """The pieces of the summary so far, each with its section and its citation."""
    section = "Facts"
    for row in text.split("\n"):
        if heading := _HEADING.match(row):
            section = next((s for s in SECTIONS if s.lower() == heading[1].lower()), "Facts")
            continue
        line = row.strip().removeprefix("- ").strip()
        cited = _CITED.search(line)
        line = line[: cited.start()].rstrip() if cited else line
        for piece in line.split(JOINED):
            if piece:
                yield Snippet(piece, section, cited[1] if cited else "", -1, STANDING, held(piece))
