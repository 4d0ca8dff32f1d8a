"""Thoughts of Anthropic's models that stand behind another beginning than when they were thought.

Some models bind a thought to all that stood before it, and refuse a request in which that has
changed, as a compaction does. A provider allows every thought to be left out but those of the last
assistant message, whose tool calls have just been answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from conspectus._langchain import is_ai_message, is_message, is_tool_message

THOUGHTS = ("thinking", "redacted_thinking")

REFUSED = re.compile(
    r"prefix_mismatch_behavior|bound to a different conversation|"
    r"(?:signature|thinking|redacted_thinking)\W.{0,60}?\b(?:invalid|cannot be modified|mismatch)|"
    r"invalid .{0,10}?signature",
    re.IGNORECASE | re.DOTALL,
)
"""Words of refusals of thoughts behind another beginning (Anthropic's preserved thinking)."""


def without_stale_thoughts(
    view: Sequence[Any], kept: int, *, all_of_them: bool = False
) -> list[Any]:
    """Leave out the thoughts of messages that stood in view when it was compacted.

    Args:
        view: the messages to send, as dicts or LangChain messages.
        kept: the first messages of the view, which a compaction has kept. Of those behind it all
            stays, so that the same view is sent each time.
        all_of_them: leave out every thought, once a provider has refused those that stay.

    Example:
        >>> thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        >>> said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
        >>> without_stale_thoughts([said, {"role": "user", "content": "And?"}], 2)[0]["content"]
        [{'type': 'text', 'text': 'Yes.'}]
    """
    end = kept = len(view) if all_of_them else min(kept, len(view))
    while end and not all_of_them and _answers(view[end - 1]):
        end -= 1
    end -= end < kept  # the message whose calls have just been answered
    return [thoughtless(message) for message in view[:end]] + list(view[end:])


def refuses_thoughts(error: BaseException) -> bool:
    """Return whether a provider has refused thoughts behind another beginning, with status 400."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status in (400, None) and bool(REFUSED.search(str(error)[:4_000]))


def _answers(message: Any) -> bool:
    """Return whether a message holds results of tools."""
    if is_message(message):
        return is_tool_message(message)
    role, blocks = _parts(message)
    return role == "tool" or any(one.get("type") == "tool_result" for one in blocks)


def _parts(message: Any) -> tuple[Any, list[Any]]:
    """Return the role of a dict, and its blocks."""
    if not isinstance(message, Mapping):
        return None, []
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return message.get("role"), [one for one in blocks if isinstance(one, Mapping)]


def thoughtless(message: Any) -> Any:
    """Return a message without its thoughts; itself if it has none, or nothing else."""
    if is_message(message):
        return _without_blocks(message)
    role, blocks = _parts(message)
    rest = [one for one in blocks if one.get("type") not in THOUGHTS]
    if role != "assistant" or (blocks and not rest):
        return message
    made = {key: value for key, value in message.items() if key != "thinking_blocks"}
    made |= {"content": rest} if len(rest) < len(blocks) else {}
    return message if made == message else made


def _without_blocks(message: Any) -> Any:
    """Do the same for a LangChain message; only Anthropic binds thoughts to their beginning."""
    if not is_ai_message(message) or not isinstance(message.content, list):
        return message
    told = message.response_metadata
    provider, model = told.get("model_provider"), str(told.get("model_name", "")).lower()
    claude = "claude" in model or "anthropic" in model
    bound: tuple[str, ...] = THOUGHTS
    if provider == "anthropic" or ("bedrock" in str(provider) and claude):
        bound = (*THOUGHTS, "reasoning")
    elif provider is not None:
        return message
    rest = [
        one
        for one in message.content
        if not (isinstance(one, Mapping) and one.get("type") in bound)
    ]
    if len(rest) == len(message.content) or not (rest or message.tool_calls):
        return message
    return message.model_copy(update={"content": rest})
