"""Define policies: ways to keep a thread inside its window, as middleware of an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from conspectus.agents.state import read_head, scope_of
from conspectus.archive import Archive
from conspectus.bridge import run
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.memory import Memory
from conspectus.errors import PolicyError
from conspectus.guard import ContextGuard
from conspectus.middleware import SummarizationMiddleware as Ours
from conspectus.model import EmbeddedSummarizer, Summarizer
from conspectus_lab.replay.listening import Listening, Riding, as_callable
from conspectus_lab.replay.measure import Measure, Plan

Middleware = AgentMiddleware[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One run of a replay.

    Attributes:
        plan: the settings that are the same for every policy.
        model: the model that answers; its profile names the window.
        measure: of this run.
        store: of the graph.
    """

    plan: Plan
    model: BaseChatModel
    measure: Measure
    store: BaseStore

    def listening(self, rides: bool) -> Summarizer:
        """Return the observed summariser; if it rides, asked as the agent's own model.

        Raises:
            PolicyError: no chat model summarises.
        """
        notes, session = self.measure.notes, self.measure.session
        if not rides:
            given = self.plan.summarizer
            return given if isinstance(given, EmbeddedSummarizer) else Listening(given, notes)
        if self.plan.chat_model is None:
            raise PolicyError(
                "a summary rides the cache where a chat model writes it, and here none does; name "
                "one as the summariser, or leave this policy out"
            )
        return Riding(self.plan.summarizer, notes, self.plan.chat_model, lambda: session.age)


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to compact.

    Attributes:
        name: in commands and results.
        title: the same in words.
        middleware: makes the agent's middleware, from the outside in.
        archived: originals that can be read back at the end, by id.
        beside: it makes notes beside the agent, which therefore runs in simulated time.
    """

    name: str
    title: str
    middleware: Callable[[Setting], Sequence[Middleware]]
    archived: Callable[[Setting, Any], dict[str, list[BaseMessage]]] = lambda setting, state: {}
    beside: bool = False


def _langchain(setting: Setting) -> list[Middleware]:
    """Make LangChain's own, with its own limit on a summariser's input."""
    plan, notes = setting.plan, setting.measure.notes
    asked = plan.chat_model or plan.summarizer
    return [
        SummarizationMiddleware(
            setting.model,
            trigger=plan.trigger,
            keep=plan.keep,
            token_counter=plan.sizes.messages,
            summarizer=as_callable(asked, notes, plan.summary_tokens, plan.sizes.meter.text),
        )
    ]


def ours(name: str, title: str, **given: Any) -> Policy:
    """Make Conspectus with its guard; originals go to the graph's own store.

    Args:
        name: in commands and results.
        title: the same in words.
        given: arguments of the middleware that replace those of the replay. A `window` of None
            leaves the guard out.
    """

    def middleware(setting: Setting) -> list[Middleware]:
        def listen(event: str, data: Mapping[str, Any]) -> None:
            if event == "start":
                setting.measure.causes.append(str(data["cause"]))

        plan = setting.plan
        settings: dict[str, Any] = {
            "model": setting.model,
            "trigger": plan.trigger,
            "keep": plan.keep,
            "token_counter": plan.sizes.messages,
            "summarizer": setting.listening(given.get("summary_request") == "cached"),
            "max_summary_tokens": plan.summary_tokens,
            "on_event": listen,
            "telemetry": setting.measure.notes.heard,
            **given,
        }
        summarization = Ours(**settings)
        if settings.get("window", plan.window) is None:
            return [summarization]
        # What cannot be made to fit is sent, as without a guard, and counted.
        return [summarization, ContextGuard(summarization, on_stuck="send")]

    return Policy(name, title, middleware, recallable, beside=bool(given.get("background")))


def recallable(setting: Setting, state: Mapping[str, Any]) -> dict[str, list[BaseMessage]]:
    """Read the originals that this thread's records reach in the store, by id."""
    held = read_head(state, None, state.get("messages", []))
    scope = scope_of(held, None, None)
    with Archive(setting.store) as archive:
        chain = run(Anchor(archive, Memory(), scope, head=held.head).chain_flow())
        clips = [clip.key for record in chain for clip in record.clips]
        keys = dict.fromkeys([*(key for record in chain for key in record.covers), *clips])
        found = run(archive.flow(archive.find, scope, list(keys)))
    by_id: dict[str, list[BaseMessage]] = {}
    for one in found.values():
        if isinstance(one.message, BaseMessage):
            by_id.setdefault(one.id, []).append(one.message)
    return by_id


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("none", "no compaction", lambda setting: []),
        Policy("langchain", "LangChain's middleware", _langchain),
        ours("conspectus", "Conspectus"),
        ours("background", "Conspectus in the background", background=True),
        ours("cached", "Conspectus, the summary rides the cache", summary_request="cached"),
    )
}
"""Every policy by its name, in the order in which they are shown."""

USUAL = ("none", "langchain", "conspectus")
"""Default policies."""
