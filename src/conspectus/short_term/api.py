"""`summarize_messages`, its async form, and the same as a node of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.utils.runnable import RunnableCallable  # type: ignore[attr-defined]
from pydantic import BaseModel

from conspectus._arguments import documented, function_takes, takes
from conspectus.bridge import arun, call_either_way, run
from conspectus.engine.building import open_archive
from conspectus.errors import ArchiveError, Attributes, InputError, PolicyError
from conspectus.observe import log
from conspectus.short_term.running_summary import SummarizationResult
from conspectus.short_term.settings import NodeSettings, ShortTermSettings, SummarizationCall
from conspectus.short_term.step import Invocation

RUNNING = "running_summary"
"""Key in `context` of a node's state."""

SHARED = tuple(field.name for field in fields(ShortTermSettings))
"""Settings of a node that are attributes. A change takes effect at the next call."""


@function_takes(SummarizationCall)
def summarize_messages(call: SummarizationCall) -> SummarizationResult:
    """Replace the oldest messages by a summary when the messages reach a size.

    When they have `max_tokens_before_summary` tokens, the oldest ones are summarised, so that the
    result fits `max_tokens`. These messages stay: a leading system message, the newest human
    message, the last exchange, and calls that wait for a result. A call is never separated from its
    results. If more than `max_tokens` are to be summarised, the model reads them in several calls.
    A summary that fails a check is not used.

    Returns:
        The messages to send to the model, and the running summary to pass the next time.

    Raises:
        ValueError: `max_summary_tokens` is not less than `max_tokens`; a message has no id, or the
            id of a message that was already summarised; another setting is invalid. These are
            `PolicyError`, `MessageError` and `InputError`.
        SummaryError, ArchiveError, StuckError: the summary or the archive failed, or the messages
            cannot be made to fit. Raised only with `on_failure="raise"`.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> from langchain_core.language_models import FakeListChatModel
        >>> talk = [HumanMessage("hello " * 60, id="1"), AIMessage("hi " * 60, id="2")]
        >>> talk.append(HumanMessage("and now?", id="3"))
        >>> model = FakeListChatModel(responses=["They greeted each other."])
        >>> result = summarize_messages(
        ...     talk, running_summary=None, model=model, max_tokens=140, max_summary_tokens=60,
        ... )
        >>> [message.type for message in result.messages], result.running_summary.summary
        (['system', 'human'], 'They greeted each other.')
    """
    return run(_carry_out_call(call, ensure_config()))


@function_takes(SummarizationCall)
async def asummarize_messages(call: SummarizationCall) -> SummarizationResult:
    """`summarize_messages` on an event loop.

    A model that is not a `Runnable` is called in a thread.
    """
    return await arun(_carry_out_call(call, ensure_config()))


async def _carry_out_call(
    call: SummarizationCall, config: RunnableConfig, *, in_state: bool = False
) -> SummarizationResult:
    """Summarise if it is due; with `in_state`, messages that show the summary get ids."""
    thread = call.thread_id or (config.get("configurable") or {}).get("thread_id")
    invocation = Invocation(call, thread)
    if call.archive == "memory:":
        raise PolicyError(
            "an archive of 'memory:' would be gone after each call; make one with "
            "Archive.open('memory:') and pass that"
        )
    if call.archive is not None and thread in (None, ""):
        raise InputError(
            "archive= needs to know the conversation: pass thread_id=, or call it in a graph "
            'whose config has {"configurable": {"thread_id": ...}}'
        )
    try:
        archive = await call_either_way(lambda: open_archive(call.archive))
        try:
            running, remaining = await invocation.summarise(archive)
        finally:
            if archive is not None and archive is not call.archive:
                archive.close()
    except ArchiveError as error:
        if call.on_failure == "raise":
            raise
        log("history_kept", "the archive cannot be read for now, nothing is summarised: %s", error)
        running = invocation.running
        remaining = invocation.remaining
    return invocation.build_result(running, remaining, in_state=in_state)


@documented
class SummarizationNode(Attributes, RunnableCallable):
    """Summarise the oldest messages of a state when they reach a size.

    It does what `summarize_messages` does, as a node of a graph. The state needs a key `context`
    that holds a dict. The node returns its result as LangMem's node does:
    `{output_messages_key: [...], "context": {"running_summary": RunningSummary}}`. Before the first
    summary there is no `context` in it. The node works with and without an event loop.

    The archive is opened once. `node.archive.close()` closes it.

    Raises:
        ValueError: a setting is invalid (`PolicyError`).
        ArchiveError: the archive cannot be opened.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langchain_core.language_models import FakeListChatModel
        >>> node = SummarizationNode(
        ...     model=FakeListChatModel(responses=["A talk."]), max_tokens=1_000
        ... )
        >>> list(node.invoke({"messages": [HumanMessage("hi", id="1")]}))
        ['summarized_messages']
    """

    if TYPE_CHECKING:  # the parameters

        def __getattr__(self, name: str) -> Any: ...

    @takes(NodeSettings)
    def __init__(self, settings: NodeSettings) -> None:
        name = settings.name
        RunnableCallable.__init__(self, self._summarise, self._asummarise, name=name, trace=False)
        vars(self).update(vars(settings), archive=open_archive(settings.archive))
        self._is_built = True

    def _summarise(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return run(self._update_of_state(state, config))

    async def _asummarise(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await arun(self._update_of_state(state, config))

    async def _update_of_state(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        values = _values_of(state)
        messages = values.get(self.input_messages_key)
        if messages is None:
            raise InputError(
                f"Missing required field `{self.input_messages_key}` in the input. Name the one "
                "that holds the history with input_messages_key."
            )
        context = values.get("context") or {}
        if not isinstance(context, Mapping):
            form = "the field `context`, which holds the running summary, must be a dict"
            raise InputError(f"{form}, not {type(context).__name__}")
        settings = {name: vars(self)[name] for name in SHARED}
        call = SummarizationCall(messages, running_summary=context.get(RUNNING), **settings)
        replaces = self.input_messages_key == self.output_messages_key
        result = await _carry_out_call(call, config, in_state=replaces)
        if result.running_summary is None:
            return {self.output_messages_key: result.messages}
        removal = [RemoveMessage(REMOVE_ALL_MESSAGES)] if replaces else []
        return {
            self.output_messages_key: [*removal, *result.messages],
            "context": {**context, RUNNING: result.running_summary},
        }


def _values_of(state: Any) -> Mapping[str, Any]:
    """Return the values of a graph's state, by name; raise `InputError` for another form."""
    if isinstance(state, Mapping):
        return state
    if is_dataclass(state):  # it may have slots, and so no `__dict__`
        return {field.name: getattr(state, field.name) for field in fields(state)}
    if isinstance(state, BaseModel):
        return vars(state)
    kinds = "a dict, a dataclass or a pydantic model"
    raise InputError(f"Invalid input type: {type(state)}. Give {kinds}.")
