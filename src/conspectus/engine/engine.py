"""Hold the policy, meter, summarisers, archive and memory of every entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus.archive import Archive
from conspectus.core.policy import OnFailure, Policy
from conspectus.engine.background import Preparations
from conspectus.engine.hooks import BeforeSummarization, Preview
from conspectus.engine.memory import Memory
from conspectus.messages import ARCHIVED
from conspectus.model.base import Summarizer
from conspectus.notes.skills import Skills
from conspectus.notes.tools import ToolTable
from conspectus.observe import Listener
from conspectus.redaction import Redaction
from conspectus.tokens import TokenMeter

SLACK = 4
"""Tokens of the limit left free, as a whole message may count for more than its parts."""

OnEvent = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Settings, summarisers, archive and memory of compactions, for every session.

    Attributes:
        frame: tokens of a summary message without text.
        order: names of the summarisers to try, in turn.
        timeout: seconds for one try of a summariser that sets none itself.
        hooks: functions that get the messages that are about to leave.
        size: tokens of the message that shows a summary, where that is not one of ours.
        sizes: the caller's count of a message for `keep`; None for the meter's.
        notes: whether the user's words and the calls are written beside a summariser's text.
        tools: what the notes know of tools.
        passing: its records are thrown away with the one request that they are made for.
        kept_in: says in a clip where its original is without an archive, with `{cite}` for its id;
            None where nothing keeps originals, so that nothing is clipped.
        cached: summaries are asked for after the agent's last request, where possible.
    """

    policy: Policy = field(default_factory=Policy)
    meter: TokenMeter
    frame: int
    archive: Archive | None
    memory: Memory = field(default_factory=Memory)
    summarizers: Mapping[str, Summarizer]
    order: tuple[str, ...]
    on_failure: OnFailure
    timeout: float | None
    pin: Callable[[Any], bool] | None = None
    on_event: OnEvent | None = None
    preview: Preview | None = None
    hooks: tuple[BeforeSummarization, ...] = ()
    skills: Skills | None = None
    size: Callable[[str], int] | None = None
    sizes: Callable[[Any], int] | None = None
    redaction: Redaction | None = None
    listeners: tuple[Listener, ...] = ()
    passing: bool = False
    notes: bool = True
    tools: ToolTable = field(default_factory=ToolTable)
    kept_in: str | None = None
    background: Preparations | None = None
    cached: bool = False

    def identity(self, focus: str) -> str:
        """Name all that would change a summary, beside its messages."""
        parts = [*(self.summarizers[name].identity for name in self.order), focus]
        parts += [] if self.notes else ["no notes"]
        parts += ["cached"] if self.cached else []
        parts += [self.tools.identity] if self.tools.identity else []
        parts += [repr(self.skills)] if self.skills is not None else []
        parts += [self.redaction.identity] if self.redaction is not None else []
        return "\0".join(parts)

    @property
    def where(self) -> str | None:
        """Where originals of clips are, as a clip says it; None: nothing may be clipped."""
        return self.kept_in if self.archive is None else ARCHIVED

    def text_within(self, tokens: int) -> int:
        return max(1, tokens - self.frame - SLACK)
