"""Calls of a summariser beside the middleware of LangChain and Deep Agents, and what is free then.

The same conversation goes to both, with the same trigger and `keep`. The window is that of the
summariser, too. Dense text takes more tokens than LangChain counts: there its middleware overruns
the window, and ours does not, so those rows have no limit.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deepagents import create_deep_agent as create_their_deep_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChainMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from tables import Row, ScriptedChatModel
from views import SESSIONS
from views_measures import steps

from conspectus import Compactor, SummarizationMiddleware
from conspectus.deep_agents import create_deep_agent
from conspectus.tokens import TokenMeter

TEXTS = {
    "prose": "the ferry leaves at noon and nobody on the pier has asked why ",
    "digits": "48213-7 99102-4 10377-1 ",
    "code": "    return [value for value in rows if value.size > limit]\n",
    "Chinese": "渡轮中午出发，码头上没有人问为什么。",
}
WINDOWS = (8_000, 12_000, 16_000, 32_000, 128_000)
LARGE_WINDOW = 16_000  # tokens, from which on a window allows half as many calls again
# calls, the peer's = 1
MOST_IN_LARGE = 1.5
MOST_IN_SMALL = 2.0
FREE = 0.4  # share of a window that is free after a compaction

TURNS = 400  # of a conversation of some eight windows
DEEP_TURNS = 100  # of the same in a graph, whose own work is most of the time

Make = Callable[[int, str], list[BaseMessage]]


def summary_of(sentences: int) -> str:
    """Return what a summariser answers."""
    return " ".join(f"Part {n} was looked at, and it is sound." for n in range(sentences))


SUMMARIES = {"a summary of 200 tokens": summary_of(20), "one of 1,000": summary_of(100)}


def talk(turn: int, said: str) -> list[BaseMessage]:
    """Return an answer in a conversation without tools."""
    return [AIMessage(f"{turn}: {said}", id=f"a{turn}")]


def tool_use(turn: int, said: str) -> list[BaseMessage]:
    """Return a call, its result, which is most of the text, and a short answer."""
    call = {"name": "read_file", "args": {"path": f"src/part_{turn}.py"}, "id": f"c{turn}"}
    return [
        AIMessage("", id=f"t{turn}", tool_calls=[call]),
        ToolMessage(said, tool_call_id=f"c{turn}", id=f"r{turn}"),
        AIMessage(f"{turn}: it is sound.", id=f"a{turn}"),
    ]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of some eight windows and the settings under which it is held."""

    window: int
    text: str
    keep: tuple[str, float] = ("messages", 20)
    summary: str = SUMMARIES["a summary of 200 tokens"]
    answer: Make = talk

    def calls_of(self, middleware: Any) -> int:
        """Return how often a middleware asks its summariser."""
        model = ScriptedChatModel(
            answers=lambda _: self.summary, profile={"max_input_tokens": self.window}
        )
        made = middleware(model, trigger=("fraction", 0.85), keep=self.keep)
        said = (self.text * self.window)[: self.window * 16 // TURNS]
        state: dict[str, Any] = {"messages": []}

        def add(update: dict[str, Any]) -> None:
            """Take an update in as a graph's channels do."""
            messages = add_messages(state["messages"], update.get("messages", []))
            state.update(update | {"messages": messages})

        for turn in range(TURNS):
            add({"messages": [HumanMessage(f"{turn}. {said}", id=f"u{turn}")]})
            for message in self.answer(turn, said):
                if not isinstance(message, ToolMessage):  # a model is called
                    add(made.before_model(state, Runtime()) or {})
                add({"messages": [message]})
        return len(model.calls)


def calls_in_deep_agents(create: Any, window: int, text: str, summary: str) -> int:
    """Return how often a graph of Deep Agents asks its summariser, with its own settings."""
    said = (text * window)[: window * 16 // DEEP_TURNS]

    def answer(prompt: list[BaseMessage]) -> str:
        return said if re.match(r"\d+\. ", str(prompt[-1].text)) else summary

    model = ScriptedChatModel(answers=answer, profile={"max_input_tokens": window})
    graph = create(model, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    for turn in range(DEEP_TURNS):
        graph.invoke({"messages": [HumanMessage(f"{turn}. {said}", id=f"u{turn}")]}, config)
    return sum(not call.options.get("tools") for call in model.calls)


def rows(quick: bool) -> Iterator[Row]:
    """Measure both; quickly only for the small windows."""
    windows = WINDOWS[:3] if quick else WINDOWS
    prose = TEXTS["prose"]
    for window in windows:
        for name, text in TEXTS.items():
            yield _beside_langchain(Conversation(window, text), name, limited=name == "prose")
        long_summary = SUMMARIES["one of 1,000"]
        for variant in (
            (Conversation(window, prose, summary=long_summary), "prose, a summary of 1,000 tokens"),
            (Conversation(window, prose, keep=("tokens", window // 5)), "prose, a fifth kept"),
            (Conversation(window, prose, keep=("fraction", 0.4)), "prose, two fifths kept"),
            (Conversation(window, prose, answer=tool_use), "prose, calls of a tool"),
        ):
            yield _beside_langchain(*variant)
    for window in windows:
        for length, summary in SUMMARIES.items():
            ours = calls_in_deep_agents(create_deep_agent, window, prose, summary)
            theirs = calls_in_deep_agents(create_their_deep_agent, window, prose, summary)
            title = f"calls of a summariser, Deep Agents, {length}, window of {window:,}"
            yield _compared(title, ours, theirs, window, "Deep Agents'")
    for name, session in SESSIONS.items():
        free = list(free_after(session.messages(), session.window))
        shares = [share for share, _ in free]
        title = f"free after a compaction, {name}: median share of the window"
        detail = f"{len(free)} compactions"
        yield Row(title, statistics.median(shares), FREE, "", detail, at_least=True)
        allowed = [share for share, must_stay in free if must_stay <= FREE]
        title = f"free after a compaction, {name}: least where what must stay is less"
        detail = f"{len(allowed)} of {len(free)} compactions; least of all {min(shares):.2f}"
        yield Row(title, min(allowed, default=1.0), FREE, "", detail, at_least=True)


def _beside_langchain(conversation: Conversation, name: str, *, limited: bool = True) -> Row:
    ours = conversation.calls_of(SummarizationMiddleware)
    theirs = conversation.calls_of(LangChainMiddleware)
    title = f"calls of a summariser, {name}, window of {conversation.window:,}"
    return _compared(title, ours, theirs, conversation.window, "LangChain's", limited=limited)


def _compared(
    title: str, ours: int, theirs: int, window: int, peer: str, *, limited: bool = True
) -> Row:
    most = MOST_IN_LARGE if window >= LARGE_WINDOW else MOST_IN_SMALL
    detail = f"{ours}, {peer} {theirs}"
    return Row(title, ours / max(1, theirs), most if limited else None, "x", detail)


def free_after(messages: list[dict[str, Any]], window: int) -> Iterator[tuple[float, float]]:
    """Yield the share of a window that each compaction leaves free, and that of what must stay.

    What must stay is the system prompt, the user's newest message and the newest step.
    """
    compactor = Compactor(window=window, archive="memory:")
    size = TokenMeter().count_message
    view: list[Any] = []
    for step in steps(messages):
        sent = [*view, *step]
        result = compactor.compact(sent, thread_id="calls")
        view = list(result.messages)
        if result.outcome != "compacted":
            continue
        systems = [message for message in view if message["role"] == "system"]
        requests = [message for message in view if message["role"] == "user"][-1:]
        must_stay = {id(message): message for message in [*systems, *requests, *step]}
        share = sum(map(size, must_stay.values())) / window
        yield 1 - result.tokens_after / window, share
