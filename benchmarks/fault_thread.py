"""A scripted thread, four ways to run it, and the judgement of what is left at its end.

All ids and texts are known beforehand, so that what must be there at the end is said by nobody who
had to keep it. A surface goes on from the files in its folder, whatever was killed before.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from socket import create_connection, create_server
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages, count_tokens_approximately
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from tables import FaultServer, ScriptedChatModel

from conspectus import Compactor, SummarizationMiddleware
from conspectus.short_term import RunningSummary, SummarizationNode

TURNS = 6
WINDOW = 4_000
SERVED = 1_500
"""Tokens of the model that answers; fewer behind `serve`, which has no trigger of messages."""
TRIGGER = ("messages", 8)
KEEP = ("messages", 3)
BIG_TURN = 1
"""The turn whose first tool result is larger than the window."""
KEY = "a-key"
THREAD = "t"
_TURN = re.compile(r"Turn (\d+):")


def asked(turn: int) -> HumanMessage:
    """Make the user's message of a turn."""
    mark = hashlib.sha256(b"said %d" % turn).hexdigest()[:12]
    text = f"Turn {turn}: look at both modules of part {turn}; the mark {mark} holds. "
    return HumanMessage(text + "Please be careful. " * 4, id=f"turn-{turn}")


def calling(turn: int) -> AIMessage:
    """Make the agent's message that asks for two looks at once."""
    calls = [
        {"name": "look", "args": {"part": f"{turn}.{n}"}, "id": f"call-{turn}.{n}"} for n in (1, 2)
    ]
    return AIMessage(f"I look at part {turn}.", tool_calls=calls, id=f"calls-{turn}")


def seen(part: str) -> ToolMessage:
    """Make the result of one look."""
    mark = hashlib.sha256(part.encode()).hexdigest()[:12]
    lines = 600 if part == f"{BIG_TURN}.1" else 6
    text = f"module {part} has the mark {mark}\n" + f"a line of module {part}\n" * lines
    return ToolMessage(text, tool_call_id=f"call-{part}", id=f"result-{part}", name="look")


def done(turn: int) -> AIMessage:
    """Make the agent's last message of a turn."""
    return AIMessage(f"Turn {turn} is done.", id=f"done-{turn}")


def said_in(turn: int) -> list[BaseMessage]:
    """List the messages of one turn, in order."""
    return [asked(turn), calling(turn), seen(f"{turn}.1"), seen(f"{turn}.2"), done(turn)]


@tool
def look(part: str, call: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Look at a module."""
    return seen(part)


def answer(messages: Sequence[BaseMessage]) -> BaseMessage:
    """Answer as the agent's model does: two looks in each turn, then the end of it."""
    users = [m for m in messages if isinstance(m, HumanMessage) and _TURN.match(str(m.text))]
    turn = int(_TURN.match(str(users[-1].text)).group(1))  # type: ignore[union-attr]
    return done(turn) if isinstance(messages[-1], ToolMessage) else calling(turn)


def compactor(folder: Path) -> list[Any]:
    """Send the whole history to a `Compactor` at each turn, as a client of a chat API does."""
    with Compactor(
        window=WINDOW,
        trigger=TRIGGER,
        keep=KEEP,
        archive=folder / "archive.db",
        alternate_roles="off",
    ) as made:
        view: list[Any] = []
        said: list[BaseMessage] = []
        for turn in range(TURNS):
            said += said_in(turn)
            view = list(made.compact(said, thread_id=THREAD).messages)
        return view


def middleware(folder: Path) -> list[Any]:
    """Run an agent with the middleware and a checkpointer."""
    own = SummarizationMiddleware(
        None,
        trigger=TRIGGER,
        keep=KEEP,
        window=WINDOW,
        archive=folder / "archive.db",
        alternate_roles="off",
    )
    model = ScriptedChatModel(answers=answer)
    with closing(sqlite3.connect(folder / "graph.db", check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        agent: Any = create_agent(model, [look], middleware=[own], checkpointer=saver)
        view = _turns(agent)
    own.close()
    return view


def short_term(folder: Path) -> list[Any]:
    """Run a graph with a node of the short-term memory and a checkpointer."""

    class State(MessagesState):
        context: dict[str, RunningSummary]
        summarized_messages: list[Any]

    def reply(state: State) -> dict[str, Any]:
        turn = int(_TURN.findall(str(state["messages"][-1].text))[-1])
        return {"messages": said_in(turn)[1:]}

    node = SummarizationNode(
        model=ScriptedChatModel(answers=lambda _: "The agent looks at modules, part by part. " * 6),
        max_tokens=2_000,
        token_counter=count_tokens_approximately,
        archive=folder / "archive.db",
    )
    graph = StateGraph(State).add_node("summarize", node).add_node("reply", reply)  # type: ignore[type-var]
    graph.add_edge(START, "summarize").add_edge("summarize", "reply")
    with closing(sqlite3.connect(folder / "graph.db", check_same_thread=False)) as connection:
        view = _turns(graph.compile(checkpointer=SqliteSaver(connection)))
    node.archive.close()
    return view


def _turns(graph: Any) -> list[Any]:
    """Run the turns that a checkpointed graph has not yet had; return its messages."""
    config = {"configurable": {"thread_id": THREAD}, "recursion_limit": 100}
    while True:
        state = graph.get_state(config)
        users = [m for m in state.values.get("messages", ()) if isinstance(m, HumanMessage)]
        turns = [int(found.group(1)) for m in users if (found := _TURN.match(str(m.text)))]
        if state.tasks:  # killed within a turn
            graph.invoke(None, config, durability="sync")
        elif turns and turns[-1] == TURNS - 1:
            return list(state.values["messages"])
        else:
            graph.invoke({"messages": [asked(max(turns, default=-1) + 1)]}, config,
                         durability="sync")  # fmt: skip


def serve(folder: Path) -> list[Any]:
    """Send the whole history through `conspectus serve` at each turn; return the last request."""
    with FaultServer(lambda _: "Done.") as upstream:
        with create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        line = f"--upstream {upstream.openai_url} --listen 127.0.0.1:{port} --window {SERVED}"
        server = forked(lambda: command("serve", *line.split(), *_places(folder)), folder)
        try:
            _wait_for(port, server)
            said: list[BaseMessage] = []
            for turn in range(TURNS):
                said += said_in(turn)
                history = [*said, HumanMessage(f"And after turn {turn}?")]
                body = {"model": "m", "messages": convert_to_openai_messages(history)}
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/v1/chat/completions",
                    json.dumps(body).encode(),
                    {"authorization": f"Bearer {KEY}", "content-type": "application/json"},
                )
                urllib.request.urlopen(request, timeout=60).read()
            return list(upstream.requests[-1].messages)
        finally:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(server, signal.SIGTERM)
                os.waitpid(server, 0)


def _places(folder: Path) -> tuple[str, ...]:
    return "--archive", str(folder / "archive.db"), "--secret-file", str(folder / "secret")


def _wait_for(port: int, server: int) -> None:
    for _ in range(3_000):
        with suppress(OSError):
            create_connection(("127.0.0.1", port)).close()
            return
        if os.waitpid(server, os.WNOHANG)[0]:
            break
        time.sleep(0.01)
    raise RuntimeError("the endpoint does not answer")


SURFACES: Mapping[str, Callable[[Path], list[Any]]] = {
    "Compactor": compactor,
    "middleware with a checkpointer": middleware,
    "short-term memory": short_term,
    "serve": serve,
}


# Processes


def command(*words: str) -> None:
    """Run the command line in this process.

    Raises:
        SystemExit: it ended with an error.
    """
    from conspectus.cli import main

    sys.argv = ["conspectus", *words]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise


def forked(work: Callable[[], object], folder: Path) -> int:
    """Run work in a process of its own, which prints into files of the folder; return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (
            open(number, "w", closefd=False)  # noqa: SIM115
            for number in (1, 2)
        )
        asyncio.set_event_loop(None)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm_up() -> None:
    """Import what a worker needs once, before others are forked; nothing is left running."""
    from conspectus.cli import main as main
    from conspectus_serve import make_app as make_app

    with tempfile.TemporaryDirectory() as folder:
        compactor(Path(folder))


def finished(work: Callable[[], object], folder: Path) -> str:
    """Run work in a process of its own to its end; return what it printed.

    Raises:
        RuntimeError: it failed; with its last words.
    """
    failed = os.waitpid(forked(work, folder), 0)[1]
    said = (folder / "out").read_text()
    if failed:
        raise RuntimeError(f"a process failed: {said}{(folder / 'err').read_text()}"[-1500:])
    return said


def lost(folder: Path, view: Sequence[str], gone: Collection[str] = ()) -> list[str]:
    """List what was said and is neither in the view nor in the archive, as the command exports it.

    Args:
        folder: of the archive.
        view: the texts in view.
        gone: ids of messages that need not be there.

    Raises:
        RuntimeError: the archive is damaged, or the command fails.
    """
    said = {str(m.id): _joined(str(m.text)) for turn in range(TURNS) for m in said_in(turn)}
    shown = {_joined(text) for text in view}
    hidden = {n: text for n, text in said.items() if text not in shown and n not in gone}
    if not hidden:
        return []
    where = ("--archive", str(folder / "archive.db"))
    finished(lambda: command("archive", "check", *where), folder)
    exported = folder / "originals.jsonl"
    exported.unlink(missing_ok=True)
    finished(lambda: command("archive", "export", *where, "-o", str(exported)), folder)
    originals = {_joined(text) for text in _texts(exported)}
    return [name for name, text in hidden.items() if text not in originals]


def _texts(exported: Path) -> list[str]:
    rows = (json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines())
    return [text for row in rows for text in strings(row["message"])]


def strings(data: object) -> list[str]:
    """List the texts in JSON data, however deep."""
    if isinstance(data, str):
        return [data]
    if isinstance(data, Mapping):
        data = list(data.values())
    return [text for part in data for text in strings(part)] if isinstance(data, list) else []


def _joined(text: str) -> str:
    return " ".join(text.split())
