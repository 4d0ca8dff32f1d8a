"""A real agent whose model and tools answer with recorded messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime
from pydantic import ConfigDict, Field, SkipValidation

from conspectus.errors import InputError
from conspectus_lab.recording import Recording

OnRequest = Callable[[Sequence[BaseMessage], Sequence[Any]], int]
"""Takes a request (messages with the system prompt, tools), and returns its tokens."""

_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class RecordedModel(BaseChatModel):
    """Answer with the assistant's next recorded message, by the latest one in the request."""

    recording: SkipValidation[Recording] = Field(exclude=True, repr=False)
    on_request: SkipValidation[OnRequest] = Field(exclude=True, repr=False)
    count: SkipValidation[Callable[[BaseMessage], int]] = Field(exclude=True, repr=False)

    model_config = ConfigDict(arbitrary_types_allowed=True)

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Accept tools: they count towards each request."""
        return self.bind(tools=list(tools), **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        position = self.recording.position(messages)
        recorded = self.recording.answer(position)
        if recorded is None or (position < 0 and any(m.type != "system" for m in messages)):
            raise InputError(
                "the request holds none of the recorded messages that an answer follows, so the "
                "recording cannot go on; keep the newest message in view"
            )
        input_tokens = self.on_request(messages, kwargs.get("tools") or ())
        output_tokens = self.count(recorded)
        usage = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        }
        answer = recorded.model_copy(update={"usage_metadata": usage})
        return ChatResult(generations=[ChatGeneration(message=answer)])


class RecordedTool(BaseTool):
    """Return the recorded result of a tool.

    The id of the call within its message finds the result: real histories repeat ids of calls.
    """

    recording: SkipValidation[Recording] = Field(exclude=True, repr=False)

    def func(self, /, *args: Any, runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
        """Return the recorded result; a graph passes `runtime`."""
        for message in reversed(runtime.state["messages"]):
            if isinstance(message, AIMessage) and any(
                call["id"] == runtime.tool_call_id for call in message.tool_calls
            ):
                call = (str(message.id), str(runtime.tool_call_id))
                recorded = self.recording.results.get(call)
                if recorded is not None:
                    return recorded.model_copy()
                break
        raise InputError(
            f"nothing was recorded for the call {runtime.tool_call_id!r} of {self.name}; the graph "
            "calls what the transcript does not"
        )

    # `runtime` is annotated here, too: LangChain converts all other arguments to text, and parallel
    # calls would read a state that the graph changes at the same time.
    def _run(self, /, *args: Any, runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
        return self.func(*args, runtime=runtime, **arguments)


class TurnEnds(AgentMiddleware[Any, Any, Any]):
    """Stops the graph when the recording continues with outside input; the first middleware."""

    def __init__(self, recording: Recording, ready: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._recording = recording
        self._ready = ready

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End the turn unless the assistant speaks next."""
        position = self._recording.position(state["messages"])
        if not self._recording.answers_at(position):
            return {"jump_to": "end"}
        self._ready()
        return None

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End the turn before calls whose results are missing, or come from outside."""
        runs = self._recording.runs_tools(state["messages"][-1])
        return None if runs else {"jump_to": "end"}


def recorded_tools(recording: Recording) -> list[BaseTool]:
    """Make a tool for each name that the assistant calls, with the arguments of its calls."""
    arguments: dict[str, dict[str, Any]] = {}
    for message in recording.messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            properties = arguments.setdefault(call["name"], {})
            for name, value in call["args"].items():
                properties.setdefault(name, {"type": _JSON_TYPES.get(type(value), "string")})
    return [
        RecordedTool(
            name=name,
            description=f"The recorded tool {name}.",
            args_schema={"type": "object", "properties": properties},
            recording=recording,
        )
        for name, properties in arguments.items()
    ]
