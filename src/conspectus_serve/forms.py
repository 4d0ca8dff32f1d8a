"""Give the messages of a compacted request the form that its upstream takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus.messages.recalled import newest_user
from conspectus.messages.thoughts import thoughtless

ALTERNATE = re.compile(
    r"(?:roles?|messages?)\b.{0,80}?\balternat|multiple .{0,20}?roles? in a row|"
    r"consecutive .{0,30}?(?:messages|roles?)|unexpected role|after role\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words of refusals by templates of Mistral, Gemma and others, and by strict gateways."""

SWITCH = "drop_block"
BETA = b"thinking-binding-controls-2026-08-01"
"""The provider's own switch, and the beta header that it needs (its page on preserved thinking)."""


def alternating(view: Sequence[Any]) -> list[Any]:
    """Join messages of the user that stand one after another.

    Example:
        >>> alternating([{"role": "user", "content": "Notes."}, {"role": "user", "content": "Hi."}])
        [{'role': 'user', 'content': 'Notes.\\n\\nHi.'}]
    """
    made: list[Any] = []
    for message in view:
        if made and _is_users(made[-1]) and _is_users(message):
            one, other = made[-1].get("content"), message.get("content")
            if isinstance(one, str) and isinstance(other, str):
                content: Any = f"{one}\n\n{other}"
            else:
                content = [*_blocks(one), *_blocks(other)]
            made[-1] = {**made[-1], **message, "content": content}
        else:
            made.append(message)
    return made


def without_thoughts(view: Sequence[Any], *, all_of_them: bool = False) -> list[Any]:
    """Take out thoughts that stand behind another beginning than when they were thought.

    Those of the newest turn stay with their calls, unless `all_of_them` go. A message of thoughts
    alone stays.
    """
    newest = newest_user(view)
    end = len(view) if all_of_them or newest is None else newest
    return [thoughtless(one) for one in view[:end]] + list(view[end:])


def with_switch(body: dict[str, Any]) -> dict[str, Any]:
    """Ask the provider to drop thoughts behind another beginning, where it would refuse them."""
    given = body.get("thinking")
    thinking = dict(given) if isinstance(given, Mapping) else {"type": "adaptive"}
    if thinking.get("type") == "disabled":
        return body
    return {**body, "thinking": {**thinking, "block_binding": {"prefix_mismatch_behavior": SWITCH}}}


def _is_users(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "user"


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": str(content)}] if content else []
