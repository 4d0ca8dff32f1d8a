"""The lead agent: turns over HTTP, questions, restarts, edits of its file, and its folder."""

import http.client
import json
import os
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from conspectus.messages import is_summary_message
from lead_agent import LeadAgent
from lead_agent.files import Files, Refusal
from lead_agent.offline import OfflineModel
from lead_agent.server import LARGEST, LeadAgentServer
from lead_agent.thread_data import ThreadFolders
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


def model(kind: type[Model] = Model, **more: Any) -> Model:
    """A model with a window of 6,000 tokens."""
    return kind(profile={"max_input_tokens": 6_000}, **more)


def configured(folder: Path, **changed: Any) -> Path:
    """A `config.yaml` in a folder."""
    given: dict[str, Any] = {
        "checkpointer": "sqlite:///data/checkpoints.sqlite",
        "shell": "false",
        "title": "model",
        "enabled": "true",
        "trigger": 200,
        **changed,
    }
    file = folder / "config.yaml"
    file.write_text(textwrap.dedent(CONFIG).format(**given), encoding="utf-8")
    return file


def opened(folder: Path, own: Model | None = None, **changed: Any) -> LeadAgent:
    """An agent in a folder; opened again, it is what a new process would make."""
    return LeadAgent(configured(folder, **changed), model=own or model())


def sent(own: Any) -> list[Any]:
    """The newest request with tools."""
    return next(list(c.messages) for c in reversed(own.calls) if c.options.get("tools"))


class Held:
    """Keeps a model in the midst of its answer until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, messages: list[BaseMessage]) -> None:
        self.begun.set()
        assert self.go_on.wait(60)


def beside(work: Callable[[], Any]) -> threading.Thread:
    """Some work in a thread of its own."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


class Client:
    """Talks to a server that runs in this process."""

    def __init__(self, server: LeadAgentServer) -> None:
        self.server = server

    def raw(
        self, method: str, path: str, body: str | bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
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
def held() -> Held:
    return Held()


@pytest.fixture
def client(tmp_path: Path, held: Held) -> Iterator[Client]:
    """A server with an agent whose model waits at 'slow' and fails at 'fail'."""

    def script(messages: Any) -> Any:
        if "slow" in messages[-1].text:
            held(messages)
        return ValueError("key sk-123 is wrong") if "fail" in messages[-1].text else None

    with (
        opened(tmp_path, model(script=script)) as agent,
        LeadAgentServer(agent, "127.0.0.1", 0) as server,
    ):
        thread = beside(lambda: server.serve_forever(0.02))
        try:
            yield Client(server)
        finally:
            held.go_on.set()
            server.shutdown()
            thread.join(60)


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
    status, done = client.post("/threads/t/compact", focus="the files")
    assert status == 200
    assert done["compacted"]
    assert (done["before"], done["after"]) == (20, 5)
    state = client.server.agent.graph.get_state({"configurable": {"thread_id": "t"}})
    assert state.next == ()
    assert is_summary_message(state.values["messages"][0])
    assert client.post("/threads/t/turns", message="read workspace/3.txt")[1]["answer"] == "hello"
    assert client.get("/threads/t")[1]["title"] == "write workspace/0.txt: hello"


def test_compacting_is_refused_while_a_run_is_in_flight(client, held):
    running = beside(lambda: client.post("/threads/t/turns", message="slow"))
    assert held.begun.wait(60)
    for path in ("compact", "turns"):
        body = {"message": "list"} if path == "turns" else {}
        status, error = client.post(f"/threads/t/{path}", **body)
        assert status == 409
        assert "in flight" in error["error"]
    held.go_on.set()
    running.join(60)
    assert client.post("/threads/t/compact")[0] == 200


def test_what_a_web_page_could_send_is_refused(client):
    path, body = "/threads/t/turns", '{"message": "hello"}'
    assert client.raw("POST", path, body, {"Content-Type": "text/plain"})[0] == 415
    assert client.raw("POST", path, body, {})[0] == 415
    assert client.raw("POST", path, body, {**JSON, "Host": "evil.example:8123"})[0] == 403
    assert client.raw("GET", "/threads/t", None, {"Host": "evil.example"})[0] == 403
    assert client.raw("POST", path, body, {**JSON, "Content-Length": "-1"})[0] == 411
    much = {**JSON, "Content-Length": str(LARGEST + 1)}
    assert client.raw("POST", path, None, much)[0] == 413
    assert client.get("/threads/t")[0] == 404


def test_an_edit_while_it_runs_counts_at_the_next_turn(tmp_path, caplog):
    with opened(tmp_path, own := model(), trigger=200) as agent:
        for n in range(4):
            agent.turn("t", f"write workspace/{n}.txt: hello")
        assert not any(map(is_summary_message, sent(own)))
        configured(tmp_path, trigger="many")
        agent.turn("t", "list")
        assert "the configuration in force is kept" in caplog.text
        assert not any(map(is_summary_message, sent(own)))
        configured(tmp_path, trigger=6)
        reply = agent.turn("t", "list workspace")
        assert any(map(is_summary_message, sent(own)))
        assert "3.txt" in reply["answer"]
        assert reply["title"] == "write workspace/0.txt: hello"


def test_nothing_outside_of_the_folder_of_a_thread_is_read_or_written(tmp_path):
    files = Files(ThreadFolders(tmp_path / "data").of("t"))
    secret, work = tmp_path / "secret.txt", files.root / "workspace"
    secret.write_text("the secret")
    (work / "file").symlink_to(secret)
    (work / "folder").symlink_to(tmp_path)
    os.link(secret, work / "hard")
    paths = ["../secret.txt", "workspace/../../../secret.txt", "/etc/passwd", "~/secret.txt"]
    paths += [
        "C:/secret.txt",
        "workspace\\..\\secret.txt",
        "workspace/a\0b",
        "workspace/" + "n" * 300,
    ]
    paths += [f"workspace/{path}" for path in ("..", "file", "folder/secret.txt", "hard")]
    for path in paths:
        with pytest.raises(Refusal) as told:
            files.read(path)
        assert str(tmp_path) not in str(told.value)
        with pytest.raises(Refusal):
            files.write(path, "overwritten")
    with pytest.raises(Refusal):
        files.listed("workspace/folder")
    assert secret.read_text() == "the secret"
    assert sum("refused" in line for line in files.listed("workspace")) == 3
