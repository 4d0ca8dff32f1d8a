"""The embedded summariser: offline, deterministic, linear in the history, in any script.

It writes no sentence of its own. It picks, within its limit, lines of the messages that a later
step will most likely need, and quotes them under headings, each with the id of its message. What
an identifier is worth is what its uses say: the agent's own use of it counts most, then the
user's, then a tool's, and late uses more than early ones; a line is worth the identifiers that no
picked line has yet, for each token that it costs.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from conspectus.ledger import Fact, Ledger, identifiers
from conspectus.ledger.facts import is_decision, is_rule, sentences
from conspectus.messages import Entry
from conspectus.messages.framing import as_notes
from conspectus.summarize.base import Summary, SummaryRequest

SECTIONS = (
    "Goal",
    "Standing rules",
    "Done",
    "Pending",
    "Decisions",
    "Artifacts",
    "Facts",
    "Next",
)
"""Headings of a summary, in order; empty ones are left out."""

USE = {"assistant": 3.0, "user": 2.0, "system": 1.0, "tool": 1.0, "other": 1.0}
"""What one use of an identifier is worth, by who uses it: what the agent wrote, it writes again."""

PIECE = 110
"""Characters of a candidate line at most; longer lines are divided between words."""

SHORT = 16
"""Characters below which a line without an identifier says nothing by itself."""

POOL = 6_000
"""Candidates that compete: the best by their own worth, so that the picking stays linear."""

RULES_SHARE, GOAL_SHARE = 0.25, 0.1
"""The most of the limit that standing rules and the goal may take."""

STANDING = 2.0
"""What a line of the standing summary is worth beside a new one: it was picked once before."""

_DONE = re.compile(
    r"\b(?:done|finished|completed|fixed|passed|added|created|implemented|resolved|works now)\b"
    r"|完成|已经|修复|搞定|終わ|完了|완료|terminado|fertig|terminé",
    re.IGNORECASE,
)
_PENDING = re.compile(
    r"\b(?:todo|to do|pending|remaining|still (?:need|have|open)|left to|not yet|next(?: step)?|"
    r"open question|will need|later)\b|待办|还需|下一步|未完成|残り|次に|남은|다음"
    r"|pendiente|offen|reste",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,6}\s+(.*\S)")
_CITED = re.compile(r"\[([^\[\]\s]{1,64})\]\s*$")
_WORD = re.compile(r"[^\W\d_]{3,}|\d+(?:[.:]\d+)*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


@dataclass(slots=True)
class _Line:
    """A candidate: text, section, where it comes from, and what it holds."""

    text: str
    section: str
    cite: str
    place: int
    holds: tuple[str, ...]
    bonus: float
    cost: int = 0
    worth: float = field(default=0.0)

    def written(self) -> str:
        return f"- {self.text} [{self.cite}]" if self.cite else f"- {self.text}"


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
        return "extractive-1"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Pick the lines that a later step needs most; never fails, never exceeds the limit."""
        lines = list(_candidates(request))
        text = _write(request, lines)
        return Summary(text=text, read=tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """The same; it waits for nothing."""
        return self.summarize(request)


def _superseded(entries: Sequence[Entry], ledger: Ledger) -> set[str]:
    """Sentences of users that were rules once and are none in the ledger any more."""
    rules = {fact.value for fact in ledger.facts if fact.kind == "rule"}
    return {
        " ".join(sentence.split())
        for entry in entries
        if entry.role in ("user", "system")
        for sentence in sentences(entry.text)
        if is_rule(sentence) and sentence not in rules
    }


def _candidates(request: SummaryRequest) -> Iterator[_Line]:
    gone = _superseded(request.entries, request.ledger)
    yield from _standing_lines(request.standing)
    count = max(1, len(request.entries))
    for place, entry in enumerate(request.entries):
        late = 0.5 + 0.5 * (place + 1) / count
        for text in _pieces(entry):
            if entry.role in ("user", "system") and any(old in text for old in gone):
                continue
            holds = tuple(dict.fromkeys(value for _, value, _ in identifiers(text)))
            section, bonus = _section(entry, text)
            yield _Line(as_notes(text), section, entry.cite, place, holds, bonus, worth=late)


def _standing_lines(standing: str) -> Iterator[_Line]:
    """The lines of the summary so far, each under its heading, with its citation."""
    section = "Facts"
    for row in standing.split("\n"):
        if heading := _HEADING.match(row):
            section = next((s for s in SECTIONS if s.lower() == heading[1].lower()), "Facts")
            continue
        text = row.strip().removeprefix("- ").strip()
        if not text or section == "Standing rules":  # rules are written from the ledger
            continue
        cited = _CITED.search(text)
        cite = cited[1] if cited else ""
        text = text[: cited.start()].rstrip() if cited else text
        holds = tuple(dict.fromkeys(value for _, value, _ in identifiers(text)))
        yield _Line(text, section, cite, -1, holds, STANDING, worth=1.0)


def _pieces(entry: Entry) -> Iterator[str]:
    for raw in entry.reading.split("\n"):
        line = " ".join(raw.split())
        if len(line) < 4:
            continue
        if len(line) <= PIECE:
            yield line
            continue
        start = 0
        while start < len(line):
            end = min(len(line), start + PIECE)
            if end < len(line) and (space := line.rfind(" ", start + PIECE // 2, end)) > 0:
                end = space
            yield line[start:end].strip()
            start = end


def _section(entry: Entry, text: str) -> tuple[str, float]:
    """Where a line belongs, and what it is worth beside its identifiers."""
    if entry.role in ("assistant", "user") and len(text) >= SHORT:
        if is_decision(text):
            return "Decisions", 1.5
        if _PENDING.search(text):
            return "Pending", 0.6
        if entry.role == "assistant" and _DONE.search(text):
            return "Done", 0.6
        if entry.role == "user":
            return "Facts", 0.4
        return ("Artifacts", 0.0) if "/" in text else ("Facts", 0.0)
    return "Facts", 0.0


def _write(request: SummaryRequest, lines: Sequence[_Line]) -> str:
    count, room = request.count, request.limit
    chosen: list[_Line] = []
    room -= count("## Goal\n\n") if room > 40 else 0
    for line, share in (*_goal(request), *_rules(request)):
        line.cost = count(line.written() + "\n") + 1
        spent = sum(other.cost for other in chosen if other.section == line.section)
        if spent + line.cost <= share * request.limit and line.cost <= room:
            chosen.append(line)
            room -= line.cost
    worth = _worth(request.entries, lines, request.focus)
    seen = {line.text for line in chosen}
    for line in _picked([line for line in lines if line.text not in seen], worth, room, count):
        chosen.append(line)
    text = _render(chosen)
    while chosen and count(text) > request.limit:
        chosen.pop()
        text = _render(chosen)
    return text or _least(request)


def _least(request: SummaryRequest) -> str:
    """Something true in next to no room."""
    text = f"- {len(request.entries)} earlier messages"
    return text if request.count(text) <= request.limit else "-"


def _goal(request: SummaryRequest) -> Iterator[tuple[_Line, float]]:
    """What the user asked for first and last."""
    standing = [line for line in _standing_lines(request.standing) if line.section == "Goal"]
    gone = _superseded(request.entries, request.ledger)
    asked = [entry for entry in request.entries if entry.role == "user" and entry.text]
    for line in standing[:1]:
        yield line, GOAL_SHARE
    first = [] if standing else asked[:1]
    for entry in first + [e for e in asked[-1:] if e not in first]:
        says = (s for s in sentences(entry.text) if _says_something(s))
        opening = next((s for s in says if " ".join(s.split()) not in gone), "")
        if not opening:
            continue
        text = as_notes(" ".join(opening.split())[: PIECE * 2])
        yield _Line(text, "Goal", entry.cite, 0, (), 0.0), GOAL_SHARE


def _says_something(sentence: str) -> bool:
    """Not a tag, a greeting, or a heading."""
    return len(sentence) >= SHORT or (len(sentence) >= SHORT // 4 and not sentence.isascii())


def _rules(request: SummaryRequest) -> Iterator[tuple[_Line, float]]:
    for fact in request.ledger.standing():
        section = "Standing rules" if fact.kind == "rule" else "Decisions"
        text = as_notes(" ".join(fact.value.split()))
        yield _Line(text, section, fact.source, 0, _holds(fact), 0.0), RULES_SHARE


def _holds(fact: Fact) -> tuple[str, ...]:
    return tuple(value for _, value, _ in identifiers(fact.value))


def _worth(entries: Sequence[Entry], lines: Sequence[_Line], focus: str) -> dict[str, float]:
    """What each identifier and, much less, each word is worth."""
    weight: dict[str, float] = defaultdict(float)
    for line in lines:
        role = entries[line.place].role if line.place >= 0 else "assistant"
        for value in line.holds:
            weight[value] += USE[role] * line.worth
    worth = {value: math.log1p(w) - 0.5 for value, w in weight.items() if math.log1p(w) > 0.6}
    for word in _WORD.findall(focus.lower()):
        worth[f"word:{word}"] = 1.5
    return worth


def _picked(
    lines: Sequence[_Line],
    worth: dict[str, float],
    room: int,
    count: Callable[[str], int],
) -> Iterator[_Line]:
    """Greedy by new worth for each token; a line's worth only falls, so a heap is enough."""
    focus = {key[5:] for key in worth if key.startswith("word:")}

    def gain(line: _Line, covered: set[str]) -> float:
        new = sum(worth.get(value, 0.0) for value in line.holds if value not in covered)
        hit = sum(1.5 for word in focus if word in line.text.lower()) if focus else 0.0
        return new + hit + line.bonus * line.worth

    rough = [(gain(line, set()) / (len(line.text) + 12), n) for n, line in enumerate(lines)]
    pool = [n for g, n in heapq.nlargest(POOL, rough) if g > 0]
    covered: set[str] = set()
    said: set[str] = set()
    heap: list[tuple[float, int]] = []
    for n in pool:
        lines[n].cost = count(lines[n].written() + "\n") + 1
        heap.append((-gain(lines[n], covered) / lines[n].cost, n))
    heapq.heapify(heap)
    while heap and room > 6:
        _, n = heapq.heappop(heap)
        line = lines[n]
        if line.cost > room or line.text in said:
            continue
        now = gain(line, covered) / line.cost
        if now <= 0:
            continue
        if heap and -now > heap[0][0] + 1e-12:
            heapq.heappush(heap, (-now, n))
            continue
        room -= line.cost
        covered.update(line.holds)
        said.add(line.text)
        yield line


def _render(lines: Sequence[_Line]) -> str:
    parts = []
    for section in SECTIONS:
        rows = sorted((ln for ln in lines if ln.section == section), key=lambda ln: ln.place)
        if rows:
            parts.append("\n".join([f"## {section}", *(line.written() for line in rows)]))
    return "\n".join(parts)
