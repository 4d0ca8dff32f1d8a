"""What the middleware promises beyond LangChain's: settings, archive, failures, foreign summaries.

What it has in common with LangChain's is in `test_langchain_conformance.py`.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus.archive import Archive, Scope
from conspectus.errors import PolicyError
from conspectus.langchain import SummarizationMiddleware
from conspectus.messages import is_summary_message
from scripted_models import ScriptedChatModel

SUMMARY = "- the parts were looked at"


def writer(*answers: Any, **more: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=list(answers) or (lambda _: SUMMARY), **more)


def talk(count: int, words: int = 10, start: int = 0) -> list[AnyMessage]:
    """Questions and answers in turn, the newest of them a question."""
    return [
        HumanMessage(f"What does part {n} do? " + "why " * words, id=f"m{n}")
        if (start + count - n) % 2
        else AIMessage(f"Part {n} reads. " + "so " * words, id=f"m{n}")
        for n in range(start, start + count)
    ]


def made(model: Any = None, **settings: Any) -> SummarizationMiddleware:
    settings = {"trigger": ("messages", 6), "keep": ("messages", 3), **settings}
    return SummarizationMiddleware(writer() if model is None else model, **settings)


def step(middleware: SummarizationMiddleware, messages: list[AnyMessage], **state: Any) -> Any:
    return middleware.before_model({"messages": messages, **state}, Runtime())


def kept(update: Any) -> list[Any]:
    return [m.id for m in update["messages"][1:] if not is_summary_message(m)]


def text(update: Any) -> str:
    return str(next(m for m in update["messages"] if is_summary_message(m)).content)


def runtime(**more: Any) -> Any:
    """A runtime as a graph gives it."""
    return SimpleNamespace(
        store=more.get("store"),
        stream_writer=more.get("stream_writer"),
        server_info=more.get("server_info"),
        execution_info=SimpleNamespace(thread_id="t", checkpoint_ns=""),
        context=more.get("context"),
    )


def archived(store: Any, tenant: str = "local", thread: str = "t") -> list[str]:
    """Ids of the originals that a thread's head can reach."""
    archive, scope = Archive(store), Scope(tenant, thread, "main")
    keys = [key for record in archive.chain(scope) for key in record.covers]
    return [found.message.id for found in archive.get(scope, keys)]


# Settings that mean nothing


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"history": "both"}, 'history must be "replace" or "preserve"'),
        ({"on_failure": "ignore"}, "on_failure must be one of"),
        ({"name": ""}, "name must be a text"),
        ({"archive": 7}, "archive must be a path"),
        ({"trim_tokens_to_summarize": 0}, "trim_tokens_to_summarize must be"),
        ({"fallbacks": [7]}, "cannot summarise"),
        ({"fallbacks": "embedded"}, "fallbacks must be a list"),
        ({"on_event": 3}, "on_event must be"),
        ({"preview": "yes"}, "preview must be True, False or a callable"),
        ({"summary_prompt": "nothing to fill"}, "{messages}"),
    ],
)
def test_a_setting_that_means_nothing_is_refused_when_built(wrong, says):
    with pytest.raises(PolicyError) as refused:
        made(**wrong)
    assert says in str(refused.value)


# Pins


def test_a_message_that_carries_the_marker_stays():
    history = talk(7)
    history[0].additional_kwargs["keep_me"] = True
    history[2].additional_kwargs["keep_me"] = False
    assert kept(step(made(pin="keep_me"), history)) == ["m0", "m4", "m5", "m6"]


# Archive and tenant


def test_an_archive_of_its_own_goes_before_the_store_of_the_agent():
    own, agents = InMemoryStore(), InMemoryStore()
    made(archive=own).before_model({"messages": talk(7)}, runtime(store=agents))
    assert archived(own) == ["m0", "m1", "m2", "m3"]
    assert not agents.list_namespaces()


def test_without_archive_and_store_one_line_in_the_log_says_so(caplog):
    middleware = made()
    for _ in range(3):
        assert step(middleware, talk(7))
    lines = [r.message for r in caplog.records if "no archive was given" in r.message]
    assert len(lines) == 1
    assert "cannot be recalled" in lines[0]


def test_without_trigger_nothing_is_summarised_and_one_line_says_so(caplog):
    middleware = made(trigger=None)
    for count in (7, 100, 400):
        assert step(middleware, talk(count)) is None
    assert sum("nothing is summarised" in r.message for r in caplog.records) == 1


def user(identity: str) -> Any:
    return SimpleNamespace(user=SimpleNamespace(identity=identity))


@pytest.mark.parametrize(
    ("tenant", "run", "expected"),
    [
        (None, {}, "local"),
        (None, {"server_info": user("ada")}, "ada"),
        ("acme", {"server_info": user("ada")}, "acme"),
        (lambda run: run.context["org"], {"context": {"org": "umbrella"}}, "umbrella"),
        (lambda run: None, {"server_info": user("ada")}, "local"),
    ],
    ids=["local", "authenticated user", "text", "callable", "callable without one"],
)
def test_originals_are_archived_for_the_tenant(tenant, run, expected):
    store = InMemoryStore()
    middleware = made(archive=store, tenant=tenant)
    middleware.before_model({"messages": talk(7)}, runtime(**run))
    assert archived(store, expected) == ["m0", "m1", "m2", "m3"]
    assert archived(store, "somebody else") == []


def test_the_tenant_is_never_read_from_the_state():
    store = InMemoryStore()
    middleware = made(archive=store, tenant="acme")
    forged = {"v": 1, "thread": "t", "session": "main", "head": None, "tenant": "umbrella"}
    state = {"messages": talk(7), "tenant": "umbrella", "_conspectus": forged}
    middleware.before_model(state, runtime())
    assert archived(store, "acme")
    assert not archived(store, "umbrella")


# The history stays in the state


def test_preserved_and_replaced_show_the_model_the_same():
    def run(history: Any) -> list[list[Any]]:
        seen: list[list[Any]] = []

        def answer(messages: list[Any]) -> AIMessage:
            seen.append([m.text for m in messages])
            return AIMessage("yes", id=f"a{len(seen)}")

        agent = create_agent(
            ScriptedChatModel(answers=answer),
            middleware=[made(history=history)],
            checkpointer=InMemorySaver(),
        )
        config: Any = {"configurable": {"thread_id": "t"}}
        for n in range(12):
            agent.invoke({"messages": [HumanMessage(f"part {n}?", id=f"m{n}")]}, config)
        return seen

    assert run("preserve") == run("replace")


# Summaries of others
