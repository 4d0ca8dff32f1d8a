"""OpenAI's Agents SDK and LiteLLM, pointed at the endpoint."""

import json
import logging
from typing import Any

import pytest

from conspectus.archive import Archive, Scope
from responses_upstream import message, responding
from serve_support import SECRET, WINDOW, serving
from test_serve_clients import FILLER, LONG, both

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("left_to_the_server", [False, True])
def test_openai_agents_run_through_many_windows(tmp_path, left_to_the_server):
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    agents.set_tracing_disabled(True)

    def say(body: dict[str, Any], number: int) -> list[Any]:
        if number >= 40:
            return [message("Done.", number)]
        arguments = json.dumps({"path": f"module_{number}.py"})
        call = {"type": "function_call", "call_id": f"call_{number}", "id": f"fc_{number}"}
        return [{**call, "name": "read_file", "arguments": arguments, "status": "completed"}]

    @agents.function_tool
    def read_file(path: str) -> str:
        """Read a file."""
        return f"Contents of {path}: {LONG}"

    with responding(say, WINDOW) as (upstream, url), serving(url, tmp_path / "a.db") as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0)
        model = agents.OpenAIResponsesModel(model="m", openai_client=client)
        agent = agents.Agent(name="Reader", instructions="Be brief.", model=model)
        agent.tools = [read_file]
        more = {"auto_previous_response_id": True} if left_to_the_server else {}
        result = agents.Runner.run_sync(agent, "Read all modules.", max_turns=60, **more)
        assert result.final_output == "Done."
        assert upstream.over == []
        assert len(upstream.bodies) == 40
        sent = json.dumps(upstream.bodies[-1]["input"])
        assert "Read all modules." in sent
        assert len(upstream.bodies[-1]["input"]) < 60
    with Archive.open(tmp_path / "a.db") as archive:
        [thread] = archive.threads(SECRET.tenant("k"))
        rows = json.dumps(archive.export(Scope(SECRET.tenant("k"), thread)))
    assert all(f"module_{n}.py" in rows + sent for n in range(1, 40))


def test_litellm_goes_through(tmp_path):
    litellm = pytest.importorskip("litellm")
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    with both(tmp_path / "a.db") as (upstream, endpoint):
        upstream.restart(lambda request: f"Answer. {FILLER}")
        history: list[Any] = []
        for turn in range(40):
            history.append({"role": "user", "content": f"Question {turn}. {FILLER}"})
            made = litellm.completion(
                model="openai/m", api_base=endpoint.openai_url, api_key="k", messages=history
            )
            history.append({"role": "assistant", "content": made.choices[0].message.content})
        assert upstream.refused == []
        assert "Question 0." in upstream.requests[-1].text
        assert len(upstream.requests[-1].messages) < len(history) - 1
