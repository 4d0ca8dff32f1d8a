"""Where there is a redactor, no secret gets into anything that is kept, read, indexed or told.

The secrets are put together when the tests run; see `made_secrets`.
"""

import asyncio
import contextlib
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from compactor_support import SCOPE, Scripted, compacted, new_compactor, short_summary
from conspectus import (
    Archive,
    Compactor,
    ContextGuard,
    PolicyError,
    Redacted,
    RedactionError,
    SummarizationMiddleware,
    SummaryError,
)
from redaction_support import MADE, PASSWORD, TOKEN, check_no_secret, history, text_of_store
from scripted_models import ScriptedChatModel


def kept_rows(compactor: Compactor) -> list[dict[str, Any]]:
    return list(compactor.archive.export(SCOPE))  # type: ignore[union-attr]


def test_a_secret_that_one_message_tells_goes_wherever_it_stands_in_the_same_compaction():
    """What says that it is a secret may stand in another message than it does."""
    bare = MADE.password()
    number = "4812"
    call: Any = {"name": "run", "id": "c", "args": {"cmd": ["try", bare], "note": f"\\n{bare}"}}
    messages: list[BaseMessage] = [
        HumanMessage(f"Remember: always use {bare} to log in. Port {number}.", id="u1"),
        AIMessage("Tried it.", tool_calls=[call], id="a1"),
        ToolMessage("ok", tool_call_id="c", artifact={"log": bare.encode()}, id="t1"),
        HumanMessage(f"The admin password is {bare} ok? password: {number}", id="u2"),
        AIMessage(f"I keep {bare}.", id="a2"),
        HumanMessage(f"Now {bare} again.", id="u3"),
    ]
    store = InMemoryStore()
    requests = list[Any]()
    events = list[Any]()

    def quoting(request: Any) -> str:
        requests.append(request)
        return f"The user logs in with {bare} ({len(requests)})."  # from somewhere else

    compactor = new_compactor(
        Scripted(quoting), archive=Archive(store), keep=("messages", 2), redact=True,
        on_event=lambda name, data: events.append((name, dict(data))),
    )  # fmt: skip
    result = compacted(messages, compactor, force=True, focus=f"mind {bare}")
    assert result.outcome == "compacted", result.reason
    [request] = requests
    for seen in (
        [repr(entry.source) for entry in (*request.entries, *request.kept)], request.focus,
        result.summary, str(result.record.to_json()), events, text_of_store(store),
    ):  # fmt: skip
        assert bare not in str(seen)
    assert "always use [redacted: password]" in repr(result.record.notes)
    assert result.redacted["password"] == 6
    assert number in text_of_store(store)  # a plain number is not looked for elsewhere
    assert "[redacted: password]" in compactor.recall(id="u1", thread_id="t").text


def test_the_notes_so_far_lose_what_a_later_message_tells():
    bare = MADE.password()
    first: list[Any] = [HumanMessage(f"Always use {bare} for staging.", id="u1")]
    first += [AIMessage("Yes.", id="a1"), HumanMessage("Go on.", id="u2")]
    compactor = new_compactor(
        Scripted(lambda r: f"They use {bare}."), keep=("messages", 1), redact=True
    )
    before = compacted(first, compactor, force=True)
    assert bare in before.summary  # nothing says yet what it is
    more = [*before.messages, AIMessage("Done.", id="a2")]
    more += [HumanMessage(f"the password is {bare} by the way", id="u3")]
    more += [AIMessage("Noted.", id="a3"), HumanMessage("And?", id="u4")]
    result = compacted(more, compactor, force=True)
    assert result.outcome == "compacted", result.reason
    assert bare not in f"{result.summary} {result.record.to_json()}"
    assert "Always use" in result.summary


LINES = "\n".join(f"{n} PASSWORD={PASSWORD} all is well here" for n in range(400))


def test_a_truncated_message_stays_as_it_was_and_its_archived_original_holds_no_secret():
    messages: list[BaseMessage] = [
        HumanMessage("Go on.", id="u"),
        AIMessage("", tool_calls=[{"name": "run", "id": "c", "args": {}}], id="a"),
        ToolMessage(LINES, tool_call_id="c", name="run", id="t"),
        *[AIMessage(f"step {n}", id=f"s{n}") for n in range(30)],
        HumanMessage("And now?", id="v"),
    ]
    compactor = new_compactor(
        window=6_000, trigger=("tokens", 1_000), keep=("messages", 28), redact=True
    )
    result = compacted(messages, compactor)
    assert (result.clipped, result.redacted) == (1, {"password": 400}), result.reason
    shown = next(m for m in result.messages if m.id == "t")
    assert shown.content.startswith(LINES[:20])
    assert "archived as t" in shown.content
    check_no_secret(kept_rows(compactor))
    assert compacted(messages, compactor).messages == result.messages
    back = compacted([*result.messages, HumanMessage("more", id="w")], compactor)
    assert back.messages[:-1] == result.messages


def test_a_message_that_was_nearly_all_secret_still_fits_and_says_what_it_is():
    key = MADE.pem(lines=300)
    messages = [HumanMessage(key, id="k"), AIMessage("I have it.", id="a"), HumanMessage("Go.")]
    compactor = new_compactor(window=2_000, redact=True, keep=("messages", 20))
    result = compacted(messages, compactor)
    assert result.outcome == "compacted", result.reason
    assert result.tokens_after <= 2_000
    assert key.split("\n")[40] not in repr(result.messages)
    assert result.redacted == {"private-key": 1}
    assert compacted(messages, compactor).messages == result.messages


@pytest.mark.parametrize(
    "named",
    [
        {"name": "DB_PASSWORD", "value": PASSWORD},
        {"Value": PASSWORD, "Type": "String", "Name": "DB_PASSWORD"},
        {"key": "db-1", "name": "DB_PASSWORD", "value": PASSWORD},
        {"all": [{"ParameterKey": "DbPassword", "ParameterValue": PASSWORD}]},
        {"name": "admin password", "value": PASSWORD},
        {"name": "DB_PASSWORD", "value": 48127731},
        {"cmd": ["mysql", "--password", PASSWORD]},
        {"password": [PASSWORD]},
    ],
)
@pytest.mark.parametrize("form", ["call", "block", "text"])
def test_a_name_that_stands_beside_a_value_tells_what_it_is(named, form):
    call: Any = {"name": "set_env", "id": "c", "args": named}
    use = {"type": "tool_use", "id": "c", "name": "set_env", "input": named}
    function = {"name": "set_env", "arguments": json.dumps(named)}
    raw = {"tool_calls": [{"id": "c", "function": function}]}
    spoken = {
        "call": {"content": "", "tool_calls": [call]},
        "block": {"content": [use]},
        "text": {"content": "", "additional_kwargs": raw},
    }[form]
    messages: list[Any] = [HumanMessage("set it", id="u"), AIMessage(id="a", **spoken)]
    messages += [ToolMessage("ok", tool_call_id="c", id="t"), *history()[-2:]]
    compactor = new_compactor(Scripted(short_summary), keep=("messages", 1), redact=True)
    assert compacted(messages, compactor, force=True).redacted["password"] >= 1
    assert not any(one in repr(kept_rows(compactor)) for one in (PASSWORD, "48127731"))


def test_the_middleware_its_hooks_and_the_preview_get_no_secret():
    class Session:
        def __repr__(self) -> str:
            return TOKEN

    events = list[Any]()
    asked = list[Any]()
    messages = history()
    messages[3] = messages[3].model_copy(update={"artifact": Session()})
    own = SummarizationMiddleware(
        None, trigger=("messages", 10), keep=("messages", 4),
        archive=Archive(store := InMemoryStore()), redact="secrets",
        before_summarization=events.append,
        preview=lambda request: asked.append(request) or f"{request.summary[:-80]}\n- and {TOKEN}",  # type: ignore[func-returns-value]
    )  # fmt: skip
    update = own.before_model({"messages": messages}, Runtime())
    for seen in (repr(events), repr(asked), text_of_store(store)):
        check_no_secret(seen)
    shown = {message.id: message for message in update["messages"]}
    assert TOKEN in shown.pop("last").content
    check_no_secret(repr(shown))


def test_a_guard_with_a_middleware_says_where_redaction_belongs():
    ContextGuard(window=4_000, archive="memory:", redact=True)
    with pytest.raises(PolicyError, match="pass it to the SummarizationMiddleware"):
        ContextGuard(SummarizationMiddleware(None), redact=True)


def test_short_term_memory_redacts():
    from conspectus.short_term import SummarizationNode, summarize_messages

    messages = [m for m in history() if m.type != "system"]
    reader, node = (ScriptedChatModel(answers=["They deploy."] * 4) for _ in range(2))
    store = InMemoryStore()
    limits = {"max_tokens": 300, "max_summary_tokens": 64, "redact": True}
    result = summarize_messages(
        messages, running_summary=None, model=reader, archive=Archive(store), thread_id="t",
        **limits,  # type: ignore[arg-type]
    )  # fmt: skip
    assert result.running_summary is not None
    SummarizationNode(model=node, **limits).invoke({"messages": messages})  # type: ignore[arg-type]
    for model in (reader, node):
        assert model.calls
        check_no_secret(repr(model.calls))
    check_no_secret(text_of_store(store))


@pytest.mark.parametrize("archive", [None, "memory:", "archived before"])
def test_the_readable_files_of_deep_agents_hold_no_secret(archive, tmp_path):
    pytest.importorskip("deepagents")
    from deepagents.backends import StateBackend  # noqa: F401
    from deepagents.backends.filesystem import FilesystemBackend

    from conspectus.deep_agents import summarization_middleware

    before = Archive(InMemoryStore()) if archive == "archived before" else None

    def middleware(**more: Any) -> Any:
        return summarization_middleware(
            ScriptedChatModel(answers=["- deployed"] * 3),
            FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True),
            trigger=("messages", 10), keep=("messages", 4), recall="off", history="replace",
            archive=before or archive, **more,
        )  # fmt: skip

    def files() -> list[Path]:
        return [file for file in tmp_path.rglob("*") if file.is_file()]

    state: dict[str, Any] = {"messages": history()}
    if before is not None:  # there was no redactor then
        update = middleware().before_model(state, Runtime())
        for file in files():
            file.unlink()
        state = {key: value for key, value in update.items() if "mirror" not in key}
        state["messages"] = update["messages"][1:]
    middleware(redact=True).before_model(state, Runtime())
    texts = [file.read_text("utf-8") for file in files()]
    assert any("[redacted: " in text for text in texts)
    for text in texts:
        check_no_secret(text)


@pytest.mark.parametrize("on_failure", ["keep", "raise"])
def test_no_listener_record_or_log_is_told_of_a_secret(on_failure, caplog):
    """Neither by a summariser that knows more, nor by an error that quotes."""
    events: list[Any] = []

    def fail(_: Any) -> str:
        raise ValueError(f"400: cannot read {TOKEN}")

    def wordy(_: Any) -> str:
        return f"- the token is {TOKEN} [x]"

    class Own(Scripted):
        def summarize(self, request: Any) -> Any:
            return fail(request)

    reasons = []
    with caplog.at_level(logging.DEBUG):
        for summarizer in (fail, Own(short_summary), Scripted(fail), Scripted(wordy)):
            careful = new_compactor(
                summarizer, redact=True, telemetry=events.append, on_failure=on_failure,
                on_event=lambda name, data: events.append(dict(data)),
            )  # fmt: skip
            with contextlib.suppress(SummaryError):
                result = compacted(history(), careful, force=True, focus=TOKEN)
                reasons += [f"{result.reason} {result.record}"]
    for seen in (repr(events), caplog.text, reasons):
        check_no_secret(seen)
    assert "messages archived" in caplog.text
    messages = [getattr(event, "error_message", "") or "" for event in events]
    assert any("[redacted: github-token]" in message for message in messages)


def raises(text: str) -> str:
    raise ValueError(f"I saw {text}")


def hangs(text: str) -> str:
    time.sleep(0.4)
    return text


async def redact_later(text: str) -> str:
    return text


class Answers:
    identity = "answers 1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def redact(self, text: str, key: str | None = None) -> Any:
        return self.answer


WRONG: list[tuple[Any, str]] = [
    (raises, f"the redactor {__name__}.raises failed with ValueError"),
    (hangs, f"the redactor {__name__}.hangs did not answer within 0.05 seconds"),
    (lambda text: None, "and answered with NoneType"),
    (lambda text: text * 400, "characters of"),
    (lambda text: text + "!", "changes its own marks"),
    (Answers(Redacted("gone", {"x": "many"})), "failed with TypeError"),  # type: ignore[dict-item]
    (redact_later, "and answered with coroutine"),
]


def test_a_summary_of_which_the_redactor_leaves_nothing_is_none():
    result = compacted(
        history(), Compactor(Scripted(short_summary), redact=lambda text: ""), force=True
    )
    assert result.failed == "redaction"
    assert "left nothing of the summary" in result.reason


@pytest.mark.parametrize(("redactor", "why"), WRONG)
@pytest.mark.parametrize("archived", [True, False])
def test_a_redactor_that_misbehaves_leaves_everything_as_it_was(redactor, why, archived):
    store = InMemoryStore()
    asked = list[Any]()
    scripted = Scripted(lambda request: asked.append(request) or short_summary(request))  # type: ignore[func-returns-value]
    given: dict[str, Any] = {"redact": redactor, "summarizer_timeout": 0.05}
    compactor = Compactor(scripted, archive=Archive(store) if archived else None, **given)
    messages = history()
    result = compacted(messages, compactor, force=True)
    assert (result.outcome, result.failed) == ("kept", "redaction")
    assert why in result.reason
    check_no_secret(result.reason)
    assert all(a is b for a, b in zip(result.messages, messages, strict=True))
    check_no_secret(text_of_store(store))
    assert Archive(store).export(SCOPE) == []
    assert not asked
    later = asyncio.run(compactor.acompact(messages, thread_id="u", force=True))
    assert (later.outcome, later.failed) == ("kept", "redaction")
    with pytest.raises(RedactionError, match=why):
        compacted(messages, Compactor(scripted, on_failure="raise", **given), force=True)
