"""Fit runs of OpenAI's Agents SDK, by a session and a filter before each model call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conspectus.errors import PolicyError, install_command

try:
    from agents import FunctionTool
    from agents.items import TResponseInputItem
    from agents.memory import Session, SessionABC
    from agents.models import get_default_model
    from agents.run_config import CallModelData, ModelInputData
except ImportError as error:
    command = install_command("openai-agents")
    raise ImportError(f"the Agents SDK is not installed: {command}") from error

from conspectus_sdk.fitting import Fitter

InputFilter = Callable[[CallModelData[Any]], Any]


class FittedSession(SessionABC):
    """A session that fits the history of another one, which keeps all of it.

    Give the run `session.input_filter`, too, so that a run of many turns stays inside the window.
    `model` answers; `tenant` and `answer_tokens` are those of `Fitter.fit`. Raises `PolicyError`
    for what is no `Fitter`.

    Example:
        `Runner.run(agent, "hi", session=session, run_config=RunConfig(call_model_input_filter=
        session.input_filter))`
    """

    def __init__(self, session: Session, fitter: Fitter, *, model: str, **request: Any) -> None:
        if not hasattr(fitter, "afit"):
            form = "FittedSession(session, fitter, model=...)"
            raise PolicyError(f"the session comes first, then its Fitter: {form}, not {fitter!r}")
        self.inner, self.session_id, self._fitter = session, session.session_id, fitter
        self.session_settings = getattr(session, "session_settings", None)
        self._request: Any = {"thread_id": self.session_id, "model": model, **request}
        self.input_filter = input_filter(fitter, **self._request)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the history fitted to the window; with a limit the newest items."""
        items = await self.inner.get_items(limit)
        if limit is not None:
            return items
        return (await self._fitter.afit(items, **self._request)).messages

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the session inside."""
        await self.inner.add_items(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out of the session inside."""
        return await self.inner.pop_item()

    async def clear_session(self) -> None:
        """Clear the session inside; what was archived stays until `Archive.forget`."""
        await self.inner.clear_session()


def input_filter(
    fitter: Fitter,
    *,
    thread_id: str | Callable[[CallModelData[Any]], str],
    model: str | None = None,
    **request: Any,
) -> InputFilter:
    """Make a filter for `RunConfig(call_model_input_filter=...)` that fits each model call.

    `thread_id` names the conversation, or is a function that names it by the call; `model` is by
    default the agent's; `tenant` and `answer_tokens` are those of `Fitter.fit`, whose errors the
    filter raises.
    """

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        sent, agent = data.model_data, data.agent
        own: Any = agent.model
        named = model or getattr(own, "model", own)
        tools = [
            {"name": one.name, "description": one.description, "parameters": one.params_json_schema}
            for one in agent.tools
            if isinstance(one, FunctionTool)
        ]
        result = await fitter.afit(
            sent.input,
            model=named if isinstance(named, str) else get_default_model(),
            thread_id=thread_id if isinstance(thread_id, str) else thread_id(data),
            system=sent.instructions,
            tools=tools,
            **request,
        )
        return ModelInputData(input=result.messages, instructions=sent.instructions)

    return fitted
