"""A request of a LangChain agent, as it may be sent again with one instruction after it."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware.types import ModelRequest

from conspectus.compactor.models import profile_window
from conspectus.summarize.riding import LastRequest


def last_request(request: ModelRequest[Any], window: int | None) -> LastRequest | None:
    """A request of an agent; None where its answer could be no plain text.

    A model that must answer in a form, or must call a tool, would do so again, and a provider does
    not find a request again of which that was changed.

    Args:
        request: as it is sent.
        window: input limit of the model, in tokens; None for that of its profile.
    """
    forced = request.tool_choice not in (None, "auto") or "tool_choice" in request.model_settings
    if request.response_format is not None or forced:
        return None
    system = [request.system_message] if request.system_message is not None else []
    return LastRequest(
        model=request.model,
        messages=(*system, *request.messages),
        tools=tuple(request.tools),
        tool_choice=request.tool_choice,
        settings=dict(request.model_settings),
        window=window or profile_window(request.model),
    )
