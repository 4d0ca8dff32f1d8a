"""Decide whether a summary may use the provider's cache of the agent's last request.

Providers charge a fraction for a beginning that they have just read. If the agent's own model
summarises, it may be sent the agent's last request with one instruction after it, provided that
it holds every evicted message unclipped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from conspectus._langchain import innermost, is_message, is_runnable
from conspectus.engine.material import Material
from conspectus.engine.thread import SessionMemory
from conspectus.errors import PolicyError
from conspectus.messages.alternation import holds, with_parts
from conspectus.messages.framing import summary_body
from conspectus.model.base import LastRequest, SummaryRequest
from conspectus.observe import log
from conspectus.tokens import TokenMeter

if TYPE_CHECKING:
    from conspectus.engine.settings import Engine

LIVES = 300.0  # Seconds in which a provider's cache certainly holds a request

EDITS = ("context_management", "truncation")
"""Settings of Anthropic and OpenAI with which a part of a request is not shown to the model."""

SAME = ("type", "id", "content", "tool_calls", "tool_call_id")
"""Parts of a message of LangChain that a provider is sent."""


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


def last_request_of(engine: Engine, setting: object, window: int | None) -> LastRequest | None:
    """Describe the requests of a plain loop, without messages; None if no summary uses the cache.

    `setting` is the Runnable that the loop calls, or a kind of request: then it is the
    summariser's.
    """
    if not engine.cached:
        return None
    models = (getattr(writer, "model", None) for writer in engine.writers.values())
    model = setting if is_runnable(setting) else next(filter(is_runnable, models), None)
    if model is None:
        raise PolicyError(
            'summary_request="cached" is for a chat model that summarises and answers in the same '
            "loop; give that model as the summariser"
        )
    return LastRequest(cast("Any", model), (), window=window, any_model=is_runnable(setting))


def after_last_request(
    material: Material, by: str, request: SummaryRequest, last: LastRequest | None
) -> SummaryRequest:
    """Add the agent's last request to a summariser's, if the summary may use the cache."""
    meter = material.thread.engine.meter
    obstacle = getattr(material.thread.engine.writers[by], "obstacle", None)
    if obstacle is None:
        return request
    why, tokens = "no request of the agent is known in this process", 0
    if last is not None and not (why := _obstacle(material, last, by)):
        bound = getattr(last.model, "kwargs", None) or {}
        tools = last.tools or bound.get("tools") or ()
        tokens = sum(map(meter.message, last.messages)) + tools_size(meter, tools)
        why = obstacle(last, tokens, request)
    if why:
        log("smallest_request", "the smallest request is sent: %s", why, level=logging.DEBUG)
        return request
    return replace(request, last=last, last_tokens=tokens)


def _obstacle(material: Material, last: LastRequest, by: str) -> str:
    """Return why a summary by `by` cannot follow the agent's last request, or an empty text."""
    model, settings = innermost(last.model), dict[str, Any]()
    bound = getattr(last.model, "kwargs", None) or {}
    extra = (getattr(model, "model_kwargs", None), getattr(model, "extra_body", None))
    for part in (*extra, bound, bound.get("extra_body"), last.settings):
        settings |= part or {}
    off: tuple[Any, ...] = (None, "disabled", {}, [])
    edits = [name for name in EDITS if settings.get(name, getattr(model, name, None)) not in off]
    notes = material.history.head.summary if material.history.head else ""
    texts = [m.text if is_message(m) else m.get("content") for m in last.messages]
    rest = iter(with_parts(last.messages))
    whole = all(any(_same(entry.source, sent) for sent in rest) for entry in material.entries)
    reasons = {
        "another model summarises": last.any_model
        and by != next(iter(material.thread.engine.writers)),
        "what is summarised is redacted, and the request is not": material.redaction is not None,
        "LangChain cannot send a message of it": _is_foreign(last.messages),
        "its provider has forgotten it": monotonic() - last.at > LIVES,
        f"its provider may leave a part of it out ({', '.join(edits)})": bool(edits),
        "something that leaves does not stand in it as it is": not whole,
        "the notes so far do not stand in it": bool(notes)
        and not any(isinstance(text, str) and notes in summary_body(text) for text in texts),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _is_foreign(messages: Sequence[Any]) -> bool:
    """Tell whether LangChain cannot read one of these, such as an item of OpenAI's Responses."""
    from langchain_core.messages import convert_to_messages

    try:
        return not convert_to_messages(messages)
    except Exception:
        return True


def _same(left: Any, sent: Any) -> bool:
    if not is_message(left):
        return left is sent or bool(left == sent) or holds(sent, left)
    return all(getattr(left, part, None) == getattr(sent, part, None) for part in SAME)


def tools_size(meter: TokenMeter, tools: Sequence[Any]) -> int:
    """Count the tokens of tools; what is no tool, which a model may know, counts as text."""
    try:
        return meter.tools(tools)
    except PolicyError:
        return sum(meter.text(repr(tool)) for tool in tools)
