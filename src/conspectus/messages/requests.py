"""What is put into a request, and taken out of it: recalled originals, and stale thoughts.

Neither changes the history. Code that handles a request takes what was recalled out first, and puts
it back when the history is in order.

Some of Anthropic's models bind a thought to all that stood before it, and refuse a request in which
that has changed, as a compaction does. A provider allows every thought to be left out but those of
the last assistant message, whose tool calls have just been answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import is_ai_message, is_message, is_tool_message
from conspectus.messages.blocks import blocks_of, kind_of, opened
from conspectus.messages.framing import SUMMARY_NAME, is_summary_message
from conspectus.messages.hosts import is_host_message
from conspectus.messages.message import THOUGHTS, Message, Source
from conspectus.observe.events import as_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

LEAST_RECALL = 64  # tokens below which hardly one message could be shown
RECALLED = "recalled"  # `lc_source` of a message that shows recalled text
NEAR_THE_BEGINNING = 16  # messages among which a view has its summary
SEARCHED_OF_ERROR = 4_000  # characters of an error's text that are searched
REMEMBERED_MESSAGES = 1_024  # last messages of histories, with what was found before each
REMEMBERED_SUMMARIES = 256  # summaries, with what is sent of each

REFUSED = re.compile(
    r"prefix_mismatch_behavior|bound to a different conversation|"
    r"(?:signature|thinking|redacted_thinking)\W.{0,60}?\b(?:invalid|cannot be modified|mismatch)|"
    r"invalid .{0,10}?signature",
    re.IGNORECASE | re.DOTALL,
)
"""Words of refusals of thoughts behind another beginning (Anthropic's preserved thinking)."""


def recalled_message(text: str, turn: str) -> BaseMessage:
    """Make the message that shows a recalled text; one turn gives the same message."""
    from langchain_core.messages import HumanMessage

    return HumanMessage(
        content=text,
        id=f"recalled-{turn[:24]}",
        additional_kwargs={
            "lc_source": RECALLED,
            "hide_from_ui": True,
            "conspectus": {"turn": turn},
        },
    )


def is_users(message: Source | Message) -> bool:
    """Tell whether a user wrote a message: no host, no summary, no result of a tool.

    Example:
        >>> is_users({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]})
        False
    """
    return _is_in_users_role(message) and not is_host_message(message)


def _is_in_users_role(message: Source | Message) -> bool:
    """Tell whether a message stands in the user's role, and is no summary and no mere result."""
    if isinstance(message, Message):
        return message.role == "user" and not is_summary_message(message.source)
    if is_message(message):
        content: Any = message.content
        in_role = message.type in ("human", "HumanMessageChunk")
    else:
        content = message.get("content")
        in_role = message.get("role") == "user" and bool(content)
    if not in_role or is_summary_message(message):
        return False
    # A user who only brings results of tools has said nothing.
    blocks = content if isinstance(content, list) else []
    return not blocks or not all(
        isinstance(block, Mapping) and _is_answer(block) for block in blocks
    )


def _is_answer(block: Mapping[str, Any]) -> bool:
    """Tell whether a block holds the answer of a tool or a person."""
    return bool(kind_of(opened(block)).answers)


def newest_user(messages: Sequence[Source | Message]) -> int | None:
    """Return the place of the user's newest message, of such as were read, too.

    Where hosts wrote all that stands in the user's role, it is the newest of these; None without
    one.
    """
    position = _find_newest(messages, is_users, _newest_users)
    if position is None:
        position = _find_newest(messages, _is_in_users_role, _newest_in_users_role)
    return position


class _Search(NamedTuple):
    """What a search for the newest message of some kind has found up to one message."""

    message: ref[Any]
    """The message at which the search began, going back."""

    distance: int | None
    """How far before it the found one stands; None if there was none."""

    searched: int
    """How many messages there were, that one included."""


_newest_users: BoundedCache[int, _Search] = BoundedCache(REMEMBERED_MESSAGES)
"""Searches for messages that a user wrote, by the identity of the message at which they began."""

_newest_in_users_role: BoundedCache[int, _Search] = BoundedCache(REMEMBERED_MESSAGES)
"""Searches for messages in the user's role, likewise."""


def _find_newest(
    messages: Sequence[Source | Message],
    is_wanted: Callable[[Source | Message], bool],
    searches: BoundedCache[int, _Search],
) -> int | None:
    """Return the position of the newest message that is wanted; None without one.

    What was found is remembered with the last message, so that a history that grows by the work of
    an agent is not searched back to its beginning at each step.
    """
    newest: int | None = None
    for position in range(len(messages) - 1, -1, -1):
        search = searches.get(id(messages[position]))
        if search is None or search.message() is not messages[position]:
            if is_wanted(messages[position]):
                newest = position
                break
        elif search.distance is None:
            if search.searched > position:  # all messages before it were searched
                break
        elif search.distance <= position and is_wanted(messages[position - search.distance]):
            newest = position - search.distance
            break
    if messages and is_message(messages[-1]):
        last = len(messages) - 1
        distance = None if newest is None else last - newest
        searches.put(id(messages[-1]), _Search(ref(messages[-1]), distance, len(messages)))
    return newest


def with_recalled(
    messages: Sequence[BaseMessage], recalled: BaseMessage | None
) -> list[BaseMessage]:
    """Put recalled originals directly before the newest user message.

    Messages before that place are the same at each call of a turn, and stay in caches. If the user
    message also brings results of tools, which must follow their calls, they go behind it.
    """
    position = newest_user(messages) if recalled is not None else None
    if recalled is None or position is None:
        return list(messages)
    if brings_results(messages[position]):  # between a call and its result a provider takes nothing
        position += 1
    return [*messages[:position], recalled, *messages[position:]]


def brings_results(message: Source) -> bool:
    """Tell whether a message holds results of tools."""
    return any(map(_is_answer, blocks_of(message)))


def without_recalled(
    messages: Sequence[BaseMessage], history: Collection[BaseMessage]
) -> tuple[list[BaseMessage], BaseMessage | None]:
    """Take recalled originals out of a request; return both.

    Messages of the history never count as recalled ones: a mark cannot make a user's words
    disappear.
    """
    marked = [
        message for message in messages if message.additional_kwargs.get("lc_source") == RECALLED
    ]
    ids = {message.id for message in history} if marked else set()
    recalled = [message for message in marked if message.id not in ids]
    if not recalled:
        return list(messages), None
    identities = set(map(id, recalled))
    remaining = [message for message in messages if id(message) not in identities]
    return remaining, recalled[-1]


def without_summary_name(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return messages to send, in which a summary of ours has no `name`.

    Hosts know it in their state by that name, and some providers refuse one in the user's role.
    """
    for position, message in enumerate(messages[:NEAR_THE_BEGINNING]):
        if message.name == SUMMARY_NAME and "conspectus" in message.additional_kwargs:
            return [*messages[:position], _nameless(message), *messages[position + 1 :]]
    return messages


_nameless_summaries: BoundedCache[int, tuple[ref[Any], BaseMessage]] = BoundedCache(
    REMEMBERED_SUMMARIES
)
"""By the identity of a summary: itself, weakly, and its copy without a name."""


def _nameless(summary: BaseMessage) -> BaseMessage:
    """Return a summary without its name: the same object each time, as caches compare requests."""
    remembered = _nameless_summaries.get(id(summary))
    if remembered is not None and remembered[0]() is summary:
        return remembered[1]
    nameless = summary.model_copy(update={"name": None})
    _nameless_summaries.put(id(summary), (ref(summary), nameless))
    return nameless


def without_stale_thoughts(
    view: Sequence[Any], kept: int | None = None, *, all_of_them: bool = False
) -> list[Any]:
    """Leave out the thoughts of messages that stood in view when it was compacted.

    Args:
        view: the messages to send, as dicts or LangChain messages.
        kept: the first messages of the view, which a compaction has kept. Of those behind it all
            stays, so that the same view is sent each time. Default: those before the newest in the
            user's role.
        all_of_them: leave out every thought, once a provider has refused those that stay.

    Example:
        >>> thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        >>> said = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
        >>> without_stale_thoughts([said, {"role": "user", "content": "And?"}])[0]["content"]
        [{'type': 'text', 'text': 'Yes.'}]
    """
    if kept is None:
        # A provider goes by the role, whoever wrote the message.
        kept = _find_newest(view, _is_in_users_role, _newest_in_users_role)
    if all_of_them:
        return [without_thoughts(message) for message in view]
    kept = len(view) if kept is None else min(kept, len(view))
    end = kept
    while end and _brings_only_results(view[end - 1]):
        end -= 1
    has_results_behind = end < kept or (kept < len(view) and _brings_only_results(view[kept]))
    if end and has_results_behind:
        end -= 1  # the message whose calls were answered keeps its thoughts
    return [*map(without_thoughts, view[:end]), *view[end:]]


def refuses_thoughts(error: BaseException) -> bool:
    """Return whether a provider has refused thoughts behind another beginning, with status 400."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status in (400, None) and bool(REFUSED.search(as_text(error)[:SEARCHED_OF_ERROR]))


def _brings_only_results(message: Any) -> bool:
    """Return whether a message brings results of tools, by its kind or in its blocks."""
    if is_message(message):
        return is_tool_message(message)
    return message.get("role") == "tool" or brings_results(message)


def without_thoughts(message: Any) -> Any:
    """Return a message without its thoughts; itself if it has none, or nothing else."""
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
    """Return the types of a message's blocks that its provider binds to what stands before."""
    if not is_message(message):
        return THOUGHTS if message.get("role") == "assistant" else frozenset()
    if not is_ai_message(message):
        return frozenset()
    provider = message.response_metadata.get("model_provider")
    model = str(message.response_metadata.get("model_name", "")).lower()
    is_claude = "claude" in model or "anthropic" in model
    if provider == "anthropic" or ("bedrock" in str(provider) and is_claude):
        return THOUGHTS | {"reasoning"}
    return THOUGHTS if provider is None else frozenset()  # of others, none are bound
