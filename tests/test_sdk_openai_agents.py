"""The Agents SDK's own runner with our session and filter: ten windows, nothing lost or torn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from conspectus.archive import Scope
from conspectus.errors import PolicyError, StuckError
from conspectus_sdk import Fitter
from fault_server import FaultServer
from sdk_support import (
    PROMPT,
    WINDOW,
    WINDOWS,
    asking,
    check_kept,
    check_requests,
    looked,
    script,
    size,
)

pytestmark = pytest.mark.slow  # the import of the SDK takes seconds


@asynccontextmanager
async def agent_at(server: FaultServer) -> AsyncIterator[Any]:
    """An agent with one tool, whose model is the server's."""
    from agents import Agent, OpenAIChatCompletionsModel, function_tool
    from openai import AsyncOpenAI

    def look(n: int) -> str:
        """Read a module."""
        return looked(n)

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
        turn, items = 0, list[Any]()
        async with agent_at(server) as agent:
            while size(items) <= WINDOWS * WINDOW:
                done = await Runner.run(agent, asking(turn), session=session, run_config=config)
                assert done.final_output.startswith("It is sound")
                items, turn = await inner.get_items(), turn + 1
        assert [one["content"] for one in items if one.get("role") == "user"] == [
            asking(one) for one in range(turn)
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
