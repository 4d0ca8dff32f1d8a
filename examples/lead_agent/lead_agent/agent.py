"""The lead agent: its middleware in order, and what can be done with a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.types import Command

from conspectus import SummarizationMiddleware, is_summary_message
from conspectus.config import create_middleware, load_config
from conspectus.errors import ConfigError, ConspectusError
from lead_agent.checkpoints import archive_beside, checkpointer_at
from lead_agent.clarification import KIND, ClarificationMiddleware
from lead_agent.errors import BadRequest, Conflict, SettingsError, UnknownThread
from lead_agent.offline import offline_model
from lead_agent.sandbox import SandboxMiddleware
from lead_agent.settings import load_settings
from lead_agent.thread_data import ThreadDataMiddleware, ThreadFolders
from lead_agent.title import TitleMiddleware

logger = logging.getLogger("lead_agent")

LAST_NODE = "TitleMiddleware.after_agent"
"""After it a run has ended, so a state that is written in its name leaves nothing to do."""

LONGEST_ID = 200
"""Characters of a thread's id, at most."""

CUT_OFF = "The run was cut off here; this call may or may not have been carried out."


def model_of(name: str) -> Any:
    """A chat model by its name.

    Raises:
        SettingsError: it cannot be had.
    """
    if name == "scripted":
        return offline_model()
    try:
        return init_chat_model(name)
    except Exception as error:
        raise SettingsError(
            f"the model '{name}' cannot be had ({type(error).__name__}: {error!s:.200}); write "
            "provider:model, install the provider's package and set its key"
        ) from error


class LeadAgent:
    """An agent out of one `config.yaml`, for any number of threads; safe to call from several
    Python threads at once.

    Args:
        file: the configuration.
        model: a chat model instead of the one that it names.

    Raises:
        SettingsError, ConfigError, ArchiveError: the file cannot be used; says why.

    Example:
        `with LeadAgent("config.yaml") as agent: agent.turn("demo", "write workspace/a.txt hello")`
    """

    def __init__(self, file: str | Path, *, model: Any = None) -> None:
        self.file = Path(file).expanduser().absolute()
        self.settings = load_settings(self.file)
        self.model = model if model is not None else model_of(self.settings.model)
        self.summarization: SummarizationMiddleware | None = None
        self._lock, self._running, self._said = threading.Lock(), set[str](), ""
        self._told = threading.local()
        self._exit = ExitStack()
        self._text = self.file.read_bytes()
        with ExitStack() as opened:
            address = self.settings.checkpointer
            self.checkpointer = opened.enter_context(checkpointer_at(address))
            self._graph = self._built(opened)
            self._exit = opened.pop_all()

    def _built(self, opened: ExitStack) -> Any:
        """The graph; the order of its middleware is the one of the documentation."""
        folders = ThreadFolders(self.settings.data)
        stack = create_middleware(
            config := load_config(self.file),
            TitleMiddleware(self.model, self.settings.title),
            ClarificationMiddleware(),
            model=self.model,
            model_registry=model_of,
            on_event=self._noted,
            archive=None if config.archive else archive_beside(self.settings.checkpointer),
        )
        first = stack[0]
        before: list[AgentMiddleware[Any, Any, Any]] = [
            ThreadDataMiddleware(folders),
            SandboxMiddleware(folders, self.settings.sandbox),
        ]
        self.summarization = first if isinstance(first, SummarizationMiddleware) else None
        if self.summarization is not None:
            opened.callback(self.summarization.close)  # runs in flight may go on with it
        return create_agent(
            self.model,
            system_prompt=self.settings.instructions,
            # Then summarisation, title, clarification, and the guard, which is innermost.
            middleware=[*before, *stack],
            checkpointer=self.checkpointer,
        )

    def _noted(self, event: str, data: Any) -> None:
        """What a compaction in this Python thread came to."""
        self._told.last = (event, data)

    def close(self) -> None:
        """Give up all connections."""
        self._exit.close()

    def __enter__(self) -> LeadAgent:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def graph(self) -> Any:
        """The compiled graph, built anew if the file was edited."""
        with self._lock:
            try:
                text = self.file.read_bytes()
                if text and text != self._text:  # an editor may have emptied it for a moment
                    self._graph = self._built(self._exit)
                    self._text = text
                self._said = ""
            except (ConspectusError, OSError) as error:
                if str(error) != self._said:
                    logger.warning("the configuration in force is kept: %s", error)
                self._said = str(error)
            return self._graph

    # What can be done

    def turn(self, thread: str, message: str, message_id: str | None = None) -> dict[str, Any]:
        """One turn of the user.

        Args:
            thread: its id; a new one begins a thread.
            message: what the user says.
            message_id: names the message, so that a caller that got no answer can send it again:
                it is not said twice, and a run that was cut off goes on where it was. Only the
                newest message can be sent again.

        Returns:
            `thread`, `title`, `messages` (their number), and `answer`, or `clarification` with a
            question and its options.

        Raises:
            BadRequest: something that is no text.
            Conflict: a run is in flight there, a question is open, or the id is that of another
                message or of an older one.
        """
        if not isinstance(message, str) or not message.strip():
            raise BadRequest("'message' must be a text that says something")
        if message_id is not None and not (isinstance(message_id, str) and message_id):
            raise BadRequest("'id' must be a text, or be left out")
        with self._alone(thread) as (graph, config):
            state = graph.get_state(config)
            question = _question(state)
            messages = state.values.get("messages", [])
            said = [m for m in messages if m.type == "human" and not is_summary_message(m)]
            given: Any = {
                "messages": [*_cut_off(messages), HumanMessage(message, id=message_id)],
            }
            used = message_id and next((m for m in messages if m.id == message_id), None)
            if used:
                _check_again(message, used, said[-1:])
                if question or not state.next:
                    return self._reply(thread, state)
                given = None  # go on
            elif question:
                raise _waiting(question)
            return self._run(graph, thread, config, given)

    def answer(self, thread: str, text: str) -> dict[str, Any]:
        """What the user answers to the question that is open; the run goes on with it.

        Raises:
            BadRequest, UnknownThread: as for `turn`, or nobody knows the thread.
            Conflict: a run is in flight there, or nothing was asked.
        """
        if not isinstance(text, str) or not text.strip():
            raise BadRequest("'answer' must be a text that says something")
        with self._alone(thread) as (graph, config):
            state = _known(graph.get_state(config), thread)
            question = _question(state)
            if question is None:
                raise Conflict("the agent has asked nothing; send a 'message'")
            resume: Command[Any] = Command(resume={question["id"]: text})
            return self._run(graph, thread, config, resume)

    def compact(self, thread: str, focus: str | None = None) -> dict[str, Any]:
        """Summarise a thread now, whatever the trigger says.

        Returns:
            `compacted`, the numbers of messages `before` and `after`, and, where nothing was
            compacted, the `reason`.

        Raises:
            BadRequest: as for `turn`.
            UnknownThread: nobody knows the thread.
            Conflict: a run is in flight there, a question is open, a run was cut off, or
                summarisation is disabled.
        """
        if focus is not None and not isinstance(focus, str):
            raise BadRequest("'focus' must be a text, or be left out")
        with self._alone(thread) as (graph, config):
            state = _known(graph.get_state(config), thread)
            summarization = self.summarization
            if summarization is None:
                raise Conflict(
                    f"summarization is disabled; set 'enabled: true' in {self.file.name}"
                )
            question = _question(state)
            if question:
                raise _waiting(question)
            if state.next:
                raise Conflict("a run was cut off there; send a 'message', then compact")
            messages = state.values["messages"]
            info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id=thread)
            runtime = Runtime(execution_info=info)
            self._told.last = ("", {})
            update = summarization.compact(dict(state.values), runtime, focus=focus)
            if update:
                graph.update_state(config, update, as_node=LAST_NODE)
            event, data = self._told.last
            reply = {
                "thread": thread,
                "compacted": event == "end",
                "before": len(messages),
                "after": len(graph.get_state(config).values["messages"]),
            }
            if event == "end":
                return reply
            why = data.get("reason") or _stays(len(messages), *summarization.keep)
            return {**reply, "reason": str(why)}

    def look(self, thread: str) -> dict[str, Any]:
        """What `turn` has returned last.

        Raises:
            BadRequest, UnknownThread: as for `answer`.
        """
        _check_id(thread)
        config = self._config(thread)
        return self._reply(thread, _known(self.graph.get_state(config), thread))

    # How

    @contextmanager
    def _alone(self, thread: str) -> Iterator[tuple[Any, Any]]:
        """The graph, while no other run of this thread is in flight in this process."""
        _check_id(thread)
        with self._lock:
            if thread in self._running:
                raise Conflict("a run is in flight on this thread; try again when it has ended")
            self._running.add(thread)
        try:
            yield self.graph, self._config(thread)
        finally:
            with self._lock:
                self._running.discard(thread)

    def _config(self, thread: str) -> dict[str, Any]:
        return {"configurable": {"thread_id": thread}, "recursion_limit": self.settings.steps}

    def _run(self, graph: Any, thread: str, config: Any, given: Any) -> dict[str, Any]:
        graph.invoke(given, config, durability="sync")
        return self._reply(thread, graph.get_state(config))

    def _reply(self, thread: str, state: Any) -> dict[str, Any]:
        messages = state.values.get("messages", [])
        question = _question(state)
        reply = {"thread": thread, "title": state.values.get("title"), "messages": len(messages)}
        if question is not None:
            return {**reply, "clarification": {k: question[k] for k in ("question", "options")}}
        last = messages[-1] if messages else None
        return {**reply, "answer": str(last.text) if isinstance(last, AIMessage) else None}


def _check_id(thread: str) -> None:
    if not (isinstance(thread, str) and 0 < len(thread) <= LONGEST_ID and thread.isprintable()):
        raise BadRequest(f"a thread's id has 1 to {LONGEST_ID} characters that can be printed")


def _known(state: Any, thread: str) -> Any:
    if not state.values.get("messages"):
        raise UnknownThread(f"there is no thread '{thread}'; a first message begins one")
    return state


def _question(state: Any) -> dict[str, Any] | None:
    """The first question that is open, with the id of its interrupt."""
    for one in state.interrupts:
        if isinstance(one.value, dict) and one.value.get("type") == KIND:
            return {**one.value, "id": one.id}
    return None


def _waiting(question: dict[str, Any]) -> Conflict:
    return Conflict(f"the agent waits for an answer to '{question['question']}'; send an 'answer'")


def _check_again(message: str, used: BaseMessage, newest: list[BaseMessage]) -> None:
    """Whether what is sent under an id that is there is the newest message, once more."""
    if used.type != "human" or str(used.text) != message:
        raise Conflict(
            f"the id '{used.id}' is that of another message; send this one under a new id"
        )
    if newest != [used]:
        raise Conflict(
            f"the message '{used.id}' was said, and more was since; to say it again, use a new id"
        )


def _stays(number: int, kind: str, amount: float) -> str:
    """Why nothing of so many messages has left."""
    if kind == "messages" and number <= amount:
        return f"all {number} messages are within 'keep' ({amount} {kind}); nothing can leave yet"
    return (
        f"of {number} messages, those that are not within 'keep' ({amount} {kind}) belong to the "
        "newest turn or must stay for another reason; nothing can leave yet"
    )


def _cut_off(messages: list[BaseMessage]) -> list[ToolMessage]:
    """Answers to calls that a run left open when it was cut off; providers want one for each."""
    done = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    return [
        ToolMessage(CUT_OFF, tool_call_id=str(call["id"]), name=call["name"], status="error")
        for call in (last.tool_calls if last is not None else ())
        if call["id"] not in done
    ]


__all__ = ["ConfigError", "LeadAgent", "model_of"]
