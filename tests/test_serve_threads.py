"""Which thread a history is of, whatever its client clears; and what is recalled for it."""

import json
import re
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.errors import ArchiveError
from conspectus.tokens import TokenMeter
from conspectus_serve import threads
from conspectus_serve.alignment import DroppedMessages
from conspectus_serve.fingerprints import fingerprint_history
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.originals import OriginalMessages
from conspectus_serve.recall import RecallForRequests, search_originals
from conspectus_serve.request_keeper import RequestKeeper
from conspectus_serve.threads import ThreadIndex
from histories import assistant, user
from serve_support import (
    SECRET,
    Serving,
    chat_reply,
    conspectus_header,
    message_reply,
    post,
    proxied_script,
    proxied_upstream,
    talk,
)

LONG = "Its tests say so, and they say why, and what else it may come to, now and later. " * 6


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Any]:
    """Ask an endpoint; gives the thread, its record, and how many messages are archived."""
    with proxied_upstream(lambda asked: chat_reply(), tmp_path, window=4_000) as (_, endpoint):
        yield lambda history: ask_endpoint(endpoint, history)


def ask_endpoint(endpoint: Serving, history: list[Any]) -> tuple[str | None, ...]:
    answer = post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history})
    assert answer.status_code == 200, answer.text
    return tuple(
        conspectus_header(answer, name) for name in ("thread", "record", "messages-evicted")
    )


MANY = [message for n in range(40) for message in (user(f"q{n} {LONG}"), assistant(f"a{n} {LONG}"))]
START = [{"role": "system", "content": "It is noon."}, user("Hello."), assistant("Hi.")]


def test_a_rephrased_question_keeps_its_thread(ask):
    names = {ask([*START, user(text)])[0] for text in ("One?", "Two?", "Two?")}
    later = ask([*START, user("Three?"), assistant("3"), user("More.")])
    assert names == {later[0]}


def test_conversations_that_begin_alike_part(ask):
    mine = START
    yours = [*START[:2], assistant("Good day.")]
    assert ask(START[:2])[0] == ask(START[:2])[0]
    names = [ask([*history, user("Go on.")])[0] for history in (mine, yours)]
    assert names[0] != names[1]
    for history, name in zip((mine, yours), names, strict=True):
        assert ask([*history, user("Go on."), assistant("So."), user("And?")])[0] == name


def test_a_branch_takes_along_what_was_summarised(ask, tmp_path):
    for end in range(1, len(MANY), 6):
        whole, record, _ = ask(MANY[:end])
    # An answer some turns ago is another one: a thread of its own, with the same compactions.
    branch, same, left_out = ask([*MANY[:-5], assistant("Otherwise."), user("Go on.")])
    assert branch != whole
    assert same == record
    assert int(left_out or 0) > 40
    with Archive.open(tmp_path / "a.db") as archive:
        rows = [archive.export(Scope(TENANT, str(thread))) for thread in (branch, whole)]
    texts = [[row["message"] for row in exported] for exported in rows]
    assert texts[0] == texts[1]


def test_what_is_forgotten_is_gone_and_the_thread_begins_anew(ask, tmp_path):
    first_thread, _, _ = ask([*MANY, user("Go on.")])
    with Archive.open(tmp_path / "a.db") as archive:
        archive.forget(TENANT)
    later_thread, record, _ = ask([*MANY, user("Go on."), assistant("So."), user("More.")])
    assert later_thread != first_thread
    assert record


TENANT = SECRET.tenant("k")


def read_file(n: int, ident: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": ident, "name": "Read", "input": {"p": f"f{n}"}}
    thought = {"type": "thinking", "thinking": "Hm. " * 30, "signature": f"s{n}"}
    file = f"file {n}: word-{n}-only. " + "line of code; " * 60
    result = {"type": "tool_result", "tool_use_id": ident, "content": file}
    return [
        {"role": "assistant", "content": [thought, {"type": "text", "text": f"I see {n}."}, use]},
        {"role": "user", "content": [result]},
    ]


def clear_results(history: list[Any]) -> None:
    for message in history[2:-8:2]:
        message["content"][0]["content"] = "[Old tool result content cleared]"


def drop_thoughts(history: list[Any]) -> None:
    for message in history[1:-4:2]:
        message["content"] = [b for b in message["content"] if b["type"] != "thinking"]


def add_reminders(history: list[Any]) -> None:
    texts = f"<system-reminder>It is {len(history)}.</system-reminder>", "Do the work."
    history[0]["content"] = [{"type": "text", "text": text} for text in texts]


def drop_the_middle(history: list[Any]) -> None:
    del history[1 : -12 if len(history) > 40 else 1]


CHANGES = [clear_results, drop_thoughts, add_reminders, drop_the_middle]


@pytest.mark.parametrize(("change", "ids"), zip(CHANGES, ["random", "counted"] * 2, strict=True))
def test_what_a_client_changes_in_its_history_begins_no_thread(tmp_path, change, ids):
    history: list[Any] = [{"role": "user", "content": "Do the work."}]
    threads = set()
    records_written = 0
    with proxied_upstream(lambda asked: message_reply(), tmp_path, window=4_000) as (_, endpoint):
        for n in range(26):
            name = f"toolu_{uuid.uuid4().hex[:16]}" if ids == "random" else f"t{n}"
            history += read_file(n, name)
            change(history)
            answer = post(endpoint, "/v1/messages", {"model": "m", "messages": history})
            assert answer.status_code == 200, answer.text
            threads.add(conspectus_header(answer, "thread"))
            records_written += conspectus_header(answer, "record") is not None
    assert len(threads) == 1
    assert records_written
    with Archive.open(tmp_path / "a.db") as archive:
        scope = Scope(TENANT, threads.pop())
        records = archive.chain(scope)
        kept = json.dumps([row["message"] for row in archive.export(scope)])
    if change is drop_the_middle:
        return
    covered = sum(len(record.covers) for record in records)
    assert covered > 20
    # What the client has cleared is archived whole, and nothing is summarised twice.
    assert all(f"word-{n}-only" in kept for n in range((covered - 2) // 2))
    keys = [key for record in records for key in record.covers]
    assert len(keys) == len(set(keys))
    assert len(records) < 10, "not at each request"


def read_three(n: int, ids: str = "t") -> list[dict[str, Any]]:
    call_ids = [f"{ids}{n}_{index}" for index in range(3)]
    use = {"type": "tool_use", "name": "Read", "input": {}}
    result = {"type": "tool_result"}
    texts = {call_id: f"{call_id}: word. " + "code; " * 200 for call_id in call_ids}
    uses = [{**use, "id": call_id} for call_id in call_ids]
    results = [
        {**result, "tool_use_id": call_id, "content": texts[call_id]} for call_id in call_ids
    ]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]


@pytest.mark.parametrize("headers", [{}, {"x-conspectus-thread": "mine"}], ids=["", "named"])
def test_a_record_is_known_although_its_process_ended(tmp_path, monkeypatch, headers):
    note_compaction = RequestKeeper.note_compaction
    history = [user("Do the work.")]
    records = []
    history += [message for n in range(26) for message in read_file(n, f"t{n}")]
    for change, note in (
        (len, lambda *args: None),
        (len, note_compaction),
        (clear_results, note_compaction),
    ):
        change(history)
        monkeypatch.setattr(RequestKeeper, "note_compaction", note)
        with proxied_upstream(lambda asked: message_reply(), tmp_path, window=4_000) as (
            _,
            endpoint,
        ):
            body = {"model": "m", "messages": history}
            records.append(
                conspectus_header(post(endpoint, "/v1/messages", body, **headers), "record")
            )
    assert None is not records[0] == records[1] == records[2]


def test_results_with_equal_ids_keep_their_words():
    def exchange(n: int) -> list[Any]:
        call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": "call_0", "content": f"{n}: file. " * (60 - n)}
        return [user(f"Read {n}."), {**assistant(""), "tool_calls": [call]}, result]

    with Archive.open("memory:") as archive:
        originals = OriginalMessages(archive)
        scope = Scope("ann", "t")
        history = [message for n in range(4) for message in exchange(n)]
        for sent in (history, history[3:]):
            history_sent = fingerprint_history(sent, "chat", TokenMeter())
            restored = originals.restore(scope, "", history_sent, history_sent.fingerprints)
            originals.remember(scope, restored.fingerprints, restored.messages, DroppedMessages())
            assert restored.messages == restored.shortened == sent


def test_calls_with_one_id_are_known_by_arguments():
    call_id = "call_a1b2c3d4"
    names = set()
    for second in ("notes.md", "plan.md"):
        calls = assistant("", (call_id, "read.me"), (call_id, second))
        history = fingerprint_history([user("Read."), calls], "chat", TokenMeter())
        names.add(history.fingerprints[1].name)
    assert len(names) == 2


def test_results_cleared_one_by_one_stay_known(tmp_path):
    history = [user("Do the work.")]
    answers = list[Any]()

    def ask(endpoint: Serving) -> None:
        answers.append(post(endpoint, "/v1/messages", {"model": "m", "messages": history}))

    with proxied_upstream(lambda asked: message_reply(), tmp_path, window=4_000) as (_, endpoint):
        for n in range(14):
            history += read_three(n)
            for old, index in ((n - 1, 0), (n - 2, 1), (n - 3, 2)):
                if old >= 0:
                    history[2 + 2 * old]["content"][index]["content"] = "[Cleared]"
            ask(endpoint)
    for n in range(10):  # after a restart they come back, but for one of each message
        history[2 + 2 * n] = read_three(n)[1]
        history[2 + 2 * n]["content"][1]["content"] = "[Cleared]"
    with proxied_upstream(lambda asked: message_reply(), tmp_path, window=4_000) as (_, endpoint):
        ask(endpoint)
    assert len({conspectus_header(answer, "thread") for answer in answers}) == 1
    assert (
        conspectus_header(answers[-1], "record")
        == conspectus_header(answers[-2], "record")
        is not None
    )
    with Archive.open(tmp_path / "a.db") as archive:
        scope = Scope(TENANT, str(conspectus_header(answers[0], "thread")))
        covered = sum(len(record.covers) for record in archive.chain(scope))
        kept = json.dumps([row["message"] for row in archive.export(scope)])
    names = [f"t{n}_{index}: word" for n in range((covered - 2) // 2) for index in range(3)]
    assert len(names) >= 15
    assert [name for name in names if name not in kept] == []


def test_calls_that_a_client_divides_are_told_once(tmp_path):
    turns = [read_three(n, "toolu01x") for n in range(14)]
    whole = [user("Do the work.")]
    divided = whole + [
        {**message, "content": message["content"][index : index + 1]}
        for turn in turns
        for index in range(3)
        for message in turn
    ]
    with proxied_upstream(lambda asked: message_reply(), tmp_path, window=4_000) as (_, endpoint):
        for history in (*(whole := whole + turn for turn in turns), divided):
            body = {"model": "m", "messages": history}
            post(endpoint, "/v1/messages", body, x_claude_code_session_id="s")
    with Archive.open(tmp_path / "a.db") as archive:
        archived = [json.dumps(archive.export(scope)) for scope in archive.scopes(TENANT)]
    assert max(exported.count('"id": "toolu01x1_0"') for exported in archived) == 1


def test_what_is_left_of_calls_made_together_is_known_whole(tmp_path):
    history = [user("Do the work.")]
    answers = list[Any]()
    for numbers in (range(13), range(13, 15)):  # with a restart between them
        with proxied_upstream(lambda asked: message_reply(), tmp_path, window=6_000) as (
            upstream,
            endpoint,
        ):
            for n in numbers:
                history += read_three(n, "toolu01x")
                for number, message in enumerate(history[1:] if n == 13 else ()):
                    message["content"] = message["content"][number // 2 % 3 :][
                        :1
                    ]  # as in Claude Code
                body = {"model": "m", "messages": history}
                answers.append(post(endpoint, "/v1/messages", body, session_id="s"))
    for request in upstream.posts:
        text = request.raw.decode()
        assert set(re.findall(r'"id":"(\w+)"', text)) == set(re.findall(r'_id":"(\w+)"', text))
    thread, session = (str(conspectus_header(answers[-1], name)) for name in ("thread", "session"))
    with Archive.open(tmp_path / "a.db") as archive:
        chain = [record.id for record in archive.chain(Scope(TENANT, thread, session))]
    assert chain[3] in {conspectus_header(answer, "record") for answer in answers[:13]}


@pytest.mark.parametrize("calls", [3, 12])
def test_calls_that_are_made_together_begin_no_thread(tmp_path, calls):
    history: list[Any] = [user("Do the work.")]
    threads = set()
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (_, endpoint):
        for n in range(3):
            answer = post(endpoint, "/v1/responses", {"model": "m", "input": history})
            threads.add(conspectus_header(answer, "thread"))
            ids = [f"call_{n}{index:02}a1b2c3d4e5" for index in range(calls)]
            call = {"type": "function_call", "name": "look", "arguments": "{}"}
            history += [
                assistant(f"I look. {n}"),
                *({**call, "call_id": call_id} for call_id in ids),
            ]
            output_type = "function_call_output"
            history += [
                {"type": output_type, "call_id": call_id, "output": "fine"} for call_id in ids
            ]
    assert len(threads) == 1


def test_a_reminder_that_changes_in_what_was_evicted_keeps_the_compactions(ask, tmp_path):
    question = MANY[0]["content"]
    records = list[str]()
    threads = set()

    def send(ask: Any, end: int) -> None:
        reminder = f"<system-reminder>{f'It is {end}. ' * 40}</system-reminder>"
        blocks = [{"type": "text", "text": text} for text in (reminder, question)]
        thread, record, _ = ask([{"role": "user", "content": blocks}, *MANY[1:end]])
        threads.add(thread)
        records.extend([record] if record else [])

    for end in range(1, 60, 2):
        send(ask, end)
    with proxied_upstream(lambda asked: chat_reply(), tmp_path, window=4_000) as (_, endpoint):
        for end in (59, 61, 63):  # after a restart, and what it has seen is whole again
            send(lambda history: ask_endpoint(endpoint, history), end)
    [thread] = threads
    with Archive.open(tmp_path / "a.db") as archive:
        chain = [record.id for record in archive.chain(Scope(TENANT, str(thread)))]
    assert len(chain) > 2
    assert list(dict.fromkeys(records)) == chain


def index_that_fails(monkeypatch: pytest.MonkeyPatch, tenant: str) -> tuple[ThreadIndex, Any]:
    """Return an index whose archive takes nothing of one tenant; and what mends it."""
    archive = Archive.open(":memory:")
    write = archive.write_remarks

    def fail_for_tenant(of: str, *args: Any) -> None:
        if of == tenant:
            raise ArchiveError("the disk is full")
        write(of, *args)

    monkeypatch.setattr(archive, "write_remarks", fail_for_tenant)
    index = ThreadIndex(archive, ArchiveHealth(archive))
    return index, partial(monkeypatch.setattr, archive, "write_remarks", write)


def test_progress_that_could_not_be_written_is_written_later(monkeypatch):
    index, mend = index_that_fails(monkeypatch, TENANT)
    history = fingerprint_history(talk(5), "chat", TokenMeter())
    index.note(TENANT, "t-1", history, "r-1")
    index.write()
    assert index.find(TENANT, history).thread == "t-1"  # it is remembered meanwhile
    mend()
    index.write()
    other_process = ThreadIndex(index._archive, index._health)
    assert other_process.find(TENANT, history).head_id == "r-1"


def test_what_waits_for_an_archive_is_bounded(monkeypatch):
    monkeypatch.setattr(threads, "MOST_UNWRITTEN", 10)
    index, _ = index_that_fails(monkeypatch, TENANT)
    history = fingerprint_history(talk(5), "chat", TokenMeter())
    for number in range(20):
        index.note_named(TENANT, f"t-{number}", history, "r")
        index.note_named(TENANT, "t-busy", history, "r")
        index.write()
    assert len(index._unwritten) == 10
    assert (TENANT, "thread t-busy") in index._unwritten


def test_a_hint_finds_a_thread_that_changed_much(tmp_path):
    history = talk(20)
    body = {"model": "m", "messages": history}
    with proxied_upstream(lambda asked: chat_reply(), tmp_path, window=100_000) as (_, endpoint):
        names = []
        for key in ("a", "b"):
            first = post(endpoint, "/v1/chat/completions", {**body, "prompt_cache_key": key})
            names.append(conspectus_header(first, "thread"))
            for message in history[:24:2]:
                message["content"] += f" (edited {key})"
    assert names[0] != names[1]  # neither their beginning nor their client is the same
    with proxied_upstream(lambda asked: chat_reply(), tmp_path, window=100_000) as (_, endpoint):
        for message in history[:24:2]:
            message["content"] += " (once more)"
        again = post(endpoint, "/v1/chat/completions", {**body, "prompt_cache_key": "b"})
    assert conspectus_header(again, "thread") == names[1]


SESSION = "0198c4d2-77aa-7f21-9c3e-5d1b2a6f8e90"
CLIENTS: list[Any] = [({"x_claude_code_session_id": SESSION}, None), ({"session_id": SESSION}, "k")]
CLIENTS += [({"x_parent_session_id": SESSION}, None), ({}, SESSION)]
CLIENTS += [({}, "my-app"), ({}, None)]  # these name no session


@pytest.mark.parametrize(("headers", "key"), CLIENTS)
def test_a_client_that_compacts_itself_stays_in_its_thread(tmp_path, headers, key):
    def ask(history: list[Any], path: str = "/v1/responses", **fields: Any) -> Any:
        body = {"model": "m", "input": history, "prompt_cache_key": key, **fields}
        return post(endpoint, path, body, **headers)

    def scope_of(answer: Any) -> Scope:
        thread, session = (conspectus_header(answer, name) for name in ("thread", "session"))
        return Scope(TENANT, str(thread), session or "main")

    grouped = bool(headers or key == SESSION)
    answers = [{"id": f"r{n}", "status": "completed", "output": []} for n in range(9)]
    reply = iter(json.dumps(answer).encode() for answer in answers)
    with proxied_upstream(lambda _: (200, "application/json", next(reply)), tmp_path) as (
        _,
        endpoint,
    ):
        ask([user("A title for this?")])  # beside the conversation
        first_scope = scope_of(ask(talk()))
        summary = [user(f"This goes on from another conversation. {LONG}"), *talk(20)[:-1]]
        later_scopes = {scope_of(ask([*summary[:end], user("Go on.")])) for end in (-2, None)}
        later_scopes.add(scope_of(ask([user("And?")], previous_response_id="r3")))
        item = ask(summary, "/v1/responses/compact").json()["output"]
        later_scopes.add(scope_of(ask([*item, user("And now?")])))
        [later_scope] = later_scopes
        name = f"{later_scope.thread}/{later_scope.session}" if grouped else later_scope.thread
        headers = {"x_conspectus_thread": name}
        assert scope_of(ask([user("Aside.")])) == later_scope
    assert (first_scope.thread == later_scope.thread, first_scope.session) == (grouped, "main")
    with Archive.open(tmp_path / "a.db") as archive:
        exported = [str(archive.export(scope)) for scope in (first_scope, later_scope)]
    assert ["module_21 is fine" in text for text in exported] == [True, False]


def test_other_conversations_with_the_same_ids_stay_apart(tmp_path):
    def history(word: str) -> list[Any]:
        messages: list[Any] = [{"role": "user", "content": "Do the work."}]
        for n in range(12):
            messages += read_file(n, f"t{n}")
            messages[-2]["content"][1]["text"] = f"I look for {word} in {n}."
            messages[-1]["content"][0]["content"] = f"{word} " * 200
        return messages

    with proxied_upstream(lambda asked: message_reply(), tmp_path, window=2_000) as (
        upstream,
        endpoint,
    ):
        names = set()
        for word in ("heron", "magpie"):
            answer = post(endpoint, "/v1/messages", {"model": "m", "messages": history(word)})
            names.add(conspectus_header(answer, "thread"))
            assert ("heron" in upstream.posts[-1].raw.decode()) == (word == "heron")
    assert len(names) == 2


PORT = "The relay of Oslo answers on port 48213, and its log is in /var/log/oslo.log."
QUESTION = "Which port has the relay of Oslo?"


def history_with_port(question: str = QUESTION, turns: int = 30) -> list[Any]:
    """A pasted log with one detail in its middle, which no notes hold, and much after it."""
    rows = [f"2031-01-02 10:00:{n:02} INFO cage {n} was cleaned" for n in range(40)]
    rows[20] = f"2031-01-02 10:00:20 INFO {PORT}"
    messages = [user("\n".join(["The log:", *rows])), assistant(f"I have read it. {LONG * 2}")]
    for turn in range(turns):
        messages += [user(f"Question {turn}."), assistant(f"Answer {turn}. {LONG}")]
    return [*messages, user(question)]


def send(
    endpoint: Serving,
    messages: list[Any],
    path: str = "/v1/messages",
    model: str = "m",
    **headers: Any,
) -> Any:
    body = {"model": model, "messages": messages, "max_tokens": 100}
    answer = post(endpoint, path, body, **headers)
    assert answer.status_code == 200, answer.text
    return answer.headers


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_what_the_newest_message_needs_stands_before_it(tmp_path, path):
    with proxied_script(lambda request: "fine", tmp_path / "a.db") as (upstream, endpoint):
        headers = send(endpoint, history_with_port(), path, model="gpt-4o")
        *_, recalled, question = upstream.requests[-1].messages
        assert question == history_with_port()[-1]
        assert recalled["role"] == "user"
        assert recalled["content"].startswith("<recalled>")
        assert "port 48213" in recalled["content"]
        assert 0 < int(headers["x-conspectus-recalled-tokens"]) <= 512
        assert int(headers["x-conspectus-tokens-after"]) < 4_000


def test_every_instance_sends_a_turn_the_same_bytes(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    call_and_result = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "The relay of Bergen is down."},
    ]
    shown = []
    for messages in (history_with_port(), [*history_with_port(), *call_and_result]):
        with proxied_script(lambda request: "fine", tmp_path / "a.db") as (upstream, endpoint):
            send(endpoint, messages, "/v1/chat/completions")
            shown.append(upstream.requests[-1].messages)
    assert shown[1] == [*shown[0], *call_and_result]


@pytest.mark.parametrize(
    ("question", "settings"),
    [("Thanks, go on.", {}), ("What boils tungsten?", {}), (QUESTION, {"recall": "off"})],
)
def test_a_turn_that_needs_nothing_is_shown_nothing(tmp_path, question, settings):
    with proxied_script(lambda request: "fine", tmp_path / "a.db", **settings) as (
        upstream,
        endpoint,
    ):
        headers = send(endpoint, history_with_port(question))
        assert headers["x-conspectus-compacted"] == "true"
        assert "x-conspectus-recalled-tokens" not in headers
        assert "<recalled>" not in upstream.requests[-1].text


def test_nothing_of_another_tenant_is_recalled(tmp_path):
    headers = {"x-conspectus-thread": "one"}
    with proxied_script(lambda request: "fine", tmp_path / "a.db") as (upstream, endpoint):
        send(endpoint, history_with_port(), **headers)
        assert "48213" in upstream.requests[-1].text
        history_without_port = [
            message for message in history_with_port() if "48213" not in str(message["content"])
        ]
        send(endpoint, history_without_port, authorization="Bearer other", **headers)
        assert "Here is a summary" in upstream.requests[-1].text
        assert "48213" not in upstream.requests[-1].text


def test_recalled_text_gives_way_to_another_record():
    with Archive.open("memory:") as archive:
        messages = history_with_port()
        scope = Scope("ann", "t")
        recall = RecallForRequests(512)
        meter = TokenMeter()
        search = partial(search_originals, archive, TokenMeter())
        compactor = Compactor(archive=archive, window=4_000)
        compactor.compact(messages, tenant="ann", thread_id="t")

        def with_recalled(tokens: int) -> tuple[list[Any], int]:
            head = archive.chain(scope)[-1].id
            return recall.add_to(
                messages[-3:],
                scope,
                head,
                history=messages,
                meter=meter,
                free_tokens=tokens,
                search=search,
            )

        view, size = with_recalled(512)
        assert "48213" in view[-2]["content"]
        assert 64 < size <= 512
        assert with_recalled(size)[0] == view
        assert with_recalled(size - 1)[0] == messages[-3:]
        messages.append({"role": "user", "content": "<environment>cwd: /tmp</environment>"})
        assert "48213" in with_recalled(512)[0][-2]["content"], "the question stands before it"
        # Another record is in force, which does not answer for what was chosen.
        edited = [*messages[4:12], user("Another question."), *messages[13:]]
        compactor.compact(edited, tenant="ann", thread_id="t")
        assert with_recalled(512)[0] == messages[-3:]
