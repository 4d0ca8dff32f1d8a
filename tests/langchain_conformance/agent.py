"""Inside `create_agent`: sync, async, streamed, checkpointed."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from graph_support import StreamingModel
from langchain_conformance.behaviour import SUMMARY, Side, add, behaviour, talk
from langchain_conformance.effect import SETTINGS
from scripted_models import ScriptedChatModel

AGENT = "In an agent"
STREAM = "Streaming"
SUMMARISER = "SummarizationMiddleware.before_model"


@tool
def look(part: int) -> str:
    """Look at a part."""
    return f"part {part} reads"


def agent(side: Side, *, summariser: Any = None, answers: Any = None, **options: Any) -> Any:
    model = ScriptedChatModel(answers=answers or (lambda _: "It reads."))
    middlewares = [side.make(summariser, **SETTINGS)]
    return create_agent(model, tools=[look], middleware=middlewares, **options)


def shown(messages: list[AnyMessage]) -> list[str]:
    """Messages by kind and, where it was given, id; the summary as such."""
    return [
        "summary"
        if message.additional_kwargs.get("lc_source") == "summarization"
        else f"{message.type} {message.id}"
        if str(message.id).startswith("m")
        else message.type
        for message in messages
    ]


def worker(messages: list[AnyMessage]) -> AIMessage:
    """Looks at four parts, one after the other, then answers."""
    results = sum(message.type == "tool" for message in messages)
    done = any("part 3" in str(message.content) for message in messages)
    if done:
        return AIMessage("All parts read.")
    number = max([int(str(m.content).split()[1]) for m in messages if m.type == "tool"] or [-1]) + 1
    call = {"name": "look", "args": {"part": number}, "id": f"c{number}{results}"}
    return AIMessage("", tool_calls=[call])


def seven() -> dict[str, Any]:
    return {"messages": talk(7)}


add(AGENT, "`invoke`: the state", lambda side: shown(agent(side).invoke(seven())["messages"]))


@behaviour(AGENT, "what the model is shown")
def _(side: Side) -> Any:
    shown_messages: list[Any] = []

    def answer(messages: list[AnyMessage]) -> str:
        shown_messages.append(shown(messages))
        return "It reads."

    agent(side, answers=answer, system_prompt="Be brief.").invoke(seven())
    return shown_messages


@behaviour(
    AGENT,
    "a run with four calls of a tool: what is left in the end",
    "the newest user message stays as well, behind the summary: LangChain's "
    "agent has lost its task by then",
)
def _(side: Side) -> Any:
    ask = HumanMessage("Look at parts 0 to 3.", id="m0")
    new_agent = agent(side, answers=worker)
    return shown(new_agent.invoke({"messages": [ask]})["messages"])


@behaviour(AGENT, "a thread that the one class began, and the other goes on with")
def _(side: Side) -> Any:
    from langchain_conformance.behaviour import OURS, THEIRS

    saver = InMemorySaver()
    config = {"configurable": {"thread_id": "t"}}
    other_side = OURS if side is THEIRS else THEIRS
    for n, builder in enumerate([side] * 4 + [other_side] * 4):
        ask = HumanMessage(f"And part {n}?", id=f"m{n}")
        state = agent(builder, checkpointer=saver).invoke({"messages": [ask]}, config)
    return shown(state["messages"])


def pieces(side: Side, mode: Any) -> list[Any]:
    # A model that streams word by word, as providers do.
    model = StreamingModel(answers=lambda _: SUMMARY)
    return list(agent(side, summariser=model).stream(seven(), stream_mode=mode))


@behaviour(
    STREAM,
    '`stream_mode="messages"`: tokens of the summariser',
    "nobody should read a summary as if the agent were answering",
    until="1.5",
)
def _(side: Side) -> Any:
    summarisers_messages = [
        message
        for message, _ in pieces(side, "messages")
        if message.type in ("ai", "AIMessageChunk")
    ]
    return len(
        [message for message in summarisers_messages if str(message.content).strip() != "It reads."]
    )


@behaviour(
    STREAM,
    '`stream_mode="messages"`: what the update of the step itself shows',
    "a summary and a removal are nothing that anybody said; they are in updates and values",
)
def _(side: Side) -> Any:
    summarisers_messages = [
        message
        for message, about in pieces(side, "messages")
        if about["langgraph_node"] == SUMMARISER
    ]
    return [
        message.type
        for message in summarisers_messages
        if message.type not in ("ai", "AIMessageChunk")
    ]


@behaviour(STREAM, '`stream_mode="updates"`: nodes and the kinds of messages that they write')
def _(side: Side) -> Any:
    return [
        (node, [message.type for message in update["messages"]])
        for piece in pieces(side, "updates")
        for node, update in piece.items()
    ]
