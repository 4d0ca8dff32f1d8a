"""The parts that are made of settings: they measure, summarise and store histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from conspectus._turns import others_may_compute
from conspectus.archive import Archive, Scope
from conspectus.core.policy import EMBEDDED, SLACK, Policy
from conspectus.engine.building import open_archive, predicate, rule_finder, summarizers_of
from conspectus.engine.hooks import BeforeSummarization, Preview
from conspectus.engine.memory import Memories
from conspectus.engine.preparations import Preparations
from conspectus.engine.settings import EventHandler, Settings
from conspectus.errors import RedactionError
from conspectus.messages import summary_message, summary_text
from conspectus.messages.alternation import AlternateRoles, joins_by_setting
from conspectus.messages.shortening import ARCHIVED
from conspectus.model.base import Summarizer, SummarizerTraits
from conspectus.notes.rules import RuleFinder
from conspectus.notes.tools import ToolTable
from conspectus.observe import Listener, listeners_of, log
from conspectus.redaction import Redaction
from conspectus.rules import statements_in
from conspectus.tokens import TokenMeter

Joining = Literal["always", "when_compacted", "if_needed", "never"]
"""When messages of the user in a row are joined: in each view; once messages have left; only if no
model has answered two such messages in the history, and messages have left; or never, such as for a
caller that joins them itself, later."""

LEFT_NOTHING = "the redactor left nothing of what failed; let it keep what is no secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerFormat:
    """How one caller shows, sends and counts what all callers share."""

    summary_size: Callable[[str], int] | None = None
    """Tokens of the message that shows a summary, if the caller makes that message."""

    as_request: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    """What the caller sends for a view, if that is not the view itself."""

    keep_count: Callable[[Any], int] | None = None
    """The caller's count of a message for `keep`; None for the meter's."""

    summary_name: str | None = None
    """The `name` of summary messages, for hosts that look for one."""

    agent_name: str | None = None
    """The name of the agent whose history is compacted, for hooks."""

    runtime: Any = None
    """The runtime of the graph's run, for hooks."""

    how_to_recall: str = ""
    """What the notes tell the agent about recalling originals; empty if it cannot."""

    for_one_request: bool = False
    """Its records are made for one request, and are dropped after it."""

    @property
    def owns_summary_message(self) -> bool:
        """Whether the caller makes the message that shows the summary."""
        return self.summary_size is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What all sessions of a way in share.

    What must be built from a setting, or differs between callers of the same settings, is a field.
    What is used as it was given stays in `settings`.
    """

    settings: Settings
    policy: Policy = field(default_factory=Policy)
    meter: TokenMeter
    empty_summary_tokens: int
    """The tokens of a summary message without text."""
    archive: Archive | None
    memories: Memories = field(default_factory=Memories)
    summarizers: Mapping[str, Summarizer]
    """The summarisers by name, in the order in which they are tried."""
    pin: Callable[[Any], bool] | None = None
    find_rules: RuleFinder = statements_in
    on_event: EventHandler | None = None
    preview: Preview | None = None
    hooks: tuple[BeforeSummarization, ...] = ()
    """Functions that get the messages that are about to be evicted."""
    caller_format: CallerFormat = field(default_factory=CallerFormat)
    redaction: Redaction | None = None
    listeners: tuple[Listener, ...] = ()
    tools: ToolTable = field(default_factory=ToolTable)
    """What the notes know of tools."""
    clip_pointer: str | None = None
    """The words in a clip that say where its original is, with `{cite}` for its id; None if nothing
    keeps originals, so that nothing is clipped."""
    preparations: Preparations | None = None
    joining: Joining = "if_needed"
    """When messages of the user in a row are joined in views."""

    @property
    def writes_without_model(self) -> bool:
        """Whether the embedded summariser is the only one."""
        return [*self.summarizers] == [EMBEDDED]

    @classmethod
    def build(cls, settings: Settings, policy: Policy, meter: TokenMeter) -> Self:
        """Make the engine of a way in: a class, a function or a command that takes settings.

        Raises:
            PolicyError: a summariser, the redactor or another setting cannot be used.
            ArchiveError: the archive cannot be opened.
        """
        empty_summary_tokens = count_empty_summary(meter)
        summarizers = summarizers_of(settings)
        hooks = settings.before_summarization or ()
        redaction = Redaction.of(settings.redact, settings.summarizer_timeout)
        listeners = listeners_of(settings.telemetry)
        archive = open_archive(settings.archive)  # last, so that wrong settings make no file
        return cls(
            settings=settings,
            policy=replace(policy, summary_frame=empty_summary_tokens + SLACK),
            meter=meter,
            empty_summary_tokens=empty_summary_tokens,
            summarizers=summarizers,
            pin=predicate(settings.pin),
            find_rules=rule_finder(settings.rules),
            on_event=settings.on_event,
            listeners=listeners,
            hooks=(hooks,) if callable(hooks) else tuple(hooks),
            redaction=redaction,
            archive=archive,
            clip_pointer=None if archive is None else ARCHIVED,
            tools=ToolTable(settings.tool_table),
            preparations=Preparations() if settings.background else None,
            joining=_joining_for(settings.alternate_roles, meter.model),
        )

    def summary_identity(self, focus: str) -> str:
        """Name all that changes a summary, except its messages and its plan."""
        settings = self.settings
        request = "cached" if self.uses_prompt_cache else "smallest"
        parts = (
            *self.summarizers.values(),
            focus,
            settings.notes,
            self.tools,
            settings.skills,
            settings.rules,
            self.redaction,
            request,
        )
        return "\0".join(str(getattr(part, "identity", part)) for part in parts)

    @property
    def program_rules(self) -> tuple[str, ...]:
        """The sentences that the program has laid down."""
        rules = self.settings.rules
        return () if rules is None or callable(rules) else tuple(rules)

    def traits_of(self, by: str) -> SummarizerTraits:
        """Return what the summariser of this name has in addition to what each one has."""
        return SummarizerTraits.of(self.summarizers[by])

    def count_as_sent(self, view: Sequence[Any]) -> int | None:
        """Count a view by the caller's counter, as it is sent; None if there is no such counter."""
        if not self.meter.counts_lists:
            return None
        request = (
            view if self.caller_format.as_request is None else self.caller_format.as_request(view)
        )
        return self.meter.count_list(request)

    def measuring_by(self, meter: TokenMeter) -> Self:
        """Return this engine with another meter for single messages and texts."""
        if meter.estimates == self.meter.estimates:
            scale = meter.ratio / self.meter.ratio
            empty_summary_tokens = math.ceil(self.empty_summary_tokens * scale)
        else:
            empty_summary_tokens = count_empty_summary(meter)
        policy = replace(self.policy, summary_frame=empty_summary_tokens + SLACK)
        return replace(self, policy=policy, meter=meter, empty_summary_tokens=empty_summary_tokens)

    @property
    def uses_prompt_cache(self) -> bool:
        """Whether summaries are asked for after the agent's last request, where possible.

        A provider's cache then holds that request, so that only the new words are paid in full.
        """
        return self.settings.summary_request != "smallest"

    async def redacted(self, texts: Sequence[str], redaction: Redaction | None = None) -> list[str]:
        """Redact texts for logs and listeners: errors may quote messages and keys.

        If that fails, the text of that failure replaces all of them.
        """
        redaction = redaction or self.redaction
        if redaction is None or not texts:
            return list(texts)
        try:
            clean, *_ = await redaction.redact_together(texts)
            return [new or (old and LEFT_NOTHING) for old, new in zip(texts, clean, strict=True)]
        except RedactionError as error:
            return [str(error)] * len(texts)

    async def notify(
        self,
        scope: Scope,
        event: str,
        redaction: Redaction | None = None,
        *,
        is_clean: bool = False,
        **data: Any,
    ) -> None:
        """Call the caller's `on_event`, with redacted texts. If it fails, the log says so.

        With `is_clean` the texts are redacted already.
        """
        if self.on_event is None:
            return
        texts = {name: value for name, value in data.items() if isinstance(value, str)}
        if not is_clean:
            clean = await self.redacted(list(texts.values()), redaction)
            data |= dict(zip(texts, clean, strict=True))
        data |= {"thread_id": scope.thread, "session": scope.session}
        try:
            with others_may_compute():
                self.on_event(event, data)
        except Exception:
            log("on_event_failed", "on_event failed at %r", event, exc_info=True)


def _joining_for(setting: AlternateRoles, model: str) -> Joining:
    """Decide when messages of the user in a row are joined for a model of this name."""
    if setting == "on":
        return "always"
    joins = joins_by_setting(setting, model)
    if joins is None:
        return "if_needed"
    return "when_compacted" if joins else "never"


def count_empty_summary(meter: TokenMeter) -> int:
    """Return the tokens of a summary message without text."""
    # A caller's counter may count parts of a message that a dict does not have.
    empty = summary_message(summary_text("", archived=True), "0" * 16, as_dict=not meter.exact)
    return meter.count_message(empty)
