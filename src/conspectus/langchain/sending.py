"""Send a request to the model, without the parts of it that the model would refuse.

The state keeps its messages as they are; only the request changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from operator import is_
from typing import Any, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage, BaseMessage

from conspectus._langchain import innermost
from conspectus.engine.cached_request import sending
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.refused_features import SENT_AGAIN, without_feature
from conspectus.langchain.state import name_messages, without_response_id
from conspectus.messages.framing import without_summary_name
from conspectus.messages.refusals import RefusedFeature
from conspectus.messages.thoughts import without_stale_thoughts
from conspectus.model.base import LastRequest
from conspectus.model.calls import profile_window
from conspectus.observe import log

Handler = Callable[[ModelRequest[Any]], Awaitable[Any]]
"""What calls the model, as LangChain gives it to a middleware."""


async def send(
    step: AgentStep, request: ModelRequest[Any], messages: Sequence[BaseMessage], handler: Handler
) -> Any:
    """Send messages in a request, and return the answer.

    If the model refuses a feature of the request, the request is sent again without it.
    `RefusedFeatures` remembers those that a model refuses in every request.
    """
    refused_features = step.setup.refused
    messages = await _without_stale_parts(step, messages, request.model)
    if step.held.head_id:
        messages = without_summary_name(messages)
    if messages is not request.messages:
        request = request.override(messages=cast("list[AnyMessage]", [*messages]))
    request = refused_features.without_refused(request, compacted=step.held)
    if step.setup.engine.uses_prompt_cache:
        handler = _remembering(step, handler)
    refused: set[RefusedFeature] = set()
    while True:
        try:
            response = await handler(request)
            break
        except Exception as error:
            feature = refused_features.find_refused_feature(request, error)
            if feature is None or feature in refused:
                raise
            log(f"{feature}_refused", SENT_AGAIN[feature])
        request = without_feature(request, feature)
        refused.add(feature)
    refused_features.remember(request.model, refused)
    return response


async def _without_stale_parts(
    step: AgentStep, messages: Sequence[BaseMessage], model: object
) -> Sequence[BaseMessage]:
    """Leave out thoughts and ids of responses that no longer fit what was sent before them.

    They are in messages that the latest compaction kept.
    """
    held = step.held
    if not held.head_id:
        return messages
    continues_response = getattr(innermost(model), "__dict__", {}).get("use_previous_response_id")
    if not (continues_response or step.cache.has_blocks(messages)):
        return messages
    view: Sequence[BaseMessage] = step.messages
    name_messages(view)  # a run may begin here, in another process
    if step.preserve or held.pending:
        step, view = await step.view_with_changes(view)
    kept_ids = {message.id for message in view[: held.messages_after]}
    kept_places = (at for at, message in enumerate(messages) if message.id in kept_ids)
    end = max(kept_places, default=-1) + 1  # of the messages that the compaction has kept
    # Most models need the newest thoughts next to their calls, until there are newer ones.
    has_newer = end < len(messages)
    kept = without_stale_thoughts(messages[:end], end, all_of_them=has_newer)
    if continues_response:
        kept = [without_response_id(message) for message in kept]
    sent = [*kept, *messages[end:]]
    return messages if all(map(is_, sent, messages)) else sent


def _remembering(step: AgentStep, handler: Handler) -> Handler:
    """Return a handler that remembers its request, for a summary that uses the provider's cache."""

    async def remembered(request: ModelRequest[Any]) -> Any:
        last_request: LastRequest | None = None
        # A summary cannot use the cache of a request that forces a form or a tool: with that, the
        # model would not write a summary, and without it the provider's cache does not match.
        settings = request.model_settings
        is_forced = request.tool_choice not in (None, "auto") or "tool_choice" in settings
        if request.response_format is None and not is_forced:
            system = [] if request.system_message is None else [request.system_message]
            last_request = LastRequest(
                model=request.model,
                messages=(*system, *request.messages),
                tools=tuple(request.tools),
                tool_choice=request.tool_choice,
                settings=dict(settings),
                window=step.setup.window or profile_window(request.model),
            )
        with sending(step.setup.engine.memories.of(step.scope), last_request):
            return await handler(request)

    return remembered
