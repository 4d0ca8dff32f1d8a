"""An agent loop over an SDK as a program, which `serve_clients.py` starts.

    python benchmarks/client_loops.py openai|anthropic|openai-agents URL KEY MODEL QUESTION...

It reads files of its working directory with a tool, keeps its whole history, and sends all of it
each time; it knows nothing of windows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INSTRUCTIONS = "You are a careful agent. Read the files before you answer."
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


def read_file(path: str) -> str:
    """Read a file of the working directory."""
    return Path(path).read_text()


def openai_loop(url: str, key: str, model: str, questions: Sequence[str]) -> None:
    """Talk over Chat Completions, every other question streamed."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}]
    history: list[Any] = [{"role": "system", "content": INSTRUCTIONS}]
    asked: dict[str, Any] = {"model": model, "messages": history, "tools": tools}
    for number, question in enumerate(questions):
        history.append({"role": "user", "content": question})
        while True:
            if number % 2:
                with client.chat.completions.stream(**asked) as stream:
                    made = stream.get_final_completion()
            else:
                made = client.chat.completions.create(**asked)
            message = made.choices[0].message
            calls = [one.model_dump(include={"id", "type"}) for one in message.tool_calls or ()]
            for call, one in zip(calls, message.tool_calls or (), strict=True):
                named = {"name": one.function.name, "arguments": one.function.arguments}
                call["function"] = named
            said: dict[str, Any] = {"role": "assistant", "content": message.content}
            history.append(said | ({"tool_calls": calls} if calls else {}))
            if not calls:
                break
            for call in calls:
                text = read_file(**json.loads(call["function"]["arguments"]))
                history.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    client.close()


def anthropic_loop(url: str, key: str, model: str, questions: Sequence[str]) -> None:
    """Talk over Messages, every other one streamed, with a moving cache mark."""
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    tools: Any = [{"name": "read_file", "input_schema": SCHEMA}]
    history: list[Any] = []
    for number, question in enumerate(questions):
        history.append({"role": "user", "content": [{"type": "text", "text": question}]})
        while True:
            *before, last = history
            content = [*last["content"][:-1], {**last["content"][-1], "cache_control": CACHED}]
            asked: dict[str, Any] = {
                "model": model,
                "system": INSTRUCTIONS,
                "messages": [*before, {**last, "content": content}],
                "tools": tools,
                "max_tokens": 1_000,
            }
            if number % 2:
                with client.messages.stream(**asked) as stream:
                    made = stream.get_final_message()
            else:
                made = client.messages.create(**asked)
            said = [one.model_dump(exclude_none=True) for one in made.content]
            history.append({"role": "assistant", "content": said})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": one["id"],
                    "content": read_file(**one["input"]),
                }
                for one in said
                if one["type"] == "tool_use"
            ]
            if not results:
                break
            history.append({"role": "user", "content": results})
    client.close()


CACHED = {"type": "ephemeral"}


def openai_agents_loop(url: str, key: str, model: str, questions: Sequence[str]) -> None:
    """Talk over Responses with OpenAI's Agents SDK."""
    import asyncio

    import agents
    import openai

    async def main() -> None:
        agents.set_tracing_disabled(True)
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
            agent = agents.Agent(
                "reader",
                instructions=INSTRUCTIONS,
                model=agents.OpenAIResponsesModel(model, client),
                tools=[agents.function_tool(read_file)],
            )
            history: list[Any] = []
            for question in questions:
                history.append({"role": "user", "content": question})
                result = await agents.Runner.run(agent, history, max_turns=10_000)
                history = result.to_input_list()

    asyncio.run(main())


LOOPS = {
    "openai": openai_loop,
    "anthropic": anthropic_loop,
    "openai-agents": openai_agents_loop,
}

if __name__ == "__main__":
    name, *given, asked_for = *sys.argv[1:5], sys.argv[5:]
    LOOPS[name](*given, asked_for)  # type: ignore[arg-type]
