"""Which parts of the notes are written, and how much of their room each may take.

All parts together take a third of the window. The user's words take half of that before the ledger
chooses among them, messages typed by the way two thirds, and all of them more where nothing else
needs it; a model's goal and next step a fifth. Deeds and findings take one token for three to ten
that leave, as the room allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from conspectus.errors import PolicyError

Part = Literal["said", "done", "found", "open", "index"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Names: the user's words, deeds, findings and decisions, open work, where the rest is."""

SAID, NOW = 0.5, 0.12
"""Shares of the user's words, and of what stands at the end."""

NotesSetting = Iterable[Part] | Mapping[Part, float | None] | None
"""What callers give as `notes=`."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts that are written.

    Attributes:
        parts: their names. Without any, the summariser's text stands alone, as LangChain's and
            LangMem's summaries do.
        said: the most of the room that the user's words take before the ledger chooses among
            them. Default: 0.5.
        now: the most that the end takes, which tells what is open and where the rest is. Default:
            0.12.

    Example:
        >>> Shares.build(["said", "done"]).parts
        ('said', 'done')
    """

    parts: tuple[str, ...] = PARTS
    said: float = SAID
    now: float = NOW

    @classmethod
    def build(cls, notes: NotesSetting) -> Shares:
        """Return the parts that a caller asks for.

        Args:
            notes: names of parts; or a mapping of names to shares of the room, None for the
                default one; or None for all parts.

        Raises:
            PolicyError: a part is unknown, or a share is none.
        """
        if notes is None:
            return cls()
        if isinstance(notes, (str, bytes)) or not isinstance(notes, Iterable):
            raise PolicyError(f"notes must be a list of parts, not {notes!r}; {_FORM}")
        names = list(notes)
        unknown = [name for name in names if name not in PARTS]
        if unknown:
            raise PolicyError(f"notes has no part {unknown[0]!r}; {_FORM}")
        given = notes if isinstance(notes, Mapping) else {}
        for name, share in given.items():
            number = isinstance(share, (int, float)) and not isinstance(share, bool)
            if share is not None and not (number and 0 < float(share) <= 1):
                raise PolicyError(
                    f"the share of {name!r} in notes must be above 0 and at most 1, got {share!r}"
                )
        said, now = given.get("said"), given.get("open")
        return cls(
            tuple(name for name in PARTS if name in names),
            SAID if said is None else float(said),
            NOW if now is None else float(now),
        )


_FORM = f"give some of {', '.join(PARTS)}, or an empty list for the summary alone"
