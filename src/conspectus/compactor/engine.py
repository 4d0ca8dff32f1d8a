"""The engine of every way in: policy, meter, summarisers, archive, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conspectus._core.choices import OnFailure
from conspectus._core.policy import Policy
from conspectus.archive import Archive
from conspectus.compactor.background import Preparations
from conspectus.compactor.hooks import BeforeSummarization, Preview
from conspectus.compactor.memory import Memory
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Settings, summarisers, archive and memory of compactions, for every session.

    Attributes:
        policy: when to compact, and what to keep.
        meter: counts tokens.
        frame: tokens of a summary message that says nothing yet.
        archive: where originals go, if anywhere.
        memory: what this process remembers between calls.
        summarizers: all there are, by name, the embedded one included.
        order: names of those to try, in turn.
        on_failure: what follows when none succeeds.
        timeout: seconds for one try of a summariser that sets none itself.
        pin: says of a message whether it must stay in view.
        on_event: called with the name of an event and its data.
        preview: reads a summary before it is in force; see `PreviewRequest`.
        hooks: get the messages that are about to leave.
        skills: which calls read skill files; None where none does.
        size: tokens of the message that shows a summary, where that is not one of ours.
        redaction: takes secrets out of all that is kept, read or sent to listeners; None for off.
        listeners: hear of it, beside those of the process.
        shares: the parts of the notes that are written.
        passing: its records are thrown away with the one request that they are made for.
        kept_in: where originals stay that no archive holds, as a clip says it, such as "kept in
            the history", with `{cite}` for the name of one; None where nothing keeps them, so that
            nothing is shown short without an archive.
        background: the notes that are prepared beside the agent; None where none are.
        cached: summaries are asked for after the agent's last request, where that may be.
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
    redaction: Redaction | None = None
    listeners: tuple[Listener, ...] = ()
    passing: bool = False
    shares: Shares = field(default_factory=Shares)
    kept_in: str | None = None
    background: Preparations | None = None
    cached: bool = False

    def __post_init__(self) -> None:
        if self.archive is not None:
            index_of(self.archive)  # records are indexed as they are committed

    def identity(self, focus: str) -> str:
        """Name all that would change a summary beside its messages.

        Args:
            focus: the subject to keep above all.
        """
        parts = [*(self.summarizers[name].identity for name in self.order), focus]
        parts += [] if self.shares == Shares() else [repr(self.shares)]
        parts += ["cached"] if self.cached else []
        parts += [self.redaction.identity] if self.redaction is not None else []
        return "\0".join(parts)

    @property
    def where(self) -> str | None:
        """Where originals of clips are, as a clip says it; None: nothing may be clipped."""
        return self.kept_in if self.archive is None else ARCHIVED

    def text_within(self, tokens: int) -> int:
        """Return the tokens for the text of a summary, of those for its message."""
        return max(1, tokens - self.frame - SLACK)
