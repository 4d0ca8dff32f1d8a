"""Part 3 of the notes without a model: the agent's own conclusions, in order.

What it told the user, and the last sentences of a train of thought that led to an act. Questions,
guesses and plans are left out: a later step has settled them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from conspectus.ledger.pieces import pieces
from conspectus.ledger.reading import values_in
from conspectus.messages import Entry
from conspectus.messages.framing import as_notes
from conspectus.summarize.compacting import LONG, parsed
from conspectus.summarize.cutting import cut, one_line
from conspectus.summarize.notes import apart
from conspectus.summarize.steps import thoughts

TOLD, THOUGHT = 420, 360
"""Characters at scale 1 of what was told to the user, and of a thought that led to an act."""

THOUGHT_OF = "thought: "
"""Begins a line that nobody was told, by which a condensation knows it."""

ROOMIEST = 1.25
"""The largest scale, but for replies where room is left."""

LEAST = 24
"""Characters below which a sentence concludes nothing."""

BRIEF = 60
"""Characters below which a thought stands only if it gives a reason."""

AGAIN, NEAR = 0.7, 20
"""Share of a thought's words that a later one has where it says the same, and how near that is."""

ANSWER = 160
"""Characters of the first sentence of a reply that stand in any room."""

WHOLE = 260
"""Characters up to which the one sentence of a thought stands whole in any room."""

_POINTS = re.compile(
    r"^\W*(?:(?:so|and|but|then|thus|therefore|hence|also|however|yes|ah|okay)[, ]+)*"
    r"(?:this|that|these|those|it|they|which|therefore|thus|hence|in this case|as a result)\b"
    r"|^(?:这|那|它|因此|所以)|^(?:これ|それ|そのため|だから)|^(?:이것|그것|그래서|따라서)"
    r"|^(?:das|dies\w*|deshalb|daher|esto|eso|por eso|cela|ceci|donc)\b",
    re.IGNORECASE,
)
"""Begins a sentence that points at the one before, and says little without it."""

_WORDS = re.compile(r"\w+")
_COLON = (":", "：")
_CALLS = ("!", "！")
_ENDS = '.!?…:;,。！？：；”"'
_ITEM = re.compile(r"; (?=\S)")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_FENCE = re.compile(r"^(?:```|~~~).*?(?:^(?:```|~~~)\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^\W*(?:THOUGHT|Thought|Reasoning|Analysis|DISCUSSION|思考)\W*[:：]\s*")
_PLANS = re.compile(
    r"^\W*(?:(?:so|now|next|first|then|okay|ok|alright|also|therefore|but|and|or|yes|no)[, ]+)*"
    r"(?:(?:i|we)(?:'ll| will| should| need| want|'m going| am going| must| could| would|'d"
    r"| can (?:now |also )?(?:use|try|run|check|see)) |i (?:now )?(?:verify|check|run|create|read) "
    r"|let me|let's|let us|maybe|perhaps|wait\b|hmm|what if|i wonder|possibly|to (?:proceed|do)\b"
    r"|(?:create|run|read|modify|remove|update|add|verify|check|test|try|look|find|search)\b"
    r"|(?:reading|checking|running|looking|searching|verifying|testing|trying)\b|step \d)"
    r"|^(?:我(?:将|会|需要|应该|来|先)|让我|接下来|也许|可能)|(?:みましょう|してみます|します。?)$",
    re.IGNORECASE,
)


_REASONS = re.compile(
    r"\b(?:because|since|due to|caused?|root|reason|therefore|thus|hence|turns out|confirm\w*"
    r"|(?:this|that|which) (?:means|explains|shows|is why)|decided?|instead of|so that"
    r"|the (?:issue|problem|bug|culprit|fix|solution|error|failure) "
    r"(?:is|was|lies|comes|should|must)"
    r"|weil|deshalb|daher|ursache|grund|porque|por eso|causa|parce que|car|donc|raison)\b"
    r"|因为|由于|原因|所以|因此|导致|问题(?:在于|是)|ので|ため|理由|つまり|때문|원인|이유|그래서",
    re.IGNORECASE,
)


_CAUSES = re.compile(
    r"\broot cause|turns out|\b(?:this|that|which) explains"
    r"|\bthe (?:real |actual )?(?:issue|problem|bug|culprit) (?:is|was|lies|comes)\b"
    r"|\bursache (?:ist|war|liegt)\b|\bla causa (?:es|era)\b"
    r"|\bla cause (?:est|était)\b|根本原因|问题(?:在于|是)|原因は|원인은",
    re.IGNORECASE,
)
"""What says why something is as it is; what mends it shows in the deeds that follow."""


def conclusions(entries: Sequence[Entry], scale: float, longest: int = 0) -> list[tuple[str, str]]:
    """Return conclusions, each with the message that it stands in; equal ones once, counted.

    Args:
        entries: the messages that leave; a reply that repeats a result of theirs concludes nothing.
        scale: how roomy they are.
        longest: characters that each reply to the user may take at least.
    """
    found: dict[str, list[str]] = {}
    thought = dict[str, list[str]]()
    for text, cite in thoughts(entries):
        thought.setdefault(cite, []).append(text)
    shown = set[str]()
    for entry in entries:
        if entry.role == "tool":
            shown.add(one_line(entry.text))
        own = one_line(entry.own)
        if entry.role != "assistant" or (len(own) > LONG and own in shown):
            continue
        told = not entry.calls and not _LABEL.match(entry.own)
        text = "\n".join([_said(entry.own), *thought.pop(entry.cite, ())])
        room = int((TOLD if told else THOUGHT) * min(scale, ROOMIEST))
        said = _concluded(text, max(room, longest) if told else room, told)
        mark = "" if told else THOUGHT_OF
        if said and (told or len(said) >= BRIEF or tells(mark + said)):
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
    said = (one_line(text[start:end]) for start, end, own in pieces(text) if own)
    return [_BOLD.sub(r"\1", one) for one in said]


def _said(text: str) -> str:
    """Return the words of a reply; of one that is a record, its field of text."""
    data = parsed(text)
    if not isinstance(data, Mapping):
        return text
    words = (data.get(key) for key in ("content", "text", "message", "answer"))
    return next((one for one in words if isinstance(one, str)), "")


def _concluded(text: str, room: int, told: bool) -> str:
    """Return the sentences that conclude.

    They are those with which a reply begins and ends; of a thought, its reasons first.
    """
    every = _sentences(text)
    said = [n for n, one in enumerate(every) if len(one) >= (1 if told else LEAST)]
    said = [n for n in said if not every[n].endswith(("?", "？"))]
    while said and every[said[-1]].endswith(_COLON):  # it announces what is not shown here
        said.pop()
    if told:
        plain = [every[n] for n in said if not every[n].endswith(_CALLS) or values_in(every[n])]
        return one_line(as_notes(_reply(plain, room)))
    said = [n for n in said if not _PLANS.match(every[n])]
    joined = {at for at in range(1, len(said)) if said[at] == said[at - 1] + 1}
    return one_line(as_notes(_thought([every[n] for n in said], room, joined)))


def _reply(said: Sequence[str], room: int) -> str:
    """Sentences of a reply: the first, the last with a value, the others with one, all else."""
    kept: dict[int, str] = {}
    said = _announced(said)
    named = [at for at, one in enumerate(said) if values_in(one)]
    order = [*range(len(said))[:1], *named[-1:], *named, *reversed(range(len(said)))]
    for at in dict.fromkeys(order):
        if len(said[at]) > (room if kept else max(room, ANSWER)):
            if not kept:
                kept[at] = cut(said[at], max(room, ANSWER))
            break
        kept[at] = said[at]
        room -= len(said[at]) + 1
    return _joined(kept)


def _announced(said: Sequence[str]) -> list[str]:
    """Sentences of which one that ends in a colon stands with the next: alone it says nothing."""
    joined: list[str] = []
    for one in said:
        if joined and joined[-1].endswith(_COLON):
            joined[-1] += f" {one}"
        else:
            joined.append(one)
    return joined


def _thought(said: Sequence[str], room: int, joined: Collection[int]) -> str:
    """Sentences of a thought, each whole: those that give a reason, then the last ones.

    Args:
        said: the sentences.
        room: characters.
        joined: places of those that stand right behind the one before; if they point at it, they
            stand with it.
    """
    kept: dict[int, str] = {}
    reasons = [n for n, one in enumerate(said) if _REASONS.search(one)]
    causes = [n for n in reasons if _CAUSES.search(said[n])]
    for at in dict.fromkeys(
        [*reversed(causes), *reversed(reasons), *reversed(range(len(said))[-2:])]
    ):
        points = at in joined and at - 1 not in kept and _POINTS.match(said[at])
        both = [at - 1, at] if points else [at]
        both = [n for n in both if n not in kept]
        size = sum(len(said[n]) + 1 for n in both)
        if both and size <= (room if kept else max(room, WHOLE)):
            kept |= {n: said[n] for n in both}
            room -= size
    return _joined(kept) or cut(said[-1] if said else "", WHOLE)


def _joined(kept: Mapping[int, str]) -> str:
    """Sentences as one line, with marks for those left out; items of a list stay apart."""
    text = ""
    for at in sorted(kept):
        mark = " " if text[-1:] in _ENDS else "; "
        text += kept[at] if not text else mark + "… " * (at - 1 not in kept) + kept[at]
    return f"{text} …" if text.endswith(_COLON) else text


def tells(line: str) -> bool:
    """Return whether a finding outlasts the next step: it gives a reason or names a value."""
    if _REASONS.search(line):
        return True
    return not line.startswith(THOUGHT_OF) and bool(values_in(apart(line)[0]))


def explains(line: str) -> bool:
    """Return whether a finding names a cause, which no later step says again."""
    return _CAUSES.search(line) is not None


def said_again(lines: Sequence[str]) -> list[int]:
    """Return the places of thoughts of which a later one has most words.

    Example:
        >>> said_again(["thought: The oven counts in Fahrenheit. [m2]", "thought: It rains. [m3]",
        ...             "thought: So the oven really counts in Fahrenheit here. [m4]"])
        [0]
    """
    words = [set(_WORDS.findall(apart(line)[0].casefold())) for line in lines]
    found: list[int] = []
    for n, own in enumerate(words):
        later = words[n + 1 : n + 1 + NEAR] if lines[n].startswith(THOUGHT_OF) else []
        if any(len(own & other) >= AGAIN * len(own) for other in later):
            found.append(n)
    return found


def fewer_sentences(line: str, room: int) -> str:
    """Return a finding in fewer sentences, each whole unless it is longer than the room."""
    if len(line) <= room:
        return line
    text = line.removeprefix(THOUGHT_OF)
    parts = [item for start, end, _ in pieces(text) for item in _ITEM.split(text[start:end])]
    if text == line:
        return _reply([one.removeprefix("… ") for one in parts], room)
    parts = [one for one in parts if len(one) >= LEAST]
    joined = {at for at, one in enumerate(parts) if at and not one.startswith("… ")}
    return THOUGHT_OF + _thought([one.removeprefix("… ") for one in parts], room, joined)
