"""Leave out thoughts that a provider would refuse, because the messages before them have changed.

Some of Anthropic's models bind a thought to all messages before it. They refuse a request in which
these have changed, as they do in a compaction. A provider allows you to leave out all thoughts,
except those of the last assistant message, if its tool calls have just been answered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from conspectus._langchain import is_ai_message, is_message, is_tool_message
from conspectus.messages.blocks import brings_results
from conspectus.messages.message import THOUGHT_TYPES
from conspectus.messages.users import newest_in_users_role


def without_stale_thoughts(
    view: Sequence[Any], kept: int | None = None, *, all_of_them: bool = False
) -> list[Any]:
    """Leave out the thoughts of messages that a compaction has kept.

    Args:
        view: the messages to send, as dicts or LangChain messages.
        kept: how many messages at the start of the view the compaction has kept. Messages after
            them keep their thoughts, so that the same view is sent each time. Default: all before
            the newest message in the user's role.
        all_of_them: leave out every thought, once a provider has refused those that stay.

    Example:
        >>> thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        >>> said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
        >>> without_stale_thoughts([said, {"role": "user", "content": "And?"}])[0]["content"]
        [{'type': 'text', 'text': 'Yes.'}]
    """
    if kept is None:
        # A provider looks at the role, whoever wrote the message.
        kept = newest_in_users_role(view)
    if all_of_them:
        return [without_thoughts(message) for message in view]
    kept = len(view) if kept is None else min(kept, len(view))
    end = kept
    while end and _brings_only_results(view[end - 1]):
        end -= 1
    has_results_after = end < kept or (kept < len(view) and _brings_only_results(view[kept]))
    if end and has_results_after:
        end -= 1  # the message whose calls were answered keeps its thoughts
    return [*map(without_thoughts, view[:end]), *view[end:]]


def _brings_only_results(message: Any) -> bool:
    """Tell whether a message brings results of tools, by its kind or in its blocks."""
    if is_message(message):
        return is_tool_message(message)
    return message.get("role") == "tool" or brings_results(message)


def without_thoughts(message: Any) -> Any:
    """Return a message without its thoughts; itself if it has none, or has nothing else."""
    bound_types = _bound_types(message)
    if not bound_types:
        return message
    fields = vars(message) if is_message(message) else message
    blocks = fields.get("content")
    update: dict[str, Any] = {}
    if isinstance(blocks, list):
        remaining = [block for block in blocks if not _has_type(block, bound_types)]
        if not remaining and not fields.get("tool_calls"):
            return message
        if len(remaining) < len(blocks):
            update["content"] = remaining
    if is_message(message):
        return message.model_copy(update=update) if update else message
    if not update and "thinking_blocks" not in message:
        return message
    return {key: part for key, part in message.items() if key != "thinking_blocks"} | update


def _has_type(block: Any, types: Collection[str]) -> bool:
    return isinstance(block, Mapping) and block.get("type") in types


def _bound_types(message: Any) -> frozenset[str]:
    """Return the types of blocks that the provider of a message binds to the messages before."""
    if not is_message(message):
        return THOUGHT_TYPES if message.get("role") == "assistant" else frozenset()
    if not is_ai_message(message):
        return frozenset()
    provider = message.response_metadata.get("model_provider")
    model = str(message.response_metadata.get("model_name", "")).lower()
    is_claude = "claude" in model or "anthropic" in model
    if provider == "anthropic" or ("bedrock" in str(provider) and is_claude):
        return THOUGHT_TYPES | {"reasoning"}
    return THOUGHT_TYPES if provider is None else frozenset()  # other providers bind none
