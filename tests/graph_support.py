"""Real agent graphs for tests, and what must hold of them, told by code of its own.

Nothing here asks the middleware what it did: what was sent is taken from the model, what was ever
said from the checkpoints, and what is archived from the store.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.langchain import SummarizationMiddleware
from conspectus.messages import SUMMARY_LINE
from conspectus.tokens import TokenMeter
from scripted_models import ScriptedChatModel
from stateful.oracle import openai_rejects

METER = TokenMeter()
SUMMARY = "The work on the modules goes on"
FILLER = "pass  # some more lines of this module " * 6


@tool
def look(name: str) -> str:
    """Look at a module."""
    return f"module {name}: {FILLER}"


class StreamingModel(ScriptedChatModel):
    """The scripted model, word by word."""

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        number = self._begin(messages, run_manager, kwargs)
        message = self._answer(number, messages).generations[0].message
        assert isinstance(message, AIMessage)
        words = [AIMessageChunk(content=word) for word in re.findall(r"\S+\s*", message.text)]
        if message.tool_calls or not words:
            words = [AIMessageChunk(content=message.content, tool_calls=message.tool_calls)]
        for word in words:
            chunk = ChatGenerationChunk(message=word)
            if run_manager:
                run_manager.on_llm_new_token(word.content, chunk=chunk)
            yield chunk


def look_calls(*names: str, text: str = "") -> AIMessage:
    """An answer that asks for a look at each of these; ids are reused, as some providers do."""
    tool_calls = [
        {"name": "look", "args": {"name": name}, "id": f"call_{name}", "type": "tool_call"}
        for name in names
    ]
    return AIMessage(text or f"Looking at {', '.join(names)}.", tool_calls=tool_calls)


def tool_steps(count: int, last: str = "All looked at.", prefix: str = "m") -> list[Any]:
    """A run of the agent: so many looks, then an answer."""
    return [*(look_calls(f"{prefix}{n}") for n in range(count)), last]


def new_summariser(**options: Any) -> ScriptedChatModel:
    """A model whose summaries name every module that it read of."""

    def write(messages: list[BaseMessage]) -> str:
        modules = re.findall(r"\b[a-z]+\d+\b", str(messages[-1].content))
        return f"{SUMMARY}: {' '.join(dict.fromkeys(modules))[:150]} are looked at."

    return ScriptedChatModel(answers=write, **options)


def new_middleware(**settings: Any) -> SummarizationMiddleware:
    """Ours, eager enough for small tests."""
    settings.setdefault("trigger", ("messages", 10))
    settings.setdefault("keep", ("messages", 4))
    model = settings.pop("model", None) or new_summariser()
    return SummarizationMiddleware(model, **settings)


def new_agent(answers: Any, *middlewares: Any, **options: Any) -> tuple[Any, Any]:
    """An agent with tool, checkpointer and store, and the model that answers in it."""
    model = answers if isinstance(answers, BaseChatModel) else ScriptedChatModel(answers=answers)
    options.setdefault("checkpointer", InMemorySaver())
    options.setdefault("store", InMemoryStore())
    options.setdefault("tools", [look])
    return create_agent(model, middleware=list(middlewares), **options), model


def thread_config(name: str = "t") -> dict[str, Any]:
    """The configuration of a thread."""
    return {"configurable": {"thread_id": name}, "recursion_limit": 500}


def user_input(*texts: str) -> dict[str, Any]:
    """An input of user messages."""
    return {"messages": [HumanMessage(text) for text in texts]}


def tool_turns(turns: int, size: int = 20, first: int = 0, **result: Any) -> list[BaseMessage]:
    """Turns with one call of a tool each; `size` says how long what is asked and found is."""
    messages: list[BaseMessage] = []
    for n in range(first, first + turns):
        call = {"name": "look", "args": {"name": f"m{n}"}, "id": f"c{n}"}
        text = f"part {n} " + "a line of code " * size
        messages += [
            HumanMessage(f"Part {n}: " + "look at this module " * size, id=f"h{n}"),
            AIMessage("", tool_calls=[call], id=f"k{n}"),
            ToolMessage(text, tool_call_id=f"c{n}", id=f"t{n}", **result),
            AIMessage(f"Part {n} is fine.", id=f"a{n}"),
        ]
    return messages


class Bench:
    """An agent as a user builds one, on a model that refuses what it does not take.

    Args:
        answers: what the model says next, told what it is sent; or the model.
        limit: tokens above which it refuses a request, saying no more than "too long".
        make: builds the agent, of LangChain's or of Deep Agents'.
    """

    def __init__(
        self,
        answers: Any,
        *middlewares: Any,
        limit: int = 10**9,
        make: Any = create_agent,
        profile: Any = None,
        **options: Any,
    ) -> None:
        is_model = isinstance(answers, BaseChatModel)
        self.answers = answers
        self.limit = limit
        self.model = (
            answers if is_model else ScriptedChatModel(answers=self._answer, profile=profile)
        )
        self.store = options.setdefault("store", InMemoryStore())
        options.setdefault("checkpointer", InMemorySaver())
        options.setdefault("tools", [look])
        self.graph = make(self.model, middleware=list(middlewares), **options)

    def _answer(self, messages: list[BaseMessage]) -> Any:
        if METER.count_messages(messages) > self.limit:
            return ContextOverflowError("too long")
        return self.answers(messages)

    def say(self, content: Any, mode: str = "sync") -> list[BaseMessage]:
        """One turn; what the state holds after it."""
        question = {"messages": [HumanMessage(content)]}
        if mode == "async":
            asyncio.run(self.graph.ainvoke(question, thread_config()))
        elif mode == "stream":
            list(
                self.graph.stream(question, thread_config(), stream_mode="messages", subgraphs=True)
            )
        else:
            self.graph.invoke(question, thread_config())
        return self.values["messages"]  # type: ignore[no-any-return]

    @property
    def values(self) -> dict[str, Any]:
        return self.graph.get_state(thread_config()).values  # type: ignore[no-any-return]

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return [list(call.messages) for call in self.model.calls]

    @property
    def request_tokens(self) -> list[int]:
        """Tokens of the messages of each request."""
        return list(map(METER.count_messages, self.requests))

    @property
    def refused(self) -> int:
        return sum(size > self.limit for size in self.request_tokens)


def is_summary(message: BaseMessage) -> bool:
    """Whether a message is a summary, by LangChain's marker."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def summaries(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The summaries among messages, also those that the user's words were joined to."""
    return [message for message in messages if is_summary(message) or is_joined(message)]


def is_joined(message: BaseMessage) -> bool:
    """Whether a message is the user's, with a summary before it."""
    return message.type == "human" and message.text.startswith(SUMMARY_LINE)


def pairing_faults(messages: Sequence[BaseMessage]) -> list[str]:
    """What a strict provider would reject: results without their call right before them, calls
    without all their results right after them."""
    return list(openai_rejects(messages))


def check_sent(*models: ScriptedChatModel) -> None:
    """What these models were really sent could be sent to any provider, and a user speaks in it."""
    assert any(model.calls for model in models)
    for model in models:
        for call in model.calls:
            assert pairing_faults(call.messages) == []
            assert any(isinstance(m, HumanMessage) for m in call.messages)
            assert sum(map(is_summary, call.messages)) <= 1


def same_for_model(first: BaseMessage, second: BaseMessage) -> bool:
    """Equal in all that a model sees."""
    calls_of = [getattr(m, "tool_calls", None) for m in (first, second)]
    return (
        type(first) is type(second)
        and first.content == second.content
        and calls_of[0] == calls_of[1]
    )


def messages_of_branch(history: Sequence[Any]) -> dict[tuple[str, str], AnyMessage]:
    """Every message of a thread's checkpoints, by id and text."""
    return {
        (str(message.id), str(message.content)): message
        for snapshot in history
        for message in snapshot.values.get("messages", ())
        if not is_summary(message)
    }


def scope_of(values: dict[str, Any], name: str, tenant: str = "local") -> Scope:
    """Where the originals of a state lie."""
    held = values.get("_conspectus") or {"thread": name, "session": "main"}
    return Scope(tenant, held["thread"], held["session"])


def check_nothing_lost(graph: Any, store: BaseStore, name: str = "t", tenant: str = "local") -> int:
    """Every message that was ever said on this branch and is not in its state is archived, and
    within reach of the state's own record; answers with their number."""
    tip = graph.get_state(thread_config(name))
    history = _snapshots_of_branch(tip, list(graph.get_state_history(thread_config(name))))
    return _count_archived(tip, history, _archived_in_reach(tip, store, name, tenant))


def _archived_in_reach(tip: Any, store: BaseStore, name: str, tenant: str) -> Any:
    archive = Archive(store)
    scope = scope_of(tip.values, name, tenant)
    head_id = (tip.values.get("_conspectus") or {}).get("head_id")
    chain = run(archive.call_either_way(archive.chain_at, scope, head_id)) if head_id else ()
    keys = [key for record in chain for key in record.covers]
    return [original.message for original in archive.get(scope, keys)]


def _count_archived(tip: Any, history: Sequence[Any], archived: Sequence[Any]) -> int:
    in_view = {(str(m.id), str(m.content)) for m in tip.values["messages"]}
    left = {key: m for key, m in messages_of_branch(history).items() if key not in in_view}
    archived_by_key = {(str(m.id), str(m.content)): m for m in archived}
    for key, message in left.items():
        assert key in archived_by_key, f"lost: {message!r:.200}"
        assert same_for_model(message, archived_by_key[key])
    assert len(archived_by_key) == len(archived), "archived twice"
    in_view_and_archived = [key for key in archived_by_key if key in in_view]
    assert not in_view_and_archived, f"in view and archived: {in_view_and_archived}"
    return len(left)


def _snapshots_of_branch(tip: Any, history: Sequence[Any]) -> list[Any]:
    """The checkpoints that lead to a state, and none of other branches."""
    by_id = {snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in history}
    out = []
    at: Any = tip.config["configurable"]["checkpoint_id"]
    while at in by_id:
        out.append(by_id[at])
        parent = by_id[at].parent_config
        at = parent["configurable"]["checkpoint_id"] if parent else None
    return out
