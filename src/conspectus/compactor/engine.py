"""The engine that every way in shares: policy, meter, summarisers, archive, memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from conspectus._core.choices import EMBEDDED, FAILURES, OnFailure, names_embedded
from conspectus._core.items import Size, Window
from conspectus._core.policy import Policy
from conspectus._langchain import is_chat_model, is_message, is_runnable, is_store
from conspectus.archive import Archive, Scope
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.background import Preparations
from conspectus.compactor.leaving import BeforeSummarization, hooks_of
from conspectus.compactor.memory import Memory
from conspectus.compactor.preview import Preview
from conspectus.compactor.riding import read_kind
from conspectus.compactor.session import Session
from conspectus.compactor.tools import SLACK, OnEvent, Tools
from conspectus.errors import PolicyError
from conspectus.events import Listener, are_listeners
from conspectus.ledger.skills import Skills
from conspectus.messages import summary_message, summary_text
from conspectus.redaction import Redact, Redaction
from conspectus.summarize import (
    EmbeddedSummarizer,
    NotesSetting,
    Shares,
    Summarizer,
)
from conspectus.tokens import TokenMeter

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable
    from langgraph.store.base import BaseStore

LOCAL = "local"
"""The tenant where none is named."""

AnySummarizer: TypeAlias = (
    "Summarizer | BaseChatModel | Runnable[Any, Any] | Callable[[list[Any]], Any] | str"
)
AnyArchive: TypeAlias = "Archive | BaseStore | str | Path"
Pin = Callable[[Any], bool] | str
AnyListeners = Listener | Sequence[Listener] | None


@dataclass(frozen=True, slots=True)
class Engine:
    """What compactions work with, built once from what a user writes.

    Attributes:
        tools: the meter, the summarisers, the archive, the memory.
        policy: when to compact, and what to keep.
        pin: says of a message whether it must stay in view.
    """

    tools: Tools
    policy: Policy
    pin: Callable[[Any], bool] | None

    @classmethod
    def build(
        cls,
        summarizer: AnySummarizer | None,
        policy: Policy,
        meter: TokenMeter,
        *,
        archive: AnyArchive | None = None,
        prompt: str | None = None,
        max_summarizer_tokens: int | None = None,
        trim_tokens_to_summarize: int | None = None,
        fallbacks: Sequence[AnySummarizer] = (),
        on_failure: OnFailure = "degrade",
        pin: Pin | None = None,
        summarizer_timeout: float | None = 120.0,
        on_event: OnEvent | None = None,
        hooks: BeforeSummarization | Sequence[BeforeSummarization] | None = None,
        skills: Skills | None = None,
        redact: Redact = None,
        telemetry: AnyListeners = None,
        notes: NotesSetting = None,
        background: object = None,
        summary_request: object = "smallest",
    ) -> Engine:
        """An engine.

        Args:
            summarizer: see `Compactor`; None or `"embedded"` for the embedded one.
            policy: when to compact, and what to keep.
            meter: counts tokens.
            prompt: instructions for chat models instead of ours; see `ChatModelSummarizer`.
            hooks: told of what is about to leave; see `SummarizationEvent`.
            skills: which calls read skill files.
            redact: takes secrets out of what is kept; see `Compactor`.
            telemetry: who hears of it beside those who hear of all in the process.
            notes: the parts of the notes that are written; None for all.
            background: whether notes are prepared beside the agent; see `Compactor`.
            summary_request: what a model is sent for a summary; see `Compactor`.

        Raises:
            PolicyError: a setting that cannot mean anything.
            ArchiveError: the archive cannot be opened.
        """
        if on_failure not in FAILURES:
            raise PolicyError(f"on_failure must be one of {FAILURES}, not {on_failure!r}")
        timeout = summarizer_timeout
        if timeout is not None and (isinstance(timeout, bool) or not _positive(timeout)):
            raise PolicyError(f"summarizer_timeout must be seconds above 0, or None: {timeout!r}")
        if on_event is not None and not callable(on_event):
            raise PolicyError(
                f"on_event must take the name of an event and its data, not {on_event!r}"
            )
        try:
            listeners = are_listeners(telemetry)
        except TypeError as error:
            raise PolicyError(str(error)) from error
        if isinstance(fallbacks, str) or not isinstance(fallbacks, Sequence):
            raise PolicyError(f"fallbacks must be a list of summarisers, not {fallbacks!r}")
        embedded = EmbeddedSummarizer()

        def made(given: AnySummarizer | None) -> Summarizer:
            if given is None or names_embedded(given):
                return embedded
            if isinstance(given, Summarizer):
                return given
            from conspectus.summarize import CallableSummarizer, ChatModelSummarizer

            if isinstance(given, str) or is_chat_model(given):
                return ChatModelSummarizer(
                    given,
                    prompt=prompt,
                    trim_tokens_to_summarize=trim_tokens_to_summarize,
                    max_summarizer_tokens=max_summarizer_tokens,
                    timeout=timeout,
                )
            if is_runnable(given) or callable(given):
                return CallableSummarizer(
                    given, trim_tokens_to_summarize=trim_tokens_to_summarize, timeout=timeout
                )
            raise PolicyError(
                f"{given!r} cannot summarise: give a chat model, a 'provider:model' string, "
                "'embedded', a callable or Runnable that takes messages and returns text, or an "
                "object with name, identity, summarize and asummarize"
            )

        named: dict[str, Summarizer] = {}
        for one in (made(summarizer), *map(made, fallbacks)):
            name = one.name
            # The embedded one's name is its own: it is the last resort under it.
            while name in named or (name == EMBEDDED and not isinstance(one, EmbeddedSummarizer)):
                name += "'"
            named[name] = one
        frame = frame_of(meter)
        tools = Tools(
            meter=meter,
            frame=frame,
            archive=open_archive(archive),
            memory=Memory(),
            order=tuple(named),
            summarizers={EMBEDDED: embedded, **named},
            on_failure=on_failure,
            timeout=timeout,
            on_event=on_event,
            listeners=listeners,
            hooks=hooks_of(hooks),
            skills=skills,
            redaction=Redaction.of(redact, timeout),
            shares=Shares.build(notes),
            background=Preparations.of(background),
            cached=read_kind(summary_request),
        )
        return cls(tools, replace(policy, summary_frame=frame + SLACK), predicate(pin))

    def with_archive(self, archive: Archive | None) -> Engine:
        """This engine with another archive."""
        return replace(self, tools=replace(self.tools, archive=archive))

    def told(self, on_event: OnEvent | None, preview: Preview | None = None) -> Engine:
        """This engine with somebody else to tell and to ask."""
        return replace(self, tools=replace(self.tools, on_event=on_event, preview=preview))

    def session(
        self,
        scope: Scope,
        room: Window | None,
        anchor: Anchor | None = None,
        *,
        asked: Size | None = None,
        last: Size | None = None,
        sizes: Callable[[Any], int] | None = None,
        ratio: float | None = None,
    ) -> Session:
        """One agent's history; see `Session`. Without `anchor`, its records are in the archive."""
        if anchor is None:
            anchor = Anchor(self.tools.archive, self.tools.memory, scope)
        return Session(
            self.tools, self.policy, room, self.pin, scope, anchor, asked, last, sizes, ratio
        )


def frame_of(meter: TokenMeter) -> int:
    """Tokens of a summary message that says nothing yet."""
    # A counter of somebody else may count what a dict has no place for.
    kind = None if meter.exact else dict
    return meter.message(summary_message(summary_text("", archived=True), "0" * 16, like=kind))


def window_of(window: int | None, reserved: int) -> Window | None:
    """A window from what a user writes.

    Raises:
        PolicyError: they are no whole numbers of tokens, or leave nothing.
    """
    for name, value, least in (("window", window, 1), ("reserved_tokens", reserved, 0)):
        wrong = isinstance(value, bool) or not isinstance(value, int) or value < least
        if value is not None and wrong:
            raise PolicyError(f"{name} must be a whole number of tokens, not {value!r}")
    if window is None:
        return None
    if reserved >= window:
        raise PolicyError(
            f"reserved_tokens ({reserved:,}) leaves nothing of the window ({window:,})"
        )
    return Window(window, reserved)


def open_archive(given: AnyArchive | None) -> Archive | None:
    """An archive from what a user writes.

    Raises:
        PolicyError: it is nothing that can hold one.
        ArchiveError: it cannot be opened.
    """
    if given is None or isinstance(given, Archive):
        return given
    if is_store(given):
        return Archive(given)
    if not isinstance(given, (str, Path)):
        raise PolicyError(
            f"archive must be a path, an address, a LangGraph store or an Archive, not {given!r}"
        )
    return Archive.open(given)


def predicate(pin: Pin | None) -> Callable[[Any], bool] | None:
    """What says of a message whether it stays: a caller's own, or one that looks for a marker.

    Raises:
        PolicyError: it is neither.
    """
    if isinstance(pin, str) and pin:
        return lambda message: bool(_extra(message).get(pin))
    if pin is not None and not callable(pin):
        raise PolicyError(
            "pin must be a callable that takes a message, or the name of a marker in the "
            f"additional_kwargs of messages, not {pin!r}"
        )
    return pin


def _extra(message: Any) -> Any:
    return message.additional_kwargs if is_message(message) else message


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0
