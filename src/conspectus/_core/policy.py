"""When to compact and what to keep, in the forms that LangChain users write; checked when built."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from conspectus._core.items import Size
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


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, what to keep, how large a summary may be.

    Attributes:
        trigger: clauses, any of which asks for a compaction.
        keep: how much of the newest history stays, as one `ContextSize`.
        max_summary_tokens: the most that the text of a summary may take; None takes an eighth of
            the budget and a third of what is left free, at least 256 and at most 4,096 tokens.
        summary_frame: tokens of a summary message that says nothing yet: its first line, its note.
        clip_over: tool results and arguments before the kept part that are larger than this many
            tokens are clipped first, which may make a summary needless; None switches that off.
        clip_to: what a clipped one may still take, in tokens.
        aim: share of the budget that a compaction tries to get below, where a window is known;
            what `keep` asks for gives way to it. 1 gives way to the budget alone.
        keep_first: what `keep` asks for gives way only where it would leave no room to grow.
        keep_base: tokens of `keep` that no message takes, where the caller's way to count gives
            something for a history as such.
    """

    trigger: tuple[TriggerClause, ...] = ()
    keep: ContextSize = ("messages", 20)
    max_summary_tokens: int | None = None
    clip_over: int | None = 1000
    clip_to: int = 200
    aim: float = 0.75
    summary_frame: int = 0
    keep_first: bool = False
    keep_base: int = 0

    @classmethod
    def build(
        cls,
        *,
        trigger: object = None,
        keep: object = ("messages", 20),
        max_summary_tokens: int | None = None,
        clip_over: int | None = 1000,
        clip_to: int = 200,
        aim: float = 0.75,
        keep_first: bool = False,
    ) -> Policy:
        """A policy from what a user writes.

        Raises:
            PolicyError: anything that cannot mean anything, with the right form.
        """
        if max_summary_tokens is not None:
            _whole(max_summary_tokens, "max_summary_tokens", SMALLEST_SUMMARY)
        if clip_over is not None:
            _whole(clip_over, "clip_over", 100)
            if _whole(clip_to, "clip_to", 50) >= clip_over:
                raise PolicyError(
                    f"clip_to ({clip_to}) must be smaller than clip_over ({clip_over})."
                )
        return cls(
            trigger=parse_trigger(trigger),
            keep=check_size(keep, "keep"),
            max_summary_tokens=max_summary_tokens,
            clip_over=clip_over,
            clip_to=clip_to,
            aim=check_size(("fraction", aim), "aim")[1],
            keep_first=keep_first,
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

    def summary_limit(self, budget: int | None) -> int:
        """The most that the summary message, its frame included, may take, in tokens."""
        if self.max_summary_tokens is not None:
            return self.max_summary_tokens + self.summary_frame
        return 1024 if budget is None else min(LARGEST_SUMMARY, max(256, budget // 8))


def grown(now: int, before: int) -> bool:
    """Whether a history of so many tokens, or messages, is enough larger to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


LARGEST_SUMMARY = 4096
"""Tokens that a summary message takes at most where nobody has set it."""

SMALLEST_SUMMARY = 64
"""Tokens below which a summary says nothing worth its frame."""


def tightest(trigger: Sequence[TriggerClause]) -> int | None:
    """The smallest history, in tokens, that a clause asking for tokens alone would object to."""
    return min(
        (c.tokens for c in trigger if c.tokens is not None and c.messages is None), default=None
    )
