"""What a text must be to count as a summary: no phrase decides, only structure and size."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

from conspectus._core.records import Draft
from conspectus.messages import Entry
from conspectus.model.answers import cites
from conspectus.model.base import SummaryRequest
from conspectus.model.prompts import INSTRUCTIONS
from conspectus.model.riding import TEXTS

FLOOR = 200
"""Tokens that a summary may always take, even where it stands for less: tiny histories."""

CAP, PART = 60, 40
"""A text has at least `CAP` tokens, which is more than gateways and models say instead of a summary
mostly; or one part in `PART` of what leaves, where that is less."""

LONGEST, PER_TOKEN = 100_000, 32
"""Characters up to which any text is measured, and for each token asked for."""

RUN = 12  # words of our instructions in a row that nobody writes by chance

_FRAMES = ("<message id=", "</message>", "</messages>", "</focus>")


def problems(
    draft: Draft, entries: Sequence[Entry], *, tokens: int, replaced: int, limit: int
) -> tuple[str, ...]:
    """Why a draft cannot be used, one short sentence for each reason; empty if it can.

    `entries` are the originals that it stands for, `tokens` the size of the whole message, and
    `replaced` that of all that it replaces, the summary before included.
    """
    if not draft.text.strip():
        return ("it is empty",)
    unread, found = {entry.key for entry in entries} - set(draft.read), list[str]()
    if unread:
        found.append(f"{len(unread)} of {len(entries)} messages were not read")
    if tokens > limit:
        found.append(f"it takes {tokens:,} tokens and {limit:,} are allowed")
    if tokens > max(replaced, FLOOR):
        found.append(f"it takes {tokens:,} tokens and what it replaces only {replaced:,}")
    return tuple(found)


def wrong_with(
    text: str,
    request: SummaryRequest,
    *,
    min_tokens: int | None = None,
    leaving: int | None = None,
    prompted: bool = False,
) -> tuple[str, ...]:
    """Say why a text is no summary in a short sentence; empty if it is one.

    In the form `"findings"` a line must cite a message. A whole text must not be far too small for
    what it stands for, unless it cites a message. Takes time that grows with the text.

    Args:
        text: what a summariser has written.
        request: what it was asked.
        min_tokens: a measure of the caller's: every text of so many tokens is a summary, and for 0
            every text that is not empty.
        leaving: tokens of what the text stands for; None to count the entries.
        prompted: whether the messages stood in the frames of our prompts.
    """
    most = max(LONGEST, request.limit * PER_TOKEN)
    if len(text) > most:
        return (f"it has {len(text):,} characters and no more than {most:,} are read",)
    text = text.strip()
    if not any(char.isalnum() for char in text):
        return ("it is empty",)
    words = _words_of(text)
    document, findings = words is not text, request.form == "findings"
    size = request.count(words) // (2 if document else 1)
    said = " ".join(text.split())
    if any(mark in text for mark in _FRAMES[: None if prompted else 1]) or _has_run(said):
        return ("it repeats the prompt",)
    if min_tokens is not None:
        return (f"it has fewer than {min_tokens:,} tokens",) if size < min_tokens else ()
    given = [*request.entries, *request.kept[: request.ahead]]
    if any(said in " ".join(e.reading.split()) for e in given if len(e.reading) >= len(said)):
        return ("it repeats a message",)
    if findings and document:
        return ("it is one JSON or markup document, not lines with their sources",)
    if cites(text, request):
        return ()
    if findings and request.entries:
        return ("no line of it cites a message that it was given",)
    least = _least(request, leaving) if size < CAP else 0
    short = f"it is far too small for what it stands for, {size} of at least {least} tokens"
    return (short,) if size < least else ()


def _least(request: SummaryRequest, leaving: int | None) -> int:
    """Tokens of a text that stands for the entries, and can be written within the limit."""
    if leaving is None:
        leaving = sum(request.count(entry.reading) for entry in request.entries)
    return min(CAP, leaving // PART, request.limit // 3)


def _words_of(text: str) -> str:
    """Return a text; of a JSON or markup document its words alone, and of a web page none."""
    if text[0] in "{[" and text[-1] in "}]":
        try:
            found, left = list[str](), [json.loads(text)]
        except (ValueError, RecursionError):
            return text
        while left:
            one = left.pop()
            if isinstance(one, (dict, list)):
                left += one.values() if isinstance(one, dict) else one
            elif isinstance(one, str):
                found.append(one)
        return " ".join(found)
    if text[0] != "<" or text[-1] != ">":
        return text
    page = text[:15].lower().startswith(("<!doctype html", "<html"))
    return "" if page else " ".join(part.partition(">")[2] for part in text.split("<"))


@cache
def _runs() -> frozenset[tuple[str, ...]]:
    texts = [text.split() for text in (*INSTRUCTIONS.values(), *TEXTS)]
    return frozenset(tuple(t[n : n + RUN]) for t in texts for n in range(len(t) - RUN + 1))


def _has_run(said: str) -> bool:
    words = said.split()
    return any(tuple(words[n : n + RUN]) in _runs() for n in range(len(words) - RUN + 1))


def cut_short(text: str, limit: int, count: Callable[[str], int]) -> tuple[str, int]:
    """Cut a summary to `limit` tokens at the end of a line, or if one line is too long, of a word.

    Returns the shorter text, and the tokens that were cut off.
    """

    def fitting(parts: list[str], glue: str) -> int:
        sizes = range(1, len(parts) + 1)
        return bisect_right(sizes, limit, key=lambda n: count(glue.join(parts[:n])))

    lines, words = text.splitlines(), text.split()
    fit = fitting(lines, "\n")
    while fit and (not lines[fit - 1].strip() or lines[fit - 1].startswith("#")):
        fit -= 1  # a heading with nothing below it says nothing
    kept = "\n".join(lines[:fit]) if fit else " ".join(words[: fitting(words, " ")])
    return kept, count(text) - count(kept)
