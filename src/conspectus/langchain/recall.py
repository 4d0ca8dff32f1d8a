"""Show an agent archived originals again: at each turn without being asked, and by a tool.

The originals of a turn are chosen before its first call of the model, and stored in the state. So
each call of the turn is sent the same bytes, in any process. A failure of a tool is an answer that
the model can act on; it does not fail the step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import Command

from conspectus.bridge import arun, run
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.langchain.agent_step import AgentStep
from conspectus.langchain.settings import Setup
from conspectus.langchain.state import Recalled, RequestedCompaction, name_messages
from conspectus.langchain.step_update import Update
from conspectus.messages.framing import recalled_text
from conspectus.messages.recalled import recalled_message, with_recalled
from conspectus.observe import heard_by, log
from conspectus.recall import RecallResult
from conspectus.recall.for_agents import (
    ABOUT,
    ABOUT_TOOL,
    TOOL,
    answer_tool_call,
    search_unasked,
    unreadable,
)

COMPACT = "compact_conversation"
"""Name of the tool that asks for a compaction."""

ABOUT_COMPACT = """\
Have the older part of this conversation summarised before your next step, to make room. Use it \
when a piece of work is done and its details are no longer needed."""

WILL_COMPACT = (
    "The older part of the conversation is summarised before your next step, if anything of it may "
    "leave."
)

Runtime = ToolRuntime[Any, Any]
Query = Annotated[str, ABOUT["query"]]
Id = Annotated[str, ABOUT["id"]]
Until = Annotated[str, ABOUT["until"]]
At = Annotated[int, ABOUT["at"]]
Focus = Annotated[str, "What the summary must keep above all, in a few words."]


async def recall_for_turn(step: AgentStep) -> Update:
    """Choose the originals that a turn is shown again; return them as an update of the state."""
    recalled = Recalled.read(step.state)
    question = step.newest_user_message
    setup = step.setup
    if not step.held.head_id or question is None:  # nothing has left the view
        return {}
    turn = question.key
    result: RecallResult | None = None
    try:
        chosen = recalled if recalled is not None and recalled.turn == turn else None
        if chosen is not None and await _is_within_reach(chosen, step):
            return {}
        if step.archive is not None:
            chain = (await step.fold_view()).chain
            result = await search_unasked(
                step.archive,
                step.scope,
                chain,
                query=question.own,
                own=frozenset({question.id}),
                tokens=setup.recall_budget(step.state, setup.recall_tokens),
                count=lambda text: setup.engine.meter.count_message(
                    recalled_message(recalled_text(text), turn)
                ),
            )
    except ArchiveError as error:  # it is tried again at the next step
        reason = await step.redact_error(error)
        log("recall_failed", "nothing could be recalled for this turn: %s", reason)
        return {}
    if result is None:
        return Recalled(turn=turn).as_update()
    keys = list(dict.fromkeys(hit.key for hit in result.hits))
    return Recalled(turn=turn, text=recalled_text(result.text), keys=keys).as_update()


async def add_recalled_for_turn(
    step: AgentStep, messages: Sequence[BaseMessage]
) -> Sequence[BaseMessage]:
    """Put the originals recalled for the turn into the messages of a request."""
    recalled = Recalled.read(step.state)
    if recalled is None or not recalled.text or recalled.turn != step.turn:
        return messages
    try:
        is_within = await _is_within_reach(recalled, step)
    except ArchiveError as error:
        text = "what was recalled cannot be checked, and is not shown: %s"
        log("recall_unchecked", text, await step.redact_error(error))
        is_within = False
    if not is_within:
        return messages
    return with_recalled(messages, recalled_message(recalled.text, recalled.turn))


async def _is_within_reach(recalled: Recalled, step: AgentStep) -> bool:
    """Tell whether all chosen originals are still of this branch; an edit may have left it."""
    return not recalled.keys or (await step.fold_view()).keys.issuperset(recalled.keys)


def recall_tool(setup: Callable[[], Setup], tokens: int) -> BaseTool:
    """Return the LangChain tool `recall`, which finds archived originals for an agent.

    The tool searches only the agent's own session and branch. It returns the originals as text,
    framed as data. If nothing can be found or read, the tool returns the error as its text.

    Args:
        setup: returns the setup of the middleware.
        tokens: the most tokens of an answer; at most a share of the window.
    """

    async def answer(runtime: Runtime, arguments: Mapping[str, Any]) -> str:
        current = setup()
        step = AgentStep.of(current, runtime.state, runtime)
        name_messages(step.messages)
        if not step.held.head_id:
            return "Nothing has left your view so far: the whole conversation is before you."
        if step.archive is None:
            raise ToolException("Nothing is archived in this conversation; go on with the summary.")
        try:
            view = await step.fold_view()
            return await answer_tool_call(
                step.archive,
                step.scope,
                view.chain,
                **arguments,
                in_view=frozenset(str(message.id) for message in view.messages),
                tokens=current.recall_budget(step.state, tokens),
                count=current.engine.meter.count_text,
            )
        except ConspectusError as error:
            text = unreadable(error) if isinstance(error, ArchiveError) else str(error)
            raise ToolException(text) from error

    def heard(runtime: Runtime, **arguments: Any) -> Awaitable[str]:
        return heard_by(setup().engine.listeners, answer(runtime, arguments))

    def recall(
        runtime: Runtime, query: Query = "", id: Id = "", until: Until = "", at: At = 0
    ) -> str:
        return run(heard(runtime, query=query, id=id, until=until, at=at))

    async def arecall(runtime: Runtime, **arguments: Any) -> str:
        return await arun(heard(runtime, **arguments))

    return StructuredTool.from_function(recall, arecall, TOOL, ABOUT_TOOL, handle_tool_error=True)


def tool_to_compact() -> BaseTool:
    """Make the tool that requests a compaction for the next step, when all calls have results."""

    def compact_conversation(runtime: Runtime, focus: Focus = "") -> Command[Any]:
        answer = ToolMessage(WILL_COMPACT, tool_call_id=runtime.tool_call_id, name=COMPACT)
        return Command(update={**RequestedCompaction.of(focus), "messages": [answer]})

    return StructuredTool.from_function(
        compact_conversation, name=COMPACT, description=ABOUT_COMPACT
    )
