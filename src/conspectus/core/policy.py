"""The policy: when to compact, how much to keep, how large a summary may be, what is clipped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, Literal, get_args

from conspectus.core.items import Item, Size
from conspectus.core.records import from_plain
from conspectus.errors import PolicyError, WrongType

Unit = Literal["tokens", "messages", "fraction"]
ContextSize = tuple[Unit, int | float]
"""`("tokens", 4000)`, `("messages", 20)` or `("fraction", 0.8)` of the answering model's window."""

OnFailure = Literal["degrade", "keep", "raise"]

# Name of the embedded summariser, the last resort: offline, never fails, obeys its limit.
EMBEDDED = "embedded"
# Factor by which a history must grow after a failed summary, or a compaction that stayed above
# its trigger, before the same trigger counts again: no step repeats without progress.
REARM = 1.1
# A summary message takes at most one part in three of the window, or of the trigger's size, and
# no more than this share of the room beside leading system messages, unless its size is set.
SUMMARY_SHARE, FREE_SHARE = 3, 0.6
# Tokens of a summary message if neither its size nor a window is known; also the most that is
# used of a summariser's own text.
LARGEST_SUMMARY = 4096
TIMEOUT: float = 120  # seconds for one call of a summariser, unless somebody says otherwise
HOUR = 3_600  # The longest timeout, in seconds: a larger one was meant in milliseconds
SLACK = 4  # Tokens of a limit left free, as a whole message may count for more than its parts
SMALLEST_SUMMARY = 64  # Tokens below which a summary is not worth its frame

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


def grown(now: int, before: int) -> bool:
    """Tell whether a history has grown enough to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


def has_grown(now: Size, before: Size) -> bool:
    """Tell the same of sizes: tokens or messages have grown enough."""
    return grown(now.tokens, before.tokens) or grown(now.messages, before.messages)


# Sizes and triggers in LangChain's forms


def whole(value: object, name: str, least: int = 1) -> int:
    """Return a whole number of at least `least`, or raise `PolicyError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PolicyError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return value


def plain_words(value: object, name: str) -> str:
    """Return a text, empty for None, or raise `PolicyError`."""
    if value is not None and not isinstance(value, str):
        raise PolicyError(f"{name} must be a text in plain words, or None, not {value!r}.")
    return value or ""


def check_size(value: object, name: str) -> ContextSize:
    """Return one size, checked; a `PolicyError` shows the right form."""
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise WrongType(f"{name} cannot be {value!r}. {RIGHT_FORM}.")
    return _checked(*value, name, f"Unsupported context size type {value[0]} for {name}")


def _checked(kind: Any, amount: Any, name: str, unknown: str) -> ContextSize:
    # The first words are those that users of LangChain's middleware look for.
    number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
    wrong, meant = "", ""
    if kind not in get_args(Unit):
        wrong = unknown
    elif isinstance(amount, bool):
        wrong = f"{kind} {name} value must be numeric"
    elif kind == "fraction" and not number:
        wrong = f"Fraction {name} values must be numeric"
    elif kind == "fraction" and not 0 < amount <= 1:
        wrong = f"Fractional {name} values must be between 0 and 1"
        meant = f" Did you mean {amount / 100:g}?" if 10 <= amount <= 100 else ""
    elif number and amount <= 0:
        wrong = f"{name} thresholds must be greater than 0"
    elif kind != "fraction" and type(amount) is not int:
        wrong = f"{kind} {name} values must be integers"
    if wrong:
        raise PolicyError(f"{wrong}, got {amount!r}.{meant} {RIGHT_FORM}.")
    return (kind, float(amount) if kind == "fraction" else amount)


@dataclass(frozen=True, slots=True)
class TriggerClause:
    """Sizes that must all be reached; None asks nothing."""

    tokens: int | None = None  # size of the history, in tokens
    messages: int | None = None  # its length, in messages
    fraction: float | None = None  # share of the answering model's window

    def threshold(self, limit: int | None) -> int | None:
        """Return the tokens that this clause waits for, in a window of `limit`."""
        wanted = [] if self.tokens is None else [self.tokens]
        if self.fraction is not None and limit is not None:
            wanted.append(max(1, int(limit * self.fraction)))
        return max(wanted, default=None)

    def met(self, size: Size, limit: int | None) -> bool:
        """Tell whether all of it holds; a fraction of an unknown window never does."""
        if self.fraction is not None and limit is None:
            return False
        return size.tokens >= (self.threshold(limit) or 0) and size.messages >= (self.messages or 0)

    def __str__(self) -> str:
        units = {"tokens": self.tokens, "messages": self.messages}
        parts = [f"{size:,} {unit}" for unit, size in units.items() if size is not None]
        parts += [f"{self.fraction:g} of the window"] if self.fraction is not None else []
        return " and ".join(parts)


def parse_trigger(value: object, name: str = "trigger") -> tuple[TriggerClause, ...]:
    """Parse LangChain's forms of a trigger into clauses, any of which is enough.

    Example:
        >>> [str(c) for c in parse_trigger([("messages", 50), {"tokens": 4000, "messages": 10}])]
        ['50 messages', '4,000 tokens and 10 messages']
    """
    if value is None:
        return ()
    if isinstance(value, list) and not value:
        raise PolicyError(f"{name} is an empty list; pass None for no trigger. {TRIGGER_FORM}.")
    return tuple(_clause(part, name) for part in (value if isinstance(value, list) else [value]))


def _clause(value: object, name: str) -> TriggerClause:
    if isinstance(value, TriggerClause):
        return value
    if isinstance(value, tuple):
        return TriggerClause(**dict[str, Any]([check_size(value, name)]))
    if not isinstance(value, Mapping):
        raise WrongType(f"{name} cannot be {value!r}. {TRIGGER_FORM}.")
    if set(value) == {"type", "value"}:
        python = f"({value['type']!r}, {value['value']!r})"
        raise PolicyError(f"{name} {dict(value)!r} is the form of YAML; in Python write {python}.")
    if not value:
        units = "'tokens', 'messages', 'fraction'"
        raise PolicyError(f"{name} clause must specify at least one of {units}. {TRIGGER_FORM}.")
    wrong = "Unsupported {} metric: {!r}"
    sizes = [_checked(kind, size, name, wrong.format(name, kind)) for kind, size in value.items()]
    return TriggerClause(**dict[str, Any](sizes))


def cut_for(keep: ContextSize, sizes: Sequence[int], limit: int | None) -> int:
    """Return the place of the first message that `keep` keeps; 20 of an unknown window's share."""
    kind, amount = keep
    tokens = keep_tokens(keep, limit)
    if tokens is None:
        return max(0, len(sizes) - int(amount if kind == "messages" else 20))
    return len(sizes) - bisect_right([*accumulate(reversed(sizes))], tokens)


def keep_tokens(keep: ContextSize, limit: int | None) -> int | None:
    """Return the tokens that `keep` asks for; None when it counts messages."""
    kind, amount = keep
    if kind == "messages" or (kind == "fraction" and limit is None):
        return None
    return int(amount) if kind == "tokens" else max(1, int((limit or 0) * amount))


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, how much to keep, how large a summary may be."""

    trigger: tuple[TriggerClause, ...] = ()  # clauses, any of which asks for a compaction
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

    def caveats(self, window: int | None) -> Iterator[str]:
        """Yield warnings about legal settings that cannot have their effect in this window."""
        (kind, amount), tokens = self.keep, keep_tokens(self.keep, window)
        limit = f"a window of {window or 0:,} tokens"
        for clause in self.trigger:
            # Where several sizes must hold, another one may end first.
            bound, size = getattr(clause, kind), amount
            alone = clause == TriggerClause(**{kind: bound})
            if tokens is not None:
                bound, size, alone = clause.threshold(window), tokens, clause.messages is None
            if bound is not None and size >= bound and alone:
                yield (
                    f"keep {amount:g} {kind} can never get below the trigger ({clause}): every "
                    "compaction would be followed by another one. Lower keep or raise trigger."
                )
            if window is not None and (clause.tokens or 0) > window:
                yield f"the trigger ({clause}) is never reached in {limit}. Lower trigger."
        if window is not None and (most := self.max_summary_tokens or 0) >= window:
            yield f"max_summary_tokens ({most:,}) are not less than {limit}. Lower them."

    @property
    def least_trigger(self) -> int | None:
        """The least tokens of a clause that asks for tokens alone."""
        alone = (c.tokens for c in self.trigger if c.messages is None and c.tokens is not None)
        return min(alone, default=None)

    def fires_at(self, limit: int | None, messages: int) -> int | None:
        """Return the tokens at which the first clause fires in a history of so many messages."""
        met = (clause for clause in self.trigger if (clause.messages or 0) <= messages)
        tokens = (clause.threshold(limit) for clause in met)
        return min((size for size in tokens if size is not None), default=None)

    def fired(
        self, size: Size, limit: int | None, last: Size | None = None
    ) -> TriggerClause | None:
        """Return the first clause that asks for a compaction now.

        `last` is the size that the latest compaction reached, or at which it failed; if it met the
        clause already, the history must have grown by `REARM` since.
        """
        for clause in self.trigger:
            if not clause.met(size, limit):
                continue
            if last is None or not clause.met(last, limit):
                return clause
            longer = clause.messages is not None and grown(size.messages, last.messages)
            if longer or grown(size.tokens, last.tokens):
                return clause
        return None

    def summary_limit(self, budget: int | None, leading: int) -> tuple[int, int | None]:
        """Return the most tokens asked of the summary message, and those that the caller has set.

        Its frame is included. `budget` is the room for all messages, or None; `leading` are tokens
        of leading system messages in it.
        """
        if self.max_summary_tokens is not None:
            cap = self.max_summary_tokens + self.summary_frame
            return cap, cap
        rooms = [room for room in (budget, self.least_trigger) if room is not None]
        room = min(rooms, default=SUMMARY_SHARE * LARGEST_SUMMARY)
        most = max(256, min(room // SUMMARY_SHARE, int((room - leading) * FREE_SHARE)))
        return most if budget is not None else min(most, LARGEST_SUMMARY), None


@dataclass(frozen=True, slots=True)
class StaleResults:
    """What is clipped before anything is summarised, and the gain that makes it worthwhile."""

    over: int = 1000  # tokens above which a result is shortened: more than 200, to which it is
    newest: int = 0  # newest results that stay whole even where `keep` does not keep them
    # tokens that must be freed, or nothing is shortened; None for enough to bring the history to
    # half of its trigger
    least: int | None = None
    tools: tuple[str, ...] | None = None  # the only tools whose results are shortened; None for all
    exclude: tuple[str, ...] = ()  # tools whose results are never shortened
    # whether what the agent wrote, such as large arguments, is shortened, too
    arguments: bool = True

    @classmethod
    def build(cls, value: object) -> StaleResults | None:
        """Read a user's setting; None if it is off, a `PolicyError` if it is invalid."""
        if value is None or value is False or isinstance(value, cls):
            return value or None
        try:
            settings: Any = {} if value is True else value
            made = from_plain(cls, settings)
            known = set(settings) <= {setting.name for setting in fields(cls)}
            least = made.over > 200 and made.newest >= 0 and (made.least is None or made.least > 0)
            if known and least and "" not in (*made.exclude, *(made.tools or ())):
                return made
        except TypeError:  # of another type
            pass
        raise PolicyError(
            "stale_results must be True, False or a dict with some of over (tokens, more than "
            "200), newest and least (whole numbers), tools and exclude (lists of names) and "
            f"arguments (True or False), not {value!r}"
        )

    @classmethod
    def of_arguments(cls, settings: object, stale: AnyStale = None) -> StaleResults | None:
        """Read `truncate_args_settings` of Deep Agents, beside `stale`; None switches it off."""
        if built := cls.build(stale):
            return replace(built, arguments=cls.of_arguments(settings) is not None)
        name, known = "truncate_args_settings", ("keep", "max_length", "trigger", "truncation_text")
        if settings is None:
            return None
        if not isinstance(settings, Mapping) or set(settings) - set(known):
            raise PolicyError(
                f"{name} must be a dict with some of {', '.join(known)}, not {settings!r}"
            )
        longest = whole(settings.get("max_length", 2000), f"{name} max_length")
        return cls(over=max(201, longest // 4), tools=()) if settings.get("trigger") else None

    def stale(self, items: Sequence[Item]) -> list[int]:
        """Return the places of the messages to show short."""
        results = [i for i, item in enumerate(items) if item.role == "tool"]
        newest = set(results[max(0, len(results) - self.newest) :])
        exclude, places = frozenset(self.exclude), []
        for i, item in enumerate(items):
            large = item.tokens > self.over
            if item.role == "tool":
                large = (large and i not in newest) or item.expendable
                wanted = self.tools is None or set(self.tools).issuperset(item.tools or ("",))
                large = large and wanted and exclude.isdisjoint(item.tools)
            elif item.role != "assistant" or not self.arguments:
                continue
            if large:
                places.append(i)
        return places


AnyStale = bool | StaleResults | Mapping[str, Any] | None
