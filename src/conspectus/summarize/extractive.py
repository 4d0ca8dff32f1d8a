"""The embedded summariser: offline, deterministic, linear in the history, in any script.

It writes no sentence of its own. It picks, within its limit, pieces of the messages that a later
step will most likely need (`need.py` says how likely), and quotes them under headings, each with
the id of its message. A piece is worth what it says and the identifiers in it that neither a
picked piece nor a message in view has, for each token that it costs.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

from conspectus.ledger import identifiers
from conspectus.ledger.facts import is_rule, sentences
from conspectus.messages.framing import as_notes
from conspectus.summarize.base import SECTIONS, Summary, SummaryRequest
from conspectus.summarize.need import before, held, need, uses_of
from conspectus.summarize.snippets import SHORT, Snippet, snippets_of

POOL = 4_000
"""Pieces that compete: the best by their own worth, so that the picking stays linear."""

RULES_SHARE, GOAL_SHARE, TOLD_SHARE, DECISIONS_SHARE = 0.2, 0.1, 0.1, 0.1
"""The most of the limit that standing rules, the goal, what users say of themselves, and the latest
decisions may take."""

OPENING = 3
"""Sentences of the user's first message that say what it is all about."""

TALK = 2_000
"""Characters up to which a user's message is talk, and not a document."""

LATEST = 300
"""Messages from the end of the span in which the latest decisions are looked for."""

STANDING = 0.02
"""What a piece of the standing summary is worth for having been picked once before."""

LEAST = 8
"""Tokens in which no line can be written."""

JOINED = " · "
"""Between pieces of one message."""

CITED = 9
"""Characters that naming a message and starting a line costs, about."""

_HEADING = re.compile(r"^#{1,6}\s+(.*\S)")
_CITED = re.compile(r"\s*\[([^\[\]\s]{1,64})\]\s*$")
_OF_ONESELF = re.compile(
    r"\b(?:I|I'm|I've|I'd|my|mine|our|we|we're|us|mein\w*|unser\w*|ich|mi|mis|nuestr\w+|mon|ma|mes"
    r"|notre|nos|je)\b|我|咱|私|僕|俺|저는|제|나는|우리"
)
_WORD = re.compile(r"\w{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


class ExtractiveSummarizer:
    """The embedded summariser: no model, no network, the same summary for the same input.

    Example:
        >>> ExtractiveSummarizer().name
        'extractive'
    """

    @property
    def name(self) -> str:
        """What records and events call it."""
        return "extractive"

    @property
    def identity(self) -> str:
        """Changes when its summaries would."""
        return "extractive-2"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Pick what a later step needs most; never fails, never exceeds the limit."""
        return Summary(_write(request), tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """The same; it waits for nothing."""
        return self.summarize(request)


def _write(request: SummaryRequest) -> str:
    """The fixed lines first, then as many of the ranked pieces as fit, counted exactly."""
    gone = {" ".join(value.split()) for value in request.ledger.gone}
    fixed = _fitting(request, _goal(request, gone), GOAL_SHARE)
    fixed += _fitting(request, _rules(request), RULES_SHARE)
    fixed += _fitting(request, _told(request, gone), TOLD_SHARE, {s.text for s in fixed})
    fixed += _fitting(request, _decisions(request), DECISIONS_SHARE)
    ranked = _ranked(request, gone, fixed)
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high + 1) // 2
        if request.count(_render([*fixed, *ranked[:middle]])) <= request.limit:
            low = middle
        else:
            high = middle - 1
    chosen = [*fixed, *ranked[:low]]
    while chosen and request.count(_render(chosen)) > request.limit:
        chosen.pop()
    return _render(chosen) or _least(request)


def _least(request: SummaryRequest) -> str:
    """Something true in next to no room."""
    text = f"- {len(request.entries)} earlier messages"
    return text if request.count(text) <= request.limit else "-"


def _fitting(
    request: SummaryRequest, snippets: Iterator[Snippet], share: float, said: Container[str] = ()
) -> list[Snippet]:
    """As many as their share of the limit allows, the first first, less what is said already."""
    room: float = share * request.limit
    chosen: list[Snippet] = []
    for snippet in snippets:
        if room < LEAST:
            break
        if snippet.text in said:
            continue
        cost = request.count(_line([snippet]) + "\n")
        if cost <= room:
            room -= cost
            chosen.append(snippet)
    return chosen


def _goal(request: SummaryRequest, gone: set[str]) -> Iterator[Snippet]:
    """What the user asked for first, in a few sentences, and last, in one."""
    standing = [s for s in _standing(request.standing) if s.section == "Goal"]
    yield from standing[:OPENING]
    asked = [entry for entry in request.entries if entry.role == "user" and entry.own]
    first = [] if standing else asked[:1]
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


def _told(request: SummaryRequest, gone: set[str]) -> Iterator[Snippet]:
    """What users say of themselves and of what they need, and the ids they give, earliest first.

    Nobody else can say it again, so it does not compete with what tools have printed.
    """
    for snippet in _standing(request.standing):
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


def _rules(request: SummaryRequest) -> Iterator[Snippet]:
    """Standing rules from the ledger, word for word, and what the user has decided."""
    for fact in request.ledger.standing():
        section = "Decisions" if fact.kind == "decision" else "Standing rules"
        yield Snippet(as_notes(" ".join(fact.value.split())), section, fact.source, 0, 0.0)


def _decisions(request: SummaryRequest) -> Iterator[Snippet]:
    """What the agent has decided, and what it found to be the cause of something, latest first."""
    count = len(request.entries)
    for place in range(count - 1, max(-1, count - 1 - LATEST), -1):
        if request.entries[place].role == "assistant":
            for snippet in snippets_of(request.entries[place], place):
                if snippet.section == "Decisions":
                    yield replace(snippet, text=as_notes(snippet.text))
    yield from (s for s in _standing(request.standing) if s.section == "Decisions")


def _standing(text: str) -> Iterator[Snippet]:
    """The pieces of the summary so far, each with its section and its citation."""
    section = "Facts"
    for row in text.split("\n"):
        if heading := _HEADING.match(row):
            section = next((s for s in SECTIONS if s.lower() == heading[1].lower()), "Facts")
            continue
        line = row.strip().removeprefix("- ").strip()
        cited = _CITED.search(line)
        line = line[: cited.start()] if cited else line
        for piece in line.split(JOINED):
            if piece:
                yield Snippet(piece, section, cited[1] if cited else "", -1, STANDING, held(piece))


def _ranked(request: SummaryRequest, gone: set[str], fixed: Sequence[Snippet]) -> list[Snippet]:
    """Pieces in the order of new worth for each token, the best first.

    Worth only falls as others are picked, so a heap of stale values is enough: a piece that is
    still the best after its worth was counted anew is the next.
    """
    entries = request.entries
    size = before(entries, request.ledger) + len(entries) + len(request.kept)
    worth = need(uses_of(entries, request.ledger), size, request.kept)
    focus = set(_WORD.findall(request.focus.lower()))
    nothing: set[str] = set()

    def gain(piece: Snippet, covered: set[str]) -> float:
        new = sum(worth.get(value, 0.0) for value in piece.holds if value not in covered)
        return new + _own(piece, focus)

    def rough(piece: Snippet) -> float:
        return gain(piece, nothing) / (len(piece.text) + CITED)

    # Only the best are held: a long thread has millions of pieces.
    valued = ((rough(piece), -n, piece) for n, piece in enumerate(_pieces(request, gone)))
    best = heapq.nlargest(POOL, (one for one in valued if one[0] > 0))
    pieces = [piece for _, _, piece in best]
    covered = {value for piece in fixed for value in held(piece.text)}
    said = {piece.text for piece in fixed}
    cost = [_cost(piece.text, request.count) for piece in pieces]
    heap = [(-gain(piece, covered) / cost[n], n) for n, piece in enumerate(pieces)]
    heapq.heapify(heap)
    room, ranked = 1.3 * request.limit, list[Snippet]()
    while heap and room > 0:
        _, n = heapq.heappop(heap)
        piece = pieces[n]
        if piece.text in said:
            continue
        now = gain(piece, covered) / cost[n]
        if now <= 0:
            continue
        if heap and -now > heap[0][0] + 1e-12:
            heapq.heappush(heap, (-now, n))
            continue
        room -= cost[n]
        covered.update(piece.holds)
        said.add(piece.text)
        ranked.append(replace(piece, text=as_notes(piece.text)))
    return ranked


def _pieces(request: SummaryRequest, gone: set[str]) -> Iterator[Snippet]:
    """All pieces that compete: those of the standing summary, then those of the messages."""
    for snippet in _standing(request.standing):
        if snippet.section not in ("Goal", "Standing rules"):
            yield snippet
    for place, entry in enumerate(request.entries):
        stale = gone if entry.role in ("user", "system") else ()
        for snippet in snippets_of(entry, place):
            if not any(old in snippet.text or snippet.text in old for old in stale):
                yield snippet


def _own(piece: Snippet, focus: set[str]) -> float:
    """What a piece is worth for what it says, and for what the caller asked to keep."""
    if not focus:
        return piece.worth
    return piece.worth + 0.5 * len(focus.intersection(_WORD.findall(piece.text.lower())))


def _cost(text: str, count: Callable[[str], int]) -> float:
    """Tokens of a piece with its share of a line; counted four times over, as counters round."""
    return count("\n".join([text] * 4)) / 4 + 1.5


def _line(pieces: Sequence[Snippet]) -> str:
    text = JOINED.join(piece.text for piece in pieces).removeprefix("- ")
    return f"- {text} [{pieces[0].cite}]" if pieces[0].cite else f"- {text}"


def _render(snippets: Sequence[Snippet]) -> str:
    """Headings with lines; pieces of one message share a line."""
    parts = []
    for section in SECTIONS:
        lines: dict[str, list[Snippet]] = {}
        for snippet in sorted((s for s in snippets if s.section == section), key=lambda s: s.place):
            lines.setdefault(snippet.cite, []).append(snippet)
        if lines:
            parts.append("\n".join([f"## {section}", *(_line(line) for line in lines.values())]))
    return "\n".join(parts)
