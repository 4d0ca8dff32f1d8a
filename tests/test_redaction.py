"""Where there is a redactor, no secret gets into anything that is kept, read, indexed or told.

The secrets are put together when the tests run; see `made_secrets`.
"""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, Redacted, SummarizationMiddleware
from conspectus.messages import read_messages
from engine import SCOPE, Scripted, compacted, engine, short
from redaction_support import MADE, PASSWORD, TOKEN, history, in_the_store, no_secret


def test_nothing_that_is_kept_holds_a_secret_and_what_was_done_is_counted():
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
        request.notes, request.focus, result.summary, str(result.record.to_json()),
        told, in_the_store(store), left,
    ):  # fmt: skip
        no_secret(seen)
    assert request.focus == "keep [redacted: github-token] in mind"
    counted = {"github-token", "password", "api-key", "bearer-token"}
    assert set(result.redacted) == counted
    assert result.record.redacted == result.redacted
    assert told[-1][1]["redacted"] == result.redacted
    assert messages == before
    assert result.messages[-1] is messages[-1]  # in view, untouched
    [record] = compactor.archive.chain(SCOPE)
    assert record == result.record
    found = compactor.recall(id="t1", thread_id="t").text
    assert "[redacted: password]" in found
    no_secret(found)
    no_secret(compactor.recall("password module", thread_id="t").text)
    no_secret(json.dumps(compactor.archive.export(SCOPE)))


def test_a_secret_that_one_message_tells_goes_wherever_it_stands_in_the_same_compaction():
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
        result.summary, str(result.record.to_json()), told, in_the_store(store),
    ):  # fmt: skip
        assert bare not in str(seen)
    assert "always use [redacted: password]" in repr(result.record.segment)
    assert result.redacted["password"] == 6
    assert number in in_the_store(store)  # a plain number is not looked for elsewhere
    assert result.messages[-1] is messages[-1]  # in view, untouched
    assert bare in messages[-1].content
    assert "[redacted: password]" in compactor.recall(id="u1", thread_id="t").text


def test_the_notes_so_far_lose_what_a_later_message_tells():
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
    assert bare not in str(result.record.to_json())
    assert "Always use" in result.summary


def test_a_redactor_of_ones_own_names_values_that_go_everywhere():
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


def test_keys_are_those_of_the_messages_as_sent_so_a_history_sent_again_is_recognised():
    compactor = engine(Scripted(short), keep=("messages", 4), redact=True)
    messages = history()
    first = compacted(messages, compactor, force=True)
    entries = {entry.key for entry in read_messages(messages)}
    assert set(first.record.covers) <= entries
    again = compacted(messages, compactor)
    assert again.outcome == "kept"
    assert again.dropped == first.evicted
    assert again.messages == first.messages
    assert again.record is None
    assert not compactor.archive.missing(SCOPE, [])  # type: ignore[union-attr]


def test_a_message_shown_short_shows_no_secret_and_is_shown_so_again():
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("before", "now"), [(None, True), (True, None), (True, lambda text: text.replace(PASSWORD, ""))]
)
def test_a_message_shown_short_is_still_read_whole_once_it_is_redacted_otherwise(before, now):
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


def test_a_message_that_was_nearly_all_secret_still_fits_and_says_what_it_is():
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


def test_off_unless_it_is_asked_for():
    compactor = engine(keep=("messages", 4))
    result = compacted(history(), compactor, force=True)
    assert result.redacted == {}
    assert TOKEN in compactor.recall(id="a1", thread_id="t").text


def test_another_redactor_makes_another_draft():
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
def test_a_name_that_stands_beside_a_value_tells_what_it_is(given, form):
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


def test_sync_and_async_redact_the_same():
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
