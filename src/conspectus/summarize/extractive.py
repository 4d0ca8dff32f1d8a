"""The embedded summariser: offline, deterministic, linear in the history, in any script.

It writes no sentence of its own. It picks, within its limit, pieces of the messages that a later
step will most likely need (`need.py` says how likely), and quotes them under headings, each with
the id of its message. A piece is worth what it says and the identifiers in it that neither a
picked piece nor a message in view has, for each token that it costs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from conspectus.summarize import own_lines
from conspectus.summarize.base import SECTIONS, Summary, SummaryRequest
from conspectus.summarize.need import need
from conspectus.summarize.own_lines import JOINED
from conspectus.summarize.picking import Worth, ranked
from conspectus.summarize.snippets import Snippet

GOAL_SHARE, TOLD_SHARE, DECISIONS_SHARE, OPEN_SHARE = 0.06, 0.1, 0.04, 0.04
SKILLS_SHARE = 0.1
DELEGATED_SHARE = 0.3
"""The most of the limit that the goal, what users say of themselves, decisions, open work, and work
handed to other agents may take."""

ALL_RULES_SHARE, RULES_SHARE = 0.22, 0.12
"""The same of standing rules: all of them where they take no more than the first; else the most
important, up to the second, as the rest is in the ledger and one recall away."""

LEAST = 8
"""Tokens in which no line can be written."""

FILLING = 40
"""Pieces tried, after those that fit in order, to use up what room is left."""


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
        return "extractive-4"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Pick what a later step needs most; never fails, never exceeds the limit."""
        return Summary(_write(request), tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """The same; it waits for nothing."""
        return self.summarize(request)


def _write(request: SummaryRequest) -> str:
    """What has a place of its own first, then as many of the ranked pieces as fit."""
    gone = {" ".join(value.split()) for value in request.ledger.gone}
    worth = Worth(need(request.entries, request.ledger, request.kept), request.focus)
    decided = sorted(
        own_lines.decisions(request), key=lambda s: worth.of(s) / len(s.text), reverse=True
    )
    rules = list(own_lines.rules(request))
    whole = _fitting(request, rules, ALL_RULES_SHARE, ())
    fixed: list[Snippet] = []
    for snippets, share in (
        (own_lines.goal(request, gone), GOAL_SHARE),
        (rules, ALL_RULES_SHARE if len(whole) == len(rules) else RULES_SHARE),
        (own_lines.told(request, gone), TOLD_SHARE),
        (decided, DECISIONS_SHARE),
        (own_lines.skills(request), SKILLS_SHARE),
        (own_lines.open_work(request), OPEN_SHARE),
        (own_lines.delegated(request), DELEGATED_SHARE),
    ):
        fixed += _fitting(request, snippets, share, {piece.text for piece in fixed})
    pieces = ranked(request, worth, gone, fixed)

    def fits(chosen: Sequence[Snippet]) -> bool:
        return request.count(_render(chosen)) <= request.limit

    low, high = 0, len(pieces)
    while low < high:
        middle = (low + high + 1) // 2
        if fits([*fixed, *pieces[:middle]]):
            low = middle
        else:
            high = middle - 1
    chosen = [*fixed, *pieces[:low]]
    while chosen and not fits(chosen):
        chosen.pop()
    for piece in pieces[low + 1 : low + 1 + FILLING]:
        if fits([*chosen, piece]):
            chosen.append(piece)
    return _render(chosen) or _least(request)


def _least(request: SummaryRequest) -> str:
    """Something true in next to no room."""
    text = f"- {len(request.entries)} earlier messages"
    return text if request.count(text) <= request.limit else "-"


def _fitting(
    request: SummaryRequest, snippets: Iterable[Snippet], share: float, said: Container[str]
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
