"""A deep agent whose history stays whole: files, a subagent, a fact looked up long after it left.

    python examples/deep_agent.py        (needs: pip install '.[deepagents]' in a checkout)

The models are scripts, so that it runs without a key; with your own, only `model` and `reader` in
`main` change. Thirty turns go through a window of 8,000 tokens, of which the tools take some 4,000.
Then the user asks for a code that was said in the fourth turn, and the agent finds it in the files
of its own history.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted_model import ScriptedModel

from conspectus import is_summary_message
from conspectus.deep_agents import create_deep_agent
from conspectus.tokens import TokenMeter

WINDOW = 8_000
TURNS = 30
THREAD: Any = {"configurable": {"thread_id": "notes"}}


def call(name: str, turn: int, **args: Any) -> AIMessage:
    """A message that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name}-{turn}"}])


def main_answer(messages: list[BaseMessage]) -> AIMessage | str:
    """What a model would answer; this one follows a script."""
    if "summar" in str(messages[-1].text)[:400].lower():
        return "## Goal\n- Keep one note for each room.\n\n## Done\n- The notes so far are written."
    asked = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
    said, last = str(asked.text), messages[-1]
    turn = int(found.group(1)) if (found := re.search(r"room (\d+)", said)) else 0
    if said.startswith("Which"):
        if isinstance(last, ToolMessage):
            hit = re.search(rf"room {turn}: the code is (\d+)", str(last.text))
            return f"The code of room {turn} is {hit.group(1)}." if hit else "It is nowhere."
        pattern = f"room {turn}: the code is"
        return call("grep", 10 * turn, pattern=pattern, output_mode="content")
    if isinstance(last, ToolMessage):
        return f"Room {turn} is noted. " * 8
    if turn % 10 == 9:
        return call(
            "task", turn, description=f"Check the notes. Job {turn}", subagent_type="reader"
        )
    return call("write_file", turn, file_path=f"/notes/{turn}.md", content=f"Room {turn}\n" * 40)


def reader_answer(messages: list[BaseMessage]) -> AIMessage | str:
    """The subagent looks once, and reports."""
    if isinstance(messages[-1], ToolMessage):
        return "All notes are there."
    return call("ls", len(messages), path="/notes")


def main() -> None:
    """The thirty turns, the question, and what came of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profile: Any = {"max_input_tokens": WINDOW}
        model = ScriptedModel(answer=main_answer, profile=profile)
        reader = ScriptedModel(answer=reader_answer, profile=profile)
        agent = create_deep_agent(
            model,
            backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
            subagents=[
                {
                    "name": "reader",
                    "description": "reads notes",
                    "system_prompt": "You read notes.",
                    "model": reader,
                }
            ],
            checkpointer=InMemorySaver(),
            store=InMemoryStore(),  # originals go here, and as files into the backend
        )
        for turn in range(TURNS):
            said = (
                f"Write a note for room {turn}: the code is {1000 + 37 * turn}. "
                + "Take care. " * 9
            )
            agent.invoke({"messages": [HumanMessage(said)]}, THREAD)
        question = {"messages": [HumanMessage("Which code has room 3? It was said long ago.")]}
        state = agent.invoke(question, THREAD)

        meter = TokenMeter(model="gpt-4o")
        requests = [(view, options) for view, options in model.requests if options.get("tools")]
        sizes = [
            meter.count_messages(view) + meter.count_tools(options["tools"])
            for view, options in requests
        ]
        view, _ = requests[-1]
        files = sorted((folder / "conversation_history").rglob("*.md"))
        print(f"messages in the state       {len(state['messages'])}, all of them")
        summaries = sum(map(is_summary_message, view))
        print(f"messages in the last view   {len(view)}, of which {summaries} is a summary")
        print(f"largest request             {max(sizes):,} of {WINDOW:,} tokens")
        print(f"files of the history        {len(files)}")
        print(f"the answer                  {state['messages'][-1].text}")


if __name__ == "__main__":
    main()
