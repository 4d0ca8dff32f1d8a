"""The policy: when to compact, how much to keep, how large a summary may be, what is clipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import Any, Literal

from conspectus.core.items import Item, Size
from conspectus.core.sizes import (
    ContextSize,
    TriggerClause,
    check_size,
    parse_trigger,
    whole,
)
from conspectus.errors import PolicyError

OnFailure = Literal["degrade", "keep", "raise"]
FAILURES: tuple[OnFailure, ...] = ("degrade", "keep", "raise")

EMBEDDED = "embedded"
"""Name of the embedded summariser, the last resort: offline, never fails, obeys its limit."""

REARM = 1.1
"""Factor by which a history must grow after a failed summary, or a compaction that stayed above its
trigger, before the same trigger counts again: no step repeats without progress."""

SUMMARY_SHARE, FREE_SHARE = 3, 0.6
"""A summary message takes at most one part in three of the window, or of the trigger's size, and no
more than this share of the room beside leading system messages, unless its size is set."""

LARGEST_SUMMARY = 4096
"""Tokens of a summary message if neither its size nor a window is known; also the most that is used
of a summariser's own text."""

SMALLEST_SUMMARY = 64  # Tokens below which a summary is not worth its frame


def names_embedded(value: object) -> bool:
    """Tell whether a setting asks for the embedded summariser by its name."""
    return isinstance(value, str) and value == EMBEDDED


def grown(now: int, before: int) -> bool:
    """Tell whether a history has grown enough to try again."""
    return now >= round(before * REARM, 6)  # 1,500 times 1.1 is a little more than 1,650


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compact, how much to keep, how large a summary may be.

    Attributes:
        trigger: clauses, any of which asks for a compaction.
        keep: how much of the newest history stays in view, as one `ContextSize`.
        max_summary_tokens: the most tokens of a summary's text; a longer one is cut. None asks for
            a third of the budget, or of the trigger's size, and at least 256 tokens, and takes a
            longer one that fits.
        summary_frame: tokens of an empty summary message: its first line, its note.
        keep_first: the size of `keep` gives way only if it leaves no room to grow.
        keep_base: tokens of `keep` that no message takes, if the caller's count has a base.
        stale: what is clipped before anything is summarised; None for nothing.
        arguments: when large arguments of old calls are shortened; None for never.
    """

    trigger: tuple[TriggerClause, ...] = ()
    keep: ContextSize = ("messages", 20)
    max_summary_tokens: int | None = None
    summary_frame: int = 0
    keep_first: bool = False
    keep_base: int = 0
    stale: StaleResults | None = None
    arguments: Arguments | None = None

    @classmethod
    def build(
        cls,
        *,
        trigger: object = None,
        keep: object = ("messages", 20),
        max_summary_tokens: int | None = None,
        keep_first: bool = False,
        stale_results: object = None,
    ) -> Policy:
        """Make a policy from a user's settings; an invalid one is a `PolicyError`."""
        if max_summary_tokens is not None:
            whole(max_summary_tokens, "max_summary_tokens", SMALLEST_SUMMARY)
        clauses, stale = parse_trigger(trigger), StaleResults.build(stale_results)
        kept = check_size(keep, "keep")
        return cls(clauses, kept, max_summary_tokens, keep_first=keep_first, stale=stale)

    @property
    def needs_window(self) -> bool:
        """Whether a fraction is used, which needs a known window."""
        return self.keep[0] == "fraction" or any(c.fraction is not None for c in self.trigger)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Warnings about legal settings that cannot have their effect."""
        kind, amount = self.keep
        for clause in self.trigger:
            bound = getattr(clause, kind)
            if bound is not None and amount >= bound:
                return (
                    f"keep {amount:g} {kind} can never get below the trigger ({clause}): every "
                    "compaction would be followed by another one. Lower keep or raise trigger.",
                )
        return ()

    @property
    def least_trigger(self) -> int | None:
        """The least tokens of a clause that asks for tokens alone."""
        alone = (c.tokens for c in self.trigger if c.messages is None and c.tokens is not None)
        return min(alone, default=None)

    @property
    def summary_cap(self) -> int | None:
        """The most tokens of the summary message, frame included, that a caller has set."""
        return self.max_summary_tokens and self.max_summary_tokens + self.summary_frame

    def keep_tokens(self, limit: int | None) -> int | None:
        """Return the tokens that `keep` asks for; None when it counts messages."""
        kind, amount = self.keep
        if kind == "messages" or (kind == "fraction" and limit is None):
            return None
        tokens = int(amount) if kind == "tokens" else max(1, int((limit or 0) * amount))
        return tokens - self.keep_base

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

    def summary_limit(self, budget: int | None, leading: int = 0) -> int:
        """Return the most tokens asked of the summary message, its frame included.

        `budget` is the room for all messages, or None; `leading` are tokens of leading system
        messages in it.
        """
        if self.summary_cap is not None:
            return self.summary_cap
        if budget is None:
            return LARGEST_SUMMARY
        room = min(budget, self.least_trigger or budget)
        return max(256, min(room // SUMMARY_SHARE, int((room - leading) * FREE_SHARE)))


@dataclass(frozen=True, slots=True)
class StaleResults:
    """What is clipped before anything is summarised, and the gain that makes it worthwhile.

    Attributes:
        over: tokens above which a result is shortened. Default: 1,000.
        newest: newest results that stay whole even where `keep` does not keep them. Default: 0.
        least: tokens that must be freed, or nothing is shortened. Default, None: enough to bring
            the history to half of its trigger.
        tools: the only tools whose results are shortened; None for all.
        exclude: tools whose results are never shortened.
        arguments: whether what the agent wrote, such as large arguments, is shortened, too.
    """

    over: int = 1000
    newest: int = 0
    least: int | None = None
    tools: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    arguments: bool = True

    @classmethod
    def build(cls, value: object) -> StaleResults | None:
        """Read a user's setting; None if it is off, a `PolicyError` if it is invalid."""
        if value is None or value is False or isinstance(value, cls):
            return value or None
        names = [one.name for one in fields(cls)]
        if value is not True and not (isinstance(value, Mapping) and set(value) <= set(names)):
            raise PolicyError(
                f"stale_results must be True, False or a dict with some of {', '.join(names)}, "
                f"not {value!r}"
            )
        settings: dict[str, Any] = {} if value is True else dict(value)
        for name, least in (("over", 201), ("newest", 0), ("least", 1)):  # shortened: up to 200
            if settings.get(name, least) is not None or name != "least":
                whole(settings.get(name, least), f"stale_results {name}", least)
        for name in {"tools", "exclude"} & set(settings):
            tools = settings[name]
            many = isinstance(tools, (Sequence, Set)) and not isinstance(tools, (str, bytes))
            if not (many and all(isinstance(one, str) and one for one in tools)):
                raise PolicyError(
                    f"stale_results {name} must be a list of names of tools, not {tools!r}"
                )
            settings[name] = frozenset(tools)
        if not isinstance(settings.get("arguments", True), bool):
            raise PolicyError("stale_results arguments must be True or False")
        return cls(**settings)

    def stale(self, items: Sequence[Item]) -> list[int]:
        """Return the places of the messages to show short."""
        results = [i for i, item in enumerate(items) if item.role == "tool"]
        newest = set(results[max(0, len(results) - self.newest) :])
        places = []
        for i, item in enumerate(items):
            large = item.tokens > self.over
            if item.role == "assistant":
                large = large and self.arguments
            elif item.role == "tool":
                wanted = self.tools is None or self.tools.issuperset(item.tools)
                large = (large and i not in newest) or item.expendable
                large = large and wanted and self.exclude.isdisjoint(item.tools)
            else:
                continue
            if large:
                places.append(i)
        return places


AnyStale = bool | StaleResults | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Arguments:
    """Deep Agents' setting: when large arguments of old calls are shortened, and how.

    An argument longer than `longest` characters keeps its first 20, followed by `ending`.
    """

    trigger: tuple[TriggerClause, ...] = ()
    keep: ContextSize = ("messages", 20)
    longest: int = 2000
    ending: str = "...(argument truncated)"

    @classmethod
    def build(cls, settings: object) -> Arguments | None:
        """Read Deep Agents' settings; None for none, or for those without a trigger."""
        name = "truncate_args_settings"
        if settings is None:
            return None
        known = ("trigger", "keep", "max_length", "truncation_text")
        if not isinstance(settings, Mapping) or set(settings) - set(known):
            raise PolicyError(
                f"{name} must be a dict with some of {', '.join(known)}, not {settings!r}"
            )
        ending = settings.get("truncation_text", cls().ending)
        if not isinstance(ending, str):
            raise PolicyError(f"{name} truncation_text must be a text, not {ending!r}")
        trigger = parse_trigger(settings.get("trigger"), f"{name} trigger")
        longest = whole(settings.get("max_length", cls().longest), f"{name} max_length")
        keep = check_size(settings.get("keep", cls().keep), f"{name} keep")
        return cls(trigger, keep, longest, ending) if trigger else None

    def old(self, sizes: Sequence[int], limit: int | None) -> int:
        """Return the place before which messages are old."""
        kind, amount = self.keep
        if kind == "messages" or (kind == "fraction" and limit is None):
            return max(0, len(sizes) - int(amount if kind == "messages" else 20))
        left = max(1, int(amount if kind == "tokens" else (limit or 0) * amount))
        for place in range(len(sizes) - 1, -1, -1):
            left -= sizes[place]
            if left < 0:
                return place + 1
        return 0

    def fired(self, size: Size, limit: int | None) -> bool:
        """Tell whether the trigger asks for shortening."""
        return any(clause.met(size, limit) for clause in self.trigger)
