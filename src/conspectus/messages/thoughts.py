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
from conspectus.messages.recalled import brings_results, newest_user
from conspectus.observe.events import as_text

THOUGHTS = frozenset({"thinking", "redacted_thinking"})

REFUSED = re.compile(
    r"prefix_mismatch_behavior|bound to a different conversation|"
    r"(?:signature|thinking|redacted_thinking)\W.{0,60}?\b(?:invalid|cannot be modified|mismatch)|"
    r"invalid .{0,10}?signature",
    re.IGNORECASE | re.DOTALL,
)
"""Words of refusals of thoughts behind another beginning (Anthropic's preserved thinking)."""


def without_stale_thoughts(
    view: Sequence[Any], kept: int | None = None, *, all_of_them: bool = False
) -> list[Any]:
    """Leave out the thoughts of messages that stood in view when it was compacted.

    Args:
        view: the messages to send, as dicts or LangChain messages.
        kept: the first messages of the view, which a compaction has kept. Of those behind it all
            stays, so that the same view is sent each time. Default: those before the user's newest.
        all_of_them: leave out every thought, once a provider has refused those that stay.

    Example:
        >>> thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        >>> said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
        >>> without_stale_thoughts([said, {"role": "user", "content": "And?"}])[0]["content"]
        [{'type': 'text', 'text': 'Yes.'}]
    """
    if kept is None:
        kept = newest_user(view)
    end = kept = len(view) if all_of_them or kept is None else min(kept, len(view))
    while end and not all_of_them and _answers(view[end - 1]):
        end -= 1
    end -= end < kept  # the message whose calls have just been answered
    return [thoughtless(message) for message in view[:end]] + list(view[end:])


def refuses_thoughts(error: BaseException) -> bool:
    """Return whether a provider has refused thoughts behind another beginning, with status 400."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status in (400, None) and bool(REFUSED.search(as_text(error)[:4_000]))


def _answers(message: Any) -> bool:
    """Return whether a message holds results of tools."""
    if is_message(message):
        return is_tool_message(message)
    return message.get("role") == "tool" or brings_results(message)


def thoughtless(message: Any) -> Any:
    """Return a message without its thoughts; itself if it has none, or nothing else."""
    bound, plain = _bound_kinds(message), not is_message(message)
    fields = message if plain else vars(message)
    blocks, update = fields.get("content"), {}
    if bound and isinstance(blocks, list):
        rest = [b for b in blocks if not (isinstance(b, Mapping) and b.get("type") in bound)]
        if not rest and not fields.get("tool_calls"):
            return message
        update = {"content": rest} if len(rest) < len(blocks) else {}
    if not plain:
        return message.model_copy(update=update) if update else message
    if not update and not (bound and "thinking_blocks" in message):
        return message
    return {key: part for key, part in message.items() if key != "thinking_blocks"} | update


def _bound_kinds(message: Any) -> frozenset[str]:
    """Return the kinds of a message's blocks that its provider binds to what stands before."""
    if not is_message(message):
        return THOUGHTS if message.get("role") == "assistant" else frozenset()
    if not is_ai_message(message):
        return frozenset()
    made_by = message.response_metadata
    provider, model = made_by.get("model_provider"), str(made_by.get("model_name", "")).lower()
    claude = "bedrock" in str(provider) and ("claude" in model or "anthropic" in model)
    if provider == "anthropic" or claude:
        return THOUGHTS | {"reasoning"}
    return THOUGHTS if provider is None else frozenset()  # of others, none are bound
