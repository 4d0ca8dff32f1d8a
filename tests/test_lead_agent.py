"""The lead agent: turns over HTTP, questions, restarts, edits of its file, and its folder."""

import http.client
import json
import textwrap
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from conspectus.messages import is_summary_message
from lead_agent import LeadAgent
from lead_agent.offline import OfflineModel
from lead_agent.server import LeadAgentServer
from scripted_models import RecordedCall

MAIN = Path(__file__).resolve().parents[1] / "examples" / "lead_agent" / "main.py"
JSON = {"Content-Type": "application/json"}


CONFIG = """
lead_agent:
  checkpointer: '{checkpointer}'
  sandbox: {{shell: {shell}, seconds: 2, output: 2000}}
  title: {{by: {title}}}
summarization:
  enabled: {enabled}
  trigger: {{type: messages, value: {trigger}}}
  keep: {{type: messages, value: 4}}
"""


class Model(OfflineModel):
    """The offline model; `script` takes its place for a step where it returns something."""

    script: Any = None
    calls: list[RecordedCall] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> Any:
        self.calls.append(RecordedCall(tuple(messages), options=options))
        return super()._generate(messages, *rest, **options)

    def acted(self, messages: list[BaseMessage], tools: Sequence[str]) -> AIMessage:
        answer = self.script(messages) if self.script else None
        if isinstance(answer, BaseException):
            raise answer
        return answer or super().acted(messages, tools)


def new_model(model_class: type[Model] = Model, **fields: Any) -> Model:
    """A model with a window of 6,000 tokens."""
    return model_class(profile={"max_input_tokens": 6_000}, **fields)


def write_config(folder: Path, **changes: Any) -> Path:
    """A `config.yaml` in a folder."""
    settings: dict[str, Any] = {
        "checkpointer": "sqlite:///data/checkpoints.sqlite",
        "shell": "false",
        "title": "model",
        "enabled": "true",
        "trigger": 200,
        **changes,
    }
    file = folder / "config.yaml"
    file.write_text(textwrap.dedent(CONFIG).format(**settings), encoding="utf-8")
    return file


def open_agent(folder: Path, agents_model: Model | None = None, **changes: Any) -> LeadAgent:
    """An agent in a folder; opened again, it is what a new process would make."""
    return LeadAgent(write_config(folder, **changes), model=agents_model or new_model())


def newest_user_message(agents_model: Any) -> list[Any]:
    """The newest request with tools."""
    return next(list(c.messages) for c in reversed(agents_model.calls) if c.options.get("tools"))


class Client:
    """Talks to a server that runs in this process."""

    def __init__(self, server: LeadAgentServer) -> None:
        self.server = server

    def raw(
        self, method: str, path: str, body: str | bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=600)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            assert response.headers["Content-Type"].startswith("application/json")
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def post(self, path: str, **body: Any) -> tuple[int, Any]:
        return self.raw("POST", path, json.dumps(body), JSON)

    def get(self, path: str) -> tuple[int, Any]:
        return self.raw("GET", path, None, {})


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_agent(tmp_path) as agent, LeadAgentServer(agent, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(0.02))
        thread.start()
        try:
            yield Client(server)
        finally:
            server.shutdown()
            thread.join(300)


def test_a_turn_a_question_and_its_answer(client):
    status, reply = client.post("/threads/t/turns", message="write workspace/a.txt: hello")
    assert (status, reply["answer"]) == (200, "Wrote 5 bytes to workspace/a.txt.")
    status, reply = client.post("/threads/t/turns", message="ask which room?")
    assert (status, reply["clarification"]["question"]) == (200, "which room?")
    status, error = client.post("/threads/t/turns", message="list")
    assert status == 409
    assert "waits for an answer" in error["error"]
    assert client.get("/threads/t")[1]["clarification"]["question"] == "which room?"
    status, reply = client.post("/threads/t/turns", answer="the blue one")
    assert (status, reply["answer"]) == (200, "The user answered: the blue one")
    assert client.post("/threads/t/turns", answer="again")[0] == 409


def test_a_thread_is_compacted_now_and_goes_on(client):
    for n in range(5):
        client.post("/threads/t/turns", message=f"write workspace/{n}.txt: hello")
    status, report = client.post("/threads/t/compact", focus="the files")
    assert status == 200
    assert report["compacted"]
    assert (report["before"], report["after"]) == (20, 5)
    state = client.server.agent.graph.get_state({"configurable": {"thread_id": "t"}})
    assert state.next == ()
    assert is_summary_message(state.values["messages"][0])
    assert client.post("/threads/t/turns", message="read workspace/3.txt")[1]["answer"] == "hello"
    assert client.get("/threads/t")[1]["title"] == "write workspace/0.txt: hello"


def test_an_edit_while_it_runs_counts_at_the_next_turn(tmp_path, caplog):
    with open_agent(tmp_path, agents_model := new_model(), trigger=200) as agent:
        for n in range(4):
            agent.turn("t", f"write workspace/{n}.txt: hello")
        assert not any(map(is_summary_message, newest_user_message(agents_model)))
        write_config(tmp_path, trigger="many")
        agent.turn("t", "list")
        assert "the configuration in force is kept" in caplog.text
        assert not any(map(is_summary_message, newest_user_message(agents_model)))
        write_config(tmp_path, trigger=6)
        reply = agent.turn("t", "list workspace")
        assert any(map(is_summary_message, newest_user_message(agents_model)))
        assert "3.txt" in reply["answer"]
        assert reply["title"] == "write workspace/0.txt: hello"
