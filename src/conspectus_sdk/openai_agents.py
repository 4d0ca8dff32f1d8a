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
    """A session that wraps another one: the inner session keeps the history, this one fits it.

    Give the run `session.input_filter`, too, so that a run of many turns stays inside the window.
    `model` answers; `tenant` and `answer_tokens` are those of `Fitter.fit`. Raises `PolicyError` if
    `fitter` is no `Fitter`.

    Example:
        `Runner.run(agent, "hi", session=session, run_config=RunConfig(call_model_input_filter=
        session.input_filter))`
    """

    def __init__(self, session: Session, fitter: Fitter, *, model: str, **request: Any) -> None:
        if not hasattr(fitter, "afit"):
            form = "FittedSession(session, fitter, model=...)"
            raise PolicyError(f"the session comes first, then its Fitter: {form}, not {fitter!r}")
        self.inner = session
        self.session_id = session.session_id
        self._fitter = fitter
        self.session_settings = getattr(session, "session_settings", None)
        self._request: Any = {"thread_id": self.session_id, "model": model, **request}
        self.input_filter = input_filter(fitter, **self._request)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the history, fitted to the window; with a limit, the newest items."""
        items = await self.inner.get_items(limit)
        if limit is not None:
            return items
        return (await self._fitter.afit(items, **self._request)).messages

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the session inside."""
        await self.inner.add_items(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the inner session, and return it."""
        return await self.inner.pop_item()

    async def clear_session(self) -> None:
        """Clear the inner session. Archived originals stay until `Archive.forget` deletes them."""
        await self.inner.clear_session()


def input_filter(
    fitter: Fitter,
    *,
    thread_id: str | Callable[[CallModelData[Any]], str],
    model: str | None = None,
    **request: Any,
) -> InputFilter:
    """Make a filter for `RunConfig(call_model_input_filter=...)` that fits each call of a model.

    The filter raises the errors of `Fitter.fit`.

    Args:
        fitter: fits the messages.
        thread_id: the name of the conversation, or a function that takes the call and returns it.
        model: the name of the model. Default: the model of the agent.
        **request: `tenant` and `answer_tokens`, as for `Fitter.fit`.
    """

    async def fit_call(data: CallModelData[Any]) -> ModelInputData:
        items = data.model_data.input
        instructions = data.model_data.instructions
        result = await fitter.afit(
            items,
            model=model or _model_of(data.agent),
            thread_id=thread_id if isinstance(thread_id, str) else thread_id(data),
            system=instructions,
            tools=_tools_of(data.agent),
            **request,
        )
        return ModelInputData(input=result.messages, instructions=instructions)

    return fit_call


def _model_of(agent: Any) -> str:
    """Return the name of the model that answers an agent."""
    name = getattr(agent.model, "model", agent.model)
    return name if isinstance(name, str) else get_default_model()


def _tools_of(agent: Any) -> list[dict[str, Any]]:
    """Return an agent's own functions, in the provider's form."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in agent.tools
        if isinstance(tool, FunctionTool)
    ]
