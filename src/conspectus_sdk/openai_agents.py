"""Fit runs of OpenAI's Agents SDK, by a session and a filter before each model call.

Needs the extra `openai-agents`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool
from agents.items import TResponseInputItem
from agents.memory import Session, SessionABC, SessionSettings
from agents.models import get_default_model
from agents.run_config import CallModelData, ModelInputData

from conspectus_sdk.fitting import LOCAL, Fitter

InputFilter = Callable[[CallModelData[Any]], Any]


class FittedSession(SessionABC):
    """A session that fits the history of another one, which keeps all of it.

    Give the run `session.input_filter`, too, so that a run of many turns stays inside the window.

    Args:
        session: any other session; it is only added to, as the SDK does.
        fitter: fits the items.
        model: the model that answers.
        tenant: of the conversation.
        answer_tokens: maximum of an answer, if it counts in the model's window.

    Example:
        `Runner.run(agent, "hi", session=session, run_config=RunConfig(call_model_input_filter=
        session.input_filter))`
    """

    def __init__(
        self,
        session: Session,
        fitter: Fitter,
        *,
        model: str,
        tenant: str = LOCAL,
        answer_tokens: int | None = None,
    ) -> None:
        self.inner, self._fitter, self._model, self._tenant = session, fitter, model, tenant
        self.session_id = session.session_id
        self.input_filter = input_filter(
            fitter,
            thread_id=session.session_id,
            tenant=tenant,
            model=model,
            answer_tokens=answer_tokens,
        )

    @property
    def session_settings(self) -> SessionSettings | None:  # type: ignore[override]
        """Return the settings of the session inside."""
        return self.inner.session_settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the history fitted to the window; with a limit the newest items."""
        items = await self.inner.get_items(limit)
        if limit is not None:
            return items
        result = await self._fitter.afit(
            items, model=self._model, thread_id=self.session_id, tenant=self._tenant
        )
        return result.messages

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
    tenant: str = LOCAL,
    model: str | None = None,
    answer_tokens: int | None = None,
) -> InputFilter:
    """Make a `call_model_input_filter` that fits the input of each model call.

    Args:
        fitter: fits the items.
        thread_id: names the conversation, or a function that names it by the call.
        tenant: of the conversation.
        model: the model that answers. Default: that of the agent.
        answer_tokens: maximum of an answer, if it counts in the model's window.

    Returns:
        The filter, for `RunConfig(call_model_input_filter=...)`. It raises the errors of
        `Fitter.fit`.
    """

    async def fitted(data: CallModelData[Any]) -> ModelInputData:
        sent = data.model_data
        result = await fitter.afit(
            sent.input,
            model=model or _model_of(data.agent),
            thread_id=thread_id if isinstance(thread_id, str) else thread_id(data),
            tenant=tenant,
            system=sent.instructions,
            tools=_schemas(data.agent),
            answer_tokens=answer_tokens,
        )
        return ModelInputData(input=result.messages, instructions=sent.instructions)

    return fitted


def _model_of(agent: Agent[Any]) -> str:
    """Return the name of an agent's model."""
    if isinstance(agent.model, str):
        return agent.model
    named = getattr(agent.model, "model", None)
    return named if isinstance(named, str) else get_default_model()


def _schemas(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Return the schemas of the agent's own tools."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.params_json_schema,
        }
        for tool in agent.tools
        if isinstance(tool, FunctionTool)
    ]
