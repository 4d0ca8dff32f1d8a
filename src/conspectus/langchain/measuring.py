"""Measure the request that is really sent, and the ones that a provider refused."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, get_args

from langchain.agents.middleware.types import ModelRequest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage

from conspectus._newest import Newest
from conspectus.core.items import Window
from conspectus.engine.riding import tools_size
from conspectus.errors import StuckError
from conspectus.langchain.graph import GraphEngine
from conspectus.langchain.models import model_name, reserved_for_answer
from conspectus.langchain.state import HeadState, Requested
from conspectus.model.calls import profile_window
from conspectus.tokens import TokenMeter, correction
from conspectus.tokens.tally import Tallies

KNOWN = 8
"""Sets of tools whose size is cached; the cache holds their tools."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The size of one request.

    Attributes:
        requested: the size of all beside the messages, and the window.
        ratio: the correction of the estimate by reports of models.
        least: tokens that messages cannot have, as the user has set.
    """

    messages: int
    requested: Requested
    ratio: float
    least: int
    recalled: int = 0

    @property
    def room(self) -> Window | None:
        """The window and its tokens reserved; None if no window is known."""
        return self.requested.room(self.least)

    @property
    def over_window(self) -> bool:
        """Whether it exceeds the window that the model is known to have."""
        known = replace(self.requested, learned={}).room(self.least)
        return known is not None and self.messages > known.budget

    @property
    def over(self) -> bool:
        return self.room is not None and self.messages > self.room.budget


class Measuring:
    """Measure requests; parts that stay the same are measured once."""

    def __init__(
        self, meter: TokenMeter, window: int | None, reserved: int | None, managed: GraphEngine
    ) -> None:
        self._meter, self._window, self._reserved = meter, window, reserved
        self._managed = managed
        self._tallies = Tallies(meter.message)
        self._known: Newest[tuple[int, ...], tuple[object, int]] = Newest(KNOWN)

    def measure(
        self,
        request: ModelRequest[Any],
        held: HeadState,
        before: Requested,
        recalled: BaseMessage | None = None,
    ) -> Measured:
        """Measure a request without recalled originals, and the message that shows these."""
        overhead = self._beside(request)
        sizes = self._tallies.follow(held.name, request.messages)
        reports = sizes.reports(held.messages_after, 0)
        shown = self._meter.message(recalled) if recalled is not None else 0
        name = model_name(request.model)
        own = self._managed.window if self._managed.model in ("", name) else None
        window = self._window or (own.limit if own else profile_window(request.model))
        # Each turn was sent with about as much recalled as this one.
        ratio = 1.0 if self._meter.exact else correction(reports, overhead + shown, window)
        shown = math.ceil(shown * ratio)
        messages = math.ceil(sizes.totals[0] * ratio) + shown
        holders, answer = (request.model_settings, request.model), self._reserved
        answer = reserved_for_answer(holders, window) if answer is None else answer
        seen = Requested(overhead, answer, window, name, before.learned)
        return Measured(messages, seen, ratio, own.reserved if own else 0, shown)

    def size(self, messages: Sequence[BaseMessage], ratio: float) -> int:
        return math.ceil(sum(map(self._meter.message, messages)) * ratio)

    def _beside(self, request: ModelRequest[Any]) -> int:
        system = request.system_message
        size = self._meter.message(system) if system is not None else 0
        extra = _schemas(request.response_format)
        things = [*request.tools, *extra]
        key = tuple(map(id, things))
        known = self._known.get(key)
        if known is None:
            known = (things, tools_size(self._meter, things))
            self._known.put(key, known)  # the things are held, so that no id is used again
        return size + known[1]


def _schemas(response_format: object) -> Sequence[Any]:
    """Return the schemas of a structured answer, each about as large as a tool's."""
    one = [getattr(response_format, "schema_spec", None)]
    specs = getattr(response_format, "schema_specs", None) or one
    if found := [schema for spec in specs if (schema := getattr(spec, "json_schema", None))]:
        return found
    alone: Any = getattr(response_format, "schema", None)
    if alone is None:
        return []
    return get_args(alone) if isinstance(alone, UnionType) or get_args(alone) else [alone]


_COMPARED = re.compile(r">\s*(\d[\d,_]{2,})")
_LIMIT = re.compile(
    r"(?:maximum|max|limit|window|at most|up to|supports?|context (?:length|size)|n_ctx|less than)"
    r"\D{0,60}?(\d[\d,_]{2,}+)"
    r"|(?<![\d,_])(\d[\d,_]{2,}+)\s*+(?:tokens?\s*+)?(?:maximum|limit|max)\b",
    re.IGNORECASE,
)
_SENT = re.compile(
    r"(?:resulted in|requested|has|is too long:|contains?|counted|you sent|length of|count of|"
    r"count is|the first|n_keep|given|the input|prompt length)"
    r"\D{0,40}?(\d[\d,_]{2,}+)"
    r"|(?<![\d,_])(\d[\d,_]{2,}+)\s*+(?:tokens?\s*+)?>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Overflow:
    limit: int | None = None
    sent: int | None = None


def read_overflow(error: BaseException) -> Overflow:
    """Read the figures in the error of a provider, where they make sense together.

    Example:
        >>> read_overflow(ValueError("prompt is too long: 205371 tokens > 200000 maximum"))
        Overflow(limit=200000, sent=205371)
        >>> read_overflow(ValueError("too long")).limit is None
        True
    """
    text = str(error)
    limits = _numbers(_COMPARED, text) or _numbers(_LIMIT, text)
    sents = _numbers(_SENT, text)
    for limit in limits:
        sent = next((n for n in sents if n > limit), None)
        if sent is not None:
            return Overflow(limit, sent)
    return Overflow(limits[0] if limits else None)


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    found = []
    for match in pattern.finditer(text):
        digits = next(group for group in match.groups() if group)
        found.append(int(digits.replace(",", "").replace("_", "")))
    return [n for n in found if n > 0]


RESCUE = 0.8
"""Share of a refused size that messages may take in the next try: the provider counts more than the
estimate."""

STEPS = (RESCUE, 0.4, 0.16, 0.05, 0.0)
"""Shares of the first refused size for each further try. A bare "too long" leaves a guess, and a
batch of results may be ten times too large. The last is the smallest possible."""

TRIES = len(STEPS)
"""Most further tries."""

LEARNED = 0.9
"""Share of the limit named by the provider to which messages may grow again."""


class StillTooLong(StuckError, ContextOverflowError):
    """A request that nothing makes fit; caught as LangChain's error and as ours."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Requests that a provider has refused as too long, each smaller than the one before.

    Attributes:
        first: tokens of the first one's messages.
        budget: most tokens of the next one's messages.
        most: most tokens of the messages of later requests.
    """

    tries: int = 0
    first: int = 0
    budget: int = 0
    most: int = 0
    named: bool = False

    def and_again(self, size: int, beside: int, told: Overflow) -> Refused:
        """Add a refusal: the tokens of messages and of the rest, and the provider's figures."""
        tries, first = self.tries + 1, self.first or size
        if tries > TRIES:
            return replace(self, tries=tries)
        budget = int(min(first * STEPS[self.tries], size * RESCUE))
        if told.limit is not None:
            # The provider's tokens are not the estimate's: its limit in ours.
            limit = told.limit * (size + beside) // max(told.sent or told.limit, 1) - beside
            # Where the tools alone seem to be too much, the estimate of them is not to be trusted.
            named = int(min(limit, size) * RESCUE) if limit > 0 else size // 2
            budget = named if tries == 1 else min(budget, named)
        return Refused(tries, first, max(1, budget), self.most, told.limit is not None)

    def having_tried(self, budget: int, refused: int) -> Refused:
        """Set the most for later requests, from the size sent and the size refused."""
        if self.named:
            return replace(self, most=int(budget / RESCUE * LEARNED))
        # As small as it goes leaves no room for another message: there may well be some.
        smallest = self.tries == TRIES or budget > self.budget
        return replace(self, most=max(budget, int(refused * RESCUE)) if smallest else budget)

    def learned(self, seen: Requested) -> Requested:
        """Add the most that a model takes to the state, once it has taken a request."""
        return seen if not self.tries else seen.having_learned(seen.overhead + self.most)
