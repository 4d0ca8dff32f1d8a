"""A message shown short: its beginning, its end, a pointer to the original.

The table of `blocks` names the parts of a block that may be shortened; the rest stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conspectus._langchain import is_message
from conspectus.core.items import highest
from conspectus.messages.blocks import is_item
from conspectus.messages.entries import Entry, Source
from conspectus.messages.shortening import LEVELS, WITH_MEDIA, shortened

Count = Callable[[Source], int]

POINTER = "archived as "  # Stands in every clip, before the name of its original
ARCHIVED = POINTER + "{cite}"  # Where the original is, in the words of a clip

WITHOUT_SECRETS = "[shown without its secrets; {where}]"

FIRST = 2  # Characters a token that are tried first; most texts have more


def clip(entry: Entry, limit: int, count: Count, where: str = ARCHIVED) -> Source:
    """Shorten a message to at most `limit` tokens, or else as far as possible.

    Texts, tool results and long values in tool arguments are shortened in the middle, the longest
    first; images and files become short descriptions if that is not enough. Ids, names and the
    pairing of calls with results stay, and so does each block that the table of `blocks` does not
    shorten. In `where`, `{cite}` becomes the original's name.
    """
    if count(entry.source) <= limit:
        return entry.source
    for level in LEVELS:
        shortest = shortened(entry, 0, level, where)
        if count(shortest) <= limit:
            break
    made = {0: shortest}

    def fits(size: int) -> bool:
        made[size] = shortened(entry, size, level, where)
        return count(made[size]) <= limit

    low, high = 0, max([len(entry.text), *(len(call.args) for call in entry.calls)])
    # From below: of a giant message only texts near the limit are counted, never half of it.
    size = max(1, FIRST * limit)
    while size < high and fits(size):
        low, size = size, 2 * size
    return made[highest(low, min(high, size - 1) if size in made else high, fits)]


def with_pointer(entry: Entry, where: str = ARCHIVED) -> Source:
    """Add a pointer to the original to a message without its secrets."""
    where = where.replace("{cite}", entry.cite)
    note, source = WITHOUT_SECRETS.format(where=where), entry.source
    if not is_message(source) and is_item(source):
        if isinstance(source.get("output"), str) and source["type"] != "local_shell_call_output":
            return {**source, "output": f"{source['output']}\n{note}"}
        return source
    content: Any = source.content if is_message(source) else source.get("content")
    if isinstance(content, list):
        content = [*content, {"type": "text", "text": note}]
    else:
        content = f"{content}\n{note}" if content else note
    if not is_message(source):
        return {**source, "content": content}
    extra = {**source.additional_kwargs, "conspectus": {"clip_of": entry.cite}}
    return source.model_copy(update={"content": content, "additional_kwargs": extra})


def smallest_clip(
    entry: Entry, count: Count, where: str = ARCHIVED, *, media_stay: bool = False
) -> int:
    """Return the fewest tokens that `clip` can bring a message to."""
    last = WITH_MEDIA if media_stay else LEVELS[-1]
    return min(count(entry.source), count(shortened(entry, 0, last, where)))
