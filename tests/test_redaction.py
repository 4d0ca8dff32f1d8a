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
from graph_support import new_agent, thread_config, user_input
from redaction_support import MADE, PASSWORD, TOKEN, check_no_secret, history, text_of_store
from scripted_models import ScriptedChatModel


def archived_rows(compactor: Compactor) -> list[dict[str, Any]]:
    return list(compactor.archive.export(SCOPE))  # type: ignore[union-attr]


def test_a_secret_is_removed_from_all_messages():
    """What says that it is a secret may stand in another message than it does."""
    secret = MADE.password()
    number = "4812"
    call: Any = {"name": "run", "id": "c", "args": {"cmd": ["try", secret], "note": f"\\n{secret}"}}
    messages: list[BaseMessage] = [
        HumanMessage(f"Remember: always use {secret} to log in. Port {number}.", id="u1"),
        AIMessage("Tried it.", tool_calls=[call], id="a1"),
        ToolMessage("ok", tool_call_id="c", artifact={"log": secret.encode()}, id="t1"),
        HumanMessage(f"The admin password is {secret} ok? password: {number}", id="u2"),
        AIMessage(f"I keep {secret}.", id="a2"),
        HumanMessage(f"Now {secret} again.", id="u3"),
    ]
    store = InMemoryStore()
    requests = list[Any]()
    events = list[Any]()

    def quoting(request: Any) -> str:
        requests.append(request)
        return f"The user logs in with {secret} ({len(requests)})."  # from somewhere else

    compactor = new_compactor(
        Scripted(quoting), archive=Archive(store), keep=("messages", 2), redact=True,
        on_event=lambda name, data: events.append((name, dict(data))),
    )  # fmt: skip
    result = compacted(messages, compactor, force=True, focus=f"mind {secret}")
    assert result.outcome == "compacted", result.reason
    [request] = requests
    for output in (
        [repr(entry.source) for entry in (*request.entries, *request.kept)], request.focus,
        result.summary, str(result.record.to_json()), events, text_of_store(store),
    ):  # fmt: skip
        assert secret not in str(output)
    assert "always use [redacted: password]" in repr(result.record.notes)
    assert result.redacted["password"] == 6
    assert number in text_of_store(store)  # a plain number is not looked for elsewhere
    assert "[redacted: password]" in compactor.recall(id="u1", thread_id="t").text


def test_the_notes_so_far_lose_what_a_later_message_tells():
    secret = MADE.password()
    first: list[Any] = [HumanMessage(f"Always use {secret} for staging.", id="u1")]
    first += [AIMessage("Yes.", id="a1"), HumanMessage("Go on.", id="u2")]
    compactor = new_compactor(
        Scripted(lambda r: f"They use {secret}."), keep=("messages", 1), redact=True
    )
    first_result = compacted(first, compactor, force=True)
    assert secret in first_result.summary  # nothing says yet what it is
    longer = [*first_result.messages, AIMessage("Done.", id="a2")]
    longer += [HumanMessage(f"the password is {secret} by the way", id="u3")]
    longer += [AIMessage("Noted.", id="a3"), HumanMessage("And?", id="u4")]
    result = compacted(longer, compactor, force=True)
    assert result.outcome == "compacted", result.reason
    assert secret not in f"{result.summary} {result.record.to_json()}"
    assert "Always use" in result.summary


@pytest.mark.parametrize("notes", [False, True])
def test_a_summary_from_before_redaction_is_redacted_where_it_is_read(notes):
    """Redaction may be turned on, or made stricter, for a thread that has a summary already."""
    messages: list[Any] = [HumanMessage(f"My token is {TOKEN}.", id="u1")]
    messages += [AIMessage("I have it.", id="a1"), HumanMessage("Go on.", id="u2")]
    archive = Archive(InMemoryStore())
    settings: Any = {"archive": archive, "keep": ("messages", 1), "notes": notes}
    without_redaction = new_compactor(Scripted(lambda r: f"They use {TOKEN}."), **settings)
    first_result = compacted(messages, without_redaction, force=True)
    assert TOKEN in first_result.summary
    longer = [*first_result.messages, AIMessage("Done.", id="a2"), HumanMessage("And?", id="u3")]

    summarizer = Scripted(lambda r: f"So far: {r.summary_so_far}")
    redacting = new_compactor(summarizer, **settings, redact=True)
    result = compacted(longer, redacting, force=True)
    assert result.outcome == "compacted", result.reason
    [request] = summarizer.requests
    assert "They use [redacted: " in request.summary_so_far, "it is read, without the secret"
    check_no_secret(repr(request))
    check_no_secret(result.summary)
    check_no_secret(result.record.to_json())


LINES = "\n".join(f"{n} PASSWORD={PASSWORD} all is well here" for n in range(400))


def test_a_clipped_messages_original_has_no_secret():
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
    check_no_secret(archived_rows(compactor))
    assert compacted(messages, compactor).messages == result.messages
    second_result = compacted([*result.messages, HumanMessage("more", id="w")], compactor)
    assert second_result.messages[:-1] == result.messages


def test_an_old_summary_is_redacted_when_only_clipping():
    messages: list[Any] = [HumanMessage(f"My token is {TOKEN}.", id="u1")]
    messages += [AIMessage("I have it.", id="a1"), HumanMessage("Go on.", id="u2")]
    settings: Any = {"archive": Archive(InMemoryStore()), "notes": False}
    summarizer = Scripted(lambda r: f"They use {TOKEN}.")
    without_redaction = new_compactor(summarizer, **settings, keep=("messages", 1))
    first_result = compacted(messages, without_redaction, force=True)
    longer: list[Any] = [
        *first_result.messages,
        AIMessage("", tool_calls=[{"name": "run", "id": "c", "args": {}}], id="a"),
        ToolMessage(LINES, tool_call_id="c", name="run", id="t"),
        *[AIMessage(f"step {n}", id=f"s{n}") for n in range(30)],
        HumanMessage("And now?", id="v"),
    ]
    settings |= {"window": 6_000, "trigger": ("tokens", 3_000), "keep": ("messages", 28)}
    result = compacted(longer, new_compactor(**settings, redact=True))
    assert (result.evicted, result.clipped) == (0, 1), result.reason
    assert result.summary == "They use [redacted: github-token]."
    check_no_secret(result.record.to_json())


def test_a_nearly_all_secret_message_still_fits():
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
    "named_value",
    [
        {"name": "DB_PASSWORD", "value": PASSWORD},
        {"Value": PASSWORD, "Type": "String", "Name": "DB_PASSWORD"},
        {"key": "db-1", "name": "DB_PASSWORD", "value": PASSWORD},
        {"all": [{"ParameterKey": "DbPassword", "ParameterValue": PASSWORD}]},
        {"name": "admin password", "value": PASSWORD},
        {"name": "DB_PASSWORD", "value": 48127731},
        {"cmd": ["mysql", "--password", PASSWORD]},
        {"password": [PASSWORD]},
        {"db_password": {"value": PASSWORD}},
        {"db_password": [{"value": PASSWORD}]},
        {"db_password": {"sensitive": True, "type": "string", "value": PASSWORD}},
    ],
)
@pytest.mark.parametrize("form", ["call", "block", "text"])
def test_a_name_that_stands_beside_a_value_tells_what_it_is(named_value, form):
    call: Any = {"name": "set_env", "id": "c", "args": named_value}
    use = {"type": "tool_use", "id": "c", "name": "set_env", "input": named_value}
    function = {"name": "set_env", "arguments": json.dumps(named_value)}
    raw = {"tool_calls": [{"id": "c", "function": function}]}
    fields = {
        "call": {"content": "", "tool_calls": [call]},
        "block": {"content": [use]},
        "text": {"content": "", "additional_kwargs": raw},
    }[form]
    messages: list[Any] = [HumanMessage("set it", id="u"), AIMessage(id="a", **fields)]
    messages += [ToolMessage("ok", tool_call_id="c", id="t"), *history()[-2:]]
    compactor = new_compactor(Scripted(short_summary), keep=("messages", 1), redact=True)
    assert compacted(messages, compactor, force=True).redacted["password"] >= 1
    assert not any(secret in repr(archived_rows(compactor)) for secret in (PASSWORD, "48127731"))


def test_the_middleware_its_hooks_and_the_preview_get_no_secret():
    class Session:
        def __repr__(self) -> str:
            return TOKEN

    events = list[Any]()
    previews = list[Any]()
    messages = history()
    messages[3] = messages[3].model_copy(update={"artifact": Session()})
    store = InMemoryStore()

    def with_token(request: Any) -> str:
        previews.append(request)
        return f"{request.summary[:-80]}\n- and {TOKEN}"

    middleware = SummarizationMiddleware(
        None, trigger=("messages", 10), keep=("messages", 4), archive=Archive(store),
        redact="secrets", before_summarization=events.append, preview=with_token,
    )  # fmt: skip
    update = middleware.before_model({"messages": messages}, Runtime())
    for output in (repr(events), repr(previews), text_of_store(store)):
        check_no_secret(output)
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

    earlier_archive = Archive(InMemoryStore()) if archive == "archived before" else None

    def middleware(**settings: Any) -> Any:
        return summarization_middleware(
            ScriptedChatModel(answers=["- deployed"] * 3),
            FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True),
            trigger=("messages", 10), keep=("messages", 4), recall="off", history="replace",
            archive=earlier_archive or archive, **settings,
        )  # fmt: skip

    def files() -> list[Path]:
        return [file for file in tmp_path.rglob("*") if file.is_file()]

    state: dict[str, Any] = {"messages": history()}
    if earlier_archive is not None:  # there was no redactor then
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
            compactor = new_compactor(
                summarizer, redact=True, telemetry=events.append, on_failure=on_failure,
                on_event=lambda name, data: events.append(dict(data)),
            )  # fmt: skip
            with contextlib.suppress(SummaryError):
                result = compacted(history(), compactor, force=True, focus=TOKEN)
                reasons += [f"{result.reason} {result.record}"]
    for output in (repr(events), caplog.text, reasons):
        check_no_secret(output)
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


MISBEHAVING: list[tuple[Any, str]] = [
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


@pytest.mark.parametrize(("redactor", "reason"), MISBEHAVING)
@pytest.mark.parametrize("archived", [True, False])
def test_a_redactor_that_misbehaves_leaves_everything_as_it_was(redactor, reason, archived):
    store = InMemoryStore()
    summary_requests = list[Any]()
    scripted = Scripted(lambda request: summary_requests.append(request) or short_summary(request))  # type: ignore[func-returns-value]
    settings: dict[str, Any] = {"redact": redactor, "summarizer_timeout": 0.05}
    compactor = Compactor(scripted, archive=Archive(store) if archived else None, **settings)
    messages = history()
    result = compacted(messages, compactor, force=True)
    assert (result.outcome, result.failed) == ("kept", "redaction")
    assert reason in result.reason
    check_no_secret(result.reason)
    assert all(a is b for a, b in zip(result.messages, messages, strict=True))
    check_no_secret(text_of_store(store))
    assert Archive(store).export(SCOPE) == []
    assert not summary_requests
    async_result = asyncio.run(compactor.acompact(messages, thread_id="u", force=True))
    assert (async_result.outcome, async_result.failed) == ("kept", "redaction")
    with pytest.raises(RedactionError, match=reason):
        compacted(messages, Compactor(scripted, on_failure="raise", **settings), force=True)


class Quoting(InMemoryStore):
    """A store that is away for a while, with an error that quotes a secret."""

    is_away = False

    def batch(self, ops: Any) -> Any:
        if self.is_away:
            raise OSError(f"no route to host, password: {PASSWORD}")
        return super().batch(ops)


def test_an_archives_error_is_redacted_in_every_log(caplog):
    store = Quoting()
    summarization = SummarizationMiddleware(
        None, trigger=("messages", 6), keep=("messages", 2), recall="auto", redact=True
    )
    graph, _ = new_agent(lambda messages: "Fine.", summarization, store=store)
    for turn in range(5):
        graph.invoke(user_input(f"What about part {turn}?"), thread_config())
    store.is_away = True
    with caplog.at_level(logging.INFO, "conspectus"):
        graph.invoke(user_input("What about part 0, once more?"), thread_config())
    events = {record.conspectus["event"] for record in caplog.records}
    assert {"recall_failed", "head_unknown"} & events
    check_no_secret(caplog.text)
