"""The form of a request that its model takes, learned from what the provider refuses.

A model may refuse thoughts behind another beginning, messages of the user in a row, or a system
message. Only the request changes: the state keeps the messages as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any, Literal, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import named
from conspectus.langchain.state import HeadState
from conspectus.messages.alternation import (
    AlternateRoles,
    alternates,
    alternating,
    asked_form,
    without_system,
)
from conspectus.messages.requests import refuses_thoughts, without_stale_thoughts

Form = Literal["thoughts", "roles", "system"]
"""What a provider has refused: thoughts, messages of one role in a row, a system message."""

LASTING: frozenset[Form] = frozenset(("roles", "system"))
"""Forms that a model asks for in each request."""

MODELS = 64  # models of which something is remembered

SENT_AGAIN: dict[Form, str] = {
    "thoughts": "the provider refused thoughts of the model: sent without them",
    "roles": "the provider refused messages of the user in a row: sent as one message",
    "system": "the provider refused the system message: sent in the first message of the user",
}


class Forms:
    """The forms that models ask for, for requests of one middleware."""

    def __init__(self, setting: AlternateRoles) -> None:
        self._setting: AlternateRoles = setting
        self._learned = BoundedCache[str, frozenset[Form]](MODELS)
        self._has_learned = False

    def learned(self, model: object) -> frozenset[Form]:
        """Return the forms that a model has asked for by a refusal."""
        return self._learned.get(model_name(model)) or frozenset()

    def remember(self, model: object, forms: Iterable[str]) -> None:
        """Remember forms in which a model has answered, after it refused the request as it was."""
        lasting = frozenset(form for form in LASTING if form in forms)
        learned = self.learned(model)
        if not lasting <= learned:
            self._learned.put(model_name(model), learned | lasting)
            self._has_learned = True

    def formed(self, request: ModelRequest[Any], *, compacted: HeadState) -> ModelRequest[Any]:
        """Return a request in the form that its model is known to take."""
        if not (compacted.head_id or self._setting == "on" or self._has_learned):
            return request
        learned = self.learned(request.model)
        if "roles" in learned or self._joins(request.model, compacted):
            request = in_form(request, "roles")
        return in_form(request, "system") if "system" in learned else request

    def _joins(self, model: object, compacted: HeadState) -> bool:
        if not compacted.head_id and self._setting != "on":
            return False  # it is sent as it came
        by_name = alternates(self._setting, named(model))
        return compacted.alternates if by_name is None else by_name

    def asked_for(self, error: Exception, request: ModelRequest[Any]) -> Form | None:
        """Return the form that a refusal asks for; None for an error of another kind."""
        form: Form | None = "thoughts" if refuses_thoughts(error) else None
        if form is None and self._setting != "off":
            form = asked_form(error)
        return None if form is None or in_form(request, form) is request else form


def in_form(request: ModelRequest[Any], form: Form) -> ModelRequest[Any]:
    """Return a request in one form; itself if that changes nothing."""
    messages: list[Any] = list(request.messages)
    if form == "thoughts":
        fresh = without_stale_thoughts(messages, 0, all_of_them=True)
        same = all(map(is_, fresh, messages))
    elif form == "roles":
        fresh = alternating(messages)
        same = len(fresh) == len(messages)
    else:
        system = request.system_message
        fresh = without_system([*([] if system is None else [system]), *messages])
        if system is not None:
            return request.override(system_message=None, messages=cast("list[AnyMessage]", fresh))
        same = all(message.type != "system" for message in messages)
    return request if same else request.override(messages=cast("list[AnyMessage]", fresh))


def model_name(model: object) -> str:
    """Return a name that tells a model from others, or an empty text."""
    return "" if model is None else f"{type(model).__name__}:{named(model)}"
