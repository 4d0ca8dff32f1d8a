"""A deep agent with two subagents: scripted models, real tools, its own folder.

What each model answers follows from the messages that it sees and nothing else, and so do their
ids, which recall shows: so a run that was killed and goes on answers as one that was not. Every
request is measured as it was sent, with its system prompt and tools, and looked at for torn pairs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command

from conspectus.tokens import TokenMeter
from conspectus_lab.pairs import broken_pairs
from scripted_models import RecordedCall, ScriptedChatModel

METER = TokenMeter()
WINDOW = 6_000
"""Input limit of each model, in tokens."""

TURN = re.compile(r"Turn (\d+)[:.]")
JOB = re.compile(r"Job (\d+)\.(\d+)")


class Killed(BaseException):
    """The end of the process, which nothing may catch."""


def mark(number: int, what: str = "fact") -> str:
    """Make a mark that cannot be guessed, by which an original is known."""
    return f"{what}-{hashlib.sha256(f'{what}{number}'.encode()).hexdigest()[:10]}"


@dataclass
class Watch:
    """Observations of every request.

    Attributes:
        sizes: the largest request of each agent, in tokens, tools included.
        torn: requests with a call without its result, or a result without its call.
        calls: requests in all.
        summaries: calls that asked a model for a summary.
        kill_at: numbers of requests at which the process dies.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    torn: int = 0
    calls: int = 0
    summaries: int = 0
    kill_at: set[int] = field(default_factory=set)

    def request(self, agent: str, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> None:
        """Observe one request, before it is answered."""
        self.calls += 1
        size = METER.messages(messages) + METER.tools(tools)
        self.sizes[agent] = max(self.sizes.get(agent, 0), size)
        self.torn += bool(broken_pairs(messages))
        if self.calls in self.kill_at:
            self.kill_at.discard(self.calls)
            raise Killed(f"at request {self.calls}")


class WatchedModel(ScriptedChatModel):
    """A scripted model whose requests are observed."""

    agent: str
    watch: Any

    def _answer(self, number: int, messages: list[BaseMessage]) -> Any:
        self.watch.request(self.agent, messages, self.calls[number - 1].options.get("tools", ()))
        return super()._answer(number, messages)


def summarise(watch: Watch) -> Callable[[list[BaseMessage]], str]:
    """Make a summariser that describes its input in few words."""

    def written(messages: list[BaseMessage]) -> str:
        watch.summaries += 1
        digest = hashlib.sha256("".join(str(m.text) for m in messages).encode()).hexdigest()[:8]
        asked = "The user asks for files to be written and read, turn by turn, one after the other"
        return f"{asked}, and for each of them to be kept as it was. State {digest}."

    return written


def newest_turn(messages: Sequence[BaseMessage]) -> tuple[int, str]:
    """Find the newest turn in view, and the tool that was called last since.

    A compaction may take the first calls of a turn out of view, so they are not counted.
    """
    for place in range(len(messages) - 1, -1, -1):
        found = TURN.match(str(messages[place].text))
        if isinstance(messages[place], HumanMessage) and found:
            since = [m for m in messages[place:] if isinstance(m, AIMessage)]
            called = [call["name"] for message in since for call in message.tool_calls]
            return int(found.group(1)), called[-1] if called else ""
    raise AssertionError("the newest turn of the user is not in view")


def main_answer(messages: list[BaseMessage]) -> AIMessage:
    """Write a file, now and then hand a job to a subagent, say it is done."""
    turn, called = newest_turn(messages)
    if not called:
        body = f"{mark(turn)}\n" + f"line {turn} of the notes\n" * 12
        return call("write_file", f"t{turn}-write", file_path=f"/notes/{turn}.txt", content=body)
    if called == "write_file" and turn % 5 == 4:
        who = ("reader", "counter", "general-purpose")[turn // 5 % 3]
        task = (
            f"Job {turn}.{6 + turn % 3}: read the notes {mark(turn, 'job')}. " + "Carefully. " * 9
        )
        return call("task", f"t{turn}-task", description=task, subagent_type=who)
    return AIMessage(f"Turn {turn} is done; its mark is {mark(turn)}.", id=f"done-{turn}")


def subagent_answer(messages: list[BaseMessage]) -> AIMessage:
    """Look at as many files as the job says, then report."""
    job = next((found for m in messages if (found := JOB.search(str(m.text))) is not None), None)
    assert job is not None, "the job is not in view"
    number, steps = int(job.group(1)), int(job.group(2))
    done = max(
        (
            int(c["id"].rpartition("-")[2])
            for m in messages
            if isinstance(m, AIMessage)
            for c in m.tool_calls
        ),
        default=0,
    )
    if done >= steps:
        return AIMessage(f"Job {number} is done: {mark(number, 'report')}.")
    return call("look", f"j{number}-{done + 1}", number=number, step=done + 1)


def call(name: str, call_id: str, **args: Any) -> AIMessage:
    """Make a message that calls one tool."""
    calls = [{"name": name, "args": args, "id": call_id}]
    return AIMessage("", tool_calls=calls, id=f"calls-{call_id}")


class NamedResults(AgentMiddleware[Any, Any, Any]):
    """Middleware that names results after their calls; LangGraph's ids are random."""

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Run a tool."""
        return self._named(handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Run a tool on an event loop."""
        return self._named(await handler(request))

    @staticmethod
    def _named(result: Any) -> Any:
        found = result.update["messages"] if isinstance(result, Command) else [result]
        for message in found:
            message.id = f"result-{message.tool_call_id}"
        return result


@tool
def look(number: int, step: int) -> str:
    """Look at one page of the notes."""
    return f"{mark(100 * number + step, 'page')}\n" + f"page {step} of note {number}\n" * 90


@dataclass
class Run:
    """One deep agent in one folder, and the observations of it."""

    folder: Path
    create: Callable[..., Any]
    watch: Watch = field(default_factory=Watch)
    models: dict[str, WatchedModel] = field(default_factory=dict)
    main_window: int = WINDOW
    sub_windows: tuple[int, int] = (WINDOW, WINDOW)

    def model(self, agent: str, answers: Any, window: int) -> WatchedModel:
        """Make an observed model with a window."""
        made = WatchedModel(
            answers=answers,
            agent=agent,
            watch=self.watch,
            model_name=agent,
            profile={"max_input_tokens": window},
        )
        self.models[agent] = made
        return made

    def agent(self, middleware: Sequence[Any] = (), **more: Any) -> Any:
        """Compile the agent; `more` goes to `create_deep_agent`."""
        windows = self.sub_windows
        main = self.model("main", self._either, self.main_window)
        reader = self.model("reader", subagent_answer, windows[0])
        counter = self.model("counter", subagent_answer, windows[1])
        subagents = [
            {
                "name": name,
                "description": f"{name} of notes",
                "system_prompt": f"You are a {name}.",
                "model": model,
                "tools": [look],
            }
            for name, model in (("reader", reader), ("counter", counter))
        ]
        return self.create(
            model=main,
            tools=[look],
            backend=FilesystemBackend(root_dir=self.folder, virtual_mode=True),
            subagents=subagents,
            middleware=[*middleware, NamedResults()],
            **more,
        )

    def _either(self, messages: list[BaseMessage]) -> AIMessage:
        """Answer for the general-purpose subagent too, which shares the main model."""
        jobs = any(JOB.match(str(m.text)) for m in messages if isinstance(m, HumanMessage))
        turns = any(TURN.match(str(m.text)) for m in messages if isinstance(m, HumanMessage))
        return subagent_answer(messages) if jobs and not turns else main_answer(messages)


def ask(turn: int) -> dict[str, Any]:
    """Write the user's words of a turn; the id says whether it was taken."""
    text = f"Turn {turn}: write note {turn}, and keep in mind that {mark(turn, 'said')} holds. "
    return {"messages": [HumanMessage(text + "Please be careful. " * 8, id=f"turn-{turn}")]}


def recorded(run: Run) -> list[RecordedCall]:
    """Collect all requests of all models, as they were sent."""
    return [one for model in run.models.values() for one in model.calls]
