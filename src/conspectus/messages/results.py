"""Results of tools: the tool of each, and whether it will be needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus._langchain import is_message
from conspectus.messages.entries import Entry

NOT_NEEDED = "conspectus_not_needed"
"""The mark by which a tool says that its result will not be needed again: a key of the message's
`additional_kwargs` or `artifact`, or of the message itself if that is a dict."""


def is_expendable(message: Any) -> bool:
    """Tell whether a tool says that its result will not be needed."""
    if not is_message(message):
        return isinstance(message, Mapping) and message.get(NOT_NEEDED) is True
    artifact = getattr(message, "artifact", None)
    places = (message.additional_kwargs, artifact if isinstance(artifact, Mapping) else {})
    return any(place.get(NOT_NEEDED) is True for place in places)


def tools_of(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """Return, for each message, the tools whose results it holds.

    The nearest call before it names the tool, as ids are used again.
    """
    called: dict[str, str] = {}
    found: list[tuple[str, ...]] = []
    for entry in entries:
        names = [called.get(answer, entry.name or "") for answer in entry.answers]
        found.append(tuple(dict.fromkeys(filter(None, names))) if names else ())
        for call in entry.calls:
            if call.id:
                called[call.id] = call.name
    return found
