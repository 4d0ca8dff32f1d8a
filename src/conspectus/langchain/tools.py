"""Make the agent's tools: to recall originals, and to ask for a compaction.

Failures are answers that the model can act on; they fail no step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import Command

from conspectus.bridge import arun, run
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.langchain.channel import Channel
from conspectus.langchain.identity import name_messages
from conspectus.langchain.planner import Planner
from conspectus.langchain.state import asking, read_requested
from conspectus.observe import heard_by
from conspectus.recall.for_agents import ABOUT, ABOUT_TOOL, TOOL, answer_flow, unreadable

COMPACT = "compact_conversation"
"""Name of the tool that asks for a compaction."""

Runtime = ToolRuntime[Any, Any]

ABOUT_COMPACT = """\
Have the older part of this conversation summarised before your next step, to make room. Use it \
when a piece of work is done and its details are no longer needed."""

Query = Annotated[str, ABOUT["query"]]
Id = Annotated[str, ABOUT["id"]]
Until = Annotated[str, ABOUT["until"]]
At = Annotated[int, ABOUT["at"]]
Focus = Annotated[str, "What the summary must keep above all, in a few words."]


def recall_tool(now: Callable[[], Planner], tokens: int) -> BaseTool:
    """Make the tool that finds originals of the agent's own session and branch.

    `now` returns the planner, as settings may change while an agent runs.
    """

    async def found(runtime: Runtime, query: str, id: str, until: str, at: int) -> str:
        planner = now()
        graph = planner.graph
        channel = Channel.of(graph, runtime.state, runtime)
        name_messages(channel.messages)
        archive = graph.archive(runtime)
        if channel.held.data is None:
            return "Nothing has left your view so far: the whole conversation is before you."
        if archive is None:
            raise ToolException("Nothing is archived in this conversation; go on with the summary.")
        try:
            chain, _ = await channel.reached()
            view, requested = (await channel.view()), read_requested(runtime.state)
            asked: dict[str, Any] = {"query": query, "id": id, "until": until, "at": at}
            asked["in_view"] = frozenset(str(one.id) for one in view)
            most, count = max(1, planner.room_for(tokens, requested, view)), graph.engine.meter.text
            where = archive, channel.scope, chain
            return await answer_flow(*where, **asked, tokens=most, count=count)
        except ArchiveError as error:
            raise ToolException(unreadable(error)) from error
        except ConspectusError as error:
            raise ToolException(str(error)) from error

    def heard(flow: Awaitable[str]) -> Awaitable[str]:
        return heard_by(now().graph.engine.listeners, flow)

    def recall(
        runtime: Runtime, query: Query = "", id: Id = "", until: Until = "", at: At = 0
    ) -> str:
        return run(heard(found(runtime, query, id, until, at)))

    async def arecall(
        runtime: Runtime, query: Query = "", id: Id = "", until: Until = "", at: At = 0
    ) -> str:
        return await arun(heard(found(runtime, query, id, until, at)))

    return StructuredTool.from_function(recall, arecall, TOOL, ABOUT_TOOL, handle_tool_error=True)


def compact_tool() -> BaseTool:
    """Make the tool that asks for a compaction at the next step.

    Other calls of the same message may still wait for their results.
    """

    def compact_conversation(runtime: Runtime, focus: Focus = "") -> Command[Any]:
        said = (
            "The older part of the conversation is summarised before your next step, if anything "
            "of it may leave."
        )
        answer = ToolMessage(said, tool_call_id=runtime.tool_call_id, name=COMPACT)
        return Command(update={**asking(focus), "messages": [answer]})

    return StructuredTool.from_function(
        compact_conversation, name=COMPACT, description=ABOUT_COMPACT
    )
