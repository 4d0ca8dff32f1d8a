"""Define policies: ways to keep a thread inside its window, as middleware of an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.store.base import BaseStore

from conspectus.archive import Archive, Scope
from conspectus.langchain import ContextGuard
from conspectus.langchain import SummarizationMiddleware as Ours
from conspectus.messages import read_messages
from conspectus_lab.replay.measure import Measure, Plan
from conspectus_lab.summarise import as_callable

Middleware = AgentMiddleware[Any, Any, Any]
Originals = Mapping[str, Sequence[BaseMessage]]
"""Messages by their id."""

THREAD = "replay"


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


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to compact.

    Attributes:
        name: in commands and results.
        title: the same in words.
        middleware: makes the agent's middleware, from the outside in.
        archived: called at the end; returns originals that can be read back, by id, and fills in
            what the summariser read (`setting.measure.reading`) where that is only known then.
        ours: whether the promises of this library are checked on it.
    """

    name: str
    title: str
    middleware: Callable[[Setting], Sequence[Middleware]]
    archived: Callable[[Setting], Originals] = lambda setting: {}
    ours: bool = False


def _langchain(setting: Setting) -> list[Middleware]:
    """Make LangChain's own, with its own limit on a summariser's input."""
    plan, reading = setting.plan, setting.measure.reading
    asked = plan.chat_model or plan.summarizer
    write = as_callable(
        asked,
        plan.summary_tokens,
        plan.sizes.meter.text,
        on_read=reading.characters.update,
        on_cost=reading.costs.append,
    )
    return [
        SummarizationMiddleware(
            setting.model,
            trigger=plan.trigger,
            keep=plan.keep,
            token_counter=plan.sizes.messages,
            summarizer=write,
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
            "summarizer": plan.summarizer,
            "max_summary_tokens": plan.summary_tokens,
            "on_event": listen,
            **given,
        }
        summarization = Ours(**settings)
        if settings.get("window", plan.window) is None:
            return [summarization]
        # What cannot be made to fit is sent, as without a guard, and counted.
        return [summarization, ContextGuard(summarization, on_stuck="send")]

    return Policy(name, title, middleware, _archived, ours=True)


def _archived(setting: Setting) -> Originals:
    """Read the originals of the records in force; what a record covers was read whole."""
    reading = setting.measure.reading
    scope = Scope("local", THREAD, "main")
    by_id: dict[str, list[BaseMessage]] = {}
    with Archive(setting.store) as archive:
        chain = archive.chain(scope)
        reading.costs += [record.cost for record in chain if record.cost.calls]
        covered = {key for record in chain for key in record.covers}
        for row in archive.export(scope, chain):
            [message] = messages_from_dict([row["message"]])
            by_id.setdefault(row["id"], []).append(message)
            if row["key"] in covered:
                reading.characters[row["id"]] = len(read_messages([message])[0].reading)
    return by_id


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("none", "no compaction", lambda setting: []),
        Policy("langchain", "LangChain's middleware", _langchain),
        ours("conspectus", "Conspectus"),
    )
}
"""Every policy by its name, in the order in which they are listed."""
