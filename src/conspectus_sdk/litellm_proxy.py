"""Fit each request to LiteLLM's proxy before it is sent on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from conspectus.errors import MessageError, PolicyError, StuckError, install_command

try:
    from litellm.exceptions import ContextWindowExceededError
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise ImportError(f"LiteLLM is not installed: {install_command('litellm')}") from error

from conspectus.model.answer_limits import reserved_for_answer
from conspectus_sdk.fitting import Fitter, plain

logger = logging.getLogger(__name__)

CHAT_CALLS = ("completion", "acompletion", "anthropic_messages", "aanthropic_messages")
RESPONSES_CALLS = ("responses", "aresponses")

HISTORY_FIELDS = {
    **dict.fromkeys(CHAT_CALLS, "messages"),
    **dict.fromkeys(RESPONSES_CALLS, "input"),
}
"""Fields of requests with a history, by LiteLLM's types of calls."""

SESSION_FIELDS = ("litellm_session_id", "session_id", "thread_id")
"""Fields of a request, or of its `metadata`, in which clients name their conversation."""

PROMPT_ROLES = ("system", "developer")


class FittingLogger(CustomLogger):
    """Fit chat, Responses and Anthropic requests of every client of a proxy.

    A conversation is identified by the name that the client gives it (`litellm_session_id`,
    `session_id` or `thread_id`). Without a name, it is identified by its system prompt and its
    first message, among the conversations of the same API key.

    Args:
        fitter: fits the messages.
        tenant: a function that takes the API key and the request, and returns the tenant. Default:
            the digest of the key, as LiteLLM stores it.

    Example:
        `litellm_settings: {callbacks: your_module.fitting}` in the proxy's file, where
        `fitting = FittingLogger(Fitter(archive="agents.db"))`
    """

    def __init__(
        self, fitter: Fitter, *, tenant: Callable[[Any, Any], str | None] | None = None
    ) -> None:
        super().__init__()
        self._fitter = fitter
        self._tenant = tenant or _tenant_of_key

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Fit one request, and return it for LiteLLM to send.

        If messages or tools have an unknown form, or the window of the model is not known, the
        request is passed on unchanged, and a warning in the log says so.

        Raises:
            ContextWindowExceededError: the request cannot be made to fit.
            ArchiveError: the archive cannot be read.
        """
        field = HISTORY_FIELDS.get(call_type, "")
        messages = data.get(field)
        if not messages:
            return data
        if isinstance(messages, str) and field == "input":
            messages = [{"role": "user", "content": messages}]
        system = data.get("system") or data.get("instructions")
        model = str(data.get("model") or "")
        history = messages if isinstance(messages, list) else []
        try:
            # Clients may set this to the most of any model, even if that is the whole window.
            _, window = self._fitter.engine(model)
            result = await self._fitter.afit(
                messages,
                model=model,
                thread_id=_thread_of(data, history, system),
                tenant=self._tenant(user_api_key_dict, data),
                system=system,
                tools=data.get("tools") or (),
                answer_tokens=reserved_for_answer((data,), window),
            )
        except StuckError as error:
            raise ContextWindowExceededError(str(error), model, "conspectus") from error
        except (MessageError, PolicyError, RecursionError) as error:
            logger.warning("sent on as it came, not fitted: %s", error)
            return data
        return data if result.messages == messages else {**data, field: result.messages}


def _tenant_of_key(key: Any, data: Any) -> str | None:
    """Return the digest of a key, as LiteLLM stores it; None without a key."""
    return getattr(key, "api_key", None) or None


def _thread_of(data: Mapping[str, Any], history: list[Any], system: object) -> str:
    """Return the client's name of its conversation, or a name made from its beginning."""
    metadata = data.get("metadata")
    for fields in (data, metadata if isinstance(metadata, Mapping) else {}):
        for name in SESSION_FIELDS:
            if fields.get(name):
                return str(fields[name])
    beginning = [system, *map(plain, _up_to_first_message(history))]
    text = json.dumps(beginning, sort_keys=True, default=str)
    return f"litellm-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _up_to_first_message(history: list[Any]) -> list[Any]:
    """Return the beginning of a history up to the first message that is no prompt."""
    for index, message in enumerate(history):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in PROMPT_ROLES:
            return history[: index + 1]
    return history
