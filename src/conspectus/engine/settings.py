"""The settings of a compaction. Each is described once, for every way in.

A way in is a class, a function, a file or a command that takes settings. A setting is a field: its
name, type, default and docstring. The first paragraph of the docstring is valid for every way in,
so a configuration file and the command line show it, too. The other paragraphs say how to write
the value in Python. A base class has the fields that several ways in take; a subclass adds what
only one of them takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    TIMEOUT,
    AnyStale,
    Clause,
    ContextSize,
    OnFailure,
    Policy,
    StaleResults,
    check_size,
    parse_trigger,
)
from conspectus.core.summary_room import SMALLEST_SUMMARY
from conspectus.engine.hooks import BeforeSummarization
from conspectus.messages.alternation import AlternateRoles
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.model.base import Summarizer
from conspectus.notes.skills import Skills
from conspectus.notes.tools import Tool
from conspectus.observe import Listener
from conspectus.redaction import Redact
from conspectus.tokens import TokenCounter

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable
    from langgraph.store.base import BaseStore

KEEP: ContextSize = ("messages", 20)
"""How much stays in view by default. It is LangChain's default."""

MOST_TOKENS = 10**12
"""More than any window has; a larger number has no meaning as a float."""

# Each type says which values are valid. LangChain's types are in quotes, because only type checkers
# load them.


def _is_plain(value: object) -> bool:
    """Tell whether it is None, or can be called and answers at once: nothing awaits it."""
    return value is None or (callable(value) and not is_async(value))


def _is_list(value: object, item_type: type = object) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return all(isinstance(item, item_type) for item in value)


def _are_texts(value: Any) -> bool:
    return _is_list(value, str) and all(text.strip() for text in value)


def _are_hooks(value: Any) -> bool:
    return value is None or callable(value) or (_is_list(value) and all(map(callable, value)))


Tokens = Annotated[int, Ge(1), Le(MOST_TOKENS)]
ReservedTokens = Annotated[int, Ge(0), Le(MOST_TOKENS)]
SummaryTokens = Annotated[int, Ge(SMALLEST_SUMMARY), Le(MOST_TOKENS)]
RecallTokens = Annotated[int, Ge(LEAST_RECALL), Le(MOST_TOKENS)]
Seconds = Annotated[float, Gt(0), Le(HOUR), Unit("seconds")]

TriggerForm = ContextSize | Clause | Mapping[str, Any]
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
AnyRules: TypeAlias = Sequence[str] | Callable[[str], Iterable[str]] | None
Rules = Annotated[
    AnyRules,
    Check(
        lambda value: (
            _are_texts(value) or (not isinstance(value, (str, type)) and _is_plain(value))
        ),
        "a list of sentences, or a callable that takes the text of a message, returns the "
        "sentences in it that bind, and is not async",
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
    """Settings that every way in takes, also LangMem's functions.

    Raises:
        PolicyError: one of them is invalid.
    """

    archive: AnyArchive | None = None
    """The archive. It stores the originals of messages before they are evicted or clipped.

    An `Archive`, a LangGraph `BaseStore`, the path of a SQLite file, or a URL (`sqlite:///...`,
    `postgresql://...`, `memory:`).
    """
    on_failure: OnFailure = "degrade"
    """What happens if every summariser fails.

    `"degrade"`: the history stays unchanged while it fits the window; when it no longer fits, the
    embedded summariser writes the summary. `"keep"`: the history stays unchanged. `"raise"`: an
    error is raised.
    """
    check_summaries: bool = True
    """Whether a text is refused that does not tell of the messages that it would replace.

    Such texts are refusals, answers to the last message, error pages, essays. The summariser is
    asked once more; after that `on_failure` says what happens. The log and `result.reason` say
    what was missing. False accepts any text that is not empty, for example that of a fake model.
    See `docs/concepts.md`.
    """
    redact: Redact = None
    """Removes secrets from everything that is archived, indexed, summarised, or passed to hooks.

    Events and log lines get the redacted text, too. Messages in the view are not changed. Possible
    values: True or `"secrets"` for the default redactor, a function from text to text, or a
    `Redactor`. If the redactor fails, nothing is archived and the history stays unchanged.
    Default: None (off).
    """
    alternate_roles: AlternateRoles = "auto"
    """Whether user messages that follow each other are joined to one, as Mistral and Gemma need.

    `"on"`: always. `"off"`: never. `"auto"`: the name of the model decides. If the name is unknown,
    they are joined unless a model has already answered two user messages in a row in this history.
    A joined message is separated again when it comes back. See `docs/loops.md`.
    """


@dataclass(frozen=True, kw_only=True)
class PolicySettings(CommonSettings):
    """When to compact, what stays, and how summaries are made. A file can hold these settings.

    Raises:
        PolicyError: one of them is invalid.
    """

    trigger: AnyTrigger = None
    """When to compact.

    A pair: `("tokens", N)`, `("messages", N)`, or `("fraction", F)` of the window. A dict such as
    `{"tokens": 4000, "messages": 10}`: all conditions must be true. A list of pairs or dicts:
    one of them is enough.
    """
    keep: ContextSize | None = None
    """How much of the newest history stays in view.

    A pair, as for `trigger`. Less stays if that much would leave too little room for new messages.
    """
    max_summary_tokens: SummaryTokens | None = None
    """The most tokens of a summary's text, at least 64.

    The summary message has some 35 tokens more: its first line and a note. A model that writes a
    longer text is asked once to shorten it; then the text is cut after its last whole sentence, and
    `result.cut` says how much is missing. Default: the model is asked for at most a third of the
    window, or of a smaller trigger in tokens; a longer text is used if it fits and is smaller than
    the messages that it replaces.
    """
    notes: bool = True
    """Whether the summary also shows the user's words and one line for each tool call.

    False shows only the summariser's text.
    """
    summary_prompt: str | None = None
    """Instructions for the model that summarises. The messages replace `{messages}` in it.

    If it has no `{messages}`, the messages follow it. Default:
    `conspectus.langchain.DEFAULT_SUMMARY_PROMPT`; you can extend that text.
    """
    trim_tokens_to_summarize: Tokens | None = None
    """The most tokens that the summariser reads in one call.

    It reads the remaining messages in further calls; no message is left out. Default: as many as
    the summariser's own window takes.
    """
    summarizer_timeout: Seconds | None = TIMEOUT
    """Seconds for one call of a model, a summariser of your own, a hook or a redactor.

    A longer call is given up. At most 3,600. None: no limit.
    """
    pin: Pin = None
    """Which messages are never evicted.

    A function that takes a message and returns True for such a message; or the name of a key in
    `additional_kwargs` (for a dict: in the dict itself).
    """
    rules: Rules = None
    """The user's rules. They stay in the view word for word, and are left out last.

    A list of sentences that are put into each summary; or a function that takes the text of a
    message of the user and returns the sentences in it that are rules. Default: None (rules are
    found by their words). See `docs/concepts.md`.
    """
    stale_results: AnyStale = False
    """Whether old tool results and large old arguments are clipped before anything is summarised.

    If that frees enough tokens, no summary is made. A clipped message shows a pointer to its
    original, so this needs an archive (or, in an agent, `history="preserve"`). True, False, or a
    dict with some of these keys:
    `over`: results with more tokens than this are clipped (default 1,000; more than 200);
    `newest`: this number of newest results is never clipped (default 0);
    `least`: tokens that clips must free, or nothing is clipped (default: enough to bring the
    history down to half of the trigger);
    `tools`: names of the only tools whose results are clipped;
    `exclude`: names of tools whose results are never clipped;
    `arguments`: False never clips the agent's own messages. See `docs/concepts.md`.
    """

    def policy(self) -> Policy:
        """Return the policy.

        Raises:
            PolicyError: a size is not valid.
        """
        return Policy(
            parse_trigger(self.trigger),
            check_size(KEEP if self.keep is None else self.keep, "keep"),
            self.max_summary_tokens,
            stale=StaleResults.build(self.stale_results),
        )


@dataclass(frozen=True, kw_only=True)
class PythonSettings(Checked):
    """Settings that are objects or functions. Every way in from Python takes them."""

    summarizer: AnySummarizer | None = None
    """The summariser, if it is not the model that answers.

    A `Summarizer`, a chat model, a `provider:model` string, or a callable or Runnable that takes
    messages and returns text. We recommend a model. `"embedded"` is the `EmbeddedSummarizer`: it
    quotes and shortens the messages, and needs no model and no network. If an agent has a trigger
    in tokens and its window is full before that trigger is reached, the embedded summariser writes,
    and no model is called.
    """
    fallbacks: Fallbacks = ()
    """Summarisers to try, in this order, if the first one fails."""
    tool_table: Tools = ()
    """Descriptions of your own tools, for the lines about tool calls in the notes.

    Each is a `conspectus.Tool`. It says which argument of a call is shown, and whether a call
    changes anything. They are added to a table of common tools.
    """
    skills: SkillTools = None
    """The tools that read skill files, as a `conspectus.langchain.Skills`.

    The notes keep a reference to each file that was read. Default: None (no such tools).
    """
    before_summarization: Hooks = None
    """One or several functions that get the messages that are about to be evicted.

    Sync or async. Each is called with a `conspectus.langchain.SummarizationEvent`.
    """
    on_event: OnEvent = None
    """A function that is called as `on_event(name, data)` for each event of a compaction.

    The names are `start`, `attempt_failed`, `end` and `failed`. In sync code, the function runs in
    the OS thread of the caller. In async code, it does not run in the OS thread of the event loop.
    The same is true for `pin`.
    """
    telemetry: AnyListeners = None
    """One or several listeners, such as `conspectus.observe.OpenTelemetry()`.

    Each is called with every `Event`. Default: only the listeners of the process get the events.
    """


@dataclass(frozen=True, kw_only=True)
class SessionSettings(Checked):
    """Settings of a way in whose sessions all use one model. A file can hold these settings."""

    background: bool = False
    """Whether the next summary is prepared in the background, from 70 % of the trigger on.

    A daemon thread of this process prepares it. When the trigger is reached, the prepared summary
    takes effect. If the summary is not finished by then, the history stays unchanged while
    the history fits the window. See `docs/operations.md`.
    """
    summary_request: RequestSetting = "smallest"
    """Which request a model gets for a summary: a short one, or one that uses the prompt cache.

    `"smallest"` sends only the messages that are evicted. `"cached"` sends the agent's last request
    again, followed by an instruction, so that the provider can use its prompt cache. This is done
    only if that request has all evicted messages. See `docs/cost.md`.
    """


@dataclass(frozen=True, kw_only=True)
class WindowSettings(Checked):
    """The room for the messages of one model. A file can hold these settings."""

    window: Tokens | None = None
    """The input limit of the model that answers, in tokens.

    The messages that are sent fit it, or the outcome is `stuck`. Default: the limit in the profile
    of `model`.
    """
    reserved_tokens: ReservedTokens = 0
    """Tokens of the window that messages may not use: for answer, system prompt and tools."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings(Checked):
    """Settings of an agent's middleware. A file can hold them, and is read without LangChain."""

    history: Literal["replace", "preserve"] = "replace"
    """Whether a compaction replaces the old messages in the state, or leaves them there.

    `"replace"` replaces them by the summary. `"preserve"` leaves every message in the state; only
    the model gets the summary instead of them.
    """
    recall: Literal["off", "tool", "auto"] = "off"
    """Whether the agent gets archived originals back: not at all, by a tool, or automatically.

    `"tool"` gives the agent a tool `recall`, which finds archived originals. `"auto"` also adds
    originals that match a new user message to the request. `"off"` does neither.
    """
    recall_tokens: RecallTokens = 512
    """The most tokens of originals that `recall="auto"` adds in a turn.

    An answer of the tool `recall` takes at most twice as many. Each of the two takes at most a
    quarter of the window.
    """


@dataclass(frozen=True, kw_only=True)
class FileSettings(AgentSettings, SessionSettings, WindowSettings, PolicySettings):
    """The settings of the middleware that a file can hold."""


@dataclass(frozen=True, kw_only=True)
class Settings(SessionSettings, PythonSettings, PolicySettings):
    """The settings of an engine."""

    model: AnySummarizer | None = field(default=None, kw_only=False)
    """The model that answers. It also writes the summaries, unless `summarizer` is given."""


@dataclass(frozen=True, kw_only=True)
class CompactorSettings(WindowSettings, Settings):
    """What a `Compactor` takes."""

    model: AnySummarizer | None = field(default=None, kw_only=False)
    """A LangChain chat model, or a `provider:model` string. It determines the tokenizer and, if it
    has a profile, the window. You can also pass a value for `summarizer` here; this value then only
    writes summaries. Default: None; then the embedded summariser writes.
    """
    trigger: AnyTrigger = None
    """Default: `("fraction", 0.85)` with a `window`, else `("tokens", 170_000)`."""
    keep: ContextSize | None = None
    """Default: 20 messages, or fewer if these take much of the window."""
    window: Tokens | None = None
    """If the model has no profile, no window is known. Then the messages must fit the smallest
    trigger that counts only tokens.
    """
    archive: AnyArchive | None = None
    """Without an archive, results have `archived=False`, nothing is clipped, and nothing can be
    recalled. Default: None.
    """
    token_counter: TokenCounter | str | None = None
    """The counter for the tokens of the messages. Pass a function that takes a list of messages and
    returns the number of tokens, as in LangChain. This function decides whether a history fits. You
    can also pass the name of a vocabulary, as for `tokenizer`. Default: an estimate, corrected by
    the usage that models have reported in the history.
    """
    tokenizer: str | None = None
    """The tokenizer for which the estimate is made. It has no other effect.

    The name of a model, or a vocabulary such as `"tiktoken:o200k_base"` or
    `"tokenizers:path/to/tokenizer.json"` (needs the extra `tokens`). Default: the tokenizer of
    `model`. If there is no model, or its name is unknown, Conspectus estimates each piece of text
    for all known tokenizers and takes the largest number. If the name is unknown, the log says so.
    """
    stale_results: AnyStale = True
    summary_request: RequestSetting = "smallest"
    """`"cached"` is for loops that send the messages of the last result to the model that also
    summarises. If your loop calls a Runnable that has the model in it, such as
    `model.bind_tools(tools)`, pass this Runnable.
    """
