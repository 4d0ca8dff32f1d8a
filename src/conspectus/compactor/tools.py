"""What a compaction works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus._core.choices import OnFailure
from conspectus.archive import Archive
from conspectus.compactor.background import Preparations
from conspectus.compactor.leaving import BeforeSummarization
from conspectus.compactor.memory import Memory
from conspectus.compactor.preview import Preview
from conspectus.events import Listener
from conspectus.ledger.skills import Skills
from conspectus.messages import ARCHIVED
from conspectus.recall import index_of
from conspectus.redaction import Redaction
from conspectus.summarize import Shares, Summarizer
from conspectus.tokens import TokenMeter

SLACK = 4
"""Tokens of the limit left free, as a whole message may count for more than its parts."""

OnEvent = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Tools:
    """What a compaction works with; the same for every session of a compactor.

    Attributes:
        meter: counts tokens.
        frame: tokens of a summary message that says nothing yet.
        archive: where originals go, if anywhere.
        memory: what is remembered between calls.
        summarizers: all there are, by name, the embedded one included.
        order: names of those to try, in turn.
        on_failure: what follows when none succeeds.
        timeout: seconds for one try of a summariser that sets none itself.
        on_event: whom to tell.
        preview: who reads a summary before it is in force; see `PreviewRequest`.
        hooks: told of what is about to leave.
        skills: which calls read skill files; None where none does.
        size: tokens of the message that shows a summary, where that is not one of ours.
        redaction: what takes secrets out of all that is kept, read or told; None for nothing.
        listeners: who hears of it beside those who hear of all in the process.
        shares: the parts of the notes that are written.
        passing: what is put in force is thrown away with the one request that it is made for.
        kept_in: where originals stay that no archive holds, as a clip says it, such as "kept in
            the history", with `{cite}` for the name of one; None where nothing keeps them, so that
            nothing is shown short without an archive.
        background: the notes that are prepared beside the agent; None where none are.
        cached: summaries are asked for after the agent's last request, where that may be.
    """

    meter: TokenMeter
    frame: int
    archive: Archive | None
    memory: Memory
    summarizers: Mapping[str, Summarizer]
    order: tuple[str, ...]
    on_failure: OnFailure
    timeout: float | None
    on_event: OnEvent | None
    preview: Preview | None = None
    hooks: tuple[BeforeSummarization, ...] = ()
    skills: Skills | None = None
    size: Callable[[str], int] | None = None
    redaction: Redaction | None = None
    listeners: tuple[Listener, ...] = ()
    passing: bool = False
    shares: Shares = field(default_factory=Shares)
    kept_in: str | None = None
    background: Preparations | None = None
    cached: bool = False

    def __post_init__(self) -> None:
        if self.archive is not None:
            index_of(self.archive)  # what is committed from now on is indexed at once

    def identity(self, focus: str) -> str:
        """All that would change a summary beside the messages that it stands for, as one string.

        Args:
            focus: what is to be kept above all.
        """
        parts = [*(self.summarizers[name].identity for name in self.order), focus]
        parts += [] if self.shares == Shares() else [repr(self.shares)]
        parts += ["cached"] if self.cached else []
        parts += [self.redaction.identity] if self.redaction is not None else []
        return "\0".join(parts)

    @property
    def where(self) -> str | None:
        """Where originals of clips are, as a clip says it; None where nothing may be clipped."""
        return self.kept_in if self.archive is None else ARCHIVED

    def text_within(self, tokens: int) -> int:
        """Tokens for the text of a summary, of those for its message."""
        return max(1, tokens - self.frame - SLACK)
