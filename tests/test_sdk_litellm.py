"""LiteLLM's hook and the Agents SDK's runner: ten windows, nothing lost or torn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from conspectus.archive import Scope
from conspectus.errors import PolicyError, StuckError
from conspectus_sdk import Fitter
from fault_server import FaultServer
from sdk_support import (
    ANTHROPIC_TOOL,
    OPENAI_TOOL,
    PROMPT,
    WINDOW,
    WINDOWS,
    check_kept,
    check_requests,
    module_text,
    question_of,
    script,
    size,
)

pytestmark = pytest.mark.slow  # the import of LiteLLM takes seconds

ANN = SimpleNamespace(api_key="a" * 16)


def logger_of(fitter: Fitter, **settings: Any) -> Any:
    from conspectus_sdk.litellm_proxy import FittingLogger

    return FittingLogger(fitter, **settings)


async def sent_on(logger: Any, key: Any, data: dict[str, Any], call_type: str) -> Any:
    """A request as the proxy sends it on."""
    return await logger.async_pre_call_hook(key, None, data, call_type)


def test_a_chat_of_ten_windows(fitter):
    import litellm

    logger = logger_of(fitter)
    history = list[Any]([{"role": "system", "content": PROMPT}])
    sent: list[Any] = []

    async def ask(server: FaultServer) -> Any:
        request = {"model": "openai/gpt-4o", "messages": list(history), "tools": [OPENAI_TOOL]}
        data = await sent_on(logger, ANN, request, "acompletion")
        assert request["messages"] == history  # the client's own request stays as it is
        sent[:] = data["messages"]
        answer = await litellm.acompletion(
            **data, api_base=server.openai_url, api_key="none", max_retries=0
        )
        message = answer.choices[0].message
        answer_message = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            answer_message["tool_calls"] = [call.model_dump() for call in message.tool_calls]
        history.append(answer_message)
        return message

    async def main(server: FaultServer) -> None:
        turn = 0
        while size(history) <= WINDOWS * WINDOW:
            history.append({"role": "user", "content": question_of(turn)})
            for call in (await ask(server)).tool_calls:
                result = {"role": "tool", "tool_call_id": call.id, "content": module_text(turn)}
                history.append(result)
            await ask(server)
            turn += 1

    with FaultServer(script, window=WINDOW) as server:
        asyncio.run(main(server))
        check_requests(server)
    [thread] = fitter.archive.threads(ANN.api_key)
    check_kept(fitter.archive, Scope(ANN.api_key, thread), history, [*sent, history[-1]])


def long_history(first: str) -> list[Any]:
    messages = [{"role": "user", "content": first}]
    for turn in range(12):
        messages.append({"role": "assistant", "content": module_text(turn)})
        messages.append({"role": "user", "content": question_of(turn)})
    return messages


def test_items_of_responses_are_fitted_and_other_calls_let_alone(fitter):
    logger = logger_of(fitter, tenant=lambda key, data: data["user"])

    async def main() -> None:
        items = {
            "model": "gpt-4o",
            "input": long_history("x"),
            "instructions": PROMPT,
            "user": "eve",
        }
        fitted = await sent_on(logger, ANN, items, "aresponses")
        assert size(fitted["input"]) < WINDOW
        assert fitter.archive.threads("eve")
        texts = {"model": "e", "input": ["a text"] * 9_000}
        assert await sent_on(logger, ANN, texts, "aembedding") is texts
        plain = {"model": "gpt-4o", "input": "a long text " * WINDOW, "user": "eve"}
        assert size((await sent_on(logger, ANN, plain, "aresponses"))["input"]) < WINDOW
        short = {**plain, "input": "hi"}
        assert await sent_on(logger, ANN, short, "aresponses") is short

    asyncio.run(main())


def test_what_nothing_makes_fit_is_told_as_litellm_tells_it(fitter):
    import litellm

    logger = logger_of(fitter)
    tools = [{**ANTHROPIC_TOOL, "description": module_text(1) * 10}]
    data = {"model": "m", "messages": long_history("x"), "tools": tools}
    small = {**data, "messages": data["messages"][:1], "tools": [], "max_tokens": 10**6}
    assert asyncio.run(sent_on(logger, ANN, small, "acompletion")) == small
    with pytest.raises(litellm.ContextWindowExceededError, match="tools"):
        asyncio.run(sent_on(logger, ANN, data, "acompletion"))


def test_unknown_messages_and_windows_pass_unchanged(fitter, caplog):
    odd_request = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}, {"role": 7}]}
    nested: list[Any] = []
    for _ in range(3_000):
        nested = [nested]
    assert asyncio.run(sent_on(logger_of(fitter), ANN, odd_request, "acompletion")) is odd_request
    tools: Any = ("x", [7], [{"name": "f", "input_schema": nested}])
    for request in [{"tools": odd_tools} for odd_tools in tools] + [{"messages": "hi"}]:
        request = {"model": "gpt-4o", "messages": long_history("x"), **request}
        assert asyncio.run(sent_on(logger_of(fitter), ANN, request, "acompletion")) is request
    with Fitter(archive="memory:", window={"gpt-4o": WINDOW}) as fitter_of_one_model:
        unknown = {"model": "mystery", "messages": long_history("x")}
        assert (
            asyncio.run(sent_on(logger_of(fitter_of_one_model), ANN, unknown, "acompletion"))
            is unknown
        )
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "sent on as it came, not fitted"
    ] * 6


@asynccontextmanager
async def agent_at(server: FaultServer) -> AsyncIterator[Any]:
    """An agent with one tool, whose model is the server's."""
    from agents import Agent, OpenAIChatCompletionsModel, function_tool
    from openai import AsyncOpenAI

    def look(n: int) -> str:
        """Read a module."""
        return module_text(n)

    async with AsyncOpenAI(base_url=server.openai_url, api_key="none", max_retries=0) as client:
        model = OpenAIChatCompletionsModel("gpt-4o", client)
        yield Agent("coder", instructions=PROMPT, model=model, tools=[function_tool(look)])


def test_a_session_of_ten_windows_stays_inside_and_keeps_everything(fitter, tmp_path):
    from agents import RunConfig, Runner, SQLiteSession

    from conspectus_sdk.openai_agents import FittedSession

    inner = SQLiteSession("s", tmp_path / "s.db")
    session = FittedSession(inner, fitter, model="gpt-4o", tenant="ann")
    config = RunConfig(tracing_disabled=True, call_model_input_filter=session.input_filter)

    async def main(server: FaultServer) -> list[Any]:
        turn = 0
        items = list[Any]()
        async with agent_at(server) as agent:
            while size(items) <= WINDOWS * WINDOW:
                run_result = await Runner.run(
                    agent, question_of(turn), session=session, run_config=config
                )
                assert run_result.final_output.startswith("It is sound")
                items = await inner.get_items()
                turn = turn + 1
        assert [item["content"] for item in items if item.get("role") == "user"] == [
            question_of(number) for number in range(turn)
        ]  # what was summarised is no part of what the session keeps
        return items

    with FaultServer(script, window=WINDOW) as server:
        items = asyncio.run(main(server))
        check_requests(server)
    shown = asyncio.run(session.get_items())
    assert len(shown) < len(items)
    check_kept(fitter.archive, Scope("ann", "s"), items, shown)


def test_the_session_is_what_the_one_inside_is(fitter):
    from agents import SQLiteSession

    from conspectus_sdk.openai_agents import FittedSession

    async def main() -> None:
        inner = SQLiteSession("s")
        with pytest.raises(PolicyError, match="the session comes first"):
            FittedSession(fitter, inner, model="gpt-4o")  # type: ignore[arg-type]
        session = FittedSession(inner, fitter, model="gpt-4o")
        assert session.session_id == "s"
        assert session.session_settings is inner.session_settings
        bare: Any = type("Bare", (), {"session_id": "s"})()  # as one that somebody has written
        assert FittedSession(bare, fitter, model="gpt-4o").session_settings is None
        items: list[Any] = [{"role": "user", "content": f"{n}"} for n in range(3)]
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(2) == items[1:]
        assert await session.pop_item() == items[2]
        assert await inner.get_items() == items[:2]
        await session.clear_session()
        assert await session.get_items() == []

    asyncio.run(main())


def test_what_nothing_makes_fit_ends_the_run_with_the_numbers():
    from agents import RunConfig, Runner

    from conspectus_sdk.openai_agents import input_filter

    async def main(server: FaultServer) -> None:
        with Fitter(archive="memory:", window=60) as fitter:
            config = RunConfig(
                tracing_disabled=True, call_model_input_filter=input_filter(fitter, thread_id="t")
            )
            async with agent_at(server) as agent:
                with pytest.raises(StuckError, match="system prompt, tools"):
                    await Runner.run(agent, "hi", run_config=config)

    with FaultServer(["never"]) as server:
        asyncio.run(main(server))
        assert server.requests == []
