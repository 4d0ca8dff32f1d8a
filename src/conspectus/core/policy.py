"""The policy: when to compact, how much to keep, how large a summary may be, what is clipped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, Literal, get_args

from conspectus.core.growth import has_grown
from conspectus.core.items import Item, Size, Window
from conspectus.core.records import from_plain
from conspectus.core.summary_room import LARGEST_SUMMARY, SummaryRoom
from conspectus.errors import PolicyError, WrongType

Unit = Literal["tokens", "messages", "fraction"]
ContextSize = tuple[Unit, int | float]
"""`("tokens", 4000)`, `("messages", 20)` or `("fraction", 0.8)` of the answering model's window."""

OnFailure = Literal["degrade", "keep", "raise"]

EMBEDDED = "embedded"
"""The name of the embedded summariser, the last resort. It needs no model, never fails, and keeps
to its limit."""

SUMMARY_DIVISOR = 3
"""A summary message takes at most one part in so many of the window, or of the trigger's size,
unless its size is set."""

SHARE_NEXT_TO_INSTRUCTIONS = 0.6
"""A summary message takes at most this share of the room that leading system messages leave, unless
its size is set."""

LEAST_ASKED = 256
"""The fewest tokens of a summary message that are asked for, unless its size is set."""

SLACK = 4
"""Tokens of a limit that stay free, because a whole message may count for more than its parts."""

TIMEOUT: float = 120
"""Seconds for one call of a summariser, if no time is set."""

HOUR = 3_600
"""The longest timeout, in seconds: a larger one was meant in milliseconds."""

KEPT_MESSAGES = 20
"""Messages that a share of the window keeps if the window is unknown."""

RIGHT_FORM = (
    'Write ("tokens", 4000), ("messages", 20) or ("fraction", 0.8) with a fraction above 0 and '
    "at most 1"
)
TRIGGER_FORM = (
    RIGHT_FORM + '; conditions that must all hold as {"tokens": 4000, "messages": 10}; '
    "alternatives as a list of these"
)


def names_embedded(value: object) -> bool:
    """Tell whether a setting asks for the embedded summariser by its name."""
    return isinstance(value, str) and value == EMBEDDED


# Sizes and triggers in LangChain's forms


def check_whole_number(value: object, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`, or raise `PolicyError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PolicyError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return value


def check_text(value: object, name: str) -> str:
    """Return a text, empty for None, or raise `PolicyError`."""
    if value is not None and not isinstance(value, str):
        raise PolicyError(f"{name} must be a text in plain words, or None, not {value!r}.")
    return value or ""


def check_size(value: object, name: str) -> ContextSize:
    """Return one size, checked; a `PolicyError` shows the right form."""
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise WrongType(f"{name} cannot be {value!r}. {RIGHT_FORM}.")
    return _checked(*value, name, f"Unsupported context size type {value[0]} for {name}")


def _checked(unit: Any, amount: Any, name: str, unknown: str) -> ContextSize:
    """Return a size in a unit. `unknown` is the error for an unknown unit."""
    problem = unknown if unit not in get_args(Unit) else _problem_of(unit, amount, name)
    if problem:
        is_percent = unit == "fraction" and _is_number(amount) and 10 <= amount <= 100
        hint = f" Did you mean {amount / 100:g}?" if is_percent else ""
        raise PolicyError(f"{problem}, got {amount!r}.{hint} {RIGHT_FORM}.")
    return (unit, float(amount) if unit == "fraction" else amount)


def _problem_of(unit: Unit, amount: Any, name: str) -> str:
    """Say what is wrong with an amount; empty if it is valid.

    The first words are those of LangChain's middleware, which its users know.
    """
    if isinstance(amount, bool):
        return f"{unit} {name} value must be numeric"
    if unit == "fraction" and not _is_number(amount):
        return f"Fraction {name} values must be numeric"
    if unit == "fraction" and not 0 < amount <= 1:
        return f"Fractional {name} values must be between 0 and 1"
    if _is_number(amount) and amount <= 0:
        return f"{name} thresholds must be greater than 0"
    if unit != "fraction" and type(amount) is not int:
        return f"{unit} {name} values must be integers"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Clause:
    """Sizes that must all be reached. A size that is None does not count."""

    tokens: int | None = None  # size of the history, in tokens
    messages: int | None = None  # its length, in messages
    fraction: float | None = None  # share of the answering model's window

    def threshold(self, limit: int | None) -> int | None:
        """Return the tokens at which this clause is met; None if it counts no tokens."""
        thresholds: list[int] = []
        if self.tokens is not None:
            thresholds.append(self.tokens)
        if self.fraction is not None and limit is not None:
            thresholds.append(max(1, int(limit * self.fraction)))
        return max(thresholds, default=None)

    def met(self, size: Size, limit: int | None) -> bool:
        """Tell whether all sizes are reached. A fraction of an unknown window is never reached."""
        if self.fraction is not None and limit is None:
            return False
        return size.tokens >= (self.threshold(limit) or 0) and size.messages >= (self.messages or 0)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.tokens is not None:
            parts.append(f"{self.tokens:,} tokens")
        if self.messages is not None:
            parts.append(f"{self.messages:,} messages")
        if self.fraction is not None:
            parts.append(f"{self.fraction:g} of the window")
        return " and ".join(parts)


def parse_trigger(value: object, name: str = "trigger") -> tuple[Clause, ...]:
    """Parse LangChain's forms of a trigger into clauses, any of which is enough.

    Example:
        >>> [str(c) for c in parse_trigger([("messages", 50), {"tokens": 4000, "messages": 10}])]
        ['50 messages', '4,000 tokens and 10 messages']
    """
    if value is None:
        return ()
    if isinstance(value, list) and not value:
        raise PolicyError(f"{name} is an empty list; pass None for no trigger. {TRIGGER_FORM}.")
    alternatives = value if isinstance(value, list) else [value]
    return tuple(_clause(alternative, name) for alternative in alternatives)


def _clause(value: object, name: str) -> Clause:
    if isinstance(value, Clause):
        return value
    if isinstance(value, tuple):
        return Clause(**dict[str, Any]([check_size(value, name)]))
    if not isinstance(value, Mapping):
        raise WrongType(f"{name} cannot be {value!r}. {TRIGGER_FORM}.")
    if set(value) == {"type", "value"}:
        python = f"({value['type']!r}, {value['value']!r})"
        raise PolicyError(f"{name} {dict(value)!r} is the form of YAML; in Python write {python}.")
    if not value:
        units = "'tokens', 'messages', 'fraction'"
        raise PolicyError(f"{name} clause must specify at least one of {units}. {TRIGGER_FORM}.")
    sizes: dict[str, Any] = {}
    for unit, size in value.items():
        _, sizes[unit] = _checked(unit, size, name, f"Unsupported {name} metric: {unit!r}")
    return Clause(**sizes)


def first_kept_by(keep: ContextSize, sizes: Sequence[int], limit: int | None) -> int:
    """Return the place of the first message that `keep` keeps.

    `sizes` are the tokens of all messages, `limit` those of the window.
    """
    unit, amount = keep
    tokens = keep_tokens(keep, limit)
    if tokens is None:
        kept = int(amount) if unit == "messages" else KEPT_MESSAGES
        return max(0, len(sizes) - kept)
    newest_together = [*accumulate(reversed(sizes))]
    return len(sizes) - bisect_right(newest_together, tokens)


def keep_tokens(keep: ContextSize, limit: int | None) -> int | None:
    """Return the tokens that `keep` asks for; None if it counts messages."""
    unit, amount = keep
    if unit == "messages" or (unit == "fraction" and limit is None):
        return None
    return int(amount) if unit == "tokens" else max(1, int((limit or 0) * amount))


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, how much to keep, how large a summary may be."""

    trigger: tuple[Clause, ...] = ()  # clauses, any of which asks for a compaction
    # how much of the newest history stays in view, as one `ContextSize`
    keep: ContextSize = ("messages", 20)
    # the most tokens of a summary's text; a longer text is cut. None asks for a third of the
    # budget, or of the trigger's size, and for at least 256 tokens; a longer text is used if it
    # fits
    max_summary_tokens: int | None = None
    summary_frame: int = 0  # tokens of an empty summary message: its first line, its note
    keep_is_set: bool = False  # the size of `keep` gives way only if it leaves no room to grow
    # what is clipped before a summary is made; None for nothing
    stale: StaleResults | None = None

    @property
    def needs_window(self) -> bool:
        """Whether a fraction is used, which needs a known window."""
        return self.keep[0] == "fraction" or any(c.fraction is not None for c in self.trigger)

    @property
    def counts_messages_alone(self) -> bool:
        """Whether no trigger counts tokens."""
        return all(clause.tokens is None and clause.fraction is None for clause in self.trigger)

    def caveats(self, window: int | None) -> Iterator[str]:
        """Yield warnings about legal settings that cannot have their effect in this window."""
        unit, amount = self.keep
        for clause in self.trigger:
            if self._keeps_more_than(clause, window):
                yield (
                    f"keep {amount:,} {unit} can never get below the trigger ({clause}): every "
                    "compaction would be followed by another one. Lower keep or raise trigger."
                )
            if window is not None and (clause.tokens or 0) > window:
                yield (
                    f"the trigger ({clause}) is never reached in a window of {window:,} tokens. "
                    "Lower trigger."
                )
        largest = self.max_summary_tokens
        if window is not None and largest is not None and largest >= window:
            yield (
                f"max_summary_tokens ({largest:,}) are not less than a window of {window:,} "
                "tokens. Lower them."
            )

    def _keeps_more_than(self, clause: Clause, window: int | None) -> bool:
        """Tell whether the kept messages alone meet a clause, so that it is met again at once."""
        tokens = keep_tokens(self.keep, window)
        if tokens is not None:
            threshold = clause.threshold(window)
            return clause.messages is None and threshold is not None and tokens >= threshold
        unit, amount = self.keep
        threshold = getattr(clause, unit)
        asks_nothing_else = clause == Clause(**{unit: threshold})
        return asks_nothing_else and threshold is not None and amount >= threshold

    def smallest_token_trigger(self, limit: int | None) -> int | None:
        """Return the fewest tokens at which a clause fires that counts no messages.

        A clause that also asks for a share of the window fires at the larger of both, and never in
        an unknown window.
        """
        thresholds: list[int] = []
        for clause in self.trigger:
            threshold = clause.threshold(limit)
            can_fire = clause.fraction is None or limit is not None
            if clause.tokens is not None and clause.messages is None and can_fire:
                thresholds.append(threshold or clause.tokens)
        return min(thresholds, default=None)

    def fires_at(self, limit: int | None, messages: int) -> int | None:
        """Return the tokens at which a clause first fires in a history of so many messages."""
        long_enough = (clause for clause in self.trigger if (clause.messages or 0) <= messages)
        thresholds = (clause.threshold(limit) for clause in long_enough)
        return min((tokens for tokens in thresholds if tokens is not None), default=None)

    def fired(self, size: Size, limit: int | None, rearm_from: Size | None = None) -> Clause | None:
        """Return the first clause that asks for a compaction now.

        `rearm_from` is the size that the latest compaction reached, or at which it failed. If that
        size met the clause already, the history must have grown by `REARM` since.
        """
        for clause in self.trigger:
            if not clause.met(size, limit):
                continue
            if rearm_from is None or not clause.met(rearm_from, limit):
                return clause
            counts_messages = clause.messages is not None
            is_longer = counts_messages and has_grown(size.messages, rearm_from.messages)
            if is_longer or has_grown(size.tokens, rearm_from.tokens):
                return clause
        return None

    def summary_room(self, window: Window | None, instruction_tokens: int) -> SummaryRoom:
        """Return how long the message of a summary may be.

        Args:
            window: of the answering model; None if unknown.
            instruction_tokens: tokens of leading system messages, which are in the window, too.
        """
        if self.max_summary_tokens is not None:
            cap = self.max_summary_tokens + self.summary_frame
            return SummaryRoom.capped(cap, cap)
        budget = None if window is None else window.budget
        trigger = self.smallest_token_trigger(None if window is None else window.limit)
        known = [size for size in (budget, trigger) if size is not None]
        basis = min(known, default=SUMMARY_DIVISOR * LARGEST_SUMMARY)
        next_to_instructions = int((basis - instruction_tokens) * SHARE_NEXT_TO_INSTRUCTIONS)
        target = max(LEAST_ASKED, min(basis // SUMMARY_DIVISOR, next_to_instructions))
        return SummaryRoom(target if budget is not None else min(target, LARGEST_SUMMARY))


@dataclass(frozen=True, slots=True)
class StaleResults:
    """Which results are clipped before a summary is made, and how much that must free."""

    # tokens above which a result is clipped to 200 tokens; so more than 200
    over: int = 1000
    newest: int = 0  # number of newest results that are not clipped, even if `keep` excludes them
    # tokens that clips must free; if they free fewer, nothing is clipped. None: they must bring the
    # history to half of its trigger
    least: int | None = None
    tools: tuple[str, ...] | None = None  # the only tools whose results are clipped; None for all
    exclude: tuple[str, ...] = ()  # tools whose results are never clipped
    # whether large messages of the agent, such as arguments of calls, are clipped, too
    arguments: bool = True

    @classmethod
    def build(cls, value: object) -> StaleResults | None:
        """Read a caller's setting; None if it is off, a `PolicyError` if it is not valid."""
        if value is None or value is False or isinstance(value, cls):
            return value or None
        settings: Any = {} if value is True else value
        names = {setting.name for setting in fields(cls)}
        try:
            stale = from_plain(cls, settings)
            if set(settings) <= names and stale._is_valid():
                return stale
        except TypeError:  # a value of a wrong type
            pass
        raise PolicyError(
            "stale_results must be True, False or a dict with some of over (tokens, more than "
            "200), newest and least (whole numbers), tools and exclude (lists of names) and "
            f"arguments (True or False), not {value!r}"
        )

    def _is_valid(self) -> bool:
        """Tell whether sizes and names are valid."""
        frees_some = self.least is None or self.least > 0
        named = "" not in (*self.exclude, *(self.tools or ()))
        return self.over > 200 and self.newest >= 0 and frees_some and named

    def places(self, items: Sequence[Item]) -> list[int]:
        """Return the places of the messages to clip."""
        newest = self._newest_results(items)
        places: list[int] = []
        for place, item in enumerate(items):
            is_large = item.tokens > self.over
            if item.role == "tool":
                is_stale = (is_large and place not in newest) or item.expendable
                if is_stale and self._may_clip(item):
                    places.append(place)
            elif item.role == "assistant" and self.arguments and is_large:
                places.append(place)
        return places

    def _newest_results(self, items: Sequence[Item]) -> set[int]:
        """Return the places of the newest results, which stay whole."""
        results = [place for place, item in enumerate(items) if item.role == "tool"]
        return set(results[max(0, len(results) - self.newest) :])

    def _may_clip(self, item: Item) -> bool:
        """Tell whether a result may be clipped, by its tools."""
        is_named = self.tools is None or set(self.tools).issuperset(item.tools or ("",))
        return is_named and set(self.exclude).isdisjoint(item.tools)


AnyStale = bool | StaleResults | Mapping[str, Any] | None
