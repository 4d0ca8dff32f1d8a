"""How long a model's answer may become by its own limit.

A limit is set on a model (`ChatOpenAI(max_tokens=256)`) or bound to it
(`model.bind(max_tokens=128)`), below retries, fallbacks and configurations. An answer that ends at
a limit of the caller is short on purpose. An answer that ends for another reason, such as a full
window, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

LIMIT_SETTINGS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "num_predict",
    "max_new_tokens",
    "max_tokens_to_sample",
    "maxTokens",
    "maxOutputTokens",
    "n_predict",
)
"""Names of the setting that limits an answer, in models and providers."""

NESTED_SETTINGS = (
    "model_kwargs",
    "extra_body",
    "generation_config",
    "generationConfig",
    "options",
    "inferenceConfig",
    "additional_model_request_fields",
    "pipeline_kwargs",
    "parameters",
)
"""Settings that contain other settings; the limit may be one of those."""

MOST_WRAPPERS = 16
"""The most wrappers around a model that are opened."""

REACHED_SHARE = 0.9
"""An answer that ended at a limit has this share of it, as its provider counts tokens. A shorter
answer has filled the window instead."""

ESTIMATE_FACTOR = 4
"""If the provider reports no tokens, an answer has at most its estimate times this factor, plus
`UNSEEN_TOKENS`."""

UNSEEN_TOKENS = 256
"""The most tokens of thoughts that are not shown."""

MOST_OUTPUT_SHARE = 0.5
"""The largest share of the window that is reserved for the answer, whatever the settings say."""


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """The limit of the answers of one model."""

    tokens: int
    is_set: bool  # by the caller, and not by a default of the model's class


# The limits of a model


def answer_limits_of(model: object) -> list[AnswerLimit]:
    """Return the limit of each model that may answer: of this one, and of its fallbacks."""
    limits = (_first_limit(holders) for holders in _answering(model, (), {}, MOST_WRAPPERS))
    return [limit for limit in limits if limit is not None]


def answer_limit(model: object) -> int | None:
    """Return the tokens that an answer of a model can have at most; None if nothing limits it."""
    return min((limit.tokens for limit in answer_limits_of(model)), default=None)


def _answering(
    model: Any, outer: tuple[object, ...], configured: Mapping[str, Any], depth: int
) -> Iterator[tuple[object, ...]]:
    """Yield, for each model that may answer, the objects that set its options, outermost first.

    Args:
        model: a model, or a wrapper around one.
        outer: objects of the wrappers above.
        configured: values that these wrappers set for configurable fields.
        depth: how many more wrappers may be opened.
    """
    attributes: Mapping[str, Any] = getattr(model, "__dict__", None) or {}
    if not depth:
        return
    depth -= 1
    if attributes.get("fallbacks") and attributes.get("runnable") is not None:
        for candidate in (attributes["runnable"], *attributes["fallbacks"]):
            yield from _answering(candidate, outer, configured, depth)
    elif attributes.get("bound") is not None:  # options, retries, a configuration
        configured = {**_configurable(attributes), **configured}
        outer = (*outer, attributes.get("kwargs"))
        yield from _answering(attributes["bound"], outer, configured, depth)
    elif attributes.get("default") is not None and "fields" in attributes:  # configurable fields
        configured = {**_configurable(attributes), **configured}
        chosen = {
            name: configured[field.id]
            for name, field in (attributes["fields"] or {}).items()
            if getattr(field, "id", None) in configured
        }
        yield from _answering(attributes["default"], (*outer, chosen), configured, depth)
    elif attributes.get("last") is not None and attributes.get("first") is not None:  # a sequence
        steps = (attributes["first"], *(attributes.get("middle") or ()), attributes["last"])
        for step in steps:
            yield from _answering(step, outer, configured, depth)
    elif isinstance(attributes.get("_default_config"), Mapping):  # a model built at each call
        queued = attributes.get("_queued_declarative_operations") or ()
        bound = (options for _, _, options in reversed(queued) if isinstance(options, Mapping))
        yield (*outer, *bound, attributes["_default_config"])
    elif getattr(attributes.get("func"), "__self__", None) is not None:  # a method of a model
        yield from _answering(attributes["func"].__self__, outer, configured, depth)
    else:
        yield (*outer, model, attributes.get("llm"))


def _configurable(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values that a wrapper sets for configurable fields below it."""
    config = attributes.get("config") or {}
    return config.get("configurable") or {}


def _first_limit(holders: tuple[object, ...]) -> AnswerLimit | None:
    """Return the limit of the outermost object that sets one, which overrides the others."""
    for holder in holders:
        limits = _limits_in(holder)
        if limits:
            smallest = min(limits, key=lambda limit: limit.tokens)
            return smallest if smallest.tokens > 0 else None  # 0 and -1 mean no limit
    return None


def _limits_in(holder: object) -> list[AnswerLimit]:
    """Return the limits that an object names, or the settings inside it."""
    limits = list[AnswerLimit]()
    for settings in (holder, *(_setting(holder, name) for name in NESTED_SETTINGS)):
        for name in LIMIT_SETTINGS:
            value = _setting(settings, name)
            if isinstance(value, int) and not isinstance(value, bool):
                limits.append(AnswerLimit(value, _is_set(settings, name, value)))
    return limits


def _setting(holder: object, name: str) -> Any:
    if isinstance(holder, Mapping):
        return holder.get(name)
    try:
        return getattr(holder, name, None)
    except Exception:  # a property of a caller's own class
        return None


def _is_set(holder: object, name: str, value: int) -> bool:
    """Tell whether a caller has set a limit: it is bound, or no default of LangChain's classes."""
    if isinstance(holder, Mapping):
        return True
    profile = getattr(holder, "profile", None)
    if isinstance(profile, Mapping) and profile.get("max_output_tokens") == value:
        return False
    fields_set = getattr(holder, "model_fields_set", None)
    is_langchains = type(holder).__module__.startswith("langchain")
    return not is_langchains or fields_set is None or name in fields_set


def ends_at_limit(answer: Any, limits: list[AnswerLimit], count: Callable[[str], int]) -> bool:
    """Tell whether an answer that was cut off has reached a limit that its caller has set."""
    limits_set = [limit.tokens for limit in limits if limit.is_set]
    usage = getattr(answer, "usage_metadata", None)
    reported = usage.get("output_tokens") if isinstance(usage, Mapping) else None
    if reported:
        return any(reported >= REACHED_SHARE * limit for limit in limits_set)
    estimate = count(str(getattr(answer, "content", answer)))
    return any(ESTIMATE_FACTOR * estimate + UNSEEN_TOKENS >= limit for limit in limits_set)


# How much of a window an answer takes


def reserved_for_answer(holders: Sequence[object], window: int | None) -> int:
    """Return the tokens of an answer, by the first of settings or models that limits it."""
    limit = next((limit for limit in limits_named_by(holders) if limit > 0), 0)
    return min(limit, int(window * MOST_OUTPUT_SHARE)) if window else limit


def limits_named_by(holders: Sequence[object]) -> Iterator[int]:
    """Yield the limits of an answer that settings or models name, also -1, which limits nothing."""
    for holder, name in product(holders, LIMIT_SETTINGS):
        limit = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
        if isinstance(limit, int) and not isinstance(limit, bool):
            yield limit
