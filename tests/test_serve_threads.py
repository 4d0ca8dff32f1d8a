"""Which thread a history is of, whatever its client clears, drops or renames."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.datastructures import Headers

from conspectus.archive import Archive, Scope
from conspectus_serve import load_settings
from conspectus_serve.compaction import Items
from conspectus_serve.exchange import Exchange
from conspectus_serve.fitting import Fitter
from conspectus_serve.protocols import CHAT, Route
from serve_support import SECRET, before, chat, message, own, post, talk

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6


class Endpoint:
    """What an endpoint does with each request, without HTTP."""

    def __init__(self, archive: Archive) -> None:
        settings, config = load_settings(given={"upstream": "http://h", "window": 4_000})
        self.archive = archive
        self.fitter = Fitter(archive, settings, config, Items(["a key that signs"]))

    def look(self, history: list[Any], tenant: str = "ann", protocol: Any = CHAT) -> Exchange:
        body = json.dumps({"model": "m", protocol.field: history}).encode()
        x = Exchange(tenant, Route("chat/completions", protocol), body, Headers())
        self.fitter.read(x)
        asyncio.run(self.fitter.fit(x))
        return x

    def ask(self, history: list[Any], tenant: str = "ann", protocol: Any = CHAT) -> Exchange:
        x = self.look(history, tenant, protocol)
        self.fitter.settle(x)
        return x


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Archive.open("memory:") as archive:
        yield Endpoint(archive)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


MANY = [one for n in range(40) for one in (user(f"q{n} {LONG}"), answer(f"a{n} {LONG}"))]
START = [{"role": "system", "content": "It is noon."}, user("Hello."), answer("Hi.")]


def test_a_question_that_is_put_another_way_or_again_keeps_its_thread(endpoint):
    names = {endpoint.ask([*START, user(text)]).match.thread for text in ("One?", "Two?", "Two?")}
    after = endpoint.ask([*START, user("Three?"), answer("3"), user("More.")])
    assert names == {after.match.thread}


def test_conversations_that_begin_alike_part(endpoint):
    mine, yours = START, [*START[:2], answer("Good day.")]
    assert endpoint.ask(START[:2]).match.thread == endpoint.ask(START[:2]).match.thread
    names = [endpoint.ask([*one, user("Go on.")]).match.thread for one in (mine, yours)]
    assert names[0] != names[1]
    for one, name in zip((mine, yours), names, strict=True):
        more = [*one, user("Go on."), answer("So."), user("And?")]
        assert endpoint.ask(more).match.thread == name


def test_a_branch_takes_along_what_was_summarised(endpoint):
    for end in range(1, len(MANY), 2):
        whole = endpoint.ask(MANY[:end])
    assert whole.view is not None
    # An answer some turns ago is another one: a thread of its own, with the same compactions.
    branch = endpoint.ask([*MANY[:-5], answer("Otherwise."), user("Go on.")])
    assert branch.match.thread != whole.match.thread
    assert branch.head == whole.head
    assert not branch.fresh
    assert branch.left_out > 40
    mine, theirs = (
        endpoint.archive.export(Scope("ann", one.match.thread)) for one in (branch, whole)
    )
    for row in (*mine, *theirs):
        del row["archived_at"]
    assert mine == theirs


def test_what_is_forgotten_is_gone_and_the_thread_begins_anew(endpoint):
    turn = endpoint.ask([*MANY, user("Go on.")])
    endpoint.archive.forget("ann")
    again = endpoint.ask([*MANY, user("Go on."), answer("So."), user("More.")])
    assert again.match.thread != turn.match.thread
    assert again.view is not None


# Over HTTP

TENANT = SECRET.tenant("k")


def read(n: int, ident: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": ident, "name": "Read", "input": {"p": f"f{n}"}}
    thought = {"type": "thinking", "thinking": "Hm. " * 30, "signature": f"s{n}"}
    result = f"file {n}: word-{n}-only. " + "line of code; " * 60
    return [
        {"role": "assistant", "content": [thought, {"type": "text", "text": f"I see {n}."}, use]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": ident, "content": result}],
        },
    ]


def clear_results(history: list[Any]) -> None:
    for one in history[2:-8:2]:
        one["content"][0]["content"] = "[Old tool result content cleared]"


def drop_thoughts(history: list[Any]) -> None:
    for one in history[1:-4:2]:
        one["content"] = [b for b in one["content"] if b["type"] != "thinking"]


def add_reminders(history: list[Any]) -> None:
    text = f"<system-reminder>It is {len(history)}.</system-reminder>"
    history[0]["content"] = [
        {"type": "text", "text": text},
        {"type": "text", "text": "Do the work."},
    ]


def drop_the_oldest(history: list[Any]) -> None:
    del history[1 : max(1, len(history) - 40)]


CHANGES = [clear_results, drop_thoughts, add_reminders, drop_the_oldest]


@pytest.mark.parametrize(("change", "ids"), zip(CHANGES, ["random", "counted"] * 2, strict=True))
def test_what_a_client_changes_in_its_history_begins_no_thread(tmp_path, change, ids):
    history: list[Any] = [{"role": "user", "content": "Do the work."}]
    threads, written = set(), 0
    with before(lambda asked: message(), tmp_path, window=4_000) as (_, endpoint):
        for n in range(26):
            name = f"toolu_{uuid.uuid4().hex[:16]}" if ids == "random" else f"t{n}"
            history += read(n, name)
            change(history)
            answer = post(endpoint, "/v1/messages", {"model": "m", "messages": history})
            assert answer.status_code == 200, answer.text
            threads.add(own(answer, "thread"))
            written += own(answer, "record") is not None
    assert len(threads) == 1
    assert written
    with Archive.open(tmp_path / "a.db") as archive:
        scope = Scope(TENANT, threads.pop())
        records = archive.chain(scope)
        kept = json.dumps([row["message"] for row in archive.export(scope)])
    if change is drop_the_oldest:
        return
    covered = sum(len(record.covers) for record in records)
    assert covered > 20
    # What the client has cleared is archived whole, and nothing is summarised twice.
    assert all(f"word-{n}-only" in kept for n in range((covered - 2) // 2))
    keys = [key for record in records for key in record.covers]
    assert len(keys) == len(set(keys))
    if change is clear_results:  # what is cleared takes no room, so that little is summarised
        assert len(records) <= 4


def test_what_was_cleared_is_known_after_a_restart(tmp_path):
    history: list[Any] = [{"role": "user", "content": "Do the work."}]
    for n in range(30):
        history += read(n, f"toolu_{n:02}a1b2c3d4e5f6")
    body = {"model": "m", "messages": history}
    heads = []
    for _ in range(2):
        with before(lambda asked: message(), tmp_path, window=4_000) as (_, endpoint):
            answer = post(endpoint, "/v1/messages", body)
            heads.append((own(answer, "thread"), own(answer, "record")))
        clear_results(history)
    assert heads[0] == heads[1]


def test_a_hint_of_the_client_finds_a_thread_of_which_much_has_changed(tmp_path):
    history = talk(20)
    body = {"model": "m", "messages": history}
    with before(lambda asked: chat(), tmp_path, window=100_000) as (_, endpoint):
        names = []
        for key in ("a", "b"):
            first = post(endpoint, "/v1/chat/completions", {**body, "prompt_cache_key": key})
            names.append(own(first, "thread"))
            for one in history[:24:2]:
                one["content"] += f" (edited {key})"
    assert names[0] != names[1]  # neither their beginning nor their client is the same
    with before(lambda asked: chat(), tmp_path, window=100_000) as (_, endpoint):
        for one in history[:24:2]:
            one["content"] += " (once more)"
        again = post(endpoint, "/v1/chat/completions", {**body, "prompt_cache_key": "b"})
    assert own(again, "thread") == names[1]


def test_other_conversations_with_the_same_ids_stay_apart(tmp_path):
    def history(word: str) -> list[Any]:
        made: list[Any] = [{"role": "user", "content": "Do the work."}]
        for n in range(12):
            made += read(n, f"t{n}")
            made[-2]["content"][1]["text"] = f"I look for {word} in {n}."
            made[-1]["content"][0]["content"] = f"{word} " * 200
        return made

    with before(lambda asked: message(), tmp_path, window=2_000) as (upstream, endpoint):
        names = set()
        for word in ("heron", "magpie"):
            answer = post(endpoint, "/v1/messages", {"model": "m", "messages": history(word)})
            names.add(own(answer, "thread"))
            assert ("heron" in upstream.posts[-1].raw.decode()) == (word == "heron")
    assert len(names) == 2
