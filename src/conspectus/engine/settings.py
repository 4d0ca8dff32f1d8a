"""Read the settings that all entry points share, and build their engine."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from conspectus._langchain import is_chat_model, is_message, is_runnable, is_store
from conspectus.archive import Archive, Scope
from conspectus.core.items import Window
from conspectus.core.policy import EMBEDDED, FAILURES, OnFailure, Policy, names_embedded
from conspectus.core.sizes import whole
from conspectus.engine.background import AnyBackground, Preparations
from conspectus.engine.engine import SLACK, Engine, OnEvent
from conspectus.engine.hooks import BeforeSummarization, hooks_of
from conspectus.engine.riding import read_kind
from conspectus.errors import InputError, PolicyError
from conspectus.messages import summary_message, summary_text
from conspectus.model.base import Summarizer
from conspectus.model.embedded import EmbeddedSummarizer
from conspectus.notes.skills import Skills
from conspectus.notes.tools import Tool, ToolTable
from conspectus.observe import Listener, listeners_of
from conspectus.redaction import Redact, Redaction
from conspectus.tokens import TokenCounter, TokenMeter

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

ThreadId = str | int | UUID

OURS = ("conspectus", "conspectus_lab")
"""Packages whose frames are not the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The settings of an engine, with the names and defaults of all entry points.

    `Compactor` and `SummarizationMiddleware` document them.
    """

    model: AnySummarizer | None = None
    summarizer: AnySummarizer | None = None
    archive: AnyArchive | None = None
    summary_prompt: str | None = None
    trim_tokens_to_summarize: int | None = None
    fallbacks: Sequence[AnySummarizer] = ()
    on_failure: OnFailure = "degrade"
    pin: Pin | None = None
    summarizer_timeout: float | None = 120.0
    on_event: OnEvent | None = None
    before_summarization: BeforeSummarization | Sequence[BeforeSummarization] | None = None
    skills: Skills | None = None
    redact: Redact = None
    telemetry: AnyListeners = None
    notes: bool = True
    tool_table: Sequence[Tool] = ()
    background: AnyBackground = False
    summary_request: str = "smallest"

    def __post_init__(self) -> None:
        timeout = self.summarizer_timeout
        if self.on_failure not in FAILURES:
            raise PolicyError(f"on_failure must be one of {FAILURES}, not {self.on_failure!r}")
        number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if timeout is not None and not (number and timeout > 0):
            raise PolicyError(f"summarizer_timeout must be seconds above 0, or None: {timeout!r}")
        if self.on_event is not None and not callable(self.on_event):
            raise PolicyError(
                f"on_event must take the name of an event and its data, not {self.on_event!r}"
            )
        if isinstance(self.fallbacks, str) or not isinstance(self.fallbacks, Sequence):
            raise PolicyError(f"fallbacks must be a list of summarisers, not {self.fallbacks!r}")
        if not isinstance(self.notes, bool):
            raise PolicyError(
                f"notes must be True, or False for the summariser's text alone, not {self.notes!r}"
            )
        table = self.tool_table
        if not isinstance(table, (list, tuple)) or not all(isinstance(one, Tool) for one in table):
            raise PolicyError(
                "tool_table must be a list of conspectus.Tool, such as "
                'Tool("book_room", key="room_id", effect=True)'
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> EngineSettings:
        """Pick the settings out of all parameters of an entry point."""
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})

    def engine(self, policy: Policy, meter: TokenMeter) -> Engine:
        listeners = listeners_of(self.telemetry)
        named: dict[str, Summarizer] = {}
        for one in (self._writer(), *map(self._made, self.fallbacks)):
            name = one.name
            # The embedded one's name is its own: it is the last resort under it.
            while name in named or (name == EMBEDDED and not isinstance(one, EmbeddedSummarizer)):
                name += "'"
            named[name] = one
        frame = frame_of(meter)
        return Engine(
            policy=replace(policy, summary_frame=frame + SLACK),
            meter=meter,
            frame=frame,
            archive=open_archive(self.archive),
            order=tuple(named),
            summarizers={EMBEDDED: EmbeddedSummarizer(), **named},
            on_failure=self.on_failure,
            timeout=self.summarizer_timeout,
            pin=predicate(self.pin),
            on_event=self.on_event,
            listeners=listeners,
            hooks=hooks_of(self.before_summarization),
            skills=self.skills,
            redaction=Redaction.of(self.redact, self.summarizer_timeout),
            notes=self.notes,
            tools=ToolTable(self.tool_table),
            background=Preparations.of(self.background),
            cached=read_kind(self.summary_request),
        )

    def chat_model(self, model: Any) -> Summarizer:
        """Make a summariser of a chat model, or of a Runnable that stands for one."""
        from conspectus.model.chat_model import ChatModelSummarizer

        return ChatModelSummarizer(
            model,
            prompt=self.summary_prompt,
            trim_tokens_to_summarize=self.trim_tokens_to_summarize,
            timeout=self.summarizer_timeout,
        )

    def _writer(self) -> Summarizer:
        """Make the first summariser: `summarizer`, else the model."""
        if self.summarizer is None and is_runnable(self.model):
            # Whatever stands for the model answers prompts, and is no function of messages.
            return self.chat_model(self.model)
        return self._made(self.model if self.summarizer is None else self.summarizer)

    def _made(self, given: AnySummarizer | None) -> Summarizer:
        if given is None or names_embedded(given):
            return EmbeddedSummarizer()
        if isinstance(given, Summarizer):
            return given
        if isinstance(given, str) or is_chat_model(given):
            return self.chat_model(given)
        if is_runnable(given) or callable(given):
            from conspectus.model.callables import CallableSummarizer

            trim, timeout = self.trim_tokens_to_summarize, self.summarizer_timeout
            return CallableSummarizer(given, trim_tokens_to_summarize=trim, timeout=timeout)
        raise PolicyError(
            f"{given!r} cannot summarise: give a chat model, a 'provider:model' string, "
            "'embedded', a callable or Runnable that takes messages and returns text, or an "
            "object with name, identity, summarize and asummarize"
        )


def model_of(model: AnySummarizer | None, summarizer: AnySummarizer | None) -> Any:
    """Return the model of an entry point, built if it is a name.

    Where another one writes, a name whose model cannot be built stays a name: it still says which
    tokens to estimate.

    Raises:
        PolicyError: it writes and cannot be built, or is no model and another one writes.
    """
    if isinstance(model, str) and not names_embedded(model):
        from conspectus.model.chat_model import chat_model_named

        try:
            return chat_model_named(model)
        except PolicyError:
            if summarizer is None:
                raise
            return model
    if summarizer is not None and model is not None and not is_runnable(model):
        raise PolicyError(
            "model must be a chat model or a 'provider:model' string where summarizer= writes, not "
            f"{model!r}"
        )
    return model


def meter_of(counter: TokenCounter | str | None, tokenizer: str | None, model: Any) -> TokenMeter:
    """Make the meter of a counter, or of a tokenizer's name, or else of the model."""
    if tokenizer is None:
        named = model if isinstance(model, str) or is_runnable(model) else None
        return TokenMeter(counter, model=named)
    if not isinstance(tokenizer, str) or not tokenizer:
        raise PolicyError(
            "tokenizer must be the name of a model, such as 'gpt-4o', or a vocabulary, such as "
            f"'tiktoken:o200k_base', not {tokenizer!r}; a function goes into token_counter="
        )
    if counter is not None:
        raise PolicyError("give tokenizer= or token_counter=, not both: each says what counts")
    if tokenizer.partition(":")[0] in ("tiktoken", "tokenizers"):
        return TokenMeter(tokenizer)
    return TokenMeter(model=tokenizer)


def frame_of(meter: TokenMeter) -> int:
    # A foreign counter may count parts of a message that a dict has no place for.
    kind = None if meter.exact else dict
    return meter.message(summary_message(summary_text("", archived=True), "0" * 16, like=kind))


def window_of(window: int | None, reserved: int) -> Window | None:
    """Check and read `window` and `reserved_tokens`."""
    whole(reserved, "reserved_tokens", 0)
    if window is None:
        return None
    whole(window, "window")
    if reserved >= window:
        raise PolicyError(
            f"reserved_tokens ({reserved:,}) leaves nothing of the window ({window:,})"
        )
    return Window(window, reserved)


def open_archive(given: AnyArchive | None) -> Archive | None:
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
    if isinstance(pin, str) and pin:
        return lambda m: bool((m.additional_kwargs if is_message(m) else m).get(pin))
    if pin is not None and not callable(pin):
        raise PolicyError(
            "pin must be a callable that takes a message, or the name of a marker in the "
            f"additional_kwargs of messages, not {pin!r}"
        )
    return pin


def warn_caller(text: str, kind: type[Warning], own: object) -> None:
    """Warn about the line outside our packages that builds or sets an object.

    The `__init__` of a subclass of `own` is not the caller's line.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None:
        ours = str(frame.f_globals.get("__name__", "")).partition(".")[0] in OURS
        built = frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is own
        if not (ours or built):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


def scope_of(tenant: str | None, thread_id: ThreadId, session: str) -> Scope:
    """Name a history; raise `InputError` for a name that is empty or no text."""
    if isinstance(thread_id, (int, UUID)) and not isinstance(thread_id, bool):
        thread_id = str(thread_id)
    named: Mapping[str, object] = {"thread_id": thread_id, "tenant": tenant, "session": session}
    for name, value in named.items():
        if value is None and name == "tenant":
            continue
        if not isinstance(value, str) or not value:
            raise InputError(f"{name} must be a text that names it, not {value!r}")
    return Scope(LOCAL if tenant is None else tenant, str(thread_id), session)
