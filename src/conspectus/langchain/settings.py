"""The settings of the middleware, and the setup that all threads of a graph share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

from langchain.agents.middleware import SummarizationMiddleware as Replaced
from langchain_core.language_models import BaseChatModel
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable
from langgraph.store.base import BaseStore
from langgraph.types import interrupt

from conspectus._arguments import Check, unknown_argument
from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.bridge import is_async
from conspectus.core.items import Window
from conspectus.core.policy import ContextSize
from conspectus.engine.building import window_of
from conspectus.engine.engine import CallerFormat, Engine
from conspectus.engine.hooks import Preview, PreviewRequest
from conspectus.engine.settings import (
    KEEP,
    AgentSettings,
    AnyArchive,
    AnyTrigger,
    PolicySettings,
    PythonSettings,
    RequestKind,
    SessionSettings,
    Settings,
    WindowSettings,
)
from conspectus.errors import PolicyError
from conspectus.langchain.cache import SessionCache
from conspectus.langchain.counting import Counting
from conspectus.langchain.refused_features import RefusedFeatures
from conspectus.langchain.state import RequestSizes, Tenant
from conspectus.messages.alternation import AlternateRoles
from conspectus.messages.framing import SUMMARY_NAME
from conspectus.messages.reading import CHARACTERS, THREADS
from conspectus.model.calls import profile_window
from conspectus.model.prompts import DEFAULT_SUMMARY_PROMPT
from conspectus.observe import log
from conspectus.recall.for_agents import HOW_TO_USE_TOOL
from conspectus.tokens import TokenCounter, TokenMeter

DEPRECATED = {
    "max_tokens_before_summary": ("trigger", "tokens"),
    "messages_to_keep": ("keep", "messages"),
}
"""LangChain's old names of parameters, with the new ones and the kind of size that they meant."""

KEPT = "kept in the history"
"""What a clip says of the place of its original, if the state keeps every message."""

COUNTS_MESSAGES = (
    "token_counter=len counts messages, not tokens: trigger and keep in `messages` say so, and "
    "tokens are counted by LangChain's approximation if token_counter is left out"
)

NEVER_CALLED = "is never called here: give a function as summarizer=, or set trigger= and keep="

TOOL_SETS = 8
"""Sets of tools whose size is cached; the cache holds their tools."""

STORES = 8
"""Stores of graphs whose archives stay open for the next step."""

RECALL_SHARE = 0.25
"""Largest share of the budget for messages that recalled originals take."""

PREVIEW = "conspectus.preview"
"""The `type` of the interrupt's value."""

ANSWERS = 'answer {"type": "approve"}, {"type": "edit", "summary": "..."} or {"type": "reject"}'

Model: TypeAlias = BaseChatModel | Runnable[Any, Any]


def _is_preview(value: object) -> bool:
    return value is None or isinstance(value, bool) or (callable(value) and not is_async(value))


PreviewChoice = Annotated[
    bool | Callable[[PreviewRequest], str | None],
    Check(
        _is_preview,
        "True, False or a callable that takes the finished summary and returns a text or None",
    ),
]
TenantSetting = Annotated[
    Tenant,
    Check(
        lambda value: value is None or callable(value) or (isinstance(value, str) and value != ""),
        "a text or a callable",
    ),
]
InstanceName = Annotated[
    str | None,
    Check(lambda value: value is None or (isinstance(value, str) and value != ""), "a text"),
]


@dataclass(frozen=True, kw_only=True)
class MiddlewareSettings(AgentSettings, SessionSettings, PythonSettings, PolicySettings):
    """Settings of the middleware. A `ContextGuard` without a middleware takes them, too."""

    trigger: AnyTrigger = None
    """Default: never."""
    keep: ContextSize = KEEP
    token_counter: TokenCounter | str = count_tokens_approximately
    """The counter for the tokens of `trigger` and `keep`.

    A function that takes a list of messages and returns the number of tokens, or a vocabulary such
    as `"tiktoken:o200k_base"`. If you pass your own counter, this counter also decides whether a
    history fits the window; otherwise an estimate decides that. Default: LangChain's approximation.
    """
    summary_prompt: str | None = DEFAULT_SUMMARY_PROMPT
    archive: AnyArchive | None = None
    """Default: the store that `create_agent(store=...)` was given; without a store, no archive."""
    summary_request: RequestKind = "smallest"
    alternate_roles: AlternateRoles = "auto"
    """In an agent, `"auto"` also learns from the provider: if the provider refuses two user
    messages in a row, the request is sent again with joined messages. Only requests are changed;
    the state keeps each message as it is.
    """
    tenant: TenantSetting = None
    """The name of the owner of the conversations.

    A text, or a function that takes the runtime and returns a text. Default: the authenticated
    user; without one, `"local"`.
    """
    preview: PreviewChoice = False
    """Whether a person approves each summary before it takes effect.

    True interrupts the graph with the finished summary. Resume it with
    `Command(resume={"type": "approve"})`, or with `{"type": "edit", "summary": "..."}` or
    `{"type": "reject"}` as the value of `resume`. The type `reject` declines the summary.

    You can pass a function instead: it takes a `PreviewRequest`, and returns the text that takes
    effect, or None to decline the summary. If another process resumes the graph, that process needs
    an archive or a store. Without an archive or a store, the approval has no effect.
    """
    compact_tool: bool = False
    """Whether the agent gets a tool `compact_conversation`, which compacts at the next step."""


@dataclass(frozen=True, kw_only=True)
class SummarizationSettings(MiddlewareSettings, WindowSettings, Settings):
    """The settings of a `SummarizationMiddleware`."""

    model: str | Model | None = field(kw_only=False)
    """A chat model, or a `provider:model` string. None: the embedded summariser writes, and the
    window is known only if `window` is set.
    """
    reserved_tokens: int = 0
    """With a `ContextGuard`, this is a minimum. The guard adds the tokens of the system prompt, of
    the tools and of the answer. Conspectus reserves this sum or `reserved_tokens`, whichever is
    larger.
    """
    name: InstanceName = None
    """The name of this instance. Two instances in one agent need different names.

    Default: the name of its class.
    """


class Setup:
    """The objects that are built from one set of settings. All threads of a graph share them.

    If no archive has an original, `location` returns the text that a clip shows for the place of
    this original.

    Raises:
        PolicyError: a setting is invalid.
    """

    def __init__(self, settings: SummarizationSettings, location: Callable[[Scope], str]) -> None:
        self.location = location
        self.reserved = settings.reserved_tokens
        self.preserve = settings.history == "preserve"  # the state keeps every message
        # The most tokens of originals that are shown again in a turn; 0 for none.
        self.recall_tokens = settings.recall_tokens if settings.recall == "auto" else 0
        window = settings.window
        self.window = profile_window(settings.model) if window is None else window
        window_of(self.window, self.reserved)

        approximate = settings.token_counter is count_tokens_approximately
        counter = None if approximate else settings.token_counter
        meter = TokenMeter(counter, model=settings.model)
        self.counting = Counting(None if approximate else meter, settings.model)
        self.engine = self._engine(settings, meter)
        # From here on, an archive that was an address is open.
        self.settings = replace(settings, archive=self.engine.archive)

        self.refused = RefusedFeatures(settings.alternate_roles)
        self.sessions = BoundedCache[tuple[str, str, str], SessionCache](
            THREADS, CHARACTERS, attrgetter("characters")
        )
        self.tool_sizes = BoundedCache[tuple[int, ...], Any](TOOL_SETS)
        self._texts_logged = set[str]()
        self._archives = BoundedCache[int, tuple[BaseStore, Archive]](STORES)

    def _engine(self, settings: SummarizationSettings, meter: TokenMeter) -> Engine:
        # LangChain's users have chosen the trigger and `keep`. As long as the result fits the
        # window with room to grow, nothing is clipped, and no more is evicted than they ask for.
        if settings.trigger == []:  # which means no trigger in LangChain
            settings = replace(settings, trigger=None)
        policy = replace(settings.policy(), keep_is_set=True)
        if policy.needs_window and self.window is None:
            raise PolicyError(
                "Model profile information is required to use fractional token limits, and is "
                "unavailable for the specified model: pass window=<its input limit in tokens> or "
                'a model with profile={"max_input_tokens": ...}, or use tokens or messages'
            )
        engine = Engine.build(settings, policy, meter)
        counts_alone = policy.keep[0] != "messages" and not self.counting.by_list
        preview: Preview | None = None
        if settings.preview is True:
            preview = _interrupt
        elif callable(settings.preview):
            preview = settings.preview
        caller_format = CallerFormat(
            keep_count=self.counting.message if counts_alone else None,
            summary_name=SUMMARY_NAME,
            how_to_recall="" if settings.recall == "off" else HOW_TO_USE_TOOL,
        )
        # User messages are joined in requests only: the state keeps each as it is.
        return replace(engine, preview=preview, caller_format=caller_format, joining="never")

    def with_engine(self, engine: Engine) -> Setup:
        """Return a copy with another engine. It shares what was learned and cached."""
        setup = copy(self)
        setup.engine = engine
        return setup

    def caveats(self, of_subclass: Iterable[str]) -> list[str]:
        """Return warnings about settings that are legal, but have no or another effect.

        `of_subclass` are attributes that a subclass of the middleware adds.
        """
        counter: Any = self.settings.token_counter
        texts = [*self.engine.policy.caveats(self.settings.window)]
        if counter is len:
            texts.append(COUNTS_MESSAGES)
        if unused := sorted(vars(Replaced).keys() & of_subclass):
            texts.append(f"LangChain's private method {', '.join(unused)} {NEVER_CALLED}")
        return texts

    def window_for(self, state: Mapping[str, Any]) -> Window | None:
        """Return the window for the messages of a state; None if it is unknown."""
        return RequestSizes.of(state).window_for_messages(self.reserved, self.window)

    def recall_budget(self, state: Mapping[str, Any], most: int) -> int:
        """Return the tokens for recalled text: `most`, or a share of the window if that is less."""
        window = self.window_for(state) if most else None
        if window is None:
            return most
        return max(1, int(min(most, window.budget * RECALL_SHARE)))

    def archive(self, runtime: object) -> Archive | None:
        """Return the archive, or one in the store of the graph."""
        if self.engine.archive is not None:
            return self.engine.archive
        store = getattr(runtime, "store", None)
        if not isinstance(store, BaseStore):
            return None
        return self._archives.get_or_make(id(store), lambda: (store, Archive(store)))[1]

    def say_once(self, text: str) -> None:
        """Log that a setting is missing, once for these settings."""
        if text not in self._texts_logged:
            self._texts_logged.add(text)
            log("setting_missing", text)


def read_deprecated(
    arguments: Mapping[str, Any], known: Iterable[str], *, stacklevel: int
) -> dict[str, Any]:
    """Read arguments under LangChain's old names; return them under the new ones.

    `stacklevel` leads from here to the line to warn.

    Raises:
        TypeError: an argument is unknown; `known` are the names that exist.
    """
    if unknown := arguments.keys() - DEPRECATED.keys():
        raise unknown_argument("SummarizationMiddleware", min(unknown), known)
    renamed: dict[str, Any] = {}
    for old, (new, kind) in DEPRECATED.items():
        if old in arguments:
            form = f"{new}=('{kind}', value)"
            text = f"{old} is deprecated. Use {form} instead."
            warnings.warn(text, DeprecationWarning, stacklevel)
            if arguments[old] is not None:
                renamed[new] = (kind, arguments[old])
    return renamed


# The graph is interrupted after the draft is stored, so that a person can read it. When the graph
# is resumed, the node runs again: it makes the same plan, finds the draft, gets the answer, and
# commits.


def _interrupt(request: PreviewRequest) -> str | None:
    problem = request.problem
    shown = {name: getattr(request, name) for name in ("summary", "evict", "cause", "limit", "by")}
    while True:
        answer = interrupt({"type": PREVIEW, **shown, "problem": problem, "answers": ANSWERS})
        fields: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
        kind = str(fields.get("type"))
        if kind == "approve" and not request.found:
            # An interrupt returns at once only if a person has answered before. That answer was
            # about another text.
            log(
                "approval_lost",
                "the summary that was approved is gone with the process that made it, so the "
                "history was kept as it was: pass archive= or a store, which keep it",
            )
            return None
        texts = {"approve": request.summary, "edit": fields.get("summary")}
        if kind == "reject" or isinstance(texts.get(kind), str):
            return texts.get(kind)
        problem = f"{answer!r:.200} is no answer: {ANSWERS}"
