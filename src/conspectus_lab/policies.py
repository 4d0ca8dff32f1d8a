"""The policies that a replay compares. Each is a way to compact, as middleware of an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, get_buffer_string, messages_from_dict
from langchain_core.runnables import Runnable
from langgraph.store.base import BaseStore

from conspectus import Compactor, ContextGuard
from conspectus import SummarizationMiddleware as Ours
from conspectus._langchain import named
from conspectus.archive import Archive, Scope
from conspectus.core.records import Cost
from conspectus.errors import InputError, NotFoundError
from conspectus.messages import is_summary_message, read_messages
from conspectus.model import ChatModelSummarizer, Summarizer
from conspectus.model.calls import cost_reported

Middleware = AgentMiddleware[Any, Any, Any]
Originals = Mapping[str, Sequence[BaseMessage]]
"""Messages by their id."""

SCOPE = Scope("local", "replay", "main")
END = HumanMessage("(Here the summary is written.)", id="end")


@dataclass(frozen=True, slots=True)
class Setting:
    """What a policy uses in one run; it fills the last three fields, latest in `archived`."""

    model: BaseChatModel  # the model that answers; its profile names the window
    store: BaseStore  # the store of the graph
    window: int  # input limit of the model that answers, in tokens
    trigger: Any  # in LangChain's form
    keep: Any
    summarizer: Summarizer  # writes the summaries
    summary_tokens: int  # maximum tokens of a summary's text
    count: Callable[[Any], int]  # tokens of messages, in the form of LangChain's `token_counter`
    characters: dict[str, int] = field(default_factory=dict)  # read of each message, by id
    costs: list[Cost] = field(default_factory=list)  # costs of the summariser's calls
    causes: list[str] = field(default_factory=list)  # causes of compactions, as far as known


@dataclass(frozen=True, slots=True)
class ComparedPolicy:
    """One way to compact.

    Attributes:
        middleware: makes the agent's middleware, the outermost first.
        archived: called at the end; returns originals that can be read back, by id.
        recall: returns the text that a query recalls within a number of tokens; empty if none.
    """

    name: str  # the name in commands and results
    title: str  # the name in words
    middleware: Callable[[Setting], Sequence[Middleware]]
    archived: Callable[[Setting], Originals] = lambda setting: {}
    recall: Callable[[Setting, str, int], str] = lambda setting, query, tokens: ""
    ours: bool = False  # whether the promises of this library are checked on it


def ours(name: str, title: str, **settings: Any) -> ComparedPolicy:
    """Make Conspectus with its guard; originals go to the graph's own store.

    `settings` are arguments of the middleware that replace those of the replay; a `window` of None
    leaves the guard out.
    """

    def middleware(setting: Setting) -> list[Middleware]:
        def listen(event: str, data: Mapping[str, Any]) -> None:
            if event == "start":
                setting.causes.append(str(data["cause"]))

        arguments: dict[str, Any] = {
            "model": setting.model,
            "trigger": setting.trigger,
            "keep": setting.keep,
            "token_counter": setting.count,
            "summarizer": setting.summarizer,
            "max_summary_tokens": setting.summary_tokens,
            "on_event": listen,
            **settings,
        }
        summarization = Ours(**arguments)
        if arguments.get("window", setting.window) is None:
            return [summarization]
        # A request that cannot be made to fit is sent, and counted.
        return [summarization, ContextGuard(summarization, on_stuck="send")]

    return ComparedPolicy(name, title, middleware, _archived, _recall, ours=True)


def _archived(setting: Setting) -> Originals:
    """Read the originals of the records in force; all of them were read whole."""
    by_id: dict[str, list[BaseMessage]] = {}
    with Archive(setting.store) as archive:
        chain = archive.chain(SCOPE)
        setting.costs.extend(record.cost for record in chain if record.cost.calls)
        covered = {key for record in chain for key in record.covers}
        for row in archive.export(SCOPE, chain):
            [message] = messages_from_dict([row["message"]])
            by_id.setdefault(row["id"], []).append(message)
            if row["key"] in covered:
                setting.characters[row["id"]] = len(read_messages([message])[0].reading)
    return by_id


def _recall(setting: Setting, query: str, tokens: int) -> str:
    compactor = Compactor(archive=setting.store, token_counter=setting.count)
    try:
        return compactor.recall(query, thread_id=SCOPE.thread, tokens=tokens).text
    except (InputError, NotFoundError):
        return ""


def _langchain(setting: Setting) -> list[Middleware]:
    """Make LangChain's own middleware, with its own limit on a summariser's input.

    A chat model gets LangChain's own prompt. Other summarisers write as they do for Conspectus.
    """

    def ask(model: Runnable[Any, Any], messages: Sequence[BaseMessage]) -> str:
        text = get_buffer_string(messages, format="xml")
        prompt = DEFAULT_SUMMARY_PROMPT.format(messages=text).rstrip()
        answer = model.invoke(prompt)
        if answer.usage_metadata is None:
            sizes = setting.count([HumanMessage(prompt)]), setting.count([answer])
            cost = Cost(1, *sizes, estimated_calls=1)
        else:
            cost = cost_reported(answer.usage_metadata)
        name = named(model)
        setting.costs.append(cost.asked_of(name) if name else cost)
        return str(answer.text)

    def compact(messages: Sequence[BaseMessage]) -> str:
        compactor = Compactor(
            keep=("messages", 1),
            summarizer=setting.summarizer,
            max_summary_tokens=setting.summary_tokens,
            token_counter=setting.count,
            on_failure="raise",
        )
        result = compactor.compact([*messages, END], thread_id=SCOPE.thread, force=True)
        setting.costs.extend([result.cost] if result.cost.calls else ())
        return result.summary

    def write(messages: Sequence[BaseMessage]) -> str:
        writer = setting.summarizer
        model = writer.model if isinstance(writer, ChatModelSummarizer) else None
        text = compact(messages) if model is None else ask(model, messages)
        originals = [message for message in messages if not is_summary_message(message)]
        for original in read_messages(originals):
            setting.characters[original.id] = len(original.reading)
        return text

    return [
        SummarizationMiddleware(
            setting.model,
            trigger=setting.trigger,
            keep=setting.keep,
            token_counter=setting.count,
            summarizer=write,
        )
    ]


POLICIES = {
    policy.name: policy
    for policy in (
        ComparedPolicy("none", "no compaction", lambda setting: []),
        ComparedPolicy("langchain", "LangChain's middleware", _langchain),
        ours("conspectus", "Conspectus"),
    )
}
"""Every policy by its name, in the order in which they are listed."""
