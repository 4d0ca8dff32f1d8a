"""Features that models have refused, and requests without them.

A model may refuse user messages in a row, or a system message; it never gets them again. It may
also refuse thoughts if messages before them have changed; the refused request is sent again without
them. Only requests change: the state keeps the messages as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AnyMessage

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import named
from conspectus.langchain.state import HeadState
from conspectus.messages.alternation import (
    AlternateRoles,
    alternating,
    joins_by_setting,
    without_system,
)
from conspectus.messages.refusals import RefusedFeature, refused_by_template, refuses_thoughts
from conspectus.messages.thoughts import without_stale_thoughts

LASTING: frozenset[RefusedFeature] = frozenset(("roles", "system"))
"""Features that a model refuses in each request."""

MOST_MODELS = 64
"""The most models that are remembered."""

SENT_AGAIN: dict[RefusedFeature, str] = {
    "thoughts": "the provider refused thoughts of the model: sent without them",
    "roles": "the provider refused messages of the user in a row: sent as one message",
    "system": "the provider refused the system message: sent in the first message of the user",
}


class RefusedFeatures:
    """The features that models have refused, in requests of one middleware."""

    def __init__(self, setting: AlternateRoles) -> None:
        self._setting: AlternateRoles = setting
        self._learned = BoundedCache[str, frozenset[RefusedFeature]](MOST_MODELS)
        self._has_learned = False

    def features_of(self, model: object) -> frozenset[RefusedFeature]:
        """Return the features that a model refuses in each request."""
        return self._learned.get(model_name(model)) or frozenset()

    def remember(self, model: object, refused: Iterable[str]) -> None:
        """Remember features that a model refuses: it has answered without them."""
        lasting = frozenset(feature for feature in LASTING if feature in refused)
        learned = self.features_of(model)
        if not lasting <= learned:
            self._learned.put(model_name(model), learned | lasting)
            self._has_learned = True

    def without_refused(
        self, request: ModelRequest[Any], *, compacted: HeadState
    ) -> ModelRequest[Any]:
        """Return a request without what its model is known to refuse."""
        if not (compacted.head_id or self._setting == "on" or self._has_learned):
            return request
        learned = self.features_of(request.model)
        if "roles" in learned or self._joins(request.model, compacted):
            request = without_feature(request, "roles")
        return without_feature(request, "system") if "system" in learned else request

    def _joins(self, model: object, compacted: HeadState) -> bool:
        """Tell whether user messages in a row are joined for a model."""
        if not compacted.head_id and self._setting != "on":
            return False  # the request is not changed
        by_name = joins_by_setting(self._setting, named(model))
        return compacted.may_need_joining if by_name is None else by_name

    def find_refused_feature(
        self, request: ModelRequest[Any], error: Exception
    ) -> RefusedFeature | None:
        """Return the feature of a request that an error refuses; None for any other error."""
        feature: RefusedFeature | None = "thoughts" if refuses_thoughts(error) else None
        if feature is None and self._setting != "off":
            feature = refused_by_template(error)
        if feature is None or without_feature(request, feature) is request:
            return None
        return feature


def without_feature(request: ModelRequest[Any], feature: RefusedFeature) -> ModelRequest[Any]:
    """Return a request without a feature; the same request if it does not have the feature."""
    messages: list[Any] = list(request.messages)
    if feature == "thoughts":
        changed = without_stale_thoughts(messages, 0, all_of_them=True)
        is_same = all(map(is_, changed, messages))
    elif feature == "roles":
        changed = alternating(messages)
        is_same = len(changed) == len(messages)
    else:
        system = request.system_message
        changed = without_system([*([] if system is None else [system]), *messages])
        if system is not None:
            return request.override(system_message=None, messages=cast("list[AnyMessage]", changed))
        is_same = all(message.type != "system" for message in messages)
    return request if is_same else request.override(messages=cast("list[AnyMessage]", changed))


def model_name(model: object) -> str:
    """Return a name that differs from those of other models; empty if there is no model."""
    return "" if model is None else f"{type(model).__name__}:{named(model)}"
