"""Decide whether a summary may use the provider's cache of the agent's last request.

Providers charge a fraction for a beginning that they have just read. If the agent's own model
summarises, it may be sent the agent's last request with one instruction after it, provided that
every message that leaves stands there unclipped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any, cast

from conspectus._langchain import is_message, is_runnable
from conspectus.engine.engine import Engine
from conspectus.engine.material import Material
from conspectus.engine.memory import SessionMemory
from conspectus.errors import PolicyError
from conspectus.messages import Source
from conspectus.messages.blocks import CACHE
from conspectus.messages.summary import summary_body
from conspectus.model.base import SummaryRequest
from conspectus.model.calls import model_and_provider
from conspectus.model.riding import LastRequest
from conspectus.observe import log
from conspectus.tokens import TokenMeter

KINDS = ("smallest", "cached")
"""Values of `summary_request`."""

LIVES, LIVES_LONG = 300.0, 3_600.0
"""Seconds in a provider's cache of a request, and of one marked for an hour."""

ASKS_FOR_MARKS = ("anthropic", "amazon_bedrock", "anthropic_bedrock")
"""Providers that cache only what is marked."""

CLAUDE = "claude"
"""A part of the names of Anthropic's models, which ask for marks behind gateways, too."""


EDITS = ("context_management", "truncation")
"""Settings of Anthropic and OpenAI with which a part of a request is not shown to the model."""


def read_kind(given: object) -> bool:
    if given not in KINDS:
        raise PolicyError(f'summary_request must be "smallest" or "cached", not {given!r}')
    return given == "cached"


@contextmanager
def sending(memory: SessionMemory, request: LastRequest | None) -> Iterator[None]:
    """Remember one request of an agent once it was answered.

    The one before stays until then, as a summary in the background is written meanwhile.
    """
    before = memory.answered
    try:
        yield
    except BaseException:
        memory.last_request = None
        raise
    # One that a guard further in has seen is nearer to what was really sent.
    if memory.answered == before:
        memory.answered += 1
        memory.last_request = None if request is None else replace(request, at=monotonic())


def last_request_of(engine: Engine, given: object, window: int | None) -> LastRequest | None:
    """Describe the requests of a plain loop, without messages; None if no summary uses the cache.

    `given` is the Runnable that the loop calls, or a kind of request: then it is the summariser's.
    """
    if not engine.cached:
        return None
    model = given if is_runnable(given) else None
    own = (getattr(engine.summarizers[by], "model", None) for by in engine.order)
    model = model or next((one for one in own if is_runnable(one)), None)
    if model is None:
        raise PolicyError(
            'summary_request="cached" is for a chat model that summarises and answers in the same '
            "loop; give that model as the summariser"
        )
    return LastRequest(cast("Any", model), (), window=window, any_model=is_runnable(given))


def riding(
    material: Material,
    by: str,
    request: SummaryRequest,
    last: LastRequest | None,
    *,
    again: bool = False,
) -> SummaryRequest:
    """Add the agent's last request to a summariser's, if the summary may use the cache.

    `again` says that a try has failed: without `last` the reason was told then, or is that try.
    """
    summarizer = material.engine.summarizers[by]
    rides = getattr(summarizer, "rides", None)
    if not material.engine.cached or rides is None or (last is None and again):
        return request
    tokens, why = 0, "no request of the agent is known in this process"
    if last is not None and last.any_model and by != material.engine.order[0]:
        why = "another model summarises"
    elif last is not None and not (why := _unfit(material, last)):
        tokens = size_of(last, material.engine.meter)
        why = rides(last, tokens, request)
    if why:
        text = "the smallest request is sent: %s"
        log("smallest_request", text, why, level=logging.DEBUG)
        return request
    return replace(request, last=last, last_tokens=tokens)


def _unfit(material: Material, last: LastRequest) -> str:
    """Return why a summary cannot follow a request, or an empty text."""
    if material.redaction is not None:
        return "what is summarised is redacted, and the request is not"
    marks = cache_marks(last)
    if not marks and needs_marks(last):
        return "it has no cache_control, so its provider remembers nothing of it"
    # Marks of an hour stand first, so the messages live as long as the shortest.
    lives = LIVES_LONG if marks and all(mark.get("ttl") == "1h" for mark in marks) else LIVES
    if monotonic() - last.at > lives:
        return "its provider has forgotten it"
    if not all(map(_taken, last.messages)):
        return "it is of items that no chat model of LangChain takes"
    if edits := [name for name in EDITS if told_to(last, name) not in (None, "disabled", {}, [])]:
        return f"its provider may leave a part of it out ({edits[0]})"
    if any(place.back or place.mark for place in material.leaving):
        return "something that leaves was shown short"
    leaving = [material.originals[key].source for key in material.keys]
    if not stand_in(leaving, last.messages):
        return "something that leaves does not stand in it as it is"
    head = material.history.head
    if head is not None and head.summary and not _shows(last.messages, head.summary):
        return "the notes so far do not stand in it"
    return ""


def _taken(message: Any) -> bool:
    """Tell whether a model of LangChain takes a message; it refuses most items of Responses."""
    if is_message(message):
        return True
    named = "role" in message or message.get("type") in ("human", "ai", "system", "tool")
    return named and "content" in message


def stand_in(leaving: Sequence[Source], sent: Sequence[Source]) -> bool:
    rest = iter(sent)
    return all(any(_same(one, other) for other in rest) for one in leaving)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if not (is_message(one) and is_message(other)):
        return type(one) is type(other) and bool(one == other)
    parts = ("type", "id", "content", "tool_calls", "tool_call_id")
    return all(getattr(one, part, None) == getattr(other, part, None) for part in parts)


def _shows(sent: Sequence[Any], summary: str) -> bool:
    texts = (one.text if is_message(one) else one.get("content") for one in sent)
    return any(isinstance(text, str) and summary in summary_body(str(text)) for text in texts)


def size_of(last: LastRequest, meter: TokenMeter) -> int:
    settings = getattr(last.model, "kwargs", None)
    tools = last.tools or (settings.get("tools") if isinstance(settings, Mapping) else ()) or ()
    return sum(map(meter.message, last.messages)) + tools_size(meter, tools)


def tools_size(meter: TokenMeter, tools: Sequence[Any]) -> int:
    """Count the tokens of tools; what is no tool, which a model may know, counts as text."""
    try:
        return meter.tools(tools)
    except PolicyError:
        return sum(meter.text(repr(tool)) for tool in tools)


def needs_marks(last: LastRequest) -> bool:
    name, provider = model_and_provider(last.model, "")
    return provider in ASKS_FOR_MARKS or CLAUDE in name.lower()


def settings_of(last: LastRequest) -> list[Mapping[str, Any]]:
    """Return the settings of a request: of the call, as bound, and of the model."""
    inner = getattr(last.model, "bound", last.model)
    bound = getattr(last.model, "kwargs", None) or {}
    own = [getattr(inner, name, None) or {} for name in ("model_kwargs", "extra_body")]
    return [last.settings, bound, bound.get("extra_body") or {}, *own]


def told_to(last: LastRequest, name: str) -> Any:
    """Return a setting of a request by its name in the provider's API; None if it is not set."""
    told = [one[name] for one in settings_of(last) if name in one]
    return told[0] if told else getattr(getattr(last.model, "bound", last.model), name, None)


def cache_marks(last: LastRequest) -> list[Mapping[str, Any]]:
    """Return the marks for a provider's cache in a request."""
    bound, holders = getattr(last.model, "kwargs", None) or {}, [*settings_of(last)]
    for tool in (*last.tools, *(bound.get("tools") or ())):
        holders.append(tool if isinstance(tool, Mapping) else getattr(tool, "extras", None) or {})
    for message in last.messages:
        content = message.content if is_message(message) else message.get("content")
        blocks = content if isinstance(content, list) else ()
        holders += [block for block in blocks if isinstance(block, Mapping)]
    return [mark for one in holders if isinstance(mark := one.get(CACHE), Mapping)]
