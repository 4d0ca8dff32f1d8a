"""Thoughts of Anthropic's models that stand behind another beginning than when they were thought.

Some models bind a thought to all that stood before it, and refuse a request in which that has
changed, as a compaction does. A provider allows every thought to be left out but those of the last
assistant message, whose tool calls have just been answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

THOUGHTS = ("thinking", "redacted_thinking")


def without_stale_thoughts(view: Sequence[Any], kept: int) -> list[Any]:
    """Leave out the thoughts of messages that stood in view when it was compacted.

    Args:
        view: the messages to send.
        kept: the first messages of the view, which a compaction has kept. Of those behind it all
            stays, so that the same view is sent each time.

    Example:
        >>> thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        >>> said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
        >>> without_stale_thoughts([said, {"role": "user", "content": "And?"}], 2)[0]["content"]
        [{'type': 'text', 'text': 'Yes.'}]
    """
    end = kept = min(kept, len(view))
    while end and _answers(view[end - 1]):
        end -= 1
    end -= end < kept  # the message whose calls have just been answered
    return [_thoughtless(message) for message in view[:end]] + list(view[end:])


def _parts(message: Any) -> tuple[Any, list[Any]]:
    """Return the role of a message, and its blocks."""
    if not isinstance(message, Mapping):
        return None, []
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return message.get("role"), [one for one in blocks if isinstance(one, Mapping)]


def _answers(message: Any) -> bool:
    """Return whether a message holds results of tools."""
    role, blocks = _parts(message)
    return role == "tool" or any(one.get("type") == "tool_result" for one in blocks)


def _thoughtless(message: Any) -> Any:
    """Return a message without its thoughts; itself if it has none, or nothing else."""
    role, blocks = _parts(message)
    rest = [one for one in blocks if one.get("type") not in THOUGHTS]
    if role != "assistant" or (blocks and not rest):
        return message
    made = {key: value for key, value in message.items() if key != "thinking_blocks"}
    made |= {"content": rest} if len(rest) < len(blocks) else {}
    return message if made == message else made
