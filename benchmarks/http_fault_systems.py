"""Four ways to keep a history in a window, with real clients on a fault server.

All get the same turns, the same tool and the same models: one that answers, one that summarises.
The trigger is 3,000 tokens of messages and 6 messages stay, as far as each can be told so; Deep
Agents takes its own defaults from a window that leaves the same room beside its tools.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import deepagents
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import create_summarization_middleware
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChainMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.memory import InMemoryStore
from langmem.short_term import summarize_messages

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.messages.summary import summary_body
from conspectus_lab.testing.fault_server import FaultServer

ROOM = 4_000
"""Tokens of the window that are left for messages, beside system prompt and tools."""

TRIGGER = 3_000
KEEP = 6
THREAD: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 100}


def mark(number: int, what: str) -> str:
    """Make a mark that cannot be guessed, by which a message is known."""
    return f"{what}-{hashlib.sha256(f'{what}{number}'.encode()).hexdigest()[:10]}"


@tool
def fetch(turn: int) -> str:
    """Fetch a page."""
    lines = "a line of the page that was fetched\n" * 34
    return f"{mark(turn, 'page')}\n{lines}{mark(turn, 'pageend')}"


def ask(turn: int) -> HumanMessage:
    """Write the user's words of a turn."""
    words = "and please look at it with care, as before. " * 18
    text = f"Turn {turn}: fetch it. {mark(turn, 'said')} {words}{mark(turn, 'saidend')}"
    return HumanMessage(text, id=f"turn-{turn}")


class Clients:
    """Real clients of one protocol, which try nothing again by themselves.

    Args:
        server: their provider.
        protocol: `openai` or `anthropic`.
        streaming: whether they ask for streams.
        window: input limit of the answering model, in tokens.
    """

    def __init__(self, server: FaultServer, protocol: str, streaming: bool, window: int) -> None:
        self._server, self._protocol, self._streaming = server, protocol, streaming
        self.window = window
        self.answers = self.made("answers", window)

    def made(self, name: str, window: int = 32_000) -> Any:
        """Make a client for a model of this name, with an input limit in its profile."""
        more: Any = {"api_key": "none", "max_retries": 0, "streaming": self._streaming}
        more["profile"] = {"max_input_tokens": window}
        if self._protocol == "openai":
            return ChatOpenAI(
                model=name, base_url=self._server.openai_url, stream_usage=True, **more
            )
        return ChatAnthropic(
            model=name, base_url=self._server.anthropic_url, max_tokens=300, **more
        )


class System:
    """One agent on one thread."""

    name = ""
    graph: Any

    def __init__(self, clients: Clients, folder: Path) -> None:
        self.build(clients, folder)

    def build(self, clients: Clients, folder: Path) -> None:
        """Make the graph."""
        raise NotImplementedError

    def step(self, message: BaseMessage | None) -> None:
        """Play one turn, or, without a message, try the last one again."""
        self.graph.invoke(None if message is None else {"messages": [message]}, THREAD)

    @property
    def values(self) -> dict[str, Any]:
        """Give the state."""
        found: dict[str, Any] = self.graph.get_state(THREAD).values
        return found

    def summary(self) -> str | None:
        """Give the words of the summary in force."""
        return _summary_among(self.values.get("messages", ()))

    def kept(self) -> str:
        """Give the texts that the agent can read again besides its view."""
        return ""


def _summary_among(messages: Sequence[BaseMessage]) -> str | None:
    for message in messages:
        if message.additional_kwargs.get("lc_source") == "summarization":
            return summary_body(str(message.text))
    return None


class Conspectus(System):
    """Ours: middleware and guard."""

    name = "Conspectus"

    def build(self, clients: Clients, folder: Path) -> None:
        self.store = InMemoryStore()
        middle = SummarizationMiddleware(
            clients.made("sums"), trigger=("tokens", TRIGGER), keep=("messages", KEEP)
        )
        self.graph = create_agent(
            clients.answers,
            [fetch],
            middleware=[middle, ContextGuard(middle)],
            checkpointer=InMemorySaver(),
            store=self.store,
        )

    def kept(self) -> str:
        items = self.store.search(("conspectus",), limit=10_000)
        return "\n".join(json.dumps(item.value) for item in items)


class LangChain(System):
    """LangChain's own middleware."""

    name = "LangChain"

    def build(self, clients: Clients, folder: Path) -> None:
        middle = LangChainMiddleware(
            clients.made("sums"), trigger=("tokens", TRIGGER), keep=("messages", KEEP)
        )
        self.graph = create_agent(
            clients.answers, [fetch], middleware=[middle], checkpointer=InMemorySaver()
        )


class DeepAgents(System):
    """Deep Agents' own middleware in its own agent."""

    name = "Deep Agents"

    def build(self, clients: Clients, folder: Path) -> None:
        self.folder = folder
        summarizing = clients.made("sums", clients.window)  # its defaults come from this
        backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        self.graph = deepagents.create_deep_agent(
            clients.answers,
            [fetch],
            middleware=[create_summarization_middleware(summarizing, backend)],
            backend=backend,
            checkpointer=InMemorySaver(),
        )

    def summary(self) -> str | None:
        event = self.values.get("_summarization_event")
        if event is None:
            return None
        text = str(event["summary_message"].text)
        inner = text.partition("<summary>")[2].rpartition("</summary>")[0]
        return inner or text

    def kept(self) -> str:
        paths = sorted(self.folder.glob("conversation_history/**/*.md"))
        return html.unescape("".join(path.read_text() for path in paths))


class _Remembering(TypedDict):
    messages: Annotated[list[Any], add_messages]
    summary: Any


class LangMem(System):
    """LangMem's function before each call of the model, as in its own example."""

    name = "LangMem"

    def build(self, clients: Clients, folder: Path) -> None:
        model, summarizing = clients.answers.bind_tools([fetch]), clients.made("sums")

        def answer(state: Any) -> Any:
            found = summarize_messages(
                state["messages"],
                running_summary=state.get("summary"),
                model=summarizing,
                max_tokens=TRIGGER,
            )
            return {"messages": [model.invoke(found.messages)], "summary": found.running_summary}

        graph = StateGraph(_Remembering)
        graph.add_node("answer", answer)
        graph.add_node("tools", ToolNode([fetch]))
        graph.add_edge(START, "answer")
        graph.add_conditional_edges("answer", tools_condition)
        graph.add_edge("tools", "answer")
        self.graph = graph.compile(checkpointer=InMemorySaver())

    def summary(self) -> str | None:
        running = self.values.get("summary")
        if running is None:
            return None
        words = running.summary
        return words if isinstance(words, str) else AIMessage(words).text


SYSTEMS: tuple[type[System], ...] = (Conspectus, LangChain, DeepAgents, LangMem)
