"""The settings of compactions: each described once, for every way in.

A setting is a field: its name, its type, its default, its docstring. The first paragraph of the
docstring says what it means in every way in, also in a file or on the command line; the others say
how Python writes it. Fields stand in the largest class of settings that all ways in share which
take them; a way in says in a subclass what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union

from annotated_types import Ge, Gt, Le, Unit

from conspectus._arguments import Check, Checked
from conspectus._langchain import is_runnable
from conspectus.archive import Archive
from conspectus.bridge import is_async
from conspectus.core.policy import (
    HOUR,
    SMALLEST_SUMMARY,
    TIMEOUT,
    AnyStale,
    ContextSize,
    OnFailure,
    Policy,
    StaleResults,
    TriggerCondition,
    check_size,
    parse_trigger,
)
from conspectus.engine.hooks import BeforeSummarization
from conspectus.messages.alternation import AlternateRoles
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.model.base import Summarizer
from conspectus.notes.tools import Skills, Tool
from conspectus.observe import Listener
from conspectus.redaction import Redact
from conspectus.tokens import TokenCounter

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable
    from langgraph.store.base import BaseStore

KEEP: ContextSize = ("messages", 20)
"""What stays in view where nobody says otherwise: LangChain's default."""

MOST_TOKENS = 10**12
"""More than any window has; a larger number has no meaning as a float."""

# Each type says which values are valid. Types of LangChain's stand in quotes, as only type checkers
# load them.


def _is_plain(value: object) -> bool:
    """Return whether it is None, or can be called and answers at once: nothing awaits it."""
    return value is None or (callable(value) and not is_async(value))


def _is_list(value: object, item_type: type = object) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return all(isinstance(item, item_type) for item in value)


def _are_hooks(value: Any) -> bool:
    return value is None or callable(value) or (_is_list(value) and all(map(callable, value)))


Tokens = Annotated[int, Ge(1), Le(MOST_TOKENS)]
ReservedTokens = Annotated[int, Ge(0), Le(MOST_TOKENS)]
SummaryTokens = Annotated[int, Ge(SMALLEST_SUMMARY), Le(MOST_TOKENS)]
RecallTokens = Annotated[int, Ge(LEAST_RECALL), Le(MOST_TOKENS)]
Seconds = Annotated[float, Gt(0), Le(HOUR), Unit("seconds")]

TriggerForm = ContextSize | TriggerCondition | Mapping[str, Any]
AnyTrigger = TriggerForm | Sequence[TriggerForm] | None
AnySummarizer: TypeAlias = Union[
    "Summarizer", "BaseChatModel", "Runnable[Any, Any]", Callable[[list[Any]], Any], str
]
Fallbacks = Annotated[Sequence[AnySummarizer], Check(_is_list, "a list of summarisers")]
AnyArchive: TypeAlias = Union[Archive, "BaseStore", str, Path]
Pin = Annotated[
    Callable[[Any], bool] | str | None,
    Check(
        lambda value: value != "" and (isinstance(value, str) or _is_plain(value)),
        "a callable that takes a message and is not async, or the name of a marker in "
        "additional_kwargs",
    ),
]
Tools = Annotated[
    Sequence[Tool],
    Check(
        lambda value: _is_list(value, Tool),
        'a list of conspectus.Tool, such as Tool("book_room", key="room_id", effect=True)',
    ),
]
SkillTools = Annotated[
    Skills | None,
    Check(
        lambda value: value is None or isinstance(value, Skills),
        'a conspectus.langchain.Skills, such as Skills(("read_file",))',
    ),
]
AnyHooks: TypeAlias = Union["BeforeSummarization", Sequence["BeforeSummarization"], None]
Hooks = Annotated[AnyHooks, Check(_are_hooks, "callables that take an event")]
EventHandler = Callable[[str, Mapping[str, Any]], None]
OnEvent = Annotated[
    EventHandler | None,
    Check(_is_plain, "a callable that takes a name and its data, and is not async"),
]
AnyListeners = Listener | Sequence[Listener] | None
RequestKind = Literal["smallest", "cached"]
AnyRequestKind: TypeAlias = Union[RequestKind, "Runnable[Any, Any]"]
RequestSetting = Annotated[
    AnyRequestKind,
    Check(
        lambda value: value in ("smallest", "cached") or is_runnable(value),
        '"smallest", "cached", or the Runnable that the loop calls',
    ),
]


# What is set


@dataclass(frozen=True, kw_only=True)
class CommonSettings(Checked):
    """Settings of every way in, those of LangMem's functions among them.

    Raises:
        PolicyError: one of them is invalid.
    """

    archive: AnyArchive | None = None
    """Where originals go before they leave the view.

    An `Archive`, a LangGraph `BaseStore`, a path or a URL (`sqlite:///...`, `postgresql://...`,
    `memory:`).
    """
    on_failure: OnFailure = "degrade"
    """What happens when no summariser succeeds.

    `"degrade"` keeps the history while there is room, and else uses the embedded summariser;
    `"keep"` keeps it; `"raise"` raises. In an agent whose window asks before a trigger in tokens
    does, no summariser is asked, and notes are made by rules whatever this says.
    """
    redact: Redact = None
    """Takes secrets out of all that is archived, indexed, summarised, noted or passed to hooks.

    Listeners get what is redacted, too; messages in view stay as they are. True or `"secrets"` for
    the default redactor, a function from text to text, or a `Redactor`. If it fails, nothing is
    archived, and the history stays. Default: None, for off.
    """
    alternate_roles: AlternateRoles = "auto"
    """Whether messages of the user in a row become one, as Mistral and Gemma need it.

    `"on"`, `"off"`, or `"auto"`: by the name of the model, and for an unknown one if no model has
    answered two in a row in the history. The summary and the task behind it then are one message,
    which is taken apart when it comes back. See `docs/loops.md`.
    """


@dataclass(frozen=True, kw_only=True)
class PolicySettings(CommonSettings):
    """When to compact, what stays, and what summaries are like; also in a file.

    Raises:
        PolicyError: one of them is invalid.
    """

    trigger: AnyTrigger = None
    """When to compact.

    `("tokens", N)`, `("messages", N)` or `("fraction", F)` of the window; a dict for conditions
    that must all hold; a list for alternatives.
    """
    keep: ContextSize | None = None
    """How much of the newest history stays in view.

    A size in one of the forms of `trigger`'s tuples, where that leaves room to grow.
    """
    max_summary_tokens: SummaryTokens | None = None
    """Most tokens of the text of a summary.

    The first line and the note of its message, some 35 tokens, come on top. A longer summary is
    asked for once more, shorter, then cut behind its last whole sentence, and `result.cut` says so.
    Default: a third of the budget is asked for, and a longer one is used if it fits and is smaller
    than what it replaces.
    """
    notes: bool = True
    """Whether the user's words and one line a call stand beside what the summariser writes.

    False shows only the summariser's text.
    """
    summary_prompt: str | None = None
    """Instructions for a model that summarises, with `{messages}` where the messages go.

    Default: `conspectus.langchain.DEFAULT_SUMMARY_PROMPT`, which may be extended.
    """
    trim_tokens_to_summarize: Tokens | None = None
    """Tokens of one reading; what is longer is read in further calls, and nothing is dropped.

    Default: what the summariser's own window takes.
    """
    summarizer_timeout: Seconds | None = TIMEOUT
    """Seconds for one call of a model, or one try of your own summariser; None for no limit."""
    pin: Pin = None
    """Which messages must stay in view.

    A function that says it of a message, or the name of a marker in `additional_kwargs` (of a
    dict: among its keys).
    """
    stale_results: AnyStale = False
    """Shows old results of tools, and old arguments, short, where that makes a summary needless.

    A pointer to the original stands in the place of what is cut, so it needs an archive. True,
    False, or a dict with some of `over` (tokens of a large one, default 1,000), `newest` (how many
    results stay whole whatever `keep` says, default 0), `least` (tokens that must be freed,
    default: enough to reach half of the trigger), `tools` (the only ones), `exclude` and
    `arguments` (False leaves the agent's own messages whole). See `docs/concepts.md`.
    """

    def policy(self) -> Policy:
        """Make the policy; raise `PolicyError` if a size is not valid."""
        return Policy(
            parse_trigger(self.trigger),
            check_size(KEEP if self.keep is None else self.keep, "keep"),
            self.max_summary_tokens,
            stale=StaleResults.build(self.stale_results),
        )


@dataclass(frozen=True, kw_only=True)
class PythonSettings(Checked):
    """Settings that are objects or functions: of every way in from Python."""

    summarizer: AnySummarizer | None = None
    """What writes the summaries, instead of the model that answers.

    A `Summarizer`, a chat model, a `provider:model` string, a callable or Runnable that takes
    messages and returns text, or `"embedded"`, the `EmbeddedSummarizer`, which extracts by rules
    and needs no model and no network; a model is recommended. In an agent whose window asks before
    a trigger in tokens does, notes are made by rules.
    """
    fallbacks: Fallbacks = ()
    """Summarisers to try in turn when the first one fails."""
    tool_table: Tools = ()
    """Tools of yours, of which the notes tell.

    Each as `conspectus.Tool`: which argument names the thing that a call is about, and whether a
    call changes anything. They are added to a table of common ones.
    """
    skills: SkillTools = None
    """The tools that read skill files, as a `conspectus.langchain.Skills`.

    A reference to each file stays in the notes. Default: None, for no such tools.
    """
    before_summarization: Hooks = None
    """Functions that get the messages which are about to leave.

    One or several, sync or async; see `conspectus.langchain.SummarizationEvent`.
    """
    on_event: OnEvent = None
    """Called with the name (`start`, `attempt_failed`, `end`, `failed`) and the data of an event.

    It runs, like `pin`, in the thread that called, or below an async call in one beside the event
    loop.
    """
    telemetry: AnyListeners = None
    """One or several listeners of your own, such as `conspectus.observe.OpenTelemetry()`.

    Default: only those of the process.
    """


@dataclass(frozen=True, kw_only=True)
class SessionSettings(Checked):
    """Settings of a way in that serves the sessions of one model, also from a file."""

    background: bool = False
    """Whether the next notes are prepared in the background, from 0.7 of the trigger on.

    A thread does so; at the trigger the notes are swapped in. Until they are finished the history
    is kept as it is while it fits the window. See `docs/operations.md`.
    """
    summary_request: RequestSetting = "smallest"
    """What a model that summarises is sent: what leaves, or the agent's last request.

    `"smallest"` sends only what leaves. `"cached"` sends one instruction behind the last request,
    if that holds all that is evicted: the provider then reads it from its cache. See
    `docs/cost.md`.
    """


@dataclass(frozen=True, kw_only=True)
class WindowSettings(Checked):
    """The room for the messages of one model, also in a file."""

    window: Tokens | None = None
    """Input limit of the model that answers, in tokens.

    The result always fits it. Default: that of the profile of `model`.
    """
    reserved_tokens: ReservedTokens = 0
    """Tokens of the window that messages cannot have: for output, system prompt and tools."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings(Checked):
    """Settings of an agent's middleware that a file can hold, which is read without LangChain."""

    history: Literal["replace", "preserve"] = "replace"
    """Whether the messages in the state are rewritten, or all stay there.

    `"replace"` rewrites them; `"preserve"` leaves them, and shows the model the summary in their
    place.
    """
    recall: Literal["off", "tool", "auto"] = "off"
    """How originals come back: not at all, by a tool, or by themselves.

    `"tool"` gives the agent a tool `recall` that finds archived originals again; `"auto"` also
    shows the model those that a user's message needs; `"off"` does neither.
    """
    recall_tokens: RecallTokens = 512
    """Most tokens of recalled originals at a turn.

    An answer of the tool takes at most twice that. Both take at most a quarter of the window.
    """


@dataclass(frozen=True, kw_only=True)
class FileSettings(AgentSettings, SessionSettings, WindowSettings, PolicySettings):
    """What a file can hold of all that the middleware takes."""


@dataclass(frozen=True, kw_only=True)
class Settings(SessionSettings, PythonSettings, PolicySettings):
    """What an engine is made of."""

    model: AnySummarizer | None = field(default=None, kw_only=False)
    """The model that answers, which also writes the summaries unless `summarizer` does."""


@dataclass(frozen=True, kw_only=True)
class CompactorSettings(WindowSettings, Settings):
    """What a `Compactor` takes."""

    model: AnySummarizer | None = field(default=None, kw_only=False)
    """As a LangChain chat model or a `provider:model` string. It gives the tokenizer and the
    window, if it has a profile. A summariser as for `summarizer` may stand in its place, which only
    writes. Default: none; then the embedded summariser writes.
    """
    trigger: AnyTrigger = None
    """Default: `("fraction", 0.85)` with a `window`, else `("tokens", 170_000)`."""
    keep: ContextSize | None = None
    """Default: 20 messages, and fewer as soon as they take much of the room."""
    window: Tokens | None = None
    """If that is unknown, the result must fit in the smallest `tokens` trigger."""
    archive: AnyArchive | None = None
    """Without one, results say `archived=False`, nothing is clipped, and nothing can be recalled.
    Default: None.
    """
    token_counter: TokenCounter | str | None = None
    """A LangChain `token_counter`, by whose count of the list a history fits or does not; or a
    vocabulary as for `tokenizer`. Default: an estimate, corrected by the usage that models reported
    in the history.
    """
    tokenizer: str | None = None
    """What counts tokens, and does nothing else.

    The name of a model, whose tokenizer is estimated, or a vocabulary such as
    `"tiktoken:o200k_base"` or `"tokenizers:path/to/tokenizer.json"` (extra `tokens`). Default: that
    of `model`; without one, or for an unknown name (which is logged), for each piece of a text the
    tokens of the family that takes most.
    """
    stale_results: AnyStale = True
    summary_request: RequestSetting = "smallest"
    """`"cached"` is for loops whose model also summarises, and sends the messages of the last
    result; a Runnable says how the loop calls the model, such as `model.bind_tools(tools)`.
    """
