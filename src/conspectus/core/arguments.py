"""The rule for shortening large old arguments of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conspectus.core.items import Size
from conspectus.core.sizes import ContextSize, TriggerClause, check_size, parse_trigger, whole
from conspectus.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Arguments:
    """Limits for large arguments of old calls that write files, as in Deep Agents.

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
        usual = cls()
        trigger = parse_trigger(settings.get("trigger"), f"{name} trigger")
        ending = settings.get("truncation_text", usual.ending)
        if not isinstance(ending, str):
            raise PolicyError(f"{name} truncation_text must be a text, not {ending!r}")
        longest = whole(settings.get("max_length", usual.longest), f"{name} max_length")
        keep = check_size(settings.get("keep", usual.keep), f"{name} keep")
        return cls(trigger, keep, longest, ending) if trigger else None

    def old(self, sizes: Sequence[int], limit: int | None) -> int:
        """Return the place before which messages are old."""
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
        """Tell whether the trigger asks for shortening."""
        return any(clause.met(size, limit) for clause in self.trigger)
