"""How large the request is that is really sent: messages, and all that stands beside them."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import BaseMessage

from conspectus._core.items import Window
from conspectus.compactor.agent_state import Held, Requested
from conspectus.tokens import TokenMeter, correction
from conspectus.tokens.tally import Tallies

OUTPUT_SETTINGS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""Names under which models and their settings limit an answer."""

MOST_OUTPUT = 0.5
"""Share of the window that is left for the answer at most, whatever a model's setting says."""

KNOWN = 32
"""Sets of tools whose size is remembered."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One request.

    Attributes:
        messages: tokens of its messages.
        recalled: those among them of what was recalled for the turn.
        requested: what stands beside them, and the window.
        ratio: by what reports of models have corrected the estimate.
    """

    messages: int
    requested: Requested
    ratio: float
    recalled: int = 0

    @property
    def history(self) -> int:
        """Tokens of the messages that belong to the history."""
        return self.messages - self.recalled

    @property
    def room(self) -> Window | None:
        """The window and what of it messages cannot have; None where no window is known."""
        seen = self.requested
        if seen.window is None:
            return None
        return Window(seen.window, seen.overhead + seen.reserved)

    @property
    def over(self) -> bool:
        """Whether it does not fit."""
        return self.room is not None and self.messages > self.room.budget


class Measuring:
    """Measures requests; what does not change between two is measured once.

    Args:
        meter: counts tokens.
        window: input limit of the model, in tokens, instead of its profile's.
        reserved: tokens left for the answer, instead of what the model's settings say.
    """

    def __init__(self, meter: TokenMeter, window: int | None, reserved: int | None) -> None:
        self._meter, self._window, self._reserved = meter, window, reserved
        self._tallies = Tallies(meter.message)
        self._known: OrderedDict[tuple[int, ...], tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    def measure(
        self,
        request: ModelRequest[Any],
        held: Held,
        before: Requested,
        recalled: BaseMessage | None = None,
    ) -> Measured:
        """The size of a request.

        Args:
            request: as it would be sent, without what was recalled.
            held: what the state holds of us.
            before: what was seen of the request before it.
            recalled: the message that shows what was recalled, which is sent with it.
        """
        overhead = self._beside(request)
        sizes = self._tallies.follow(held.name, request.messages)
        reports = sizes.reports(held.messages_after, 0)
        shown = self._meter.message(recalled) if recalled is not None else 0
        # Each turn was sent with about as much recalled as this one.
        ratio = 1.0 if self._meter.exact else correction(reports, overhead + shown)
        window = self._window or profile_window(request.model)
        model, learned = before.model, before.learned
        if learned is not None and model == model_name(request.model):
            window = min(window or learned, learned)
        reserved = self._answer(request, window)
        shown = math.ceil(shown * ratio)
        messages = math.ceil(sizes.totals[0] * ratio) + shown
        seen = Requested(overhead, reserved, window, model, learned)
        return Measured(messages, seen, ratio, shown)

    def _beside(self, request: ModelRequest[Any]) -> int:
        system = request.system_message
        size = self._meter.message(system) if system is not None else 0
        extra = _schemas(request.response_format)
        things = [*request.tools, *extra]
        key = tuple(map(id, things))
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = (things, self._meter.tools(things))
            with self._lock:
                self._known[key] = known  # the things are held, so that no id is used again
                while len(self._known) > KNOWN:
                    self._known.popitem(last=False)
        return size + known[1]

    def _answer(self, request: ModelRequest[Any], window: int | None) -> int:
        if self._reserved is not None:
            return self._reserved
        for holder in (request.model_settings, request.model):
            for name in OUTPUT_SETTINGS:
                found = holder.get(name) if isinstance(holder, Mapping) else _of(holder, name)
                if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                    return min(found, int((window or found) * MOST_OUTPUT)) if window else found
        return 0


def profile_window(model: object) -> int | None:
    """The input limit in a model's profile, in tokens; None where it has none that makes sense."""
    profile = _of(model, "profile")
    limit = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    known = isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
    return limit if known else None


def model_name(model: object) -> str:
    """How a model is told from others."""
    named = (_of(model, name) for name in ("model_name", "model", "model_id", "deployment_name"))
    found = next((name for name in named if isinstance(name, str) and name), "")
    return f"{type(model).__name__}:{found}"


def _of(holder: object, name: str) -> Any:
    return getattr(holder, name, None)


def _schemas(response_format: object) -> Sequence[Any]:
    """The schemas that a structured answer adds to a request, once as large as a tool's."""
    specs = _of(response_format, "schema_specs") or [_of(response_format, "schema_spec")]
    found = [schema for spec in specs if (schema := _of(spec, "json_schema"))]
    if found:
        return found
    schema = _of(response_format, "schema")
    return [] if schema is None else [schema]
