"""The policy: when to compact, how much to keep, how large a summary may be, what is clipped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, Literal, NamedTuple, get_args

from conspectus.core.items import Item, Size, Window
from conspectus.core.records import from_plain
from conspectus.errors import PolicyError, WrongType

Unit = Literal["tokens", "messages", "fraction"]
ContextSize = tuple[Unit, int | float]
"""`("tokens", 4000)`, `("messages", 20)` or `("fraction", 0.8)` of the answering model's window."""

OnFailure = Literal["degrade", "keep", "raise"]

EMBEDDED = "embedded"
"""Name of the embedded summariser, the last resort: offline, never fails, obeys its limit."""

REARM = 1.1
"""Factor by which a history must grow after a failed summary, or a compaction that stayed above its
trigger, before the same trigger counts again: no step repeats without progress."""

SUMMARY_DIVISOR = 3
"""A summary message takes at most one part in so many of the window, or of the trigger's size,
unless its size is set."""

SHARE_BESIDE_INSTRUCTIONS = 0.6
"""A summary message takes at most this share of the room beside leading system messages, unless its
size is set."""

LEAST_ASKED = 256  # Tokens of a summary message that are asked for at least, unless its size is set

LARGEST_SUMMARY = 4096
"""Tokens of a summary message if neither its size nor a window is known; also the most that is used
of a summariser's own text."""

SMALLEST_SUMMARY = 64  # Tokens below which a summary is not worth its frame
SLACK = 4  # Tokens of a limit left free, as a whole message may count for more than its parts
TIMEOUT: float = 120  # seconds for one call of a summariser, unless somebody says otherwise
HOUR = 3_600  # The longest timeout, in seconds: a larger one was meant in milliseconds

KEPT_MESSAGES = 20
"""Messages that a share of the window keeps while the window is unknown."""

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


def has_grown(now: int, before: int) -> bool:
    """Tell whether a number of tokens, or of messages, has grown enough to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


def size_has_grown(now: Size, before: Size) -> bool:
    """Tell whether the tokens or the messages of a history have grown enough."""
    return has_grown(now.tokens, before.tokens) or has_grown(now.messages, before.messages)


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
    """Return a size in a unit; `unknown` is the error for a unit that there is not."""
    problem = unknown if unit not in get_args(Unit) else _problem_of(unit, amount, name)
    if problem:
        is_percent = unit == "fraction" and _is_number(amount) and 10 <= amount <= 100
        hint = f" Did you mean {amount / 100:g}?" if is_percent else ""
        raise PolicyError(f"{problem}, got {amount!r}.{hint} {RIGHT_FORM}.")
    return (unit, float(amount) if unit == "fraction" else amount)


def _problem_of(unit: Unit, amount: Any, name: str) -> str:
    """Say what is wrong with an amount; empty if nothing is.

    The first words are those that users of LangChain's middleware look for.
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
class TriggerCondition:
    """Sizes that must all be reached; None asks nothing."""

    tokens: int | None = None  # size of the history, in tokens
    messages: int | None = None  # its length, in messages
    fraction: float | None = None  # share of the answering model's window

    def threshold(self, limit: int | None) -> int | None:
        """Return the tokens that this clause waits for, in a window of `limit`."""
        thresholds: list[int] = []
        if self.tokens is not None:
            thresholds.append(self.tokens)
        if self.fraction is not None and limit is not None:
            thresholds.append(max(1, int(limit * self.fraction)))
        return max(thresholds, default=None)

    def met(self, size: Size, limit: int | None) -> bool:
        """Tell whether all of it holds; a fraction of an unknown window never does."""
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


def parse_trigger(value: object, name: str = "trigger") -> tuple[TriggerCondition, ...]:
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


def _clause(value: object, name: str) -> TriggerCondition:
    if isinstance(value, TriggerCondition):
        return value
    if isinstance(value, tuple):
        return TriggerCondition(**dict[str, Any]([check_size(value, name)]))
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
    return TriggerCondition(**sizes)


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
    """Return the tokens that `keep` asks for; None when it counts messages."""
    unit, amount = keep
    if unit == "messages" or (unit == "fraction" and limit is None):
        return None
    return int(amount) if unit == "tokens" else max(1, int((limit or 0) * amount))


class SummaryLimits(NamedTuple):
    """The most tokens of a summary message, its frame included."""

    longest: int  # the most that is asked for
    cap: int | None = None  # the most that a caller has set; None if the caller has set none


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, how much to keep, how large a summary may be."""

    trigger: tuple[TriggerCondition, ...] = ()  # clauses, any of which asks for a compaction
    # how much of the newest history stays in view, as one `ContextSize`
    keep: ContextSize = ("messages", 20)
    # the most tokens of a summary's text; a longer one is cut. None asks for a third of the
    # budget, or of the trigger's size, and at least 256 tokens, and takes a longer one that
    # fits
    max_summary_tokens: int | None = None
    summary_frame: int = 0  # tokens of an empty summary message: its first line, its note
    keep_is_set: bool = False  # the size of `keep` gives way only if it leaves no room to grow
    # what is clipped before anything is summarised; None for nothing
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

    def _keeps_more_than(self, clause: TriggerCondition, window: int | None) -> bool:
        """Tell whether `keep` alone meets a clause; of several sizes, another one may end first."""
        tokens = keep_tokens(self.keep, window)
        if tokens is not None:
            threshold = clause.threshold(window)
            return clause.messages is None and threshold is not None and tokens >= threshold
        unit, amount = self.keep
        threshold = getattr(clause, unit)
        asks_nothing_else = clause == TriggerCondition(**{unit: threshold})
        return asks_nothing_else and threshold is not None and amount >= threshold

    def smallest_token_trigger(self, limit: int | None) -> int | None:
        """Return the least tokens at which a clause fires that asks for tokens and no length.

        A clause that also asks for a share of the window fires at the larger of both, and never
        in an unknown window.
        """
        thresholds: list[int] = []
        for clause in self.trigger:
            threshold = clause.threshold(limit)
            can_fire = clause.fraction is None or limit is not None
            if clause.tokens is not None and clause.messages is None and can_fire:
                thresholds.append(threshold or clause.tokens)
        return min(thresholds, default=None)

    def fires_at(self, limit: int | None, messages: int) -> int | None:
        """Return the tokens at which the first clause fires in a history of so many messages."""
        long_enough = (clause for clause in self.trigger if (clause.messages or 0) <= messages)
        thresholds = (clause.threshold(limit) for clause in long_enough)
        return min((tokens for tokens in thresholds if tokens is not None), default=None)

    def fired(
        self, size: Size, limit: int | None, last: Size | None = None
    ) -> TriggerCondition | None:
        """Return the first clause that asks for a compaction now.

        `last` is the size that the latest compaction reached, or at which it failed; if it met the
        clause already, the history must have grown by `REARM` since.
        """
        for clause in self.trigger:
            if not clause.met(size, limit):
                continue
            if last is None or not clause.met(last, limit):
                return clause
            is_longer = clause.messages is not None and has_grown(size.messages, last.messages)
            if is_longer or has_grown(size.tokens, last.tokens):
                return clause
        return None

    def summary_limits(self, window: Window | None, instruction_tokens: int) -> SummaryLimits:
        """Return the most tokens of a summary message.

        Args:
            window: of the answering model; None if unknown.
            instruction_tokens: tokens of leading system messages, which stand in the window.
        """
        if self.max_summary_tokens is not None:
            cap = self.max_summary_tokens + self.summary_frame
            return SummaryLimits(cap, cap)
        budget = None if window is None else window.budget
        trigger = self.smallest_token_trigger(None if window is None else window.limit)
        known = [size for size in (budget, trigger) if size is not None]
        basis = min(known, default=SUMMARY_DIVISOR * LARGEST_SUMMARY)
        beside_instructions = int((basis - instruction_tokens) * SHARE_BESIDE_INSTRUCTIONS)
        largest = max(LEAST_ASKED, min(basis // SUMMARY_DIVISOR, beside_instructions))
        return SummaryLimits(largest if budget is not None else min(largest, LARGEST_SUMMARY))


@dataclass(frozen=True, slots=True)
class StaleResults:
    """What is clipped before anything is summarised, and the gain that makes it worthwhile."""

    # tokens above which a result is clipped, to 200 tokens; so it must be more than 200
    over: int = 1000
    newest: int = 0  # newest results that stay whole even where `keep` does not keep them
    # tokens that clips must free, or nothing is clipped; None if they must bring the history to
    # half of its trigger
    least: int | None = None
    tools: tuple[str, ...] | None = None  # the only tools whose results are clipped; None for all
    exclude: tuple[str, ...] = ()  # tools whose results are never clipped
    # whether what the agent wrote, such as large arguments, is clipped, too
    arguments: bool = True

    @classmethod
    def build(cls, value: object) -> StaleResults | None:
        """Read a user's setting; None if it is off, a `PolicyError` if it is invalid."""
        if value is None or value is False or isinstance(value, cls):
            return value or None
        settings: Any = {} if value is True else value
        names = {setting.name for setting in fields(cls)}
        try:
            stale = from_plain(cls, settings)
            if set(settings) <= names and stale._is_valid():
                return stale
        except TypeError:  # of another type
            pass
        raise PolicyError(
            "stale_results must be True, False or a dict with some of over (tokens, more than "
            "200), newest and least (whole numbers), tools and exclude (lists of names) and "
            f"arguments (True or False), not {value!r}"
        )

    def _is_valid(self) -> bool:
        """Tell whether sizes and names have their values."""
        frees_some = self.least is None or self.least > 0
        named = "" not in (*self.exclude, *(self.tools or ()))
        return self.over > 200 and self.newest >= 0 and frees_some and named

    @classmethod
    def of_arguments(cls, settings: object, stale: AnyStale = None) -> StaleResults | None:
        """Read `truncate_args_settings` of Deep Agents, beside `stale`; None switches it off."""
        results = cls.build(stale)
        if results is not None:
            return replace(results, arguments=cls.of_arguments(settings) is not None)
        name = "truncate_args_settings"
        known = ("keep", "max_length", "trigger", "truncation_text")
        if settings is None:
            return None
        if not isinstance(settings, Mapping) or set(settings) - set(known):
            raise PolicyError(
                f"{name} must be a dict with some of {', '.join(known)}, not {settings!r}"
            )
        longest = check_whole_number(settings.get("max_length", 2000), f"{name} max_length")
        return cls(over=max(201, longest // 4), tools=()) if settings.get("trigger") else None

    def places(self, items: Sequence[Item]) -> list[int]:
        """Return the places of the messages to clip."""
        newest = self._newest_results(items)
        places: list[int] = []
        for at, item in enumerate(items):
            is_large = item.tokens > self.over
            if item.role == "tool":
                is_stale = (is_large and at not in newest) or item.expendable
                if is_stale and self._may_clip(item):
                    places.append(at)
            elif item.role == "assistant" and self.arguments and is_large:
                places.append(at)
        return places

    def _newest_results(self, items: Sequence[Item]) -> set[int]:
        """Return the places of the newest results, which stay whole."""
        results = [at for at, item in enumerate(items) if item.role == "tool"]
        return set(results[max(0, len(results) - self.newest) :])

    def _may_clip(self, item: Item) -> bool:
        """Tell whether a result may be clipped, by its tools."""
        is_named = self.tools is None or set(self.tools).issuperset(item.tools or ("",))
        return is_named and set(self.exclude).isdisjoint(item.tools)


AnyStale = bool | StaleResults | Mapping[str, Any] | None
