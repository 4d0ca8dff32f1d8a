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

from conspectus._langchain import is_ai_message, is_message, is_tool_message
from conspectus._newest import Newest
from conspectus.messages.blocks import blocks_of, kind_of, opened
from conspectus.messages.framing import SUMMARY_NAME, is_summary_message
from conspectus.messages.hosts import is_host_message
from conspectus.messages.message import THOUGHTS, Message
from conspectus.observe.events import as_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from conspectus.messages.message import Source

LEAST_RECALL = 64  # Tokens below which hardly one message could be shown
RECALLED = "recalled"  # `lc_source` of such a message

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
    return not blocks or not all(isinstance(b, Mapping) and _is_answer(b) for b in blocks)


def _is_answer(block: Mapping[str, Any]) -> bool:
    """Tell whether a block holds the answer of a tool or a person."""
    return bool(kind_of(opened(block)).answers)


def newest_user(messages: Sequence[Source | Message]) -> int | None:
    """Return the place of the user's newest message, of such as were read, too.

    Where hosts wrote all that stands in the user's role, it is the newest of these; None without
    one.
    """
    place = _newest(messages, is_users, _USERS)
    return _newest(messages, _is_in_users_role, _IN_USERS_ROLE) if place is None else place


def _newest(
    messages: Sequence[Source | Message],
    is_wanted: Callable[[Source | Message], bool],
    places: Newest[int, _Place],
) -> int | None:
    """Return the place of the newest message that is wanted; None without one.

    What was found is remembered with the last message, so that a history that grows by the work of
    an agent is not searched back to its beginning at each step.
    """
    found: int | None = None
    for at in range(len(messages) - 1, -1, -1):
        known = places.get(id(messages[at]))
        if known is None or known.message() is not messages[at]:
            if not is_wanted(messages[at]):
                continue
            found = at
        elif known.distance is None:
            if known.searched <= at:  # it stood behind fewer messages then
                continue
        elif known.distance > at or not is_wanted(messages[at - known.distance]):
            continue
        else:
            found = at - known.distance
        break
    if messages and is_message(messages[-1]):
        last = len(messages) - 1
        distance = None if found is None else last - found
        places.put(id(messages[-1]), _Place(ref(messages[-1]), distance, len(messages)))
    return found


class _Place(NamedTuple):
    """How far before a message the newest one that is wanted stands; None if none of `searched`."""

    message: ref[Any]
    distance: int | None
    searched: int


_USERS: Newest[int, _Place] = Newest(1_024)
_IN_USERS_ROLE: Newest[int, _Place] = Newest(1_024)
"""By the identity of a message, what was found before it."""


def with_recalled(
    messages: Sequence[BaseMessage], recalled: BaseMessage | None
) -> list[BaseMessage]:
    """Put recalled originals directly before the newest user message.

    Messages before that place are the same at each call of a turn, and stay in caches. If the user
    message also brings results of tools, which must follow their calls, they go behind it.
    """
    at = newest_user(messages) if recalled is not None else None
    if recalled is None or at is None:
        return list(messages)
    if brings_results(messages[at]):  # between a call and its result a provider takes nothing
        at += 1
    return [*messages[:at], recalled, *messages[at:]]


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
    taken = set(map(id, recalled))
    return [message for message in messages if id(message) not in taken], recalled[-1]


NEAR_THE_BEGINNING = 16  # Messages among which a view has its summary


def without_summary_name(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return messages to send, in which a summary of ours has no `name`.

    Hosts know it in their state by that name, and some providers refuse one in the user's role.
    """
    for place, message in enumerate(messages[:NEAR_THE_BEGINNING]):
        if message.name == SUMMARY_NAME and "conspectus" in message.additional_kwargs:
            known = _NAMELESS.get(id(message))
            if known is None or known[0]() is not message:
                known = ref(message), message.model_copy(update={"name": None})
                _NAMELESS.put(id(message), known)
            return [*messages[:place], known[1], *messages[place + 1 :]]
    return messages


_NAMELESS: Newest[int, tuple[ref[Any], BaseMessage]] = Newest(256)
"""By the identity of a summary: itself, and what is sent of it; the same each time."""


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
        kept = _newest(view, _is_in_users_role, _IN_USERS_ROLE)
    end = kept = len(view) if all_of_them or kept is None else min(kept, len(view))
    while end and not all_of_them and _answers(view[end - 1]):
        end -= 1
    # The message whose calls have just been answered, also beside the user's own words.
    answered = end < kept or (kept < len(view) and _answers(view[kept]))
    end -= bool(end) and answered
    return [thoughtless(message) for message in view[:end]] + list(view[end:])


def refuses_thoughts(error: BaseException) -> bool:
    """Return whether a provider has refused thoughts behind another beginning, with status 400."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status in (400, None) and bool(REFUSED.search(as_text(error)[:4_000]))


def _answers(message: Any) -> bool:
    """Return whether a message brings results of tools, by its kind or in its blocks."""
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
