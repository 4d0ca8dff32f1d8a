"""Each part of the library that keeps or sends something has a redactor too; none tells."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Archive, ContextGuard, PolicyError, SummarizationMiddleware
from redaction_support import TOKEN, history, in_the_store, no_secret
from scripted_models import ScriptedChatModel


def test_the_middleware_its_hooks_and_the_preview_get_no_secret():
    events: list[Any] = []
    asked: list[Any] = []

    def ask(request: Any) -> str:
        asked.append(request)
        return f"{request.summary[:-80]}\n- and {TOKEN}"

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
    no_secret(repr(events))
    no_secret(repr(asked))
    no_secret(in_the_store(store))
    kept = [message for message in update["messages"] if message.id == "last"]
    assert TOKEN in kept[0].content
    no_secret(repr([m for m in update["messages"] if m.id != "last"]))


def test_a_hook_gets_no_object_that_nobody_can_look_into():
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


def test_a_guard_of_its_own_redacts_and_one_with_a_middleware_says_where_it_belongs():
    ContextGuard(window=4_000, archive="memory:", redact=True)
    with pytest.raises(PolicyError, match="pass it to the SummarizationMiddleware"):
        ContextGuard(SummarizationMiddleware(None), redact=True)


def test_short_term_memory_redacts():
    from conspectus.short_term import SummarizationNode, summarize_messages

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


def test_the_readable_files_of_deep_agents_hold_no_secret():
    pytest.importorskip("deepagents")
    import tempfile

    from deepagents.backends import StateBackend  # noqa: F401
    from deepagents.backends.filesystem import FilesystemBackend

    from conspectus.deep_agents import summarization_middleware

    with tempfile.TemporaryDirectory() as folder:
        backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        for archive in (None, "memory:"):
            own = summarization_middleware(
                ScriptedChatModel(answers=["- deployed"] * 3),
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


def test_readable_files_of_what_was_archived_before_there_was_a_redactor_hold_no_secret(tmp_path):
    pytest.importorskip("deepagents")
    from deepagents.backends.filesystem import FilesystemBackend

    from conspectus.deep_agents import summarization_middleware

    archive = Archive(InMemoryStore())

    def middleware(**more: Any) -> Any:
        return summarization_middleware(
            ScriptedChatModel(answers=["- deployed"] * 3),
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
