"""Responses that are deleted at the provider, that expire, and that are made in the background."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from conspectus.archive import Archive
from conspectus.errors import ArchiveError
from conspectus_serve.held import HELD_SECONDS, HeldHistories, HeldHistory
from conspectus_serve.threads import scope_of
from serve_support import EVENTS, JSON, Serving, Upstream, UpstreamRequest, served_app, serving

SECRET_WORDS = "The code of the door is 4711."
LONG = "It thinks of all that was said. " * 40


class StoringProvider:
    """An upstream that keeps responses, makes some in the background, and deletes them."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.stored = dict[str, dict[str, Any]]()
        self.polls = 0

    def answer(self, request: UpstreamRequest) -> Any:
        name = request.path.rpartition("/")[2]
        if request.method == "DELETE":
            stored = self.stored.pop(name, None)
            deleted = {"id": name, "object": "response", "deleted": True}
            return (200, JSON, json.dumps(deleted).encode()) if stored else self.unknown(name)
        if request.method == "GET":
            self.polls += 1
            stored = self.stored.get(name)
            if stored is None:
                return self.unknown(name)
            if stored["status"] == "queued" and self.polls > 1:
                stored |= {"status": "completed", "output": self.output(name)}
            return 200, JSON, json.dumps(stored).encode()
        previous_id = request.body.get("previous_response_id")
        if previous_id and previous_id not in self.stored:
            return self.unknown(previous_id)
        name = f"resp_{next(self.numbers):08x}"
        fields = {"id": name, "object": "response", "model": "m", "output": [], "created_at": 0}
        fields |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        if request.body.get("background"):
            response = {**fields, "status": "queued"}
        else:
            response = {**fields, "status": "completed", "output": self.output(name)}
        self.stored[name] = response
        if request.body.get("stream"):  # which breaks off, as where a client leaves
            event = {"type": "response.created", "response": response, "sequence_number": 0}
            return 200, EVENTS, f"event: response.created\ndata: {json.dumps(event)}\n\n".encode()
        return 200, JSON, json.dumps(response).encode()

    @staticmethod
    def output(name: str) -> list[Any]:
        part = {"type": "output_text", "text": f"Answer of {name}. {LONG}", "annotations": []}
        message = {"type": "message", "id": f"msg_{name}", "role": "assistant", "content": [part]}
        return [{**message, "status": "completed"}]

    @staticmethod
    def unknown(name: str) -> Any:
        error = {"message": f"Previous response with id '{name}' not found.", "param": None}
        error |= {"type": "invalid_request_error", "code": "previous_response_not_found"}
        return 400, JSON, json.dumps({"error": error}).encode()


@contextmanager
def providing(folder: Path) -> Iterator[tuple[Upstream, Serving, OpenAI]]:
    upstream = Upstream(StoringProvider().answer)
    with served_app(upstream) as url, serving(url, folder / "a.db") as endpoint:
        yield upstream, endpoint, OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0)


def last_request(upstream: Upstream) -> str:
    return upstream.posts[-1].raw.decode()


@pytest.mark.parametrize("deleted_index", [0, 1, 2])
def test_a_deleted_response_ends_every_chain_through_it(tmp_path, deleted_index):
    with providing(tmp_path) as (upstream, _, client):
        names = list[str]()
        previous_id = None
        for text in (SECRET_WORDS, "And then?", "And now?"):
            fields: Any = {"previous_response_id": previous_id} if previous_id else {}
            previous_id = client.responses.create(model="m", input=text, **fields).id
            names.append(previous_id)
        assert SECRET_WORDS in last_request(upstream)
        client.responses.delete(names[deleted_index])
        for index, name in enumerate(names):
            if index == deleted_index:
                with pytest.raises(BadRequestError, match="not found"):
                    client.responses.create(model="m", input="Which?", previous_response_id=name)
            else:
                client.responses.create(model="m", input="Which?", previous_response_id=name)
            is_held = index < deleted_index  # what goes on from it is the provider's to answer
            assert (SECRET_WORDS in last_request(upstream)) == is_held
    # Nor does another process know it.
    with Archive.open(tmp_path / "a.db") as archive, providing(tmp_path) as (_, endpoint, _):
        histories = HeldHistories(archive)
        tenant = endpoint.tenant("k")
        assert [histories.find(tenant, name) is None for name in names] == [
            n >= deleted_index for n in range(3)
        ]


def test_a_deletion_that_the_provider_refuses_drops_nothing(tmp_path):
    with providing(tmp_path) as (upstream, _, client):
        response = client.responses.create(model="m", input=SECRET_WORDS)
        refusing = Upstream(lambda request: (403, JSON, b"{}"))
        with served_app(refusing) as url, serving(url, tmp_path / "a.db") as refusing_endpoint:
            refused_client = OpenAI(
                base_url=refusing_endpoint.openai_url, api_key="k", max_retries=0
            )
            with pytest.raises(Exception, match="403"):
                refused_client.responses.delete(response.id)
        client.responses.create(model="m", input="Which?", previous_response_id=response.id)
        assert SECRET_WORDS in last_request(upstream)


def test_another_process_deletes_what_this_one_remembers(tmp_path):
    with Archive.open(tmp_path / "a.db") as archive:
        first_process = HeldHistories(archive)
        second_process = HeldHistories(archive)
        first_process.keep("ann", HeldHistory("t"), "a", ["first"])
        held = first_process.find("ann", "a")
        assert held is not None
        first_process.keep("ann", held, "b", ["second"])
        assert first_process.find("ann", "b") is not None
        second_process.delete("bob", "a")  # who has none
        assert first_process.find("ann", "b") is not None
        second_process.delete("ann", "a")
        assert [first_process.find("ann", name) for name in ("a", "b")] == [None, None]
        assert "first" not in json.dumps(
            archive.read_remarks(scope_of("ann", "t"), "response", ["a", "b"])
        )


def test_a_reused_name_does_not_bring_back_a_deletion(monkeypatch):
    with Archive.open("memory:") as archive:
        histories = HeldHistories(archive)
        histories.keep("ann", HeldHistory("t"), "a", ["first"])
        chain = histories.find("ann", "a")
        assert chain is not None
        histories.keep("ann", chain, "b", ["second"])
        with monkeypatch.context() as failing:
            failing.setattr(archive, "write_remarks", _fail)
            with pytest.raises(ArchiveError):
                histories.delete("ann", "a")
        histories.keep("ann", HeldHistory("other thread"), "a", ["of another conversation"])
        assert histories.find("ann", "b") is None
        kept_again = histories.find("ann", "a")
        assert kept_again is not None
        assert kept_again.messages == ["of another conversation"]


def _fail(*args: Any, **options: Any) -> None:
    raise ArchiveError("the disk is full")


def test_a_response_expires_as_at_its_provider(tmp_path, monkeypatch):
    with Archive.open("memory:") as archive:
        histories = HeldHistories(archive)
        histories.keep("ann", HeldHistory("t"), "a", ["first"])
        assert histories.find("ann", "a") is not None
        later = time.time() + HELD_SECONDS + 1
        monkeypatch.setattr("conspectus_serve.held.time.time", lambda: later)
        assert histories.find("ann", "a") is None


@pytest.mark.parametrize("stream", [False, True])
def test_responses_in_the_background_are_held_and_compacted(tmp_path, stream):
    with providing(tmp_path) as (upstream, _, client):
        previous_id: str | None = None
        threads = set[str]()
        compacted = 0
        for turn in range(14):
            fields: Any = {"previous_response_id": previous_id} if previous_id else {}
            body = {"model": "m", "input": f"Question {turn}. {LONG}", "background": True, **fields}
            raw_answer = client.responses.with_raw_response.create(**body, stream=stream)
            # In a stream the client leaves behind the first event, and polls.
            answer = raw_answer.parse()
            previous_id = next(iter(answer)).response.id if stream else answer.id
            threads.add(raw_answer.headers["x-conspectus-thread"])
            compacted += raw_answer.headers["x-conspectus-compacted"] == "true"
            while client.responses.retrieve(previous_id).status != "completed":
                pass
        assert len(threads) == 1
        assert compacted > 3
        assert "Question 13." in last_request(upstream)
        assert "previous_response_id" not in last_request(upstream)
        # What was made in the background is in the history.
        assert "Answer of resp_0000000c." in last_request(upstream)
        assert "Question 0." in last_request(upstream)


def test_a_response_that_is_not_stored_is_not_held(tmp_path):
    with providing(tmp_path) as (upstream, _, client):
        for fields in ({"store": False}, {"store": False, "background": True}):
            response = client.responses.create(model="m", input=SECRET_WORDS, **fields)
            client.responses.create(model="m", input="Which?", previous_response_id=response.id)
            assert SECRET_WORDS not in last_request(upstream)
