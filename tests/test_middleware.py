"""What the middleware promises beyond LangChain's: settings, warnings, copies, archive, tenants."""

import copy
import pickle
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware as LangChains
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from conspectus import Compactor, ContextGuard
from conspectus.archive import Archive, Scope
from conspectus.errors import PolicyError
from conspectus.langchain import SummarizationMiddleware, step_update
from conspectus.langchain.cache import SessionCache
from conspectus.messages import is_summary_message
from scripted_models import ScriptedChatModel

SUMMARY = "- the parts were looked at"


def summarise(messages: Any) -> str:
    """Stay a module's function, so that it can be pickled."""
    return f"- {len(messages)} parts were looked at"


def writer(text: str = SUMMARY, **options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(answers=lambda _: text, **options)


def talk(count: int = 8, who: str = "m") -> list[AnyMessage]:
    kinds = (AIMessage, HumanMessage)
    return [kinds[n % 2](f"What does part {n} do?", id=f"{who}{n}") for n in range(count)]


def new_middleware(model: Any = None, **settings: Any) -> SummarizationMiddleware:
    settings = {"trigger": ("messages", 6), "keep": ("messages", 3), **settings}
    return SummarizationMiddleware(model or writer(), **settings)


def run_step(middleware: SummarizationMiddleware, count: int = 8, who: str = "m") -> Any:
    return middleware.before_model({"messages": talk(count, who)}, Runtime())


def kept_messages(update: Any) -> int | None:
    return update and sum(not is_summary_message(message) for message in update["messages"][1:])


def summary_text(update: Any) -> str:
    return str(update["messages"][1].content)


def test_the_counter_the_model_and_who_summarises():
    middleware = new_middleware(trigger=("tokens", 1_500))
    other_model = writer("- by the other one")
    other_model.profile = {"max_input_tokens": 4_000}
    assert run_step(middleware, 16) is None
    middleware.token_counter = lambda messages: 100 * len(list(messages))
    assert kept_messages(run_step(middleware, 16)) == 3
    middleware.keep = ("tokens", 400)
    assert kept_messages(run_step(middleware, 16)) == 4
    middleware.model = other_model
    assert "by the other one" in summary_text(run_step(middleware, 16))
    middleware.summary_prompt = "As a haiku, of: {messages}"
    run_step(middleware, 16)
    assert "As a haiku, of: " in other_model.calls[-1].text
    middleware.trigger = ("fraction", 0.01)
    middleware.window = 400_000
    assert run_step(middleware) is None
    middleware.window = None
    middleware.summarizer = lambda messages: f"- {len(messages)} messages"
    assert "- 12 messages" in summary_text(run_step(middleware, 16))
    middleware.summarizer = None
    assert "by the other one" in summary_text(run_step(middleware, 16))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("keep", ("messages", 0), "keep thresholds must be greater than 0"),
        ("keep", ("fraction", 0.5), "Model profile information"),
        ("trigger", {"words": 3}, "Unsupported trigger metric"),
        ("on_failure", "cry", "on_failure"),
        ("archive", "memory:", "archive cannot change"),
        ("recall", "tool", "recall cannot change"),
        ("compact_tool", True, "compact_tool cannot change"),
    ],
)
def test_what_cannot_be_set_is_said_at_the_next_step(name, value, problem):
    middleware = new_middleware()
    value_before = getattr(middleware, name)
    setattr(middleware, name, value)
    with pytest.raises(PolicyError, match=problem):
        run_step(middleware)
    setattr(middleware, name, value_before)
    assert kept_messages(run_step(middleware)) == 3


def test_a_vain_plan_is_not_made_at_each_step(monkeypatch):
    calls: list[int] = []
    engine = step_update.compact_messages

    def counting(*args: Any, **kinds: Any) -> Any:
        calls.append(1)
        return engine(*args, **kinds)

    monkeypatch.setattr(step_update, "compact_messages", counting)
    middleware = SummarizationMiddleware(None, trigger=("messages", 100), keep=("messages", 3_000))
    messages: list[Any] = [HumanMessage(f"Look at module {n}.", id=f"m{n}") for n in range(2_100)]
    for end in range(2_000, 2_012):
        assert middleware.before_model({"messages": messages[:end]}, Runtime()) is None
    assert 0 < len(calls) < 12, "it is planned, and not at each of twelve steps"


def test_after_an_edit_only_messages_that_are_new_are_counted():
    counted: list[Any] = []
    cache = SessionCache()
    messages = talk(100)
    new = HumanMessage("And part 40?", id="m40")
    edited = [*messages[:40], new, *messages[60:]]
    for history in (messages, edited):
        counted.clear()
        sizes = cache.sizes("view", history, lambda message: counted.append(message) or 3)
        assert sizes.total() == 3 * len(history)
    assert counted == [new]


def test_what_is_misspelt_is_refused_at_once():
    middleware = new_middleware()
    with pytest.raises(AttributeError, match="no setting 'keeep'; did you mean 'keep'"):
        middleware.keeep = ("messages", 5)  # type: ignore[attr-defined]
    assert kept_messages(run_step(middleware)) == 3
    with pytest.raises(AttributeError, match="did you mean 'window'"):
        ContextGuard(middleware).windw = 9_000  # type: ignore[attr-defined]


class Notes(SummarizationMiddleware):
    def __init__(self, **settings: Any) -> None:
        super().__init__(None, **settings)


WARNING_CALLS: list[Callable[[], Any]] = [
    lambda: SummarizationMiddleware(None, max_tokens_before_summary=70),
    lambda: SummarizationMiddleware(None, trigger=("messages", 3), keep=("messages", 9)),
    lambda: SummarizationMiddleware(None, token_counter=len),
    lambda: Compactor(trigger=("messages", 3), keep=("messages", 9)),
]


@pytest.mark.parametrize("warn", WARNING_CALLS)
def test_a_warning_points_at_the_line_of_the_caller(warn):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn()
    code: Any = warn.__code__  # type: ignore[attr-defined]
    assert [(warning.filename, warning.lineno) for warning in caught] == [
        (__file__, code.co_firstlineno)
    ]


@pytest.mark.parametrize(
    "make_copy", [copy.deepcopy, lambda middleware: pickle.loads(pickle.dumps(middleware))]
)
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_a_copy_has_settings_of_its_own(make_copy, history, tmp_path):
    settings: Any = {"history": history, "recall": "tool", "name": "Mine", "summarizer": summarise}
    middleware = SummarizationMiddleware(
        None, trigger=("messages", 6), archive=tmp_path / "a.db", **settings
    )
    middleware.keep = ("messages", 4)
    copied = make_copy(middleware)
    assert type(copied) is SummarizationMiddleware
    assert (copied.name, copied.keep, copied.history) == ("Mine", ("messages", 4), history)
    assert [tool.name for tool in copied.tools] == ["recall"]
    copied.keep = ("messages", 2)
    assert middleware.keep == ("messages", 4)
    for either, count in ((middleware, 4), (copied, 2)):
        update = run_step(either, who=f"by {count} ")
        assert history == "preserve" or kept_messages(update) == count
    copied.close()
    middleware.close()


class Counts(SummarizationMiddleware):
    """Sets an attribute of its own at each step."""

    steps = 0

    def before_model(self, state: Any, runtime: Any) -> Any:
        self.steps += 1
        return super().before_model(state, runtime)


def test_a_subclass_with_attributes_of_its_own_keeps_what_is_remembered():
    summary_calls: list[int] = []

    def fails(messages: list[Any]) -> str:
        summary_calls.append(len(messages))
        raise RuntimeError("down")

    settings: Any = {"trigger": ("messages", 6), "keep": ("messages", 3), "summarizer": fails}
    middleware = Counts(None, on_failure="keep", **settings)
    for _ in range(9):
        assert run_step(middleware, 20) is None
    assert (middleware.steps, len(summary_calls)) == (9, 1)


def test_a_subclass_a_subscript_and_traces_as_langchains():
    from deepagents.middleware.summarization import SummarizationMiddleware as DeepAgents

    middleware = Notes(trigger=("messages", 6), keep=("messages", 2))
    middleware.label = ["a"]
    copied = copy.deepcopy(middleware)
    assert copied.label == ["a"]
    assert copied.label is not middleware.label
    assert kept_messages(run_step(copied, 20)) == 2
    assert len(LangChains.__parameters__) == len(SummarizationMiddleware.__parameters__)
    assert SummarizationMiddleware[Any, dict](None)  # type: ignore[type-arg]
    assert ContextGuard[Any, Any]()
    for middleware_class in (SummarizationMiddleware, ContextGuard):
        # Older versions of Deep Agents have none.
        assert middleware_class.trace_policy == (
            DeepAgents.trace_policy or middleware_class.trace_policy
        )
    with pytest.raises(AttributeError, match="no attribute 'kep'"):
        _ = middleware.kep


def runtime(**fields: Any) -> Any:
    """A runtime as a graph gives it."""
    attributes = dict.fromkeys(("store", "stream_writer", "server_info", "context")) | fields
    execution_info = SimpleNamespace(thread_id="t", checkpoint_ns="")
    return SimpleNamespace(execution_info=execution_info, **attributes)


def archived_ids(store: Any, tenant: str = "local", thread: str = "t") -> list[str]:
    """Ids of the originals that a thread's head can reach."""
    archive = Archive(store)
    scope = Scope(tenant, thread, "main")
    keys = [key for record in archive.chain(scope) for key in record.covers]
    return [original.message.id for original in archive.get(scope, keys)]


def test_its_own_archive_comes_before_the_agents_store():
    own_store = InMemoryStore()
    agents_store = InMemoryStore()
    new_middleware(archive=own_store).before_model(
        {"messages": talk()}, runtime(store=agents_store)
    )
    assert archived_ids(own_store) == ["m0", "m1", "m2", "m3", "m4"]
    assert not agents_store.list_namespaces()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({}, "cannot be recalled"), ({"trigger": None}, "nothing is summarised")],
)
def test_a_missing_archive_or_trigger_is_logged_once(settings, message, caplog):
    middleware = new_middleware(**settings)
    for count in (8, 100, 400):
        assert (run_step(middleware, count) is None) == bool(settings)
    assert sum(message in r.message for r in caplog.records) == 1


@pytest.mark.parametrize("thread", [None, "t"])
def test_an_archive_without_thread_id_is_warned_about(thread, caplog):
    store = InMemoryStore()
    middleware = new_middleware(archive=store)
    graph = create_agent(ScriptedChatModel(answers="fine"), middleware=[middleware])
    config: Any = {"configurable": {"thread_id": thread}} if thread else {}
    graph.invoke({"messages": [HumanMessage("hi")]}, config)
    assert "thread_id" not in caplog.text
    for _ in range(3):
        graph.invoke({"messages": talk()}, config)
    warnings_logged = [
        r for r in caplog.records if '{"configurable": {"thread_id": ...}}' in r.message
    ]
    assert [record.levelname for record in warnings_logged] == ["WARNING"] * (not thread)
    (name,) = Archive(store).threads("local")
    assert name == thread if thread else name.startswith("unnamed-")


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
    middleware = new_middleware(archive=store, tenant=tenant)
    middleware.before_model({"messages": talk()}, runtime(**run))
    assert archived_ids(store, expected) == ["m0", "m1", "m2", "m3", "m4"]
    assert archived_ids(store, "somebody else") == []


def test_the_tenant_is_never_read_from_the_state():
    store = InMemoryStore()
    middleware = new_middleware(archive=store, tenant="acme")
    forged = {"v": 1, "thread": "t", "session": "main", "head_id": "", "tenant": "umbrella"}
    state = {"messages": talk(), "tenant": "umbrella", "_conspectus": forged}
    middleware.before_model(state, runtime())
    assert archived_ids(store, "acme")
    assert not archived_ids(store, "umbrella")


def test_preserved_and_replaced_show_the_model_the_same():
    def run(history: Any) -> list[list[Any]]:
        sent_texts: list[list[Any]] = []

        def answer(messages: list[Any]) -> AIMessage:
            sent_texts.append([m.text for m in messages])
            return AIMessage("yes", id=f"a{len(sent_texts)}")

        agent = create_agent(
            ScriptedChatModel(answers=answer),
            middleware=[new_middleware(history=history)],
            checkpointer=InMemorySaver(),
        )
        config: Any = {"configurable": {"thread_id": "t"}}
        for n in range(12):
            agent.invoke({"messages": [HumanMessage(f"part {n}?", id=f"m{n}")]}, config)
        return sent_texts

    assert run("preserve") == run("replace")
