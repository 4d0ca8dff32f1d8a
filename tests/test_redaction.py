"""Where there is a redactor, no secret gets into anything that is kept, read, indexed or told.

The secrets are put together when the tests run; see `made_secrets`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import (
    Archive,
    Compactor,
    ContextGuard,
    PolicyError,
    Redacted,
    RedactionError,
    SecretRedactor,
    StuckError,
    SummarizationMiddleware,
    SummaryError,
)
from conspectus.messages import read_messages
from conspectus.testing.scripted_models import ScriptedChatModel
from engine import SCOPE, Scripted, compacted, engine, short
from graph_support import agent, thread
from made_secrets import Made

MADE = Made(11)
TOKEN = "ghp" + "_" + MADE.alnum(36)
PASSWORD = MADE.password()
KEY = MADE.alnum(32)
SECRETS = (TOKEN, PASSWORD, KEY)


def history() -> list[BaseMessage]:
    """Secrets in every part of a message; each is said to the model and by it."""
    call = {"name": "run", "id": "c1", "args": {"cmd": f"login {TOKEN}", "password": PASSWORD}}
    raw = {
        "id": "c1",
        "type": "function",
        "function": {"name": "run", "arguments": json.dumps(call["args"])},
    }
    return [
        SystemMessage("You deploy.", id="s"),
        HumanMessage(f"Always use the api_key={KEY} for staging, never prod.", id="u1", name="ann"),
        AIMessage(
            [
                {"type": "thinking", "thinking": f"I have {TOKEN}", "signature": "sig"},
                {"type": "text", "text": f"I use {TOKEN}."},
                {"type": "tool_use", "id": "c1", "name": "run", "input": call["args"]},
            ],
            tool_calls=[call],
            additional_kwargs={"tool_calls": [raw], "note": {"password": PASSWORD}},
            response_metadata={"headers": {"authorization": f"Bearer {KEY}"}},
            id="a1",
        ),
        ToolMessage(
            [{"type": "text", "text": f"ok, PASSWORD={PASSWORD}\n"}],
            tool_call_id="c1",
            artifact={"log": [f"token {TOKEN}"], "raw": f"PASSWORD={PASSWORD}".encode(), TOKEN: 1},
            name="run",
            id="t1",
        ),
        AIMessage(f"Done; the password is {PASSWORD}.", id="a2"),
        *[
            one
            for n in range(12)
            for one in (
                HumanMessage(f"Look at module {n} again.", id=f"v{n}"),
                AIMessage(f"Module {n} is fine.", id=f"b{n}"),
            )
        ],
        HumanMessage(f"And again, with {TOKEN}.", id="last"),
    ]


def no_secret(value: Any) -> None:
    text = value if isinstance(value, str) else repr(value)
    for secret in SECRETS:
        assert secret not in text
        assert secret.encode().hex() not in text


def in_the_store(store: InMemoryStore) -> str:
    """Everything that a store holds, its values as they are read."""
    return repr([(item.namespace, item.key, item.value) for item in store.search((), limit=10_000)])


def test_nothing_that_is_kept_holds_a_secret_and_what_was_done_is_counted() -> None:
    store, told, given, left = InMemoryStore(), [], [], []
    scripted = Scripted(lambda request: given.append(request) or short(request))  # type: ignore[func-returns-value]
    compactor = engine(
        scripted,
        archive=Archive(store),
        keep=("messages", 4),
        redact=True,
        on_event=lambda name, data: told.append((name, dict(data))),
    )
    messages = history()
    before = [message.model_copy(deep=True) for message in messages]
    result = compacted(messages, compactor, force=True, focus=f"keep {TOKEN} in mind")
    assert result.outcome == "compacted", result.reason
    [request] = given
    for seen in (
        [entry.reading for entry in (*request.entries, *request.kept)],
        [repr(entry.source) for entry in (*request.entries, *request.kept)],
        request.standing, request.focus, repr(request.ledger), result.summary, repr(result.record),
        told, in_the_store(store), left, [fact.value for fact in result.carried],
    ):  # fmt: skip
        no_secret(seen)
    assert request.focus == "keep [redacted: github-token] in mind"
    counted = {"github-token", "password", "api-key", "bearer-token"}
    assert set(result.redacted) == counted
    assert result.record is not None
    assert result.record.redacted == result.redacted
    assert told[-1][1]["redacted"] == result.redacted
    assert messages == before
    assert result.messages[-1] is messages[-1]  # in view, untouched
    assert compactor.archive is not None
    [record] = compactor.archive.chain(SCOPE)
    assert record == result.record
    found = compactor.recall(id="t1", thread_id="t").text
    assert "[redacted: password]" in found
    no_secret(found)
    no_secret(compactor.recall("password module", thread_id="t").text)
    no_secret(json.dumps(compactor.archive.export(SCOPE)))


def test_a_secret_that_one_message_tells_goes_wherever_it_stands_in_the_same_compaction() -> None:
    """What says that it is a secret may stand in another message than it does."""
    bare, number = MADE.password(), "4812"
    call = {"name": "run", "id": "c", "args": {"cmd": ["try", bare], "note": f"\\n{bare}"}}
    messages: list[BaseMessage] = [
        HumanMessage(f"Remember: always use {bare} to log in. Port {number}.", id="u1"),
        AIMessage("Tried it.", tool_calls=[call], id="a1"),
        ToolMessage("ok", tool_call_id="c", artifact={"log": bare.encode()}, id="t1"),
        HumanMessage(f"The admin password is {bare} ok? password: {number}", id="u2"),
        AIMessage(f"I keep {bare}.", id="a2"),
        HumanMessage(f"Now {bare} again.", id="u3"),
    ]
    store, given, told = InMemoryStore(), [], []

    def quoting(request: Any) -> str:
        given.append(request)
        return f"The user logs in with {bare} ({len(given)})."  # from somewhere else

    compactor = engine(
        Scripted(quoting), archive=Archive(store), keep=("messages", 2), redact=True,
        on_event=lambda name, data: told.append((name, dict(data))),
    )  # fmt: skip
    result = compacted(messages, compactor, force=True, focus=f"mind {bare}")
    assert result.outcome == "compacted", result.reason
    [request] = given
    for seen in (
        [repr(entry.source) for entry in (*request.entries, *request.kept)], request.focus,
        repr(request.ledger), result.summary, repr(result.record), told, in_the_store(store),
    ):  # fmt: skip
        assert bare not in str(seen)
    assert "always use [redacted: password]" in repr(request.ledger)
    assert result.redacted["password"] == 6
    assert number in in_the_store(store)  # a plain number is not looked for elsewhere
    assert result.messages[-1] is messages[-1]  # in view, untouched
    assert bare in messages[-1].content
    assert "[redacted: password]" in compactor.recall(id="u1", thread_id="t").text


def test_the_standing_summary_and_facts_lose_what_a_later_message_tells() -> None:
    bare = MADE.password()
    first = [HumanMessage(f"Always use {bare} for staging.", id="u1")]
    first += [AIMessage("Yes.", id="a1"), HumanMessage("Go on.", id="u2")]  # type: ignore[list-item]
    compactor = engine(Scripted(lambda r: f"They use {bare}."), keep=("messages", 1), redact=True)
    before = compacted(first, compactor, force=True)
    assert bare in before.summary  # nothing says yet what it is
    more = [*before.messages, AIMessage("Done.", id="a2")]
    more += [HumanMessage(f"the password is {bare} by the way", id="u3")]
    more += [AIMessage("Noted.", id="a3"), HumanMessage("And?", id="u4")]
    result = compacted(more, compactor, force=True)
    assert result.outcome == "compacted", result.reason
    assert result.summary
    assert bare not in result.summary
    assert bare not in repr(result.record)
    assert any("[redacted: password]" in fact.value for fact in result.carried)


def test_a_redactor_of_ones_own_names_values_that_go_everywhere() -> None:
    class Own:
        identity = "own"

        def redact(self, text: str, key: str | None = None) -> Redacted:
            if text.startswith("badge "):
                return Redacted("badge [redacted: badge]", {"badge": 1}, {text[6:]: "badge"})
            return Redacted(text)

    messages = [HumanMessage("I am B-77x12.", id="u1"), HumanMessage("badge B-77x12", id="u2")]
    compactor = engine(Scripted(short), keep=("messages", 1), redact=Own())
    result = compacted([*messages, HumanMessage("Go.", id="u3")], compactor, force=True)
    assert result.redacted == {"badge": 2}
    assert "I am [redacted: badge]." in compactor.recall(id="u1", thread_id="t").text


def test_keys_are_those_of_the_messages_as_sent_so_a_history_sent_again_is_recognised() -> None:
    compactor = engine(Scripted(short), keep=("messages", 4), redact=True)
    messages = history()
    first = compacted(messages, compactor, force=True)
    assert first.record is not None
    entries = {entry.key for entry in read_messages(messages)}
    assert set(first.record.covers) <= entries
    again = compacted(messages, compactor)
    assert again.outcome == "kept"
    assert again.dropped == first.evicted
    assert again.messages == first.messages
    assert again.record is None
    assert not compactor.archive.missing(SCOPE, [])  # type: ignore[union-attr]


def test_what_was_redacted_says_that_it_is_not_whole() -> None:
    compactor = engine(keep=("messages", 4), redact=True)
    compacted(history(), compactor, force=True)
    rows = {row["id"]: row["lossless"] for row in compactor.archive.export(SCOPE)}  # type: ignore[union-attr]
    assert rows["t1"] is False
    assert rows["v1"] is True


def test_a_message_without_secrets_is_archived_as_it_is() -> None:
    plain, careful = engine(keep=("messages", 2)), engine(keep=("messages", 2), redact=True)
    talk = [HumanMessage(f"module {n}: sha {MADE.hex(40)}", id=f"m{n}") for n in range(9)]
    results = [compacted(talk, one, force=True) for one in (plain, careful)]
    assert results[0].record == results[1].record
    assert results[1].redacted == {}


def test_a_message_shown_short_shows_no_secret_and_is_shown_so_again() -> None:
    lines = "\n".join(f"{n} PASSWORD={PASSWORD} all is well here" for n in range(400))
    call = AIMessage("", tool_calls=[{"name": "run", "id": "c", "args": {}}], id="a")
    messages = [
        HumanMessage("Go on.", id="u"),
        call,
        ToolMessage(lines, tool_call_id="c", name="run", id="t"),
        *[AIMessage(f"step {n}", id=f"s{n}") for n in range(30)],
        HumanMessage("And now?", id="v"),
    ]
    compactor = engine(window=6_000, trigger=("tokens", 1_000), keep=("messages", 28), redact=True)
    result = compacted(messages, compactor)
    assert result.clipped == 1, result.reason
    assert result.redacted == {"password": 400}
    shown = next(m for m in result.messages if m.id == "t")
    no_secret(shown.content)
    assert "archived as t" in shown.content
    assert compacted(messages, compactor).messages == result.messages
    back = compacted([*result.messages, HumanMessage("more", id="w")], compactor)
    assert back.messages[:-1] == result.messages


@pytest.mark.parametrize(
    ("before", "now"), [(None, True), (True, None), (True, lambda text: text.replace(PASSWORD, ""))]
)
def test_a_message_shown_short_is_still_read_whole_once_it_is_redacted_otherwise(
    before: Any, now: Any
) -> None:
    """Shown in other words than are recorded, and sent back so, it would be a new message."""
    lines = "\n".join(f"{n} PASSWORD={PASSWORD} all is well here" for n in range(400))
    messages = [
        HumanMessage("Go on.", id="u"),
        AIMessage("", tool_calls=[{"name": "run", "id": "c", "args": {}}], id="a"),
        ToolMessage(lines, tool_call_id="c", name="run", id="t"),
        *[AIMessage(f"step {n}", id=f"s{n}") for n in range(30)],
        HumanMessage("And now?", id="v"),
    ]
    shared = {"trigger": ("tokens", 1_000), "archive": Archive(InMemoryStore())}
    first = engine(keep=("messages", 28), redact=before, **shared)
    assert compacted(messages, first).clipped == 1
    scripted = Scripted(short)
    second = engine(scripted, keep=("messages", 28), redact=now, **shared)
    shown = compacted(messages, second).messages
    assert len(repr(shown)) < len(lines)
    compacted([*shown, AIMessage("Well.", id="w")], second, force=True)
    read = {e.given_id: e.reading for request in scripted.requests for e in request.entries}
    assert "\n200 PASSWORD=" in read["t"]


def test_a_message_that_was_nearly_all_secret_still_fits_and_says_what_it_is() -> None:
    key = MADE.pem(lines=300)
    messages = [
        HumanMessage(key, id="k"),
        AIMessage("I have it.", id="a"),
        HumanMessage("Go.", id="u"),
    ]
    compactor = engine(window=2_000, redact=True, keep=("messages", 20))
    result = compacted(messages, compactor)
    assert result.outcome == "compacted", result.reason
    assert result.tokens_after <= 2_000
    shown = repr(result.messages)
    assert key.split("\n")[40] not in shown
    assert result.redacted == {"private-key": 1}
    assert compacted(messages, compactor).messages == result.messages


def test_what_was_kept_before_there_was_a_redactor_is_carried_on_without_its_secrets() -> None:
    store, requests = InMemoryStore(), []
    compacted(history(), engine(archive=Archive(store), keep=("messages", 4)), force=True)
    scripted = Scripted(lambda request: requests.append(request) or short(request))  # type: ignore[func-returns-value]
    careful = engine(scripted, archive=Archive(store), keep=("messages", 2), redact=True)
    more = [*history(), AIMessage("Well.", id="x"), HumanMessage("And?", id="y")]
    result = compacted(more, careful, force=True)
    assert result.outcome == "compacted", result.reason
    no_secret(requests[0].standing)
    # A bare value that was noted then tells nobody that it was a password.
    for carried in (repr(requests[0].ledger), repr(result.record)):
        assert TOKEN not in carried
        assert KEY not in carried


def test_a_summariser_that_knows_more_and_an_error_that_quotes_do_not_tell() -> None:
    told: list[Any] = []
    wordy = engine(
        Scripted(lambda _: f"- the token is {TOKEN} [x]"),
        redact=True,
        on_event=lambda name, data: told.append(dict(data)),
    )
    result = compacted(history(), wordy, force=True)
    assert result.outcome == "compacted"
    no_secret(repr(result.record))

    def fail(_: Any) -> str:
        raise ValueError(f"bad key {TOKEN}")

    failing = engine(
        Scripted(fail), redact=True, on_event=lambda name, data: told.append(dict(data))
    )
    refused = compacted(history(), failing, force=True)
    assert refused.outcome == "kept"
    no_secret(refused.reason)
    no_secret(told)
    assert "[redacted: github-token]" in refused.reason


@pytest.mark.parametrize("on_failure", ["keep", "raise"])
def test_no_listener_is_told_of_a_secret_that_an_error_quotes(on_failure: Any) -> None:
    told: list[Any] = []

    def fail(_: Any) -> str:
        raise ValueError(f"400: cannot read {TOKEN}")

    class Own(Scripted):
        def summarize(self, request: Any) -> Any:
            return fail(request)

    for summarizer in (fail, Own(short)):
        careful = engine(summarizer, redact=True, telemetry=told.append, on_failure=on_failure)
        with contextlib.suppress(SummaryError):
            compacted(history(), careful, force=True)
    assert {event.error_type for event in told} >= {"ValueError"}
    for event in told:
        no_secret(repr(event))
    assert any("[redacted: github-token]" in event.error_message for event in told)


def test_the_log_tells_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        compacted(history(), engine(redact=True), force=True, focus=TOKEN)
    assert "end" in caplog.text
    no_secret(caplog.text)


def test_no_file_beside_an_archive_holds_a_secret(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.db") as archive:
        compactor = engine(archive=archive, keep=("messages", 4), redact=True)
        compacted(history(), compactor, force=True)
        compactor.recall("password", thread_id="t")
    for file in tmp_path.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            assert not any(secret.encode() in raw for secret in SECRETS), file
    with sqlite3.connect(tmp_path / "archive.db") as connection:
        assert connection.execute("select count(*) from store").fetchone()[0] > 0


def test_the_semantic_index_reads_what_is_redacted() -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[float(len(text) % 7), 1.0] for text in texts]

    store = InMemoryStore(index={"dims": 2, "embed": embed})
    compacted(history(), engine(archive=Archive(store), redact=True), force=True)
    assert embedded
    no_secret(embedded)


# Every way in


def test_the_log_tells_no_secret_that_a_models_provider_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = f"Error code: 400 - prompt is too long: 9000 tokens > 3000 maximum, near '{TOKEN}'"
    model = ScriptedChatModel(answers=["one", "two", ValueError(said), *["on"] * 9])
    own = SummarizationMiddleware(
        None, trigger=("messages", 50), keep=("messages", 2), archive="memory:", redact=True
    )
    graph, _ = agent(model, own, ContextGuard(own), tools=[], store=None)
    with caplog.at_level(logging.DEBUG, logger="conspectus"):
        for turn in range(3):
            graph.invoke({"messages": [HumanMessage(f"Look at m{turn}. " * 200)]}, thread())
    assert "the request was too long (Error code: 400" in caplog.text
    no_secret(caplog.text)


def test_the_log_tells_no_secret_that_an_embedding_provider_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def quoting(texts: list[str]) -> list[list[float]]:
        raise ValueError(f"cannot embed '{texts[0]}', key {TOKEN}")

    store = InMemoryStore(index={"embed": quoting, "dims": 3})
    compactor = Compactor(keep=("messages", 2), archive=store, redact=True)
    with caplog.at_level(logging.DEBUG, logger="conspectus"):
        compacted(history(), compactor, force=True)
        compactor.recall(f"where is {KEY}?", thread_id="t")
    for line in ("archived without a semantic index", "recalled by words only"):
        assert line in caplog.text
    assert "ValueError" in caplog.text
    no_secret(caplog.text)


def test_off_unless_it_is_asked_for() -> None:
    compactor = engine(keep=("messages", 4))
    result = compacted(history(), compactor, force=True)
    assert result.redacted == {}
    assert TOKEN in compactor.recall(id="a1", thread_id="t").text


def test_the_middleware_its_hooks_and_the_preview_get_no_secret() -> None:
    events: list[Any] = []
    asked: list[Any] = []

    def ask(request: Any) -> str:
        asked.append(request)
        return f"{request.summary}\n- and {TOKEN}"

    own = SummarizationMiddleware(
        None,
        trigger=("messages", 10),
        keep=("messages", 4),
        archive=Archive(store := InMemoryStore()),
        redact="secrets",
        before_summarization=events.append,
        preview=ask,
    )
    update = own.before_model({"messages": history()}, Runtime())
    assert update is not None
    no_secret(repr(events))
    no_secret(repr(asked))
    no_secret(in_the_store(store))
    kept = [message for message in update["messages"] if message.id == "last"]
    assert TOKEN in kept[0].content
    no_secret(repr([m for m in update["messages"] if m.id != "last"]))


def test_a_hook_gets_no_object_that_nobody_can_look_into() -> None:
    class Session:
        def __repr__(self) -> str:
            return TOKEN

    events: list[Any] = []
    messages = history()
    messages[3] = messages[3].model_copy(update={"artifact": Session()})
    own = SummarizationMiddleware(
        None, trigger=("messages", 10), keep=("messages", 4), redact=True,
        before_summarization=events.append,
    )  # fmt: skip
    own.before_model({"messages": messages}, Runtime())
    no_secret(repr(events[0]))


def test_a_guard_of_its_own_redacts_and_one_with_a_middleware_says_where_it_belongs() -> None:
    guard = ContextGuard(window=4_000, archive="memory:", redact=True)
    assert guard._graph.engine.tools.redaction is not None
    with pytest.raises(PolicyError, match="pass it to the SummarizationMiddleware"):
        ContextGuard(SummarizationMiddleware(None), redact=True)


def test_short_term_memory_redacts() -> None:
    from conspectus.short_term import SummarizationNode, summarize_messages
    from conspectus.testing.scripted_models import ScriptedChatModel

    messages = [m for m in history() if m.type != "system"]
    read: list[Any] = []

    class Reader(ScriptedChatModel):
        def _generate(self, given: Any, *args: Any, **more: Any) -> Any:
            read.append(given)
            return super()._generate(given, *args, **more)

    store = InMemoryStore()
    result = summarize_messages(
        messages,
        running_summary=None,
        model=Reader(answers=["They deploy."] * 4),
        max_tokens=300,
        max_summary_tokens=64,
        archive=Archive(store),
        thread_id="t",
        redact=True,
    )
    assert result.running_summary is not None
    assert read
    no_secret(repr(read))
    no_secret(in_the_store(store))
    node = SummarizationNode(model=Reader(answers=["They deploy."] * 4), max_tokens=300,
                             max_summary_tokens=64, redact=True)  # fmt: skip
    read.clear()
    node.invoke({"messages": messages})
    assert read
    no_secret(repr(read))


def test_the_readable_files_of_deep_agents_hold_no_secret() -> None:
    pytest.importorskip("deepagents")
    import tempfile

    from deepagents.backends import StateBackend  # noqa: F401
    from deepagents.backends.filesystem import FilesystemBackend

    from conspectus.deep_agents import summarization_middleware
    from conspectus.testing.scripted_models import ScriptedChatModel

    with tempfile.TemporaryDirectory() as folder:
        backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        for archive in (None, "memory:"):
            own = summarization_middleware(
                ScriptedChatModel(answers=["- deployed [x]"] * 3),
                backend,
                trigger=("messages", 10),
                keep=("messages", 4),
                recall="off",
                archive=archive,
                redact=True,
            )
            own.before_model({"messages": history()}, Runtime())
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        assert files
        for file in files:
            no_secret(file.read_text("utf-8"))
        assert any("[redacted: github-token]" in file.read_text("utf-8") for file in files)


def test_readable_files_of_what_was_archived_before_there_was_a_redactor_hold_no_secret(
    tmp_path: Path,
) -> None:
    pytest.importorskip("deepagents")
    from deepagents.backends.filesystem import FilesystemBackend

    from conspectus.deep_agents import summarization_middleware
    from conspectus.testing.scripted_models import ScriptedChatModel

    archive = Archive(InMemoryStore())

    def middleware(**more: Any) -> Any:
        return summarization_middleware(
            ScriptedChatModel(answers=["- deployed [x]"] * 3),
            FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True),
            trigger=("messages", 10),
            keep=("messages", 4),
            recall="off",
            history="replace",
            archive=archive,
            **more,
        )

    update = middleware().before_model({"messages": history()}, Runtime())
    for file in tmp_path.rglob("*"):
        if file.is_file():
            file.unlink()
    state = {key: value for key, value in update.items() if "mirror" not in key}
    state["messages"] = update["messages"][1:]  # what left is read from the archive
    middleware(redact=True).before_model(state, Runtime())
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    for file in files:
        no_secret(file.read_text("utf-8"))


# Redactors that misbehave


def raises(text: str) -> str:
    raise ValueError(f"I saw {text}")


def hangs(text: str) -> str:
    time.sleep(1.5)
    return text


def no_text(text: str) -> Any:
    return None


async def asynchronous(text: str) -> str:
    return text


def grows(text: str) -> str:
    return text * 400


def never_done(text: str) -> str:
    return text + "!"


class Miscounts:
    identity = "miscounts"

    def redact(self, text: str, key: str | None = None) -> Any:
        return Redacted(text.replace(TOKEN, "gone"), {"x": "many"})  # type: ignore[dict-item]


class Misnamed:
    identity = "misnamed"

    def redact(self, text: str, key: str | None = None) -> Any:
        return 5


def empties(text: str) -> str:
    return ""


@pytest.mark.parametrize(
    ("redactor", "why"),
    [
        (raises, f"the redactor {__name__}.raises failed with ValueError"),
        (hangs, f"the redactor {__name__}.hangs did not answer within 0.05 seconds"),
        (no_text, "must return text, and returned NoneType"),
        (asynchronous, "must return text, and returned coroutine"),
        (grows, "characters of"),
        (never_done, "changes what it has redacted"),
        (Miscounts(), "must count by kind"),
        (Misnamed(), "or a text, and answered with int"),
    ],
)
@pytest.mark.parametrize("archived", [True, False])
def test_a_redactor_that_misbehaves_leaves_everything_as_it_was(
    redactor: Any, why: str, archived: bool
) -> None:
    store, asked = InMemoryStore(), []
    scripted = Scripted(lambda request: asked.append(request) or short(request))  # type: ignore[func-returns-value]
    compactor = Compactor(
        scripted,
        archive=Archive(store) if archived else None,
        redact=redactor,
        summarizer_timeout=0.05,
    )
    messages = history()
    result = compacted(messages, compactor, force=True)
    assert result.outcome == "kept"
    assert result.failed == "redaction"
    assert why in result.reason
    no_secret(result.reason)
    assert all(a is b for a, b in zip(result.messages, messages, strict=True))
    assert in_the_store(store) == "[]"
    assert not asked
    later = asyncio.run(compactor.acompact(messages, thread_id="u", force=True))
    assert (later.outcome, later.failed) == ("kept", "redaction")
    with pytest.raises(RedactionError, match=why):
        compacted(
            messages,
            Compactor(scripted, redact=redactor, summarizer_timeout=0.05, on_failure="raise"),
            force=True,
        )


def test_an_object_may_answer_with_a_text_as_functions_do() -> None:
    class Plain:
        identity = "plain"

        def redact(self, text: str, key: str | None = None) -> Any:
            return text.replace(TOKEN, "[gone]")

    result = compacted(history(), engine(Scripted(short), redact=Plain()), force=True)
    assert result.outcome == "compacted", result.reason
    assert result.redacted["redacted"] > 3


def test_a_redactor_that_leaves_nothing_is_told_as_what_failed() -> None:
    for scripted in (Scripted(short), Scripted(lambda request: "")):
        result = compacted(history(), engine(scripted, redact=empties), force=True)
        assert result.outcome == "kept"
        assert f"the redactor {__name__}.empties left nothing of" in result.reason


def test_a_redactor_that_hangs_is_asked_once_a_try() -> None:
    asked: list[str] = []

    def slow(text: str) -> str:
        asked.append(text)
        time.sleep(1)
        return text

    compactor = engine(Scripted(short), redact=slow, summarizer_timeout=0.05)
    assert compacted(history(), compactor, force=True).failed == "redaction"
    assert len(asked) == 1


@pytest.mark.parametrize("archive", ["memory:", None])
def test_a_guard_that_is_stuck_says_that_redaction_failed(archive: str | None) -> None:
    from langchain.agents import create_agent

    from conspectus.testing.scripted_models import ScriptedChatModel

    guard = ContextGuard(window=1_000, archive=archive, redact=raises)
    agent = create_agent(ScriptedChatModel(answers=["Yes."] * 3), middleware=[guard])
    long = [
        one
        for n in range(20)
        for one in (HumanMessage(f"Part {n} " * 60), AIMessage(f"Part {n} is read."))
    ]
    for _ in range(2):  # the second one tries nothing, and says why
        with pytest.raises(StuckError, match=r"redact.*raises failed with ValueError"):
            agent.invoke({"messages": [*long, HumanMessage("And now?")]})


def test_a_function_that_takes_no_text_is_refused() -> None:
    with pytest.raises(PolicyError, match="must take a text"):
        Compactor(redact=lambda: "")  # type: ignore[arg-type, misc]


def test_a_redactor_that_fails_once_does_no_lasting_harm() -> None:
    calls: list[str] = []

    def flaky(text: str) -> str:
        calls.append(text)
        if len(calls) == 3:
            raise OSError
        return text.replace(TOKEN, "[gone]")

    compactor = engine(Scripted(short), keep=("messages", 4), redact=flaky)
    assert compacted(history(), compactor, force=True).failed == "redaction"
    result = compacted(history(), compactor, force=True)
    assert result.outcome == "compacted", result.reason
    assert result.redacted["redacted"] > 3
    assert TOKEN not in compactor.recall(id="a1", thread_id="t").text


def test_where_a_redactor_fails_later_what_was_shown_short_is_shown_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken: list[bool] = []

    def sometimes(text: str) -> str:
        if broken:
            raise OSError
        return text.replace(PASSWORD, "[gone]")

    giant = HumanMessage(f"{PASSWORD} " * 900, id="g")
    messages = [giant, AIMessage("Yes.", id="a"), HumanMessage("Go.", id="u")]
    store = Archive(InMemoryStore())
    first = compacted(messages, engine(archive=store, window=2_000, redact=sometimes))
    assert first.clipped == 1
    broken.append(True)
    later = engine(archive=store, window=50_000, redact=sometimes)
    result = compacted(messages, later)
    assert result.messages[0] is giant
    assert "shown whole for now" in caplog.text


@pytest.mark.parametrize("wrong", ["passwords", 5, object(), SecretRedactor, ["x"]])
def test_what_cannot_redact_is_refused(wrong: Any) -> None:
    with pytest.raises(PolicyError, match="redact must be True"):
        Compactor(redact=wrong)


def test_another_redactor_makes_another_draft() -> None:
    """A draft that was made of other texts is not put in force."""
    store, asked = InMemoryStore(), []
    scripted = Scripted(lambda request: asked.append(request) or short(request))  # type: ignore[func-returns-value]

    def refuse(request: Any) -> None:
        return None

    def drafted(redact: Any) -> None:
        own = SummarizationMiddleware(
            None, summarizer=scripted, trigger=("messages", 10), keep=("messages", 4),
            archive=Archive(store), redact=redact, preview=refuse,
        )  # fmt: skip
        own.before_model({"messages": history()}, Runtime())

    drafted(None)
    drafted(None)
    assert len(asked) == 1
    drafted(lambda text: text.replace("module", "part"))
    drafted(True)
    assert len(asked) == 3


def test_a_redactor_of_ones_own_is_told_the_name_that_a_value_stands_under() -> None:
    seen: list[tuple[str, str | None]] = []

    class Own:
        identity = "own"

        def redact(self, text: str, key: str | None = None) -> Redacted:
            seen.append((text, key))
            return Redacted(text)

    compacted(history(), engine(Scripted(short), redact=Own()), force=True)
    assert (PASSWORD, "password") in seen


@pytest.mark.parametrize(
    "given",
    [
        {"name": "DB_PASSWORD", "value": PASSWORD},
        {"Value": PASSWORD, "Type": "String", "Name": "DB_PASSWORD"},
        {"key": "db-1", "name": "DB_PASSWORD", "value": PASSWORD},
        {"all": [{"ParameterKey": "DbPassword", "ParameterValue": PASSWORD}]},
        {"name": "admin password", "value": PASSWORD},
        {"name": "DB_PASSWORD", "value": 48127731},
    ],
)
@pytest.mark.parametrize("form", ["call", "block", "text"])
def test_a_name_that_stands_beside_a_value_tells_what_it_is(
    given: dict[str, Any], form: str
) -> None:
    call = {"name": "set_env", "id": "c", "args": given}
    raw = {"name": "set_env", "arguments": json.dumps(given)}
    spoken = {
        "call": AIMessage("", tool_calls=[call], id="a"),
        "block": AIMessage(
            [{"type": "tool_use", "id": "c", "name": "set_env", "input": given}], id="a"
        ),
        "text": AIMessage(
            "",
            id="a",
            additional_kwargs={"tool_calls": [{"id": "c", "type": "function", "function": raw}]},
        ),
    }[form]
    messages = [HumanMessage("set it", id="u"), spoken, ToolMessage("ok", tool_call_id="c", id="t")]
    messages += history()[-2:]
    compactor = engine(Scripted(short), keep=("messages", 1), redact=True)
    result = compacted(messages, compactor, force=True)
    assert result.redacted["password"] >= 1
    kept = repr(compactor.archive.export(SCOPE))  # type: ignore[union-attr, no-untyped-call]
    assert PASSWORD not in kept
    assert "48127731" not in kept


def test_a_sentence_beside_a_value_is_no_name() -> None:
    given = {"name": "Reset the password of ann", "value": "done-42x"}
    call = AIMessage("", tool_calls=[{"name": "note", "id": "c", "args": given}], id="a")
    compactor = engine(Scripted(short), keep=("messages", 1), redact=True)
    messages = [HumanMessage("x", id="u"), call, ToolMessage("ok", tool_call_id="c", id="t")]
    assert (
        compacted([*messages, *history()[-1:]], compactor, force=True).redacted.get("password")
        is None
    )


def test_sync_and_async_redact_the_same() -> None:
    results = []
    for drive in (
        lambda c: compacted(history(), c, force=True),
        lambda c: asyncio.run(c.acompact(history(), thread_id="t", force=True)),
    ):
        compactor = engine(Scripted(short), keep=("messages", 4), redact=True)
        results.append((drive(compactor), compactor.archive.export(SCOPE)))  # type: ignore[union-attr, no-untyped-call]
    (one, rows), (other, others) = results
    assert one.record == other.record
    assert one.redacted == other.redacted
    assert [row["message"] for row in rows] == [row["message"] for row in others]
