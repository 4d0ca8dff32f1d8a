"""Pieces of messages that a summary can quote, each with the section that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from conspectus.ledger.facts import identified, is_decision, sentences
from conspectus.messages import Entry
from conspectus.summarize.need import normal

PROSE = 220
"""Characters of a sentence that are quoted at most; a longer one is divided between words."""

DATA = 100
"""Characters of a piece of a tool's output or of code, likewise."""

WORDS = 6
"""Words that a piece of a longer line has at least: fewer do not say what something is about."""

SHORT = 16
"""Characters below which a sentence says nothing by itself."""

FULL = 90
"""Characters from which a sentence is worth all that its kind is worth."""

DECISION, OPEN, ASKED, SAID = 0.15, 0.05, 0.03, 0.0
"""What sentences are worth by kind, in likelihoods of being needed: decisions and causes; what is
done and what is left; what the user says; what the agent says."""

_DONE = re.compile(
    r"\b(?:done|finished|completed|fixed|pass(?:es|ed)?|added|created|implemented|resolved|works)\b"
    r"|完成|已经|修复|搞定|終わ|完了|완료|terminado|fertig|terminé",
    re.IGNORECASE,
)
_PENDING = re.compile(
    r"\b(?:todo|to do|pending|remaining|still (?:need|have|open)|left to|not yet|next(?: step)?"
    r"|open question|will need)\b|待办|还需|下一步|未完成|残り|次に|남은|다음"
    r"|pendiente|offen|reste",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"^\W*(?:</?\w[^>]*>)?\W*$")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a message.

    Attributes:
        text: as it stands in the message, white space folded.
        section: where it belongs.
        cite: how its message is named.
        place: its message's place; -1 for one that the standing summary had.
        worth: what it is worth beside its identifiers, as a likelihood of being needed.
        holds: the identifiers in it.
    """

    text: str
    section: str
    cite: str
    place: int
    worth: float
    holds: tuple[str, ...] = ()


def snippets_of(entry: Entry, place: int) -> Iterator[Snippet]:
    """The pieces of one message, in order."""
    holds = {
        found.line: tuple(dict.fromkeys(value for _, value, _ in found.holds))
        for found in identified(entry)
    }

    def pieces(text: str, size: int, line: str, section: str, worth: float) -> Iterator[Snippet]:
        values = holds.get(line, ())
        for piece in _divided(text, size):
            inside = tuple(normal(value) for value in values if value in piece)
            yield Snippet(piece, section, entry.cite, place, worth, inside)

    for line in entry.own.split("\n") if entry.own else ():
        for text in _said(line):
            yield from pieces(text, PROSE, line, *_section(entry, text))
    texts = [(call.reading, "Artifacts") for call in entry.calls]
    if entry.text != entry.own:  # what tools have answered
        texts.insert(0, (entry.text.removesuffix(entry.own), "Facts"))
    for text, section in texts:
        for line in text.split("\n"):
            folded = " ".join(line.split())
            if len(folded) > 3 and not _MARKUP.match(folded):
                yield from pieces(folded, DATA, line, section, 0.0)


def _said(line: str) -> list[str]:
    """The sentences of a line; a short one joins its neighbour, as alone it says too little."""
    parts: list[list[str]] = []
    short = False
    for sentence in sentences(line):
        text = " ".join(sentence.split())
        if parts and (short or _words(text) < WORDS):
            parts[-1].append(text)
        else:
            parts.append([text])
            short = True
        # What is long enough stays so: it is joined again only as long as it is not.
        short = short and _words(" ".join(parts[-1])) < WORDS
    pieces = [" ".join(part) for part in parts]
    if len(pieces) == 1 and short and line.strip() == f"- {pieces[0]}":
        return [line.strip()]
    return [piece for piece in pieces if not _MARKUP.match(piece)]


def _words(text: str) -> int:
    """How many words a text has; scripts without spaces have one for every two characters."""
    return text.count(" ") + 1 if text.isascii() else max(text.count(" ") + 1, len(text) // 2)


def _divided(text: str, size: int) -> Iterator[str]:
    """A line as it is, or in pieces of about `size` characters and at least `WORDS` words."""
    if len(text) <= size * 1.3:
        yield text
        return
    words = text.split(" ")
    if len(words) <= WORDS:
        for start in range(0, len(text), size * 3):
            yield text[start : start + size * 3]
        return
    start = 0
    while start < len(words):
        end, length = start, 0
        while end < len(words) and (length <= size or end - start < WORDS):
            length += len(words[end]) + 1
            end += 1
        if len(words) - end < WORDS:
            end = len(words)
        yield " ".join(words[start:end])[: size * 6]
        start = end


def _section(entry: Entry, text: str) -> tuple[str, float]:
    """Where a sentence belongs, and what it is worth for what it says."""
    if len(text) < SHORT and text.isascii():
        return "Facts", 0.0
    says = min(1.0, len(text) / FULL)
    if is_decision(text):
        return "Decisions", DECISION * says
    if _PENDING.search(text):
        return "Pending", OPEN * says
    if entry.role == "assistant":
        return ("Done", OPEN * says) if _DONE.search(text) else ("Facts", SAID * says)
    return "Facts", ASKED * says
