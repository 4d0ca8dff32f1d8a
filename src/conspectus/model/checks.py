"""What a text must be to count as a summary: no phrase decides, only structure and size."""

from __future__ import annotations

from collections.abc import Sequence

from conspectus.core.records import Draft
from conspectus.messages import Message
from conspectus.model.answers import cites
from conspectus.model.base import SummaryRequest
from conspectus.model.prompts import TEXTS

FLOOR = 200  # tokens that a summary may always take, even where it stands for less

# A text that cites nothing has at least `CAP` tokens, which is more than gateways and models mostly
# say instead of a summary; a whole one has one part in `PART` of what leaves, if that is less.
CAP, PART = 60, 40

LONGEST, PER_TOKEN = 100_000, 32  # characters that any text may have, and for each token asked for

# Frames and sentences of our prompts: whoever repeats one has written no summary
_OURS = [one for text in TEXTS for one in " ".join(text.split()).split(". ") if len(one) > 60]
_OURS += ["<message id=", "</messages>"]


def problems(
    draft: Draft, entries: Sequence[Message], *, tokens: int, replaced: int, limit: int
) -> tuple[str, ...]:
    """Why a draft cannot be used, one short sentence for each reason; empty if it can.

    `tokens` is the size of its message, `replaced` that of all that it replaces.
    """
    if not draft.text.strip():
        return ("it is empty",)
    unread, takes = {e.key for e in entries} - set(draft.read), f"it takes {tokens:,} tokens"
    reasons = {
        f"{len(unread)} of {len(entries)} messages were not read": bool(unread),
        f"{takes} and {limit:,} are allowed": tokens > limit,
        f"{takes} and what it replaces only {replaced:,}": tokens > max(replaced, FLOOR),
    }
    return tuple(reason for reason, wrong in reasons.items() if wrong)


def wrong_with(
    text: str, request: SummaryRequest, *, min_tokens: int | None = None, leaving: int = 0
) -> tuple[str, ...]:
    """Say why a text is no summary in a short sentence; empty if it is one.

    A text that cites no message must not be small: findings have `CAP` tokens, as small models
    often cite none; a whole text may have less where it stands for little (`leaving` tokens; 0 to
    count the entries). With `min_tokens`, every text of so many tokens is a summary, for 0 every
    text that is not empty.
    """
    if len(text) > max(LONGEST, request.limit * PER_TOKEN):
        return (f"it has {len(text):,} characters, which is more than anybody reads",)
    text = text.strip()
    if not any(char.isalnum() for char in text):
        return ("it is empty",)
    document, findings = (text[0] + text[-1]) in ("{}", "<>"), request.form == "findings"
    page = text[:15].lower().startswith(("<!doctype html", "<html"))
    size = 0 if page else request.count(text) // (2 if document else 1)
    said = " ".join(text.split())
    if any(ours in said for ours in _OURS):
        return ("it repeats the prompt",)
    if min_tokens is not None:
        return (f"it has fewer than {min_tokens:,} tokens",) if size < min_tokens else ()
    read = [*request.entries, *request.kept[: request.ahead]]
    begin = said.split(" ", 8)[:8]  # most messages have not even these words
    longer = (e.reading for e in read if len(e.reading) >= len(said))
    alike = (reading for reading in longer if all(word in reading for word in begin))
    if any(said in " ".join(reading.split()) for reading in alike):
        return ("it repeats a message",)
    if findings and document:
        return ("it is one JSON or markup document, not lines with their sources",)
    if cites(text, request):
        return ()
    if size >= CAP:
        return ()
    if findings and request.entries:
        return ("no line of it cites a message that it was given, and it is short",)
    if not request.count(text):  # a counter of messages says nothing of a text
        return ()
    leaving = leaving or sum(request.count(entry.reading) for entry in request.entries)
    least = min(CAP, leaving // PART, request.limit // 3)  # that can be written within the limit
    short = f"it is far too small for what it stands for: {size} tokens of {least}"
    return (short,) if size < least else ()
