"""Read the parameters, which are plain attributes, and build what they make together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware as Replaced
from langchain_core.language_models import BaseChatModel
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable
from langgraph.store.base import BaseStore
from langgraph.types import interrupt

from conspectus._arguments import unknown_argument
from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import is_async
from conspectus.core.items import Window
from conspectus.core.policy import whole
from conspectus.engine.hooks import PreviewRequest
from conspectus.engine.settings import Engine, Settings, window_of
from conspectus.errors import PolicyError
from conspectus.langchain.cache import Counting, SessionCache
from conspectus.langchain.forms import Forms
from conspectus.langchain.state import Requested
from conspectus.messages.framing import SUMMARY_NAME
from conspectus.messages.reading import CHARACTERS, THREADS
from conspectus.messages.requests import LEAST_RECALL
from conspectus.model.calls import profile_window
from conspectus.observe import log
from conspectus.tokens import TokenMeter

Model = BaseChatModel | Runnable[Any, Any]
PreviewChoice = bool | Callable[[PreviewRequest], str | None]

DEPRECATED = {
    "max_tokens_before_summary": ("trigger", "tokens"),
    "messages_to_keep": ("keep", "messages"),
}
"""LangChain's old names of parameters, with the new ones and the kind of size that they meant."""

CHOICES = {"history": ("replace", "preserve"), "recall": ("off", "tool", "auto")}

KEPT = "kept in the history"
"""Location of originals in a clip, where the channel keeps every message."""

COUNTS_MESSAGES = (
    "token_counter=len counts messages, not tokens: trigger and keep in `messages` say so, and "
    "tokens are counted by LangChain's approximation if token_counter is left out"
)

NEVER_CALLED = "is never called here: give a function as summarizer=, or set trigger= and keep="

TOOL_SETS = 8  # sets of tools whose size is cached; the cache holds their tools
STORES = 8  # stores of graphs whose archives stay open for the next step

RECALL_SHARE = 0.25
"""Largest share of the room for messages that recalled originals take."""

PREVIEW = "conspectus.preview"
"""The `type` of the interrupt's value."""

ANSWERS = 'answer {"type": "approve"}, {"type": "edit", "summary": "..."} or {"type": "reject"}'


class Setup:
    """What one set of settings makes, for all threads of a graph.

    `given` are all parameters of `SummarizationMiddleware`, by name; `where` says in a clip where
    its original is, if no archive has it.

    Raises:
        PolicyError: one of them is invalid.
    """

    def __init__(self, given: dict[str, Any], where: Callable[[Scope], str]) -> None:
        for name, choices in CHOICES.items():
            if given[name] not in choices:
                raise PolicyError(f"{name} must be one of {choices}, not {given[name]!r}")
        preview = given["preview"]
        asks = callable(preview) and not is_async(preview)
        if not (isinstance(preview, bool) or preview is None or asks):
            raise PolicyError(
                "preview must be True, False or a callable that takes the finished summary and "
                f"returns a text or None, not {preview!r}"
            )
        tenant = given["tenant"]
        if not (tenant is None or callable(tenant) or (isinstance(tenant, str) and tenant)):
            raise PolicyError(f"tenant must be a text or a callable, not {tenant!r}")
        counter, model, window = given["token_counter"], given["model"], given["window"]
        self.given, self.where, self.reserved = given, where, given["reserved_tokens"]
        self.preserve = given["history"] == "preserve"  # the channel keeps every message
        tokens = whole(given["recall_tokens"], "recall_tokens", LEAST_RECALL)
        self.recalled = tokens if given["recall"] == "auto" else 0  # of the originals for a turn
        self.window = window if window is not None else profile_window(model)
        window_of(self.window, self.reserved)
        approximate = counter is count_tokens_approximately
        meter = TokenMeter(None if approximate else counter, model=model)
        self.counting = counting = Counting(None if approximate else meter, model)
        # Thresholds and cuts are those that LangChain's users have chosen: nothing is clipped, and
        # nothing more is cut than asked, as long as that fits the window with room to grow.
        trigger = None if given["trigger"] == [] else given["trigger"]
        settings = Settings.of(given, trigger=trigger)
        policy = replace(settings.policy(), keep_is_set=True)
        if policy.needs_window and self.window is None:
            raise PolicyError(
                "Model profile information is required to use fractional token limits, and is "
                "unavailable for the specified model: pass window=<its input limit in tokens> or "
                'a model with profile={"max_input_tokens": ...}, or use tokens or messages'
            )
        engine = Engine.build(settings, policy, meter)
        by_tokens = policy.keep[0] != "messages" and not counting.by_list
        count = counting.message if by_tokens else None
        asked = _interrupt if preview is True else preview or None
        # Messages of the user are joined in requests only: the state keeps each as it is.
        self.engine = replace(
            engine,
            preview=asked,
            keep_count=count,
            alternate=False,
            summary_name=SUMMARY_NAME,
        )
        self.forms = Forms(settings.alternate_roles)
        self.sessions = Newest[tuple[str, str, str], SessionCache](
            THREADS, CHARACTERS, attrgetter("characters")
        )
        self.tools = Newest[tuple[int, ...], Any](TOOL_SETS)
        self._said = set[str]()
        self._archives = Newest[int, tuple[BaseStore, Archive]](STORES)

    def caveats(self, of_subclass: Iterable[str]) -> list[str]:
        """Return warnings about what is legal, and does not have its effect.

        `of_subclass` are attributes that a subclass of the middleware has beside ours.
        """
        counts: Any = self.given["token_counter"]
        found = [*self.engine.policy.caveats(self.given["window"])]
        if counts is len:
            found.append(COUNTS_MESSAGES)
        if unused := sorted(vars(Replaced).keys() & of_subclass):
            found.append(f"LangChain's private method {', '.join(unused)} {NEVER_CALLED}")
        return found

    def room(self, state: Mapping[str, Any]) -> Window | None:
        """Return the room for messages; None if the window is unknown."""
        return Requested.of(state).room(self.reserved, self.window)

    def room_to_recall(self, state: Mapping[str, Any], most: int) -> int:
        """Return the tokens of recalled text: `most`, and no more than a share of the room."""
        room = self.room(state) if most else None
        if room is None:
            return most
        return max(1, int(min(most, room.budget * RECALL_SHARE)))

    def archive(self, runtime: object) -> Archive | None:
        """Return the archive, or one in the store of the graph."""
        if self.engine.archive is not None:
            return self.engine.archive
        store = getattr(runtime, "store", None)
        if not isinstance(store, BaseStore):
            return None
        return self._archives.get_or_make(id(store), lambda: (store, Archive(store)))[1]

    def say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log("setting_missing", text)


def deprecated(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Read parameters under LangChain's old names; called by a constructor.

    Raises:
        TypeError: there is another one.
    """
    if unknown := given.keys() - DEPRECATED.keys():
        raise unknown_argument("SummarizationMiddleware", min(unknown), known)
    read = {}
    for old, (new, kind) in DEPRECATED.items():
        if old in given:
            form = f"{new}=('{kind}', value)"
            # Of the line that builds the middleware.
            warnings.warn(f"{old} is deprecated. Use {form} instead.", DeprecationWarning, 3)
            if given[old] is not None:
                read[new] = (kind, given[old])
    return read


# A person reads the summary first: the graph is interrupted after the draft is stored. On resume
# the node runs again, makes the same plan, finds the draft, gets the answer, and commits.


def _interrupt(request: PreviewRequest) -> str | None:
    problem = request.problem
    value = {name: getattr(request, name) for name in ("summary", "evict", "cause", "limit", "by")}
    while True:
        answer = interrupt({"type": PREVIEW, **value, "problem": problem, "answers": ANSWERS})
        given: Mapping[str, Any] = answer if isinstance(answer, Mapping) else {}
        kind = str(given.get("type"))
        if kind == "approve" and not request.kept:
            # An interrupt answers at once only where it was asked before: about another text.
            log(
                "approval_lost",
                "the summary that was approved is gone with the process that made it, so the "
                "history was kept as it was: pass archive= or a store, which keep it",
            )
            return None
        texts = {"approve": request.summary, "edit": given.get("summary")}
        if kind == "reject" or isinstance(texts.get(kind), str):
            return texts.get(kind)
        problem = f"{answer!r:.200} is no answer: {ANSWERS}"
