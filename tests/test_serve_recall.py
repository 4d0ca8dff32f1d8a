"""What a compacted request recalls by itself."""

from typing import Any

import httpx
import pytest

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.tokens import TokenMeter
from conspectus_serve.recall import Chosen, Recall
from serve_support import Serving, between, talked_about

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6
PORT = "The relay of Oslo answers on port 48213, and its log is in /var/log/oslo.log."
ASKED = "Which port has the relay of Oslo?"
KEY = {"authorization": "Bearer k"}


def history(asked: str = ASKED) -> list[Any]:
    return talked_about(asked, PORT, LONG)


def both(path: Any, script: Any = lambda request: "fine", **more: Any) -> Any:
    return between(script, path, **more)


def ask(endpoint: Serving, messages: list[Any], path: str = "/v1/messages", **more: Any) -> Any:
    body = {"model": "m", "messages": messages, "max_tokens": 100}
    answer = httpx.post(f"{endpoint.url}{path}", json=body, headers=more or KEY, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.headers


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_what_the_newest_message_needs_stands_before_it(tmp_path, path):
    with both(tmp_path / "a.db") as (upstream, endpoint):
        own = ask(endpoint, history(), path)
        *_, recalled, question = upstream.requests[-1].messages
        assert question == history()[-1]
        assert recalled["role"] == "user"
        assert recalled["content"].startswith("<recalled>")
        assert "port 48213" in recalled["content"]
        assert 0 < int(own["x-conspectus-recalled-tokens"]) <= 512
        assert int(own["x-conspectus-tokens-after"]) < 4_000


def test_each_request_of_a_turn_is_sent_the_same_bytes_by_any_instance(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    more = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "The relay of Bergen is down."},
    ]
    sent = []
    for messages in (history(), [*history(), *more]):
        with both(tmp_path / "a.db") as (upstream, endpoint):
            ask(endpoint, messages, "/v1/chat/completions")
            sent.append(upstream.requests[-1].messages)
    assert sent[1] == [*sent[0], *more]


@pytest.mark.parametrize(
    ("asked", "settings"),
    [("Thanks, go on.", {}), ("What boils tungsten?", {}), (ASKED, {"recall": "off"})],
)
def test_a_turn_that_needs_nothing_is_shown_nothing(tmp_path, asked, settings):
    with both(tmp_path / "a.db", **settings) as (upstream, endpoint):
        own = ask(endpoint, history(asked))
        assert own["x-conspectus-compacted"] == "true"
        assert "x-conspectus-recalled-tokens" not in own
        assert "<recalled>" not in upstream.requests[-1].text


def test_nothing_of_another_tenant_is_recalled(tmp_path):
    named = {"x-conspectus-thread": "one"}
    with both(tmp_path / "a.db") as (upstream, endpoint):
        ask(endpoint, history(), **KEY, **named)
        assert "48213" in upstream.requests[-1].text
        other = [one for one in history() if "48213" not in str(one["content"])]
        ask(endpoint, other, authorization="Bearer other", **named)
        assert "Here is a summary" in upstream.requests[-1].text
        assert "48213" not in upstream.requests[-1].text


def test_what_is_recalled_gives_way_within_its_turn_and_to_another_record():
    with Archive.open("memory:") as archive:
        given, scope, chosen = history(), Scope("ann", "t"), Chosen(8)
        compactor = Compactor(archive=archive, window=4_000)
        compactor.compact(given, tenant="ann", thread_id="t")

        def seen(tokens: int) -> tuple[list[Any], int]:
            head = archive.chain(scope)[-1].id
            recall = Recall(archive, scope, head, TokenMeter(), 512, tokens, chosen)
            return recall.shown("", given, given[-3:])

        view, size = seen(512)
        assert "48213" in view[-2]["content"]
        assert 64 < size <= 512
        assert seen(size)[0] == view
        assert seen(size - 1)[0] == given[-3:]
        # Another record is in force, which does not answer for what was chosen.
        compactor.compact(given[4:], tenant="ann", thread_id="t")
        assert seen(512)[0] == given[-3:]
