"""Find stale results of tools, which are clipped before anything is summarised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from conspectus.core.items import Item
from conspectus.core.sizes import whole
from conspectus.errors import PolicyError

LEAST_OVER = 201  # Least setting of `over`: a shortened result takes up to 200 tokens
OTHERS = "*"  # Every tool without settings of its own

SETTINGS = ("over", "newest", "least", "tools", "exclude")
OF_A_TOOL = ("over", "newest")


@dataclass(frozen=True, slots=True)
class OfTool:
    """The settings of one tool; None for those of all tools.

    Results above `over` tokens are shortened; the `newest` ones stay whole, counted apart.
    """

    over: int | None = None
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class StaleResults:
    """The rule for stale results of tools, and the gain that makes it worthwhile.

    Attributes:
        over: tokens above which a result is shortened. Default: 1,000.
        newest: newest results that stay whole, besides those that `keep` keeps. Default: 3.
        least: tokens that must be freed, or nothing is shortened. Default, None: enough to bring
            the history to half of its trigger.
        tools: the only tools whose results are shortened, with their own settings if any; `"*"` for
            all others. None for all.
        exclude: tools whose results are never shortened.
    """

    over: int = 1000
    newest: int = 3
    least: int | None = None
    tools: Mapping[str, OfTool] | None = None
    exclude: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def build(cls, given: object) -> StaleResults | None:
        """Read a user's setting; None if it is off, a `PolicyError` if it is invalid."""
        if given is None or given is False:
            return None
        if given is True:
            return cls()
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping) or set(given) - set(SETTINGS):
            raise PolicyError(
                f"stale_results must be True, False or a dict with some of {', '.join(SETTINGS)}, "
                f"not {given!r}"
            )
        usual = cls()
        least = given.get("least")
        return cls(
            over=whole(given.get("over", usual.over), "stale_results over", LEAST_OVER),
            newest=whole(given.get("newest", usual.newest), "stale_results newest", 0),
            least=None if least is None else whole(least, "stale_results least", 1),
            tools=_tools(given.get("tools")),
            exclude=frozenset(_names(given.get("exclude", ()), "exclude")),
        )

    @property
    def smallest(self) -> int:
        """Tokens up to which no result of any tool is shortened."""
        own = [one.over for one in (self.tools or {}).values() if one.over is not None]
        return min([self.over, *own])

    def stale(self, items: Sequence[Item]) -> frozenset[int]:
        """Return the places of the results to show short."""
        seen: Counter[str] = Counter()
        found: set[int] = set()
        for place in range(len(items) - 1, -1, -1):
            item = items[place]
            if item.role != "tool":
                continue
            rules = [self._rule(name) for name in item.tools or ("",)]
            known = [rule for rule in rules if rule is not None]
            # With a number of its own, a tool's results are counted apart.
            apart = [name for name in item.tools if _own(self._rule(name))]
            counted = apart or [""]
            least = [self.newest if rule.newest is None else rule.newest for rule in known]
            old = all(seen[name] >= max(least, default=0) for name in counted)
            seen.update(counted)
            if len(known) < len(rules):
                continue
            over = max(self.over if rule.over is None else rule.over for rule in known)
            if item.expendable or (item.tokens > over and old):
                found.add(place)
        return frozenset(found)

    def _rule(self, tool: str) -> OfTool | None:
        """Return the settings of a tool; None if its results stay as they are."""
        if tool in self.exclude:
            return None
        if self.tools is None:
            return OfTool()
        return self.tools.get(tool) or self.tools.get(OTHERS)


AnyStale = bool | StaleResults | Mapping[str, Any] | None


def _own(rule: OfTool | None) -> bool:
    return rule is not None and rule.newest is not None


def _tools(given: object) -> Mapping[str, OfTool] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return dict.fromkeys(_names(given, "tools"), OfTool())
    found = {}
    for name in _names(list(given), "tools"):
        own = given[name] if given[name] is not None else {}
        if not isinstance(own, Mapping) or set(own) - set(OF_A_TOOL):
            raise PolicyError(
                f"stale_results tools: {name!r} takes a dict with some of "
                f"{', '.join(OF_A_TOOL)}, not {own!r}"
            )
        over, newest = own.get("over"), own.get("newest")
        found[name] = OfTool(
            None if over is None else whole(over, f"stale_results tools {name} over", LEAST_OVER),
            None if newest is None else whole(newest, f"stale_results tools {name} newest", 0),
        )
    return found


def _names(given: object, what: str) -> list[str]:
    if isinstance(given, (Sequence, Set)) and not isinstance(given, (str, bytes)):
        names = [name for name in given if isinstance(name, str) and name]
        if len(names) == len(given):
            return names
    raise PolicyError(f"stale_results {what} must be a list of names of tools, not {given!r}")
