"""Decide whether a summary may use the provider's cache of the agent's last request.

Providers charge a fraction for the beginning of a request that they have just read. If the agent's
own model summarises, it may be sent the agent's last request with one instruction after it, if that
request has every evicted message unclipped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any, cast

from conspectus._langchain import innermost, is_message, is_runnable
from conspectus.engine.engine import Engine
from conspectus.engine.leaving import Leaving
from conspectus.engine.memory import SessionMemory
from conspectus.errors import PolicyError
from conspectus.messages.alternation import is_joined_into, with_parts
from conspectus.messages.framing import summary_body
from conspectus.model.base import LastRequest, SummaryRequest
from conspectus.observe import log
from conspectus.tokens import TokenMeter

CACHE_LIVES = 300.0
"""Seconds for which a provider certainly keeps a request in its cache."""

EDITING_SETTINGS = ("context_management", "truncation")
"""Settings of Anthropic and OpenAI that hide a part of a request from the model."""

SENT_PARTS = ("type", "id", "content", "tool_calls", "tool_call_id")
"""Parts of a LangChain message that are sent to a provider."""


@contextmanager
def sending(memory: SessionMemory, request: LastRequest | None) -> Iterator[None]:
    """Remember a request of an agent after it was answered.

    Until then the request before it is remembered, because a summary may be written in the
    background meanwhile.
    """
    before = memory.answered_requests
    try:
        yield
    except BaseException:
        memory.last_request = None
        raise
    # A guard further in has seen the request as it was really sent.
    if memory.answered_requests == before:
        memory.answered_requests += 1
        memory.last_request = None if request is None else replace(request, at=monotonic())


def request_template(engine: Engine, setting: object, window: int | None) -> LastRequest | None:
    """Return the template of a plain loop's requests, to which each adds its messages.

    None if no summary uses the cache.

    `setting` is the Runnable that the loop calls, or a kind of request: then it is the
    summariser's.
    """
    if not engine.uses_prompt_cache:
        return None
    models = (engine.traits_of(by).model for by in engine.summarizers)
    model = setting if is_runnable(setting) else next(filter(is_runnable, models), None)
    if model is None:
        raise PolicyError(
            'summary_request="cached" is for a chat model that summarises and answers in the same '
            "loop; give that model as the summariser"
        )
    return LastRequest(cast("Any", model), (), window=window, any_model=is_runnable(setting))


def after_last_request(
    leaving: Leaving, by: str, request: SummaryRequest, last: LastRequest | None
) -> SummaryRequest:
    """Put the agent's last request before a summariser's, if the summary may use the cache."""
    meter = leaving.engine.meter
    obstacle_of_summarizer = leaving.engine.traits_of(by).obstacle
    if obstacle_of_summarizer is None:
        return request
    tokens = 0
    if last is None:
        obstacle = "no request of the agent is known in this process"
    else:
        obstacle = _obstacle(leaving, last, by)
        if not obstacle:
            tools = last.tools or _bound_settings(last).get("tools") or ()
            tokens = sum(map(meter.count_message, last.messages)) + tools_size(meter, tools)
            obstacle = obstacle_of_summarizer(last, tokens, request)
    if obstacle:
        log("smallest_request", "the smallest request is sent: %s", obstacle, level=logging.DEBUG)
        return request
    return replace(request, last=last, last_tokens=tokens)


def _bound_settings(last: LastRequest) -> Mapping[str, Any]:
    """Return the settings that are bound to the model of a request."""
    return getattr(last.model, "kwargs", None) or {}


def _obstacle(leaving: Leaving, last: LastRequest, by: str) -> str:
    """Return why a summary by `by` cannot follow the agent's last request, or an empty text."""
    notes = leaving.view.head.summary if leaving.view.head else ""
    edits = _editing_settings(last)
    if last.any_model and by != next(iter(leaving.engine.summarizers)):
        return "another model summarises"
    if leaving.redaction is not None:
        return "what is summarised is redacted, and the request is not"
    if monotonic() - last.at > CACHE_LIVES:
        return "its provider has forgotten it"
    if edits:
        return f"its provider may leave a part of it out ({', '.join(edits)})"
    if notes and not _holds_notes(last, notes):
        return "the notes so far are not in it"
    if not _holds_all(last, leaving):
        return "something that leaves is not in it unchanged"
    if not _are_readable(last.messages):
        return "LangChain cannot send a message of it"
    return ""


def _editing_settings(last: LastRequest) -> list[str]:
    """Name the settings of a request by which its provider may leave a part of it out."""
    model = innermost(last.model)
    bound = _bound_settings(last)
    settings: dict[str, Any] = {}
    for part in (
        getattr(model, "model_kwargs", None),
        getattr(model, "extra_body", None),
        bound,
        bound.get("extra_body"),
        last.settings,
    ):
        settings |= part or {}
    switched_off: tuple[Any, ...] = (None, "disabled", {}, [])
    return [
        name
        for name in EDITING_SETTINGS
        if settings.get(name, getattr(model, name, None)) not in switched_off
    ]


def _holds_all(last: LastRequest, leaving: Leaving) -> bool:
    """Tell whether a request has all messages that leave, in order."""
    later = iter(with_parts(last.messages))
    return all(
        any(_is_same(entry.source, sent) for sent in later) for entry in leaving.leaving_messages
    )


def _holds_notes(last: LastRequest, notes: str) -> bool:
    """Tell whether a request has the notes so far."""
    texts = [m.text if is_message(m) else m.get("content") for m in last.messages]
    return any(isinstance(text, str) and notes in summary_body(text) for text in texts)


def _are_readable(messages: Sequence[Any]) -> bool:
    """Tell whether LangChain can read these; it cannot read items of OpenAI's Responses."""
    from langchain_core.messages import convert_to_messages

    try:
        convert_to_messages(messages)
    except Exception:
        return False
    return True


def _is_same(message: Any, sent: Any) -> bool:
    """Tell whether a message is the one that was sent, or a part of it."""
    if not is_message(message):
        return message is sent or bool(message == sent) or is_joined_into(message, sent)
    return all(getattr(message, part, None) == getattr(sent, part, None) for part in SENT_PARTS)


def tools_size(meter: TokenMeter, tools: Sequence[Any]) -> int:
    """Count the tokens of tools. What is no tool, but may be known to a model, counts as text."""
    try:
        return meter.count_tools(tools)
    except PolicyError:
        return sum(meter.count_text(repr(tool)) for tool in tools)
