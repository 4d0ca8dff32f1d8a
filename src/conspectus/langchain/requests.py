"""Measure the requests of an agent, and send them."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import is_
from types import UnionType
from typing import Any, get_args

from langchain.agents.middleware.types import ModelRequest

from conspectus._newest import Newest
from conspectus.engine.riding import sending as remembering
from conspectus.engine.riding import tools_size
from conspectus.langchain.channel import Channel
from conspectus.langchain.seen import Histories
from conspectus.langchain.settings import Setup, model_name
from conspectus.langchain.state import HeadState, Requested
from conspectus.messages.thoughts import refuses_thoughts, without_stale_thoughts
from conspectus.model.base import LastRequest
from conspectus.model.calls import profile_window
from conspectus.observe import log
from conspectus.tokens import correction

Send = Callable[[ModelRequest[Any]], Awaitable[Any]]

OUTPUT_SETTINGS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""Settings that limit an answer."""

MOST_OUTPUT = 0.5
"""Largest share of the window for the answer, whatever the model's settings say."""

TOOL_SETS = 8  # sets of tools whose size is cached; the cache holds their tools

NO_WINDOW = (
    "the window of the model is not known, so that requests are not measured by it: give "
    "ContextGuard(window=...). What the provider refuses as too long is made smaller all the same"
)


def reserved_for_answer(holders: Sequence[object], window: int | None) -> int:
    """Return the tokens of an answer, by the first of settings or models that limits it."""
    for holder in holders:
        for name in OUTPUT_SETTINGS:
            limit = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0:
                return min(limit, int(window * MOST_OUTPUT)) if window else limit
    return 0


@dataclass(frozen=True, slots=True)
class Measured:
    """The size of one request: its messages without recalled originals, and all beside them."""

    messages: int
    requested: Requested
    ratio: float  # the correction of the estimate by reports of models


class Meter:
    """Measure requests; parts that stay the same are measured once."""

    def __init__(self, setup: Setup, window: int | None, reserved: int | None) -> None:
        self.setup, self._window, self._reserved = setup, window, reserved
        self._meter = setup.engine.meter
        self._histories = Histories(self._meter.message, by_content=True)
        self._tools: Newest[tuple[int, ...], tuple[object, int]] = Newest(TOOL_SETS)

    def measure(
        self, request: ModelRequest[Any], held: HeadState, before: Requested, recalled: int
    ) -> Measured:
        """Measure a request; `recalled` are the tokens of the originals that were taken out."""
        name, setup = model_name(request.model), self.setup
        own = setup.window if setup.model in ("", name) else None
        window = self._window or own or profile_window(request.model)
        answer = self._reserved
        if answer is None:
            answer = reserved_for_answer((request.model_settings, request.model), window)
        overhead = self._beside(request)
        sizes = self._histories.of(f"{held.thread}\0{held.session}").follow(request.messages)
        reports = sizes.reports(held.messages_after, 0)
        # Each turn was sent with about as much recalled as this one.
        ratio = 1.0 if self._meter.exact else correction(reports, overhead + recalled, window)
        requested = Requested(overhead, answer, window, name, before.learned)
        return Measured(math.ceil(sizes.total() * ratio), requested, ratio)

    def _beside(self, request: ModelRequest[Any]) -> int:
        """Return the tokens of system prompt, tools and response format."""
        system = request.system_message
        size = self._meter.message(system) if system is not None else 0
        things = [*request.tools, *_schemas(request.response_format)]
        key = tuple(map(id, things))
        known = self._tools.get(key)
        if known is None:
            known = (things, tools_size(self._meter, things))
            self._tools.put(key, known)  # the things are held, so that no id is used again
        return size + known[1]


def _schemas(response_format: object) -> Sequence[Any]:
    """Return the schemas of a structured answer, each about as large as a tool's."""
    alone = [getattr(response_format, "schema_spec", None)]
    specs = getattr(response_format, "schema_specs", None) or alone
    if schemas := [schema for spec in specs if (schema := getattr(spec, "json_schema", None))]:
        return schemas
    kind: Any = getattr(response_format, "schema", None)
    if kind is None:
        return []
    return get_args(kind) if isinstance(kind, UnionType) or get_args(kind) else [kind]


async def send_thoughtful(request: ModelRequest[Any], send: Send) -> Any:
    """Send a request; once more without thoughts if the provider refuses those."""
    try:
        return await send(request)
    except Exception as error:
        if not refuses_thoughts(error):
            raise
        fresh = without_stale_thoughts(request.messages, 0, all_of_them=True)
        if all(map(is_, fresh, request.messages)):
            raise
    log("thoughts_refused", "the provider refused thoughts of the model: sent without them")
    return await send(request.override(messages=fresh))


def sending(channel: Channel, request: ModelRequest[Any]) -> AbstractContextManager[None]:
    """Wrap the call of a model: remember its request, for a later summary that rides its cache."""
    setup = channel.setup
    if not setup.engine.cached:
        return nullcontext()
    last: LastRequest | None = None
    # A model that must answer in a form, or must call a tool, would do so again, and without that
    # the provider's cache does not know the request.
    forced = request.tool_choice not in (None, "auto") or "tool_choice" in request.model_settings
    if request.response_format is None and not forced:
        system = [request.system_message] if request.system_message is not None else []
        last = LastRequest(
            model=request.model,
            messages=(*system, *request.messages),
            tools=tuple(request.tools),
            tool_choice=request.tool_choice,
            settings=dict(request.model_settings),
            window=setup.window or profile_window(request.model),
        )
    return remembering(setup.engine.memory.of(channel.scope), last)
