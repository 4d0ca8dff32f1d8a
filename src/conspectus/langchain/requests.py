"""Send one request of an agent, in every middleware that stands around the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any, cast

from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
from langchain.agents.middleware.types import (
    AgentMiddleware,
    ContextT,
    ModelRequest,
    ResponseT,
    TracePolicy,
    omit_payload,
)
from langchain_core.messages import AnyMessage, BaseMessage

from conspectus.bridge import arun, io, run
from conspectus.engine.cached_request import sending as remembering
from conspectus.errors import Attributes
from conspectus.langchain.channel import Channel
from conspectus.langchain.settings import Setup
from conspectus.langchain.state import CompactionState, HeadState, Run
from conspectus.messages.requests import (
    refuses_thoughts,
    without_stale_thoughts,
)
from conspectus.model.base import LastRequest
from conspectus.model.calls import profile_window
from conspectus.observe import log

Send = Callable[[ModelRequest[Any]], Awaitable[Any]]


class WrapsCalls(Attributes, AgentMiddleware[CompactionState, ContextT, ResponseT]):
    """A middleware around each call of the model, the same with and without an event loop."""

    state_schema = CompactionState
    transformers = (InternalCallTransformer,)
    trace_policy = TracePolicy(process_inputs=omit_payload)

    _name: str
    _called: Callable[[ModelRequest[Any], Send], Awaitable[Any]]

    @property
    def name(self) -> str:
        """The name of this instance, unique in its agent."""
        return self._name

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Call the model with what this middleware makes of its request."""
        return run(self._called(request, lambda sent: io(lambda: handler(sent))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]
    ) -> Any:
        """`wrap_model_call` on an event loop."""

        def send(sent: ModelRequest[Any]) -> Awaitable[Any]:
            return io(lambda: None, lambda: handler(sent))  # the first is for no loop

        return await arun(self._called(request, send))


def is_sent_as_it_is(request: ModelRequest[Any], setup: Setup) -> bool:
    """Return whether there is no record to show, to follow, or to ask for in this request."""
    if setup.engine.cached or request.state.get(HeadState.CHANNEL):
        return False
    return setup.archive(request.runtime) is None or not Run.of(request.runtime).saved


async def deliver(
    channel: Channel, request: ModelRequest[Any], messages: Sequence[BaseMessage], send: Send
) -> Any:
    """Send messages without stale thoughts; without any if the provider refuses the others too."""
    messages = await channel.thoughtful(messages)
    if messages is not request.messages:
        request = request.override(messages=cast("list[AnyMessage]", [*messages]))
    with _remembered(channel, request):
        try:
            return await send(request)
        except Exception as error:
            fresh = without_stale_thoughts(messages, 0, all_of_them=True)
            if not refuses_thoughts(error) or all(map(is_, fresh, messages)):
                raise
        log("thoughts_refused", "the provider refused thoughts of the model: sent without them")
        return await send(request.override(messages=cast("list[AnyMessage]", fresh)))


def _remembered(channel: Channel, request: ModelRequest[Any]) -> AbstractContextManager[None]:
    """Wrap the call of a model: remember its request, for a summary that uses its cache."""
    setup = channel.setup
    if not setup.engine.cached:
        return nullcontext()
    last: LastRequest | None = None
    # A model that must answer in a form, or must call a tool, would do so again, and without that
    # the provider's cache does not know the request.
    forced = request.tool_choice not in (None, "auto") or "tool_choice" in request.model_settings
    if request.response_format is None and not forced:
        system = [request.system_message] if request.system_message is not None else []
        last = LastRequest(
            model=request.model,
            messages=(*system, *request.messages),
            tools=tuple(request.tools),
            tool_choice=request.tool_choice,
            settings=dict(request.model_settings),
            window=setup.window or profile_window(request.model),
        )
    return remembering(setup.engine.memory.of(channel.scope), last)
