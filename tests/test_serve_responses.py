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
from conspectus_serve.held import HELD_SECONDS, Held, HeldHistories
from conspectus_serve.threads import scope_of
from serve_support import EVENTS, JSON, Serving, Upstream, UpstreamRequest, served_app, serving

SECRET_WORDS = "The code of the door is 4711."
LONG = "It thinks of all that was said. " * 40


class Provider:
    """An upstream that keeps responses, makes some in the background, and deletes them."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.stored = dict[str, dict[str, Any]]()
        self.polls = 0

    def answer(self, asked: UpstreamRequest) -> Any:
        name = asked.path.rpartition("/")[2]
        if asked.method == "DELETE":
            there = self.stored.pop(name, None)
            said = {"id": name, "object": "response", "deleted": True}
            return (200, JSON, json.dumps(said).encode()) if there else self.unknown(name)
        if asked.method == "GET":
            self.polls += 1
            there = self.stored.get(name)
            if there is None:
                return self.unknown(name)
            if there["status"] == "queued" and self.polls > 1:
                there |= {"status": "completed", "output": self.output(name)}
            return 200, JSON, json.dumps(there).encode()
        before = asked.body.get("previous_response_id")
        if before and before not in self.stored:
            return self.unknown(before)
        name = f"resp_{next(self.numbers):08x}"
        begun = {"id": name, "object": "response", "model": "m", "output": [], "created_at": 0}
        begun |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        if asked.body.get("background"):
            made = {**begun, "status": "queued"}
        else:
            made = {**begun, "status": "completed", "output": self.output(name)}
        self.stored[name] = made
        if asked.body.get("stream"):  # which breaks off, as where a client leaves
            event = {"type": "response.created", "response": made, "sequence_number": 0}
            return 200, EVENTS, f"event: response.created\ndata: {json.dumps(event)}\n\n".encode()
        return 200, JSON, json.dumps(made).encode()

    @staticmethod
    def output(name: str) -> list[Any]:
        part = {"type": "output_text", "text": f"Answer of {name}. {LONG}", "annotations": []}
        said = {"type": "message", "id": f"msg_{name}", "role": "assistant", "content": [part]}
        return [{**said, "status": "completed"}]

    @staticmethod
    def unknown(name: str) -> Any:
        error = {"message": f"Previous response with id '{name}' not found.", "param": None}
        error |= {"type": "invalid_request_error", "code": "previous_response_not_found"}
        return 400, JSON, json.dumps({"error": error}).encode()


@contextmanager
def providing(folder: Path) -> Iterator[tuple[Upstream, Serving, OpenAI]]:
    upstream = Upstream(Provider().answer)
    with served_app(upstream) as url, serving(url, folder / "a.db") as endpoint:
        yield upstream, endpoint, OpenAI(base_url=endpoint.openai_url, api_key="k", max_retries=0)


def sent(upstream: Upstream) -> str:
    return upstream.posts[-1].raw.decode()


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_response_that_was_deleted_answers_no_more_and_no_chain_through_it(tmp_path, which):
    with providing(tmp_path) as (upstream, _, client):
        names = list[str]()
        before = None
        for text in (SECRET_WORDS, "And then?", "And now?"):
            more: Any = {"previous_response_id": before} if before else {}
            before = client.responses.create(model="m", input=text, **more).id
            names.append(before)
        assert SECRET_WORDS in sent(upstream)
        client.responses.delete(names[which])
        for at, name in enumerate(names):
            if at == which:
                with pytest.raises(BadRequestError, match="not found"):
                    client.responses.create(model="m", input="Which?", previous_response_id=name)
            else:
                client.responses.create(model="m", input="Which?", previous_response_id=name)
            held = at < which  # what goes on from it is the provider's to answer
            assert (SECRET_WORDS in sent(upstream)) == held
    # Nor does another process know it.
    with Archive.open(tmp_path / "a.db") as archive, providing(tmp_path) as (_, endpoint, _):
        held = HeldHistories(archive)
        tenant = endpoint.tenant("k")
        assert [held.find(tenant, name) is None for name in names] == [n >= which for n in range(3)]


def test_a_deletion_that_the_provider_refuses_drops_nothing(tmp_path):
    with providing(tmp_path) as (upstream, _, client):
        first = client.responses.create(model="m", input=SECRET_WORDS)
        refusing = Upstream(lambda asked: (403, JSON, b"{}"))
        with served_app(refusing) as url, serving(url, tmp_path / "a.db") as other:
            there = OpenAI(base_url=other.openai_url, api_key="k", max_retries=0)
            with pytest.raises(Exception, match="403"):
                there.responses.delete(first.id)
        client.responses.create(model="m", input="Which?", previous_response_id=first.id)
        assert SECRET_WORDS in sent(upstream)


def test_another_process_deletes_what_this_one_remembers(tmp_path):
    with Archive.open(tmp_path / "a.db") as archive:
        one = HeldHistories(archive)
        other = HeldHistories(archive)
        one.keep("ann", Held("t"), "a", ["first"])
        held = one.find("ann", "a")
        assert held is not None
        one.keep("ann", held, "b", ["second"])
        assert one.find("ann", "b") is not None
        other.delete("bob", "a")  # who has none
        assert one.find("ann", "b") is not None
        other.delete("ann", "a")
        assert [one.find("ann", name) for name in ("a", "b")] == [None, None]
        assert "first" not in json.dumps(
            archive.read_remarks(scope_of("ann", "t"), "response", ["a", "b"])
        )


def test_a_name_that_comes_again_does_not_bring_back_what_was_deleted(monkeypatch):
    with Archive.open("memory:") as archive:
        held = HeldHistories(archive)
        held.keep("ann", Held("t"), "a", ["first"])
        chain = held.find("ann", "a")
        assert chain is not None
        held.keep("ann", chain, "b", ["second"])
        with monkeypatch.context() as failing:
            failing.setattr(archive, "write_remarks", _fail)
            with pytest.raises(ArchiveError):
                held.delete("ann", "a")
        held.keep("ann", Held("other thread"), "a", ["of another conversation"])
        assert held.find("ann", "b") is None
        again = held.find("ann", "a")
        assert again is not None
        assert again.messages == ["of another conversation"]


def _fail(*args: Any, **options: Any) -> None:
    raise ArchiveError("the disk is full")


def test_a_response_expires_as_at_its_provider(tmp_path, monkeypatch):
    with Archive.open("memory:") as archive:
        held = HeldHistories(archive)
        held.keep("ann", Held("t"), "a", ["first"])
        assert held.find("ann", "a") is not None
        later = time.time() + HELD_SECONDS + 1
        monkeypatch.setattr("conspectus_serve.held.time.time", lambda: later)
        assert held.find("ann", "a") is None


@pytest.mark.parametrize("stream", [False, True])
def test_responses_in_the_background_are_held_and_compacted(tmp_path, stream):
    with providing(tmp_path) as (upstream, _, client):
        before: str | None = None
        threads = set[str]()
        compacted = 0
        for turn in range(14):
            more: Any = {"previous_response_id": before} if before else {}
            body = {"model": "m", "input": f"Question {turn}. {LONG}", "background": True, **more}
            made = client.responses.with_raw_response.create(**body, stream=stream)
            # In a stream the client leaves behind the first event, and polls.
            begun = made.parse()
            before = next(iter(begun)).response.id if stream else begun.id
            threads.add(made.headers["x-conspectus-thread"])
            compacted += made.headers["x-conspectus-compacted"] == "true"
            while client.responses.retrieve(before).status != "completed":
                pass
        assert len(threads) == 1
        assert compacted > 3
        assert "Question 13." in sent(upstream)
        assert "previous_response_id" not in sent(upstream)
        # What was made in the background is in the history.
        assert "Answer of resp_0000000c." in sent(upstream)
        assert "Question 0." in sent(upstream)


def test_a_response_that_is_not_stored_is_not_held(tmp_path):
    with providing(tmp_path) as (upstream, _, client):
        for more in ({"store": False}, {"store": False, "background": True}):
            first = client.responses.create(model="m", input=SECRET_WORDS, **more)
            client.responses.create(model="m", input="Which?", previous_response_id=first.id)
            assert SECRET_WORDS not in sent(upstream)
