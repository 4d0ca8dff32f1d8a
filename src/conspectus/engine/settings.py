"""The settings of compactions, and what every way in makes of them: one `Engine`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from conspectus._langchain import is_chat_model, is_message, is_runnable, is_store
from conspectus._turns import waiting
from conspectus.archive import Archive
from conspectus.bridge import is_async
from conspectus.core.items import Window
from conspectus.core.policy import (
    EMBEDDED,
    HOUR,
    SLACK,
    SMALLEST_SUMMARY,
    TIMEOUT,
    AnyStale,
    OnFailure,
    Policy,
    StaleResults,
    check_size,
    names_embedded,
    parse_trigger,
    whole,
)
from conspectus.engine.background import Preparations
from conspectus.engine.thread import Memory
from conspectus.errors import PolicyError, RedactionError
from conspectus.messages import summary_message, summary_text
from conspectus.messages.alternation import AlternateRoles, alternates
from conspectus.messages.shortening import ARCHIVED
from conspectus.model.base import EmbeddedSummarizer, Summarizer
from conspectus.notes.tools import Skills, Tool, ToolTable
from conspectus.observe import Listener, listeners_of
from conspectus.redaction import Redact, Redaction
from conspectus.tokens import TokenCounter, TokenMeter

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable
    from langgraph.store.base import BaseStore

    from conspectus.engine.hooks import BeforeSummarization, Preview

LEFT_NOTHING = "the redactor left nothing of what failed; let it keep what is no secret"

AnySummarizer: TypeAlias = (
    "Summarizer | BaseChatModel | Runnable[Any, Any] | Callable[[list[Any]], Any] | str"
)
AnyArchive: TypeAlias = "Archive | BaseStore | str | Path"
Pin = Callable[[Any], bool] | str
AnyListeners = Listener | Sequence[Listener] | None
OnEvent = Callable[[str, Mapping[str, Any]], None]


def _is_plain(value: object) -> bool:
    """Return whether it is None, or can be called and answers at once: nothing awaits it."""
    return value is None or (callable(value) and not is_async(value))


def _is_seconds(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (number and 0 < value <= HOUR)


def _is_list(value: object, kind: type = object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, kind) for one in value)


CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "on_failure": (get_args(OnFailure).__contains__, f"one of {get_args(OnFailure)}"),
    "summarizer_timeout": (_is_seconds, f"seconds above 0 and at most {HOUR:,}, or None"),
    "before_summarization": (
        lambda v: v is None or callable(v) or (_is_list(v) and all(map(callable, v))),
        "callables that take an event",
    ),
    "on_event": (_is_plain, "a callable that takes a name and its data, and is not async"),
    "fallbacks": (_is_list, "a list of summarisers"),
    "background": (lambda v: v is None or isinstance(v, bool), "True or False"),
    "notes": (lambda v: isinstance(v, bool), "True, or False for the summariser's text only"),
    "tool_table": (
        lambda v: _is_list(v, Tool),
        'a list of conspectus.Tool, such as Tool("book_room", key="room_id", effect=True)',
    ),
    "skills": (
        lambda v: v is None or isinstance(v, Skills),
        'a conspectus.langchain.Skills, such as Skills(("read_file",))',
    ),
    "summary_request": (("smallest", "cached").__contains__, '"smallest" or "cached"'),
    "alternate_roles": (get_args(AlternateRoles).__contains__, '"auto", "on" or "off"'),
    "pin": (
        lambda v: v != "" and (isinstance(v, str) or _is_plain(v)),
        "a callable that takes a message and is not async, or the name of a marker in "
        "additional_kwargs",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Parameters of entry points that make an engine, with their defaults.

    Raises:
        PolicyError: one of them is invalid.
    """

    trigger: object = None
    keep: object = ("messages", 20)
    max_summary_tokens: int | None = None
    stale_results: AnyStale = None
    model: Any = None
    summarizer: Any = None
    fallbacks: Sequence[AnySummarizer] = ()
    summary_prompt: str | None = None
    trim_tokens_to_summarize: int | None = None
    summarizer_timeout: float | None = TIMEOUT
    on_failure: OnFailure = "degrade"
    archive: AnyArchive | None = None
    background: bool | None = None
    pin: Pin | None = None
    on_event: OnEvent | None = None
    before_summarization: BeforeSummarization | Sequence[BeforeSummarization] | None = None
    telemetry: AnyListeners = None
    notes: bool = True
    tool_table: Sequence[Tool] = ()
    skills: Skills | None = None
    redact: Redact = None
    summary_request: Literal["smallest", "cached"] = "smallest"
    alternate_roles: AlternateRoles = "auto"

    def __post_init__(self) -> None:
        for name, (is_valid, meaning) in CHECKS.items():
            if not is_valid(getattr(self, name)):
                raise PolicyError(f"{name} must be {meaning}, not {getattr(self, name)!r}")

    @classmethod
    def of(cls, given: Mapping[str, Any], **more: Any) -> Settings:
        """Take those among the parameters of an entry point; `more` is in the place of some."""
        known = {**given, **more}
        return cls(**{one.name: known[one.name] for one in fields(cls) if one.name in known})

    def policy(self) -> Policy:
        """Make the policy; raise `PolicyError` for sizes that are none."""
        most = self.max_summary_tokens
        if most is not None:
            whole(most, "max_summary_tokens", SMALLEST_SUMMARY)
        clauses = parse_trigger(self.trigger)
        keep = check_size(Settings.keep if self.keep is None else self.keep, "keep")
        return Policy(clauses, keep, most, stale=StaleResults.build(self.stale_results))


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Settings, summarisers, archive and memory of compactions, for every session."""

    settings: Settings
    policy: Policy = field(default_factory=Policy)
    meter: TokenMeter
    frame: int  # tokens of a summary message without text
    archive: Archive | None
    memory: Memory = field(default_factory=Memory)
    writers: Mapping[str, Summarizer]  # summarisers to try in turn, by name
    pin: Callable[[Any], bool] | None = None
    on_event: OnEvent | None = None
    preview: Preview | None = None
    # functions that get the messages that are about to leave
    hooks: tuple[BeforeSummarization, ...] = ()
    # tokens of the message that shows a summary, where that is not one of ours
    summary_size: Callable[[str], int] | None = None
    # what the caller sends for a view, where that is not the view itself
    sent: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    # the caller's count of a message for `keep`; None for the meter's
    keep_count: Callable[[Any], int] | None = None
    # the `name` of summary messages, for hosts that look for one
    summary_name: str | None = None
    agent_name: str | None = None  # of the agent whose history is compacted, for hooks
    runtime: Any = None  # of the graph's run, for hooks
    redaction: Redaction | None = None
    listeners: tuple[Listener, ...] = ()
    passing: bool = False  # its records are thrown away with the one request that they are made for
    tools: ToolTable = field(default_factory=ToolTable)  # what the notes know of tools
    # says in a clip where its original is, with `{cite}` for its id; None where nothing keeps
    # originals, so that nothing is clipped
    where: str | None = None
    background: Preparations | None = None
    # whether messages of the user in a row are joined in views; None if the history decides
    alternate: bool | None = None

    @classmethod
    def build(cls, own: Settings, policy: Policy, meter: TokenMeter) -> Engine:
        """Make the engine of an entry point.

        Raises:
            PolicyError: a summariser, the redactor or another setting cannot be used.
            ArchiveError: the archive cannot be opened.
        """
        # Whatever stands for the model answers prompts, and is no function of messages.
        answers = own.summarizer is None
        named: dict[str, Summarizer] = {}
        for at, writer in enumerate((own.model if answers else own.summarizer, *own.fallbacks)):
            made = _summarizer_of(writer, own, answers=answers and not at)
            name = made.name
            # Only the embedded one has its name.
            while not isinstance(made, EmbeddedSummarizer) and name in (EMBEDDED, *named):
                name += "'"
            named[name] = made
        frame, hooks = frame_of(meter), own.before_summarization or ()
        archive = open_archive(own.archive)  # wrong settings make none
        return cls(
            settings=own,
            policy=replace(policy, summary_frame=frame + SLACK),
            meter=meter,
            frame=frame,
            writers=named,
            pin=predicate(own.pin),
            on_event=own.on_event,
            listeners=listeners_of(own.telemetry),
            hooks=(hooks,) if callable(hooks) else tuple(hooks),
            redaction=Redaction.of(own.redact, own.summarizer_timeout),
            archive=archive,
            where=None if archive is None else ARCHIVED,
            tools=ToolTable(own.tool_table),
            background=Preparations() if own.background else None,
            alternate=alternates(own.alternate_roles, meter.model),
        )

    def identity(self, focus: str) -> str:
        """Name all that would change a summary, beside its messages and its plan."""
        own, writers = self.settings, self.writers.values()
        beside = (own.notes, self.tools, own.skills, self.redaction, own.summary_request)
        parts = (*writers, focus, *beside)
        return "\0".join(str(getattr(part, "identity", part)) for part in parts)

    def counted(self, view: Sequence[Any]) -> int | None:
        """Count a view by the caller's counter, as it is sent; None where there is no such."""
        if not self.meter.counts_lists:
            return None
        return self.meter.whole(view if self.sent is None else self.sent(view))

    def measuring_by(self, meter: TokenMeter) -> Engine:
        """Return this engine with another meter for single messages and texts."""
        if meter.estimates == self.meter.estimates:
            frame = math.ceil(self.frame * meter.ratio / self.meter.ratio)
        else:
            frame = frame_of(meter)
        policy = replace(self.policy, summary_frame=frame + SLACK)
        return replace(self, policy=policy, meter=meter, frame=frame)

    @property
    def cached(self) -> bool:
        """Whether summaries are asked for after the agent's last request, where possible."""
        return self.settings.summary_request == "cached"

    async def redacted(self, texts: Sequence[str], redaction: Redaction | None = None) -> list[str]:
        """Redact texts for logs and listeners: errors may quote messages and keys.

        If that fails, the failure stands in their place.
        """
        redaction = redaction or self.redaction
        if redaction is None or not texts:
            return list(texts)
        try:
            clean, *_ = await redaction.together(texts)
            return [new or (old and LEFT_NOTHING) for old, new in zip(texts, clean, strict=True)]
        except RedactionError as error:
            return [str(error)] * len(texts)


def frame_of(meter: TokenMeter) -> int:
    """Return the tokens of a summary message without text."""
    # A foreign counter may count parts of a message that a dict has no place for.
    kind = None if meter.exact else dict
    empty = summary_message(summary_text("", archived=True), "0" * 16, like=kind)
    return meter.message(empty)


def _summarizer_of(writer: Any, own: Settings, *, answers: bool) -> Summarizer:
    """Return the summariser of a setting; a Runnable that `answers` prompts is a chat model.

    So is a chat model with options bound to it, with retries or with fallbacks.
    """
    if writer is None or names_embedded(writer):
        return EmbeddedSummarizer()
    refuse_class(writer)
    inner = writer
    while is_runnable(inner) and not is_chat_model(inner):
        inner = getattr(inner, "bound", None) or getattr(inner, "runnable", None)
    limits: Any = {
        "trim_tokens_to_summarize": own.trim_tokens_to_summarize,
        "timeout": own.summarizer_timeout,
    }
    if isinstance(writer, str) or is_chat_model(inner) or (answers and is_runnable(writer)):
        from conspectus.model.chat_model import ChatModelSummarizer

        return ChatModelSummarizer(writer, prompt=own.summary_prompt, **limits)
    if isinstance(writer, Summarizer):
        return writer
    if is_runnable(writer) or callable(writer):
        from conspectus.model.callables import CallableSummarizer

        return CallableSummarizer(writer, **limits)
    raise PolicyError(
        f"{writer!r} cannot summarise: give a chat model, a 'provider:model' string, 'embedded', a "
        "callable or Runnable that takes messages and returns text, or an object with name, "
        "identity, summarize and asummarize"
    )


def refuse_class(model: object) -> None:
    """Raise `PolicyError` for a class in the place of its instance."""
    if isinstance(model, type):
        name = model.__name__
        raise PolicyError(f"{name} is a class: give an instance of it, as in {name}(...)")


def predicate(pin: Pin | None) -> Callable[[Any], bool] | None:
    """Return the function of a `pin=`; one that fails raises `PolicyError`."""
    if isinstance(pin, str):
        return lambda m: bool((m.additional_kwargs if is_message(m) else m).get(pin))
    if pin is None:
        return None

    def pinned(message: Any) -> bool:
        try:
            with waiting.get()():
                return bool(pin(message))
        except Exception as error:
            raise PolicyError(
                f"pin= failed for a message ({type(error).__name__}: {error}); it must take each "
                "message of the history, of any kind"
            ) from error

    return pinned


def model_of(model: AnySummarizer | None, summarizer: AnySummarizer | None) -> Any:
    """Return the model of an entry point, built if it is a name.

    Where another one writes, a name whose model cannot be built stays a name: it still says which
    tokens to estimate.

    Raises:
        PolicyError: it writes and cannot be built, or is no model and another one writes.
    """
    refuse_class(model)
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
    """Make the meter of a counter, of a tokenizer, or of the model."""
    if tokenizer is not None and (not isinstance(tokenizer, str) or not tokenizer):
        raise PolicyError(
            "tokenizer must be the name of a model, such as 'gpt-4o', or a vocabulary, such as "
            f"'tiktoken:o200k_base', not {tokenizer!r}; a function goes into token_counter="
        )
    if tokenizer is not None and counter is not None:
        raise PolicyError("give tokenizer= or token_counter=, not both: each says what counts")
    if isinstance(counter, str) and ":" not in counter:
        raise PolicyError(
            f"{counter!r} cannot be a token_counter; write tiktoken:o200k_base, "
            f"tokenizers:path/to/tokenizer.json, or tokenizer={counter!r} for an estimate"
        )
    if tokenizer is not None and tokenizer.partition(":")[0] in ("tiktoken", "tokenizers"):
        counter = tokenizer
    elif tokenizer is not None:
        model = tokenizer
    named = is_runnable(model) or (isinstance(model, str) and not names_embedded(model))
    return TokenMeter(counter, model=model if named else None)


def window_of(window: int | None, reserved: int) -> Window | None:
    """Check and read `window` and `reserved_tokens`."""
    whole(reserved, "reserved_tokens", 0)
    if window is None:
        return None
    whole(window, "window")
    if reserved >= window:
        raise PolicyError(
            f"reserved_tokens ({reserved:,}) leaves nothing of the window ({window:,}); lower it"
        )
    return Window(window, reserved)


def open_archive(setting: AnyArchive | None) -> Archive | None:
    """Open the archive of a setting; one that is open already is returned as it is."""
    if setting is None or isinstance(setting, Archive):
        return setting
    if is_store(setting):
        return Archive(setting)
    if not isinstance(setting, (str, Path)):
        raise PolicyError(
            f"archive must be a path, an address, a LangGraph store or an Archive, not {setting!r}"
        )
    return Archive.open(setting)
