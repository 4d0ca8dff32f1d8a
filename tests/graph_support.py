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
        words = [AIMessageChunk(content=one) for one in re.findall(r"\S+\s*", message.text)]
        if message.tool_calls or not words:
            words = [AIMessageChunk(content=message.content, tool_calls=message.tool_calls)]
        for one in words:
            chunk = ChatGenerationChunk(message=one)
            if run_manager:
                run_manager.on_llm_new_token(one.content, chunk=chunk)
            yield chunk


def calls(*names: str, text: str = "") -> AIMessage:
    """An answer that asks for a look at each of these; ids are reused, as some providers do."""
    asked = [
        {"name": "look", "args": {"name": name}, "id": f"call_{name}", "type": "tool_call"}
        for name in names
    ]
    return AIMessage(text or f"Looking at {', '.join(names)}.", tool_calls=asked)


def steps(count: int, last: str = "All looked at.", prefix: str = "m") -> list[Any]:
    """A run of the agent: so many looks, then an answer."""
    return [*(calls(f"{prefix}{n}") for n in range(count)), last]


def summariser(**more: Any) -> ScriptedChatModel:
    """A model whose summaries name every module that it read of."""

    def write(messages: list[BaseMessage]) -> str:
        named = re.findall(r"\b[a-z]+\d+\b", str(messages[-1].content))
        return f"{SUMMARY}: {' '.join(dict.fromkeys(named))[:150]} are looked at."

    return ScriptedChatModel(answers=write, **more)


def middleware(**more: Any) -> SummarizationMiddleware:
    """Ours, eager enough for small tests."""
    more.setdefault("trigger", ("messages", 10))
    more.setdefault("keep", ("messages", 4))
    model = more.pop("model", None) or summariser()
    return SummarizationMiddleware(model, **more)


def agent(answers: Any, *own: Any, **more: Any) -> tuple[Any, Any]:
    """An agent with tool, checkpointer and store, and the model that answers in it."""
    model = answers if isinstance(answers, BaseChatModel) else ScriptedChatModel(answers=answers)
    more.setdefault("checkpointer", InMemorySaver())
    more.setdefault("store", InMemoryStore())
    more.setdefault("tools", [look])
    return create_agent(model, middleware=list(own), **more), model


def thread(name: str = "t") -> dict[str, Any]:
    """The configuration of a thread."""
    return {"configurable": {"thread_id": name}, "recursion_limit": 500}


def said(*texts: str) -> dict[str, Any]:
    """An input of user messages."""
    return {"messages": [HumanMessage(text) for text in texts]}


def worked(turns: int, size: int = 20, first: int = 0, **result: Any) -> list[BaseMessage]:
    """Turns with one call of a tool each; `size` says how long what is asked and found is."""
    made: list[BaseMessage] = []
    for n in range(first, first + turns):
        call = {"name": "look", "args": {"name": f"m{n}"}, "id": f"c{n}"}
        found = f"part {n} " + "a line of code " * size
        made += [
            HumanMessage(f"Part {n}: " + "look at this module " * size, id=f"h{n}"),
            AIMessage("", tool_calls=[call], id=f"k{n}"),
            ToolMessage(found, tool_call_id=f"c{n}", id=f"t{n}", **result),
            AIMessage(f"Part {n} is fine.", id=f"a{n}"),
        ]
    return made


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
        *own: Any,
        limit: int = 10**9,
        make: Any = create_agent,
        profile: Any = None,
        **more: Any,
    ) -> None:
        own_model = isinstance(answers, BaseChatModel)
        self.answers = answers
        self.limit = limit
        self.model = (
            answers if own_model else ScriptedChatModel(answers=self._answer, profile=profile)
        )
        self.store = more.setdefault("store", InMemoryStore())
        more.setdefault("checkpointer", InMemorySaver())
        more.setdefault("tools", [look])
        self.graph = make(self.model, middleware=list(own), **more)

    def _answer(self, messages: list[BaseMessage]) -> Any:
        if METER.messages(messages) > self.limit:
            return ContextOverflowError("too long")
        return self.answers(messages)

    def say(self, content: Any, way: str = "sync") -> list[BaseMessage]:
        """One turn; what the state holds after it."""
        asked = {"messages": [HumanMessage(content)]}
        if way == "async":
            asyncio.run(self.graph.ainvoke(asked, thread()))
        elif way == "stream":
            list(self.graph.stream(asked, thread(), stream_mode="messages", subgraphs=True))
        else:
            self.graph.invoke(asked, thread())
        return self.values["messages"]  # type: ignore[no-any-return]

    @property
    def values(self) -> dict[str, Any]:
        return self.graph.get_state(thread()).values  # type: ignore[no-any-return]

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return [list(call.messages) for call in self.model.calls]

    @property
    def sizes(self) -> list[int]:
        """Tokens of the messages of each request."""
        return list(map(METER.messages, self.requests))

    @property
    def refused(self) -> int:
        return sum(size > self.limit for size in self.sizes)


def is_summary(message: BaseMessage) -> bool:
    """Whether a message is a summary, by LangChain's marker."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def summaries(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The summaries among messages, also those that the user's words were joined to."""
    return [message for message in messages if is_summary(message) or is_joined(message)]


def is_joined(message: BaseMessage) -> bool:
    """Whether a message is the user's, with a summary before it."""
    return message.type == "human" and message.text.startswith(SUMMARY_LINE)


def torn(messages: Sequence[BaseMessage]) -> list[str]:
    """What a strict provider would reject: results without their call right before them, calls
    without all their results right after them."""
    return list(openai_rejects(messages))


def check_sent(*models: ScriptedChatModel) -> None:
    """What these models were really sent could be sent to any provider, and a user speaks in it."""
    assert any(model.calls for model in models)
    for model in models:
        for call in model.calls:
            assert torn(call.messages) == []
            assert any(isinstance(m, HumanMessage) for m in call.messages)
            assert sum(map(is_summary, call.messages)) <= 1


def same(one: BaseMessage, other: BaseMessage) -> bool:
    """Equal in all that a model sees."""
    calls_of = [getattr(m, "tool_calls", None) for m in (one, other)]
    return type(one) is type(other) and one.content == other.content and calls_of[0] == calls_of[1]


def ever_said(history: Sequence[Any]) -> dict[tuple[str, str], AnyMessage]:
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
    tip = graph.get_state(thread(name))
    history = _branch(tip, list(graph.get_state_history(thread(name))))
    return _compare(tip, history, _reached(tip, store, name, tenant))


def _reached(tip: Any, store: BaseStore, name: str, tenant: str) -> Any:
    archive = Archive(store)
    scope = scope_of(tip.values, name, tenant)
    head = (tip.values.get("_conspectus") or {}).get("head")
    chain = () if head is None else run(archive.call_either_way(archive.chain_at, scope, head))
    keys = [key for record in chain for key in record.covers]
    return [one.message for one in archive.get(scope, keys)]


def _compare(tip: Any, history: Sequence[Any], archived: Sequence[Any]) -> int:
    here = {(str(m.id), str(m.content)) for m in tip.values["messages"]}
    gone = {key: m for key, m in ever_said(history).items() if key not in here}
    kept = {(str(m.id), str(m.content)): m for m in archived}
    for key, message in gone.items():
        assert key in kept, f"lost: {message!r:.200}"
        assert same(message, kept[key])
    assert len(kept) == len(archived), "archived twice"
    both = [key for key in kept if key in here]
    assert not both, f"in view and archived: {both}"
    return len(gone)


def _branch(tip: Any, history: Sequence[Any]) -> list[Any]:
    """The checkpoints that lead to a state, and none of other branches."""
    by_id = {one.config["configurable"]["checkpoint_id"]: one for one in history}
    out = []
    at: Any = tip.config["configurable"]["checkpoint_id"]
    while at in by_id:
        out.append(by_id[at])
        parent = by_id[at].parent_config
        at = parent["configurable"]["checkpoint_id"] if parent else None
    return out
