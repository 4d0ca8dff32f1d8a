"""What a compacted request recalls by itself: originals that the user's newest message needs."""

from typing import Any

import httpx
import pytest

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.tokens import TokenMeter
from conspectus_serve.recall import Recall
from serve_support import Serving, between, talked_about

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6
KEY = {"authorization": "Bearer k"}
PORT = "The relay of Oslo answers on port 48213, and its log is in /var/log/oslo.log."


def history(asked: str = "Which port has the relay of Oslo?") -> list[Any]:
    return talked_about(asked, PORT, LONG)


def both(path: Any, **more: Any) -> Any:
    return between(lambda request: "fine", path, **more)


def ask(endpoint: Serving, path: str, messages: list[Any], key: Any = KEY) -> httpx.Response:
    body = {"model": "m", "messages": messages, "max_tokens": 100}
    answer = httpx.post(f"{endpoint.url}{path}", json=body, headers=key, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_what_the_newest_message_needs_stands_before_it(tmp_path, path):
    with both(tmp_path / "a.db") as (upstream, endpoint):
        given = history()
        answer = ask(endpoint, path, given)
        *_, recalled, question = upstream.requests[-1].messages
        assert question == given[-1]
        assert recalled["role"] == "user"
        assert recalled["content"].startswith("<recalled>")
        assert "port 48213" in recalled["content"]
        assert 0 < int(answer.headers["x-conspectus-recalled-tokens"]) <= 512
        assert int(answer.headers["x-conspectus-tokens-after"]) < 4_000


def test_each_request_of_a_turn_is_sent_the_same_bytes_by_any_instance(tmp_path):
    given = history()
    with both(tmp_path / "a.db") as (upstream, endpoint):
        ask(endpoint, "/v1/chat/completions", given)
        first = upstream.requests[-1].messages
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    more = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "The relay of Bergen is down."},
    ]
    with both(tmp_path / "a.db") as (upstream, endpoint):
        ask(endpoint, "/v1/chat/completions", [*given, *more])
        assert upstream.requests[-1].messages == [*first, *more]


def test_results_of_tools_come_before_what_is_recalled(tmp_path):
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    text = {"type": "text", "text": "Which port has the relay of Oslo?"}
    last = [{"type": "tool_result", "tool_use_id": "t1", "content": "Done."}, text]
    given = [
        *history(asked="Look."),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": last},
    ]
    with both(tmp_path / "a.db") as (upstream, endpoint):
        ask(endpoint, "/v1/messages", given)  # a result apart from its call would be refused
        sent = upstream.requests[-1].messages
        assert "port 48213" in sent[-1]["content"]
        assert sent[-2]["content"] == last


@pytest.mark.parametrize("asked", ["Thanks, go on.", "What is the boiling point of tungsten?"])
def test_a_turn_that_needs_nothing_is_shown_nothing(tmp_path, asked):
    with both(tmp_path / "a.db") as (upstream, endpoint):
        answer = ask(endpoint, "/v1/chat/completions", history(asked=asked))
        assert answer.headers["x-conspectus-compacted"] == "true"
        assert "x-conspectus-recalled-tokens" not in answer.headers
        assert "<recalled>" not in upstream.requests[-1].text


def test_nothing_is_shown_where_it_is_switched_off_or_nothing_has_left(tmp_path):
    with both(tmp_path / "a.db", recall="off") as (upstream, endpoint):
        ask(endpoint, "/v1/chat/completions", history())
        assert "<recalled>" not in upstream.requests[-1].text
    with both(tmp_path / "b.db", window=400_000) as (upstream, endpoint):
        given = history()
        ask(endpoint, "/v1/chat/completions", given)
        assert upstream.requests[-1].messages == given


def test_nothing_of_another_tenant_is_recalled(tmp_path):
    with Archive.open(tmp_path / "a.db") as archive, both(archive) as (upstream, endpoint):
        named = {"x-conspectus-thread": "one"}
        ask(endpoint, "/v1/chat/completions", history(), {**KEY, **named})
        assert "48213" in upstream.requests[-1].text
        other = [one for one in history() if "48213" not in str(one["content"])]
        ask(endpoint, "/v1/chat/completions", other, {"authorization": "Bearer other", **named})
        assert "Here is a summary" in upstream.requests[-1].text
        assert "48213" not in upstream.requests[-1].text


def test_what_is_recalled_is_cut_to_the_room_that_there_is(tmp_path):
    with both(tmp_path / "a.db", recall_tokens=100_000) as (upstream, endpoint):
        answer = ask(endpoint, "/v1/chat/completions", history(asked="Oslo, question, answer?"))
        assert int(answer.headers["x-conspectus-tokens-after"]) <= 3_900
        assert int(answer.headers["x-conspectus-recalled-tokens"]) > 512
        assert "<recalled>" in upstream.requests[-1].text


def test_what_is_recalled_gives_way_within_its_turn_and_to_another_record():
    with Archive.open("memory:") as archive:
        given, scope = history(), Scope("ann", "t")
        compactor = Compactor(archive=archive, window=4_000)
        compactor.compact(given, tenant="ann", thread_id="t")

        def seen(tokens: int) -> tuple[list[Any], int]:
            head = archive.chain(scope)[-1].id
            recall = Recall(archive, scope, head, TokenMeter(), 512, tokens)
            return recall.shown("", given, given[-3:])

        view, size = seen(512)
        assert "48213" in view[-2]["content"]
        assert 64 < size <= 512
        assert seen(size)[0] == view
        assert seen(size - 1)[0] == given[-3:]
        # Another record is in force, which does not answer for what was chosen.
        compactor.compact(given[4:], tenant="ann", thread_id="t")
        assert seen(512)[0] == given[-3:]
