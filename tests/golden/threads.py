"""The conversations of the golden files: how they are begun, and how they go on."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph

from conspectus import Compactor, ContextGuard
from conspectus.archive import Archive
from engine import Scripted, short
from graph_support import FILLER, ScriptedChatModel, agent, calls, middleware
from histories import assistant, tool, user
from short_term_support import PlainModel, ours

Message = dict[str, Any]

TENANT = "ann"
RULE = "Never edit files under generated/, they are overwritten by every build."
ERROR = "sqlite3.OperationalError: no such column: orders.paid_at (migrations/0042_paid.py:17)"
QUESTIONS = {
    "which files must never be edited": RULE,
    "no such column OperationalError": ERROR,
    "登录页面的错误": "修复了登录页面的错误 🙂",
}
"""What is asked of the archive, and what of the originals answers it."""


def talk(rounds: int) -> list[Message]:
    """A session with a rule, other letters, a long result and one that is clipped."""
    found = [
        user(f"Please find out why the order page fails. {RULE}"),
        assistant("I run the tests.", ("c0", "pytest")),
        tool("c0", f"{ERROR}\n" + "E   assert None is not None\n" * 300),
        assistant("修复了登录页面的错误 🙂"),
    ]
    for n in range(rounds):
        found.append(user(f"What of module m{n}? We decided on plan {n}, as it needs no server."))
        found.append(assistant(f"I look at m{n}.", (f"look{n}", f"src/m{n}.py")))
        found.append(tool(f"look{n}", f"src/m{n}.py holds {n} lines. {FILLER}"))
        found.append(assistant(f"Module m{n} is sound."))
    return found


def compactor(archive: Archive) -> Compactor:
    """The engine alone, with its own summariser."""
    trigger = [("messages", 16), ("tokens", 3_000)]
    return Compactor(archive=archive, trigger=trigger, keep=("messages", 4))


def plain_talk() -> list[Message]:
    """Plain talk, long enough that a summary of it is made."""
    return [[user, assistant][n % 2](f"and so on {'and on ' * n}") for n in range(24)]


def drafting(archive: Archive, scripted: Scripted) -> Compactor:
    """One whose summaries cost something."""
    return Compactor(scripted, archive=archive, keep=("messages", 4), max_summary_tokens=200)


def paid() -> Scripted:
    """A summariser that counts what it is asked."""
    return Scripted(short)


def six_looks() -> Callable[[list[BaseMessage]], Any]:
    """A model that looks at six modules in each turn."""
    numbers = count(1)

    def answer(messages: list[BaseMessage]) -> Any:
        number = next(numbers)
        return "All looked at." if number % 7 == 0 else calls(f"m{number}")

    return answer


def _agent(saver: Any, archive: Archive | None, *more: Any, **settings: Any) -> tuple[Any, Any]:
    own = middleware(archive=archive, tenant=TENANT, **settings)
    model = ScriptedChatModel(answers=six_looks(), profile={"max_input_tokens": 50_000})
    return agent(model, own, *more, checkpointer=saver, store=None)


Graphs = Callable[[BaseCheckpointSaver[Any], Archive], tuple[Any, Any]]

AGENTS: dict[str, Graphs] = {
    "replaced": lambda saver, archive: _agent(saver, archive),
    "preserved": lambda saver, archive: _agent(saver, archive, history="preserve"),
    "guarded": lambda saver, archive: _agent(saver, archive, ContextGuard(archive=archive)),
    "without an archive": lambda saver, _: _agent(saver, None),
    "waits for approval": lambda saver, archive: _agent(saver, archive, preview=True),
}
"""Threads of agents by name, each with the graph that goes on with it, and its model."""

NODE = "short-term memory"
"""The thread of a graph with a summarising node, as LangMem has it."""


class _State(MessagesState):
    context: dict[str, Any]


def node_graph(saver: BaseCheckpointSaver[Any], model: PlainModel) -> Any:
    """A node that summarises, then one that answers."""
    node = ours.SummarizationNode(model=model, max_tokens=200, max_summary_tokens=60)
    builder = StateGraph(_State)
    builder.add_node("summarize", node)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("so " * 20)]})
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "answer")
    return builder.compile(checkpointer=saver)


def asked(number: int) -> str:
    """What the user says in a turn of a thread."""
    return f"Turn {number}: look at the next modules. " + "why " * 20


DATA = Path(__file__).parent
VERSIONS = sorted(int(path.name) for path in DATA.iterdir() if path.name.isdigit())
