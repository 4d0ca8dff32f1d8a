"""Part 3 of the notes without a model: the agent's own conclusions, in order.

What it told the user, and the last sentences of a train of thought that led to an act. Questions,
guesses and plans are left out: a later step has settled them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from conspectus.ledger.pieces import pieces
from conspectus.messages import Entry
from conspectus.messages.framing import as_notes
from conspectus.summarize.compacting import cut, one_line, parsed
from conspectus.summarize.journal import thoughts

TOLD, THOUGHT = 420, 240
"""Characters at scale 1 of what was told to the user, and of a thought that led to an act."""

THOUGHT_OF = "thought: "
"""Begins a line that nobody was told, by which a condensation knows it."""

ROOMIEST = 1.25
"""The largest scale."""

LEAST = 24
"""Characters below which a sentence concludes nothing."""

_FENCE = re.compile(r"^(?:```|~~~).*?(?:^(?:```|~~~)\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^\W*(?:THOUGHT|Thought|Reasoning|Analysis|DISCUSSION|思考)\W*[:：]\s*")
_PLANS = re.compile(
    r"^\W*(?:(?:so|now|next|first|then|okay|ok|alright|also|therefore|but|and|yes|no)[, ]+)*"
    r"(?:i(?:'ll| will| should| need| want|'m going| am going| must| could| would|'d"
    r"| can (?:now |also )?(?:use|try|run|check|see)) |i (?:now )?(?:verify|check|run|create|read) "
    r"|let me|let's|let us|maybe|perhaps|wait\b|hmm|what if|i wonder|possibly|to (?:proceed|do)\b"
    r"|(?:create|run|read|modify|remove|update|add|step \d)\b)"
    r"|^(?:我(?:将|会|需要|应该|来|先)|让我|接下来|也许|可能)|(?:みましょう|してみます|します。?)$",
    re.IGNORECASE,
)


def conclusions(entries: Sequence[Entry], scale: float) -> list[tuple[str, str]]:
    """Return conclusions, each with the message that it stands in; equal ones once, counted.

    Args:
        entries: the messages that leave.
        scale: how roomy they are.
    """
    found: dict[str, list[str]] = {}
    thought = dict[str, list[str]]()
    for text, cite in thoughts(entries):
        thought.setdefault(cite, []).append(text)
    for entry in entries:
        if entry.role != "assistant":
            continue
        told = not entry.calls
        text = "\n".join([_said(entry.own), *thought.pop(entry.cite, ())])
        said = _concluded(text, int((TOLD if told else THOUGHT) * min(scale, ROOMIEST)), told)
        if said:
            mark = "" if told else THOUGHT_OF
            found.setdefault(mark + said, []).append(entry.cite)
    return [
        (f"{said} ({len(cites)} times)" if len(cites) > 1 else said, cites[0])
        for said, cites in found.items()
    ]


def plan_of(entry: Entry) -> str:
    """Return what the agent said last that it would do, or nothing."""
    said = list(_sentences(_said(entry.own)))
    last = next((one for one in reversed(said) if _PLANS.match(one) and len(one) >= LEAST), "")
    return cut(one_line(as_notes(last)), THOUGHT)


def _sentences(text: str) -> list[str]:
    text = _LABEL.sub("", _FENCE.sub("\n", text).strip())
    return [one_line(text[start:end]) for start, end, own in pieces(text) if own]


def _said(text: str) -> str:
    """The words of a reply; of one that is a record, its field of text."""
    data = parsed(text)
    if not isinstance(data, Mapping):
        return text
    words = (data.get(key) for key in ("content", "text", "message", "answer"))
    return next((one for one in words if isinstance(one, str)), "")


def _concluded(text: str, room: int, told: bool) -> str:
    """The sentences that conclude: how a reply begins and ends, of a thought how it ends."""
    said = [one for one in _sentences(text) if len(one) >= (1 if told else LEAST)]
    said = [one for one in said if not one.endswith(("?", "？"))]
    if not told:
        said = [one for one in said if not _PLANS.match(one)]
    while said and said[-1].endswith((":", "：")):  # it announces what is not shown here
        said.pop()
    order = list(range(len(said)))
    order = [*order[:1], *order[:0:-1][:1], *order[1:-1]] if told else order[::-1]
    kept: dict[int, str] = {}
    for at in order:
        if len(said[at]) > room:
            if room >= LEAST and (told or not kept):
                kept[at] = cut(said[at], room)
            break
        kept[at] = said[at]
        room -= len(said[at]) + 1
    parts = [
        kept[at] if at - 1 in kept or at == min(kept) else f"… {kept[at]}" for at in sorted(kept)
    ]
    return one_line(as_notes(" ".join(parts)))
