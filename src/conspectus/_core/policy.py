"""When to compact and what to keep, in the forms that LangChain users write; checked when built."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from conspectus._core.items import Size
from conspectus._core.stale import StaleResults
from conspectus.errors import PolicyError

Kind = Literal["tokens", "messages", "fraction"]
ContextSize = tuple[Kind, int | float]
"""`("tokens", 4000)`, `("messages", 20)` or `("fraction", 0.8)` of the answering model's window."""

KINDS: tuple[Kind, ...] = ("tokens", "messages", "fraction")
RIGHT_FORM = (
    'Write ("tokens", 4000), ("messages", 20) or ("fraction", 0.8) with a fraction above 0 and '
    "at most 1"
)
TRIGGER_FORM = (
    RIGHT_FORM + '; conditions that must all hold as {"tokens": 4000, "messages": 10}; '
    "alternatives as a list of these"
)
REARM = 1.1
"""After a compaction that could not get below its trigger, or a summary that failed, the history
must grow by this factor before the same trigger counts again: no step repeats without progress."""


LEAST_GAIN = 0.1
"""Share of a history that a compaction must free where the window does not ask for it: what is
freed lasts about as long as `REARM` makes the next one wait."""


def check_size(value: object, name: str) -> ContextSize:
    """One size, or a `PolicyError` that shows the right form."""
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)):
        raise PolicyError(f"{name} cannot be {value!r}. {RIGHT_FORM}.")
    kind, amount = value
    if kind not in KINDS:
        raise PolicyError(f"Unsupported context size type {kind} for {name}. {RIGHT_FORM}.")
    return _check(kind, amount, name)


def _check(kind: object, amount: object, name: str) -> ContextSize:
    # The first sentences are those that users of LangChain's middleware look for.
    if kind not in KINDS:
        raise PolicyError(f"Unsupported {name} metric: {kind!r}. {RIGHT_FORM}.")
    if isinstance(amount, bool):
        raise PolicyError(f"{kind} {name} value must be numeric, got {amount!r}. {RIGHT_FORM}.")
    number = amount if isinstance(amount, (int, float)) else math.nan
    if kind == "fraction":
        if not isinstance(amount, (int, float)):
            raise PolicyError(
                f"Fraction {name} values must be numeric, got {amount!r}. {RIGHT_FORM}."
            )
        if not 0 < number <= 1:
            meant = f" Did you mean {number / 100:g}?" if 1 < number <= 100 else ""
            raise PolicyError(
                f"Fractional {name} values must be between 0 and 1, got {amount!r}.{meant} "
                f"{RIGHT_FORM}."
            )
        return ("fraction", float(number))
    if math.isfinite(number) and number <= 0:
        raise PolicyError(
            f"{name} thresholds must be greater than 0, got {amount!r}. {RIGHT_FORM}."
        )
    if not isinstance(number, int):
        raise PolicyError(f"{kind} {name} values must be integers, got {amount!r}. {RIGHT_FORM}.")
    return (kind, number)


@dataclass(frozen=True, slots=True)
class TriggerClause:
    """Sizes that must all be reached; None asks nothing.

    Attributes:
        tokens: size of the history, in tokens.
        messages: its length, in messages.
        fraction: share of the answering model's window.
    """

    tokens: int | None = None
    messages: int | None = None
    fraction: float | None = None

    def threshold(self, limit: int | None) -> int | None:
        """The tokens that this clause waits for, in a window of `limit` tokens."""
        wanted = [] if self.tokens is None else [self.tokens]
        if self.fraction is not None and limit is not None:
            wanted.append(max(1, int(limit * self.fraction)))
        return max(wanted, default=None)

    def met(self, size: Size, limit: int | None) -> bool:
        """Whether all of it holds; a fraction of an unknown window never does."""
        if self.fraction is not None and limit is None:
            return False
        tokens = self.threshold(limit)
        return (tokens is None or size.tokens >= tokens) and (
            self.messages is None or size.messages >= self.messages
        )

    def __str__(self) -> str:
        parts = [f"{self.tokens:,} tokens"] if self.tokens is not None else []
        parts += [f"{self.messages:,} messages"] if self.messages is not None else []
        parts += [f"{self.fraction:g} of the window"] if self.fraction is not None else []
        return " and ".join(parts)


def parse_trigger(value: object, name: str = "trigger") -> tuple[TriggerClause, ...]:
    """LangChain's trigger forms as clauses, any of which is enough.

    Example:
        >>> [str(c) for c in parse_trigger([("messages", 50), {"tokens": 4000, "messages": 10}])]
        ['50 messages', '4,000 tokens and 10 messages']
    """
    if value is None:
        return ()
    if isinstance(value, list):
        if not value:
            raise PolicyError(f"{name} is an empty list; pass None for no trigger. {TRIGGER_FORM}.")
        return tuple(clause for part in value for clause in _clause(part, name))
    return _clause(value, name)


def _clause(value: object, name: str) -> tuple[TriggerClause, ...]:
    if isinstance(value, TriggerClause):
        return (value,)
    if isinstance(value, Mapping):
        if not value:
            raise PolicyError(
                f"{name} clause must specify at least one of 'tokens', 'messages', 'fraction'. "
                f"{TRIGGER_FORM}."
            )
        return (_all_of(_check(kind, amount, name) for kind, amount in value.items()),)
    if not isinstance(value, tuple):
        raise PolicyError(f"{name} cannot be {value!r}. {TRIGGER_FORM}.")
    return (_all_of([check_size(value, name)]),)


def _all_of(sizes: Iterable[ContextSize]) -> TriggerClause:
    by_kind = dict(sizes)
    tokens, messages = by_kind.get("tokens"), by_kind.get("messages")
    return TriggerClause(
        tokens=None if tokens is None else int(tokens),
        messages=None if messages is None else int(messages),
        fraction=by_kind.get("fraction"),
    )


def _whole(value: object, name: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PolicyError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return value


def _share(value: object, name: str) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value < 1:  # type: ignore[operator]
        raise PolicyError(
            f"{name} must be a share of the history, 0 or more and less than 1, got {value!r}."
        )
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Arguments:
    """When large arguments of old calls that write files are shortened, as Deep Agents does.

    Attributes:
        trigger: clauses, any of which asks for it.
        keep: how much of the newest history is left alone.
        longest: characters above which an argument is shortened.
        ending: stands behind its first 20 characters.
    """

    trigger: tuple[TriggerClause, ...] = ()
    keep: ContextSize = ("messages", 20)
    longest: int = 2000
    ending: str = "...(argument truncated)"

    @classmethod
    def build(cls, settings: object) -> Arguments | None:
        """The settings of Deep Agents; None for none, or for those without a trigger.

        Raises:
            PolicyError: anything that cannot mean anything, with the right form.
        """
        name = "truncate_args_settings"
        if settings is None:
            return None
        known = ("trigger", "keep", "max_length", "truncation_text")
        if not isinstance(settings, Mapping) or set(settings) - set(known):
            raise PolicyError(
                f"{name} must be a dict with some of {', '.join(known)}, not {settings!r}"
            )
        usual = cls()
        trigger = parse_trigger(settings.get("trigger"), f"{name} trigger")
        ending = settings.get("truncation_text", usual.ending)
        if not isinstance(ending, str):
            raise PolicyError(f"{name} truncation_text must be a text, not {ending!r}")
        longest = _whole(settings.get("max_length", usual.longest), f"{name} max_length")
        keep = check_size(settings.get("keep", usual.keep), f"{name} keep")
        return cls(trigger, keep, longest, ending) if trigger else None

    def old(self, sizes: Sequence[int], limit: int | None) -> int:
        """The place before which messages are old.

        Args:
            sizes: of the messages, in tokens as the caller counts.
            limit: of the window; None where it is unknown.
        """
        kind, amount = self.keep
        if kind == "fraction" and limit is None:
            kind, amount = "messages", 20
        if kind == "messages":
            return max(0, len(sizes) - int(amount))
        left = max(1, int(amount if kind == "tokens" else (limit or 0) * amount))
        for place in range(len(sizes) - 1, -1, -1):
            left -= sizes[place]
            if left < 0:
                return place + 1
        return 0

    def fired(self, size: Size, limit: int | None) -> bool:
        """Whether it is time to look for them."""
        return any(clause.met(size, limit) for clause in self.trigger)


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, what to keep, how large a summary may be.

    Attributes:
        trigger: clauses, any of which asks for a compaction.
        keep: how much of the newest history stays in view, as one `ContextSize`.
        max_summary_tokens: the most that the text of a summary may take; a longer one is cut. None
            asks for a third of the budget, or of what the trigger waits for, and at least 256
            tokens, and takes a longer one that fits.
        summary_frame: tokens of a summary message that says nothing yet: its first line, its note.
        clip_over: tool results and arguments before the kept part that are larger than this many
            tokens are clipped first, which may make a summary needless; None switches that off.
        clip_to: what a clipped one may still take, in tokens.
        aim: share of the budget, less leading system messages, that a compaction tries to get
            below; what `keep` asks for gives way to it. 1 gives way to the budget alone.
        keep_first: what `keep` asks for gives way only where it would leave no room to grow.
        keep_base: tokens of `keep` that no message takes, where the caller's way to count gives
            something for a history as such.
        arguments: when large arguments of old calls are shortened; None for never.
        least_gain: share of a history that a compaction must free, its summary taken at its
            largest, where neither the window nor force asks for it; 0 for any.
        stale: which results before the kept part are clipped first, and when that is worthwhile;
            None to go by `clip_over`, which then is for arguments alone.
    """

    trigger: tuple[TriggerClause, ...] = ()
    keep: ContextSize = ("messages", 20)
    max_summary_tokens: int | None = None
    clip_over: int | None = 1000
    clip_to: int = 200
    aim: float = 0.62
    summary_frame: int = 0
    keep_first: bool = False
    keep_base: int = 0
    arguments: Arguments | None = None
    least_gain: float = LEAST_GAIN
    stale: StaleResults | None = None

    @classmethod
    def build(
        cls,
        *,
        trigger: object = None,
        keep: object = ("messages", 20),
        max_summary_tokens: int | None = None,
        clip_over: int | None = 1000,
        clip_to: int = 200,
        aim: float = 0.62,
        keep_first: bool = False,
        least_gain: float = LEAST_GAIN,
        stale_results: object = None,
    ) -> Policy:
        """A policy from what a user writes.

        Raises:
            PolicyError: anything that cannot mean anything, with the right form.
        """
        if max_summary_tokens is not None:
            _whole(max_summary_tokens, "max_summary_tokens", SMALLEST_SUMMARY)
        if clip_over is not None:
            _whole(clip_over, "clip_over", _whole(clip_to, "clip_to", 50) + 1)
        return cls(
            trigger=parse_trigger(trigger),
            keep=check_size(keep, "keep"),
            max_summary_tokens=max_summary_tokens,
            clip_over=clip_over,
            clip_to=clip_to,
            aim=check_size(("fraction", aim), "aim")[1],
            keep_first=keep_first,
            least_gain=_share(least_gain, "least_gain"),
            stale=StaleResults.build(stale_results),
        )

    @property
    def needs_window(self) -> bool:
        """Whether a fraction is used, which means nothing without a window."""
        return self.keep[0] == "fraction" or any(c.fraction is not None for c in self.trigger)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What is legal and will not do what it seems to."""
        kind, amount = self.keep
        for clause in self.trigger:
            bound = getattr(clause, kind)
            if bound is not None and amount >= bound:
                return (
                    f"keep {amount:g} {kind} can never get below the trigger ({clause}): every "
                    "compaction would be followed by another one. Lower keep or raise trigger.",
                )
        return ()

    def keep_tokens(self, limit: int | None) -> int | None:
        """The tokens of messages that `keep` asks for; None when it counts messages."""
        kind, amount = self.keep
        if kind == "messages":
            return None
        if kind == "tokens":
            return int(amount) - self.keep_base
        return None if limit is None else max(1, int(limit * amount)) - self.keep_base

    def fired(
        self, size: Size, limit: int | None, last: Size | None = None
    ) -> TriggerClause | None:
        """The first clause that asks for a compaction now.

        `last` is the size that the latest compaction reached, or at which the latest one failed;
        where it met the clause already, the history must have grown by `REARM` since.
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

    @property
    def summary_cap(self) -> int | None:
        """The most that the summary message may take, frame included, if a caller has set it."""
        return self.max_summary_tokens and self.max_summary_tokens + self.summary_frame

    def gain(self, fired: TriggerClause | None, size: Size, floor: int) -> Size:
        """What a compaction must free below the window: tokens, and messages.

        Where `least_gain` of a history is less than the smallest summary takes, nothing is asked:
        in so small a one sizes say nothing. A trigger that counts messages alone asks for fewer
        messages, and for no more tokens than before.

        Args:
            fired: the clause that asks for the compaction.
            size: of the history.
            floor: the smallest useful summary message, in tokens.
        """
        tokens = math.ceil(size.tokens * self.least_gain)
        if tokens < floor:
            return Size(0, 0)
        if fired is None or fired.tokens is not None or fired.fraction is not None:
            return Size(tokens, 0)
        return Size(1, max(1, int(size.messages * self.least_gain)))

    def summary_limit(self, budget: int | None, leading: int = 0) -> int:
        """What the summary message, its frame included, is asked to take at most, in tokens.

        Args:
            budget: the room for all messages; None where it is unknown.
            leading: tokens of leading system messages, which take their part of it.
        """
        if self.summary_cap is not None:
            return self.summary_cap
        if budget is None:
            return LARGEST_SUMMARY
        below = tightest(self.trigger)
        room = budget if below is None else min(budget, below)
        return max(256, min(room // SUMMARY_SHARE, int((room - leading) * FREE_SHARE)))


def grown(now: int, before: int) -> bool:
    """Whether a history of so many tokens, or messages, is enough larger to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


SUMMARY_SHARE = 3
"""A summary message takes one part in so many of the window, or of what the trigger waits for, at
most, where nobody has set its size: the rest is for the messages and for what is to come."""

FREE_SHARE = 0.6
"""And no more than this share of what leading system messages leave."""

LARGEST_SUMMARY = 4096
"""Tokens of a summary message where neither its size nor a window is known; also what a
summariser's own text is used up to, however long the one is that was asked for."""

SMALLEST_SUMMARY = 64
"""Tokens below which a summary says nothing worth its frame."""


def tightest(trigger: Sequence[TriggerClause]) -> int | None:
    """The smallest history, in tokens, that a clause asking for tokens alone would object to."""
    return min(
        (c.tokens for c in trigger if c.tokens is not None and c.messages is None), default=None
    )
