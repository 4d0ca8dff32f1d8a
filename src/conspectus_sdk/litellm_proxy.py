"""Fit each request to LiteLLM's proxy before it is sent on; needs the extra `litellm`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from litellm.exceptions import ContextWindowExceededError
from litellm.integrations.custom_logger import CustomLogger

from conspectus.errors import StuckError
from conspectus_sdk.fitting import LOCAL, Fitter, plain

MESSAGES = frozenset("completion acompletion anthropic_messages aanthropic_messages".split())
ITEMS = frozenset("responses aresponses".split())
"""Kinds of calls with the history in `messages`, and in `input`."""

SESSION = ("litellm_session_id", "session_id", "thread_id")
"""Names of a conversation, in the request or in its `metadata`."""


class FittingLogger(CustomLogger):
    """Fit chat, Responses and Anthropic requests of every client of a proxy.

    The client's name identifies a conversation; without one its system prompt and its first
    message, among the conversations of the same key.

    Args:
        fitter: fits the messages.
        tenant: returns the tenant of a key and a request. Default: the key's digest, as LiteLLM
            keeps it.

    Example:
        `litellm_settings: {callbacks: your_module.fitting}` in the proxy's file, where
        `fitting = FittingLogger(Fitter(archive="agents.db"))`
    """

    def __init__(
        self, fitter: Fitter, *, tenant: Callable[[Any, Mapping[str, Any]], str] | None = None
    ) -> None:
        super().__init__()
        self._fitter = fitter
        self._tenant = tenant or (lambda key, data: str(getattr(key, "api_key", None) or LOCAL))

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Fit one request, and return it for LiteLLM to send.

        Raises:
            ContextWindowExceededError: nothing makes it fit.
            ConspectusError: the archive cannot be read, or the model's window is not known.
        """
        field = "messages" if call_type in MESSAGES else "input" if call_type in ITEMS else ""
        messages = data.get(field)
        if not isinstance(messages, list) or not messages:
            return data
        system = data.get("system") or data.get("instructions")
        model = str(data.get("model") or "")
        try:
            result = await self._fitter.afit(
                messages,
                model=model,
                thread_id=_named(data) or _told(messages, system),
                tenant=self._tenant(user_api_key_dict, data),
                system=system,
                tools=data.get("tools") or (),
                answer_tokens=_answer(data),
            )
        except StuckError as error:
            raise ContextWindowExceededError(str(error), model, "conspectus") from error
        return {**data, field: result.messages}


def _named(data: Mapping[str, Any]) -> str:
    """Return the client's name of its conversation; empty for none."""
    metadata = data.get("metadata")
    places = [data, metadata if isinstance(metadata, Mapping) else {}]
    found = (one[name] for one in places for name in SESSION if one.get(name))
    return str(next(found, ""))


def _told(messages: list[Any], system: object) -> str:
    """Name a conversation by its beginning, up to the first message that is no prompt."""
    start: list[Any] = [system]
    for message in messages:
        start.append(plain(message))
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("system", "developer"):
            break
    text = json.dumps(start, sort_keys=True, default=str)
    return f"litellm-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _answer(data: Mapping[str, Any]) -> int | None:
    names = ("max_completion_tokens", "max_output_tokens", "max_tokens")
    found = (value for name in names if isinstance(value := data.get(name), int))
    return next((value for value in found if value > 0), None)  # the provider refuses others
