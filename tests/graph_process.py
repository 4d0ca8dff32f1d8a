"""One step of a conversation in a process of its own: checkpoints and archive are SQLite files.

Called as `python graph_process.py FOLDER WHAT [ARGUMENT]`; prints what happened as one line of
JSON. What the two models were sent is kept in files, so that a test can count over processes.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command

from graph_support import (
    agent,
    calls,
    check_nothing_lost,
    is_summary,
    middleware,
    said,
    summariser,
    thread,
    torn,
)
from scripted_models import ScriptedChatModel


class Conversation:
    """An agent that looks at ten modules a turn, over files in a folder."""

    def __init__(self, folder: Path, saver: Any, **more: Any) -> None:
        self.folder, self.saver = folder, saver
        connection = sqlite3.connect(
            folder / "store.db", check_same_thread=False, isolation_level=None
        )
        self.store = SqliteStore(connection)
        self.store.setup()
        self.model = ScriptedChatModel(answers=self.answer)
        read = summariser()

        def write(messages: list[BaseMessage]) -> Any:
            self.note("read", messages[-1].text)
            assert callable(read.answers)
            return f"{read.answers(messages)} Written in process {os.getpid()}."

        self.own = middleware(model=ScriptedChatModel(answers=write), **more)
        self.graph, _ = agent(self.model, self.own, store=self.store, checkpointer=saver)

    def note(self, kind: str, text: str) -> None:
        with (self.folder / f"{kind}.jsonl").open("a") as file:
            file.write(json.dumps(text) + "\n")

    def answer(self, messages: list[BaseMessage]) -> Any:
        assert torn(messages) == []
        self.note("sent", "\n".join(m.text for m in messages))
        number = sum(1 for _ in (self.folder / "sent.jsonl").open())
        return "Enough for now." if number % 11 == 0 else calls(f"m{number}")

    def told(self, out: Any) -> dict[str, Any]:
        stopped = [one.value for one in out.get("__interrupt__", ())]
        state = self.graph.get_state(thread())
        shown = [m.text for m in state.values["messages"] if is_summary(m)]
        held = state.values.get("_conspectus") or {}
        lost = check_nothing_lost(self.graph, self.store) if held.get("head") else 0
        return {
            "interrupt": stopped,
            "summary": shown,
            "last": out["messages"][-1].text,
            "length": len(state.values["messages"]),
            "archived": lost,
            "head": held.get("head"),
        }


def main() -> None:
    """Do one thing."""
    folder, what = Path(sys.argv[1]), sys.argv[2]
    argument = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    given: Any = {
        "say": lambda: said(str(argument)),
        "resume": lambda: Command(resume=argument),
        "go on": lambda: None,
        "die": lambda: None,
    }[what]()
    more: dict[str, Any] = json.loads(os.environ.get("MIDDLEWARE", "{}"))
    if what == "die":
        given = said(str(argument))

        def kill(event: str, data: Any) -> None:
            if event == "end":  # the archive has everything, the checkpoint nothing yet
                os.kill(os.getpid(), signal.SIGKILL)

        more["on_event"] = kill
    path = str(folder / "checkpoints.db")
    if os.environ.get("LOOP"):

        async def go() -> Any:
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                graph = Conversation(folder, saver, **more).graph
                return await graph.ainvoke(given, thread(), durability="sync")

        out = asyncio.run(go())
        with SqliteSaver.from_conn_string(path) as saver:
            print(json.dumps(Conversation(folder, saver, **more).told(out)))
        return
    with SqliteSaver.from_conn_string(path) as saver:
        talk = Conversation(folder, saver, **more)
        out = talk.graph.invoke(given, thread(), durability="sync")
        print(json.dumps(talk.told(out)))


if __name__ == "__main__":
    main()
