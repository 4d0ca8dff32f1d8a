"""Replay: every message of a transcript comes back as recorded; nothing escapes the measure."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conspectus.errors import InputError, MessageError, PolicyError, SummaryError
from conspectus.messages import read_messages
from conspectus.model import Summary, SummaryRequest
from conspectus_lab.pairs import broken_pairs
from conspectus_lab.recording import Recording
from conspectus_lab.replay import PolicyRun, Replay, replay
from conspectus_lab.replay.measure import Measure
from conspectus_lab.replay.policies import POLICIES, Policy
from conspectus_lab.replay.recorded import RecordedModel, TurnEnds, recorded_tools
from scripted_models import ScriptedChatModel

Row = dict[str, Any]
FILLER = "nothing of note happens in this place and so we go on reading slowly " * 4


def user(text: str = "go on") -> Row:
    return {"role": "user", "content": text}


def said(text: str = "well", *calls: str, args: str = '{"where": "here"}') -> Row:
    made = [
        {"id": call, "type": "function", "function": {"name": "look", "arguments": args}}
        for call in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(call: str, text: str = "seen") -> Row:
    return {"role": "tool", "tool_call_id": call, "content": text}


def session(steps: int = 30, turns: int = 3) -> list[Row]:
    """An agent's session of several turns; the ids of calls come again in each turn."""
    rows: list[Row] = [{"role": "system", "content": "You are a careful agent."}]
    for turn in range(turns):
        rows.append(user(f"Always read src/part_{turn}.py whole. {FILLER}"))
        for step in range(steps // turns):
            rows.append(said(f"Step {turn}.{step}: I look. {FILLER}", f"c{step}"))
            rows.append(result(f"c{step}", f"found in src/part_{turn}_{step}.py: {FILLER}"))
        rows.append(said(f"Part {turn} is done."))
    return rows


SESSION = session()
WINDOW = 3_000
ANTHROPIC = [
    {"role": "user", "content": "look"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I do"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"where": "a"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [{"type": "text", "text": "x"}],
            },
            {"type": "text", "text": "and be quick"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
]
ODD: dict[str, list[Row]] = {
    "parallel calls": [user(), said("a", "x", "y"), result("x"), result("y"), said()],
    "results out of order": [user(), said("a", "x", "y"), result("y"), result("x"), said()],
    "ids used again": [
        *(user(), said("a", "x"), result("x", "first"), said("b")),
        *(user(), said("c", "x"), result("x", "second"), said("d")),
    ],
    "ids used again in one turn": [
        *(user(), said("a", "x"), result("x", "first")),
        *(said("b", "x"), result("x", "second"), said("c")),
    ],
    "a result missing": [user(), said("a", "x", "y"), result("x"), said("b")],
    "every result missing": [user(), said("a", "x"), said("b")],
    "no result before the user speaks": [user(), said("a", "x"), user("wait"), said("b")],
    "a result after the user has spoken": [
        *(user(), said("a", "x"), user("and?"), result("x"), said("b"))
    ],
    "the user speaks between results": [
        *(user(), said("a", "x", "y"), result("x"), user("and?"), result("y"), said("b"))
    ],
    "the user speaks after results": [user(), said("a", "x"), result("x"), user("so?"), said("b")],
    "a result without a call": [user(), result("z"), said("a"), result("q"), user(), said("b")],
    "a second result": [user(), said("a", "x"), result("x"), result("x", "again"), said("b")],
    "a call with the id of another": [user(), said("a", "x", "x"), result("x"), said("b")],
    "a call without an id": [user(), said("a", ""), result(""), said("b")],
    "arguments that are no JSON": [user(), said("a", "x", args='{"whe'), result("x"), said("b")],
    "arguments that are a list": [user(), said("a", "x", args="[1]"), result("x"), said("b")],
    "arguments with awkward names": [
        user(),
        said("a", "x", args='{"self": 1, "runtime": 2, "config": 3, "run_manager": 4}'),
        result("x"),
        said("b"),
    ],
    "several system messages": [
        *({"role": "system", "content": "one"}, {"role": "system", "content": "two"}),
        *(user(), said("a"), {"role": "system", "content": "three"}, user(), said("b")),
    ],
    "the assistant speaks first": [said("hello"), user(), said("b")],
    "the assistant speaks alone": [said("hello")],
    "the assistant speaks twice": [user(), said("a"), said("b"), said("c"), user(), said("d")],
    "the user speaks twice": [user("one"), user("two"), said("a")],
    "the same words again": [user("ok"), said("ok"), user("ok"), said("ok")],
    "ids that come again": [{**user(), "id": "i"}, {**said("a"), "id": "i"}, user(), said("b")],
    "it ends with the user": [user(), said("a"), user("thanks")],
    "it ends with results": [user(), said("a", "x", "y"), result("x"), result("y")],
    "it ends with a call": [user(), said("a", "x")],
    "it ends with half of the results": [user(), said("a", "x", "y"), result("x")],
    "nothing said": [user(""), said("", "x"), result("x", ""), said("")],
    "the form of Anthropic": ANTHROPIC,
}


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[list[BaseMessage]]:
    """The messages of every request, as they were really sent."""
    seen: list[list[BaseMessage]] = []
    take_in = Measure.request

    def listening(self: Measure, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> int:
        seen.append(list(messages))
        return take_in(self, messages, tools)

    monkeypatch.setattr(Measure, "request", listening)
    return seen


@pytest.fixture(scope="module")
def compared() -> Replay:
    return replay(SESSION, name="session", window=WINDOW)


def run_of(found: Replay, policy: str) -> PolicyRun:
    return next(run for run in found.runs if run.policy == policy)


# What goes through the graph is what was recorded


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ODD)
def test_every_message_of_an_odd_transcript_comes_back_as_recorded(name, requests):
    rows = ODD[name]
    run = replay(rows, policies=["none"]).runs[0]
    recording = Recording.of(rows)
    assert (run.stopped, run.missing, run.broken) == ("", 0, 0)
    assert len(requests) == len(run.steps) == sum(row["role"] == "assistant" for row in rows)
    spoken = [i for i, m in enumerate(recording.messages) if isinstance(m, AIMessage)]
    for sent, place in zip(requests, spoken, strict=True):
        shown = [m for m in sent if m.id in recording.place]
        expected = recording.messages[:place]
        # A graph gives results in the order of their calls, whatever the order was.
        assert sorted(m.id for m in shown) == sorted(m.id for m in expected)
        assert sorted(readings(shown)) == sorted(readings(expected))
    assert len(recording.messages) >= len(rows) - 2


@pytest.mark.parametrize("name", ODD)
def test_nothing_of_an_odd_transcript_is_lost_in_reading_it(name):
    rows, recording = ODD[name], Recording.of(ODD[name])
    system = [recording.system] if recording.system else []
    kept = "\n".join(e.reading for e in read_messages([*system, *recording.messages]))
    for entry in read_messages(rows):
        for line in entry.text.split("\n"):
            assert line in kept
    answers = [a for e in read_messages(rows) for a in e.answers]
    assert [a for e in read_messages(recording.messages) for a in e.answers] == answers


def readings(messages: Sequence[BaseMessage]) -> list[str]:
    return [
        f"{m.type} {entry.reading}"
        for m, entry in zip(messages, read_messages(messages), strict=True)
    ]


def test_results_are_those_of_their_own_turn(requests):
    replay(ODD["ids used again"], policies=["none"])
    assert [m.content for m in requests[-1] if isinstance(m, ToolMessage)] == ["first", "second"]


def test_several_system_messages_at_the_start_are_one_prompt(requests):
    replay(ODD["several system messages"], policies=["none"])
    assert [m.content for m in requests[-1] if m.type == "system"] == ["one\n\ntwo", "three"]


def test_langchain_messages_keep_their_ids_and_are_not_changed(requests):
    given: list[AnyMessage] = [
        HumanMessage("look", id="u1"),
        AIMessage("", id="a1", tool_calls=[{"id": "c", "name": "look", "args": {}}]),
        ToolMessage("seen", id="t1", tool_call_id="c", artifact={"kept": True}),
        AIMessage("done", id="a2"),
    ]
    before = [m.model_copy(deep=True) for m in given]
    replay(given, policies=["none", "conspectus"])
    assert given == before
    assert [m.id for m in requests[1]] == ["u1", "a1", "t1"]


@pytest.mark.parametrize(
    ("messages", "error", "told"),
    [
        ([], InputError, "no assistant speaks"),
        ([user()], InputError, "no assistant speaks"),
        ([{"role": "judge", "content": "x"}], MessageError, "unknown role"),
        ([RemoveMessage(id="x")], MessageError, "RemoveMessage"),
    ],
)
def test_what_cannot_be_replayed_is_refused(messages, error, told):
    with pytest.raises(error, match=told):
        replay(messages)


@pytest.mark.slow
def test_a_thread_goes_on_where_it_was_in_another_process():
    saver = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}}

    def graph() -> Any:
        recording = Recording.of(SESSION)  # nothing is shared with the graph before
        model = RecordedModel(
            recording=recording, on_request=lambda messages, tools: 1, count=lambda message: 1
        )
        middleware = [TurnEnds(recording)]
        tools = recorded_tools(recording)
        return create_agent(model, tools=tools, middleware=middleware, checkpointer=saver)

    turns = Recording.of(SESSION).turns
    for turn in turns:
        graph().invoke({"messages": list(turn)}, config)
    state = graph().get_state(config).values["messages"]
    assert readings(state) == readings(Recording.of(SESSION).messages)


@pytest.mark.slow
def test_usage_is_that_of_the_request_really_sent(requests):
    run = replay(SESSION, window=WINDOW, policies=["langchain"]).runs[0]
    reported = {
        str(m.id): m.usage_metadata["input_tokens"]
        for sent in requests
        for m in sent
        if isinstance(m, AIMessage) and m.usage_metadata
    }
    spoken = [str(m.id) for m in Recording.of(SESSION).messages if isinstance(m, AIMessage)]
    assert len(reported) > 20
    for number, name in enumerate(spoken):
        assert reported.get(name, run.steps[number].tokens) == run.steps[number].tokens


# What the policies do, measured alike


@pytest.mark.slow
def test_conspectus_keeps_its_promises_in_a_real_agent(compared):
    run = run_of(compared, "conspectus")
    assert (run.stopped, run.broken, run.over, run.missing) == ("", 0, 0, 0)
    assert run.read_share == 1.0
    assert len(run.compactions) >= 2
    assert run.peak <= WINDOW


@pytest.mark.slow
def test_what_langchains_middleware_leaves_unread_and_loses_is_shown(compared):
    run = run_of(compared, "langchain")
    left = [one for done in run.compactions for one in done.left]
    assert run.stopped == ""
    assert run.missing == len(left) > 0
    # Its default hands a summariser what fits 4,000 tokens and begins with a user.
    rows = session(60, 1)
    long = replay(rows, window=8_000, policies=["langchain", "conspectus"])
    share = run_of(long, "langchain").read_share
    assert share < 1
    assert run_of(long, "conspectus").read_share == 1.0


@pytest.mark.slow
def test_without_compaction_the_whole_history_is_sent_each_time(compared):
    run = run_of(compared, "none")
    sizes = [step.tokens for step in run.steps]
    assert sizes == sorted(sizes)
    assert run.peak == sizes[-1]
    assert run.totals["sent_tokens"] == sum(sizes)
    assert run.over == sum(size > WINDOW for size in sizes) > 0
    assert (run.compactions, run.missing, run.read_share) == ((), 0, None)


@pytest.mark.slow
def test_what_left_is_told_whole_and_can_be_followed_from_the_summary(compared):
    recording = Recording.of(SESSION)
    texts = {e.id: e.reading for e in read_messages(recording.messages)}
    for run in compared.runs:
        gone = [one.id for done in run.compactions for one in done.left]
        assert len(gone) == len(set(gone))
        for done in run.compactions:
            assert all(one.text == texts[one.id] for one in done.left)
            assert done.characters == sum(len(one.text) for one in done.left)
            assert done.after < done.before
    ours = run_of(compared, "conspectus").compactions
    cites = {one.cite for done in ours for one in done.left}
    assert any(f"[{cite}]" in ours[-1].summary for cite in cites)


@pytest.mark.slow
def test_a_replay_gives_the_same_figures_each_time(compared):
    again = replay(SESSION, name="session", window=WINDOW)

    def figures(found: Replay) -> Any:
        data = found.to_json()
        for run in data["runs"]:
            del run["totals"]["waited_seconds"]
            for one in (*run["steps"], *run["bills"]):
                assert one.pop("waited") > 0
        return json.dumps(data, sort_keys=True)

    assert figures(again).replace("summary-", "") == figures(compared).replace("summary-", "")


@pytest.mark.slow
def test_it_is_told_step_by_step(compared):
    told: list[tuple[str, Any]] = []
    found = replay(
        SESSION, window=WINDOW, policies=["conspectus"], on_event=lambda *said: told.append(said)
    )
    names = [name for name, _ in told]
    assert names[0] == "start"
    assert names[-1] == "end"
    assert [data["step"] for name, data in told if name == "step"] == list(found.runs[0].steps)
    done = [data["compaction"] for name, data in told if name == "compaction"]
    assert [one.summary for one in done] == [one.summary for one in found.runs[0].compactions]
    assert [one.step for one in done] == [s.number for s in found.runs[0].steps if s.compacted]


# The measure finds what is wrong


class Changing(AgentMiddleware[Any, Any, Any]):
    """Sends something else than the state holds, from the tenth message on."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self._change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        if len(request.messages) < 10:
            return handler(request)
        return handler(request.override(messages=self._change(request.messages)))


class Forgetting(AgentMiddleware[Any, Any, Any]):
    """Drops what is older than four messages, for good."""

    def before_model(self, state: Any, runtime: Any) -> Any:
        kept = state["messages"][-4:]
        while isinstance(kept[0], ToolMessage):
            kept = kept[1:]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Figures of a policy made of one middleware."""

    def of(middleware: AgentMiddleware[Any, Any, Any]) -> PolicyRun:
        bad = Policy("bad", "bad", lambda setting: [middleware])
        monkeypatch.setitem(POLICIES, "bad", bad)
        return replay(SESSION, window=WINDOW, policies=["bad"]).runs[0]

    return of


@pytest.mark.slow
def test_parted_pairs_are_counted(measured):
    run = measured(Changing(lambda messages: [messages[0], *messages[2:]]))
    assert run.broken == sum(step.broken == 1 for step in run.steps) > 20
    assert run.missing == 0


def test_what_is_dropped_without_an_archive_is_missing_and_unread(measured):
    run = measured(Forgetting())
    left = [one for done in run.compactions for one in done.left]
    assert run.missing == len(left) > 20
    assert run.read_share == 0.0


@pytest.mark.slow
def test_a_message_that_was_changed_in_the_state_is_missing(measured):
    class Rewriting(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> Any:
            return {"messages": [state["messages"][0].model_copy(update={"content": "else"})]}

    run = measured(Rewriting())
    assert run.missing == 1
    assert run.compactions[0].shortened == 1


def test_a_request_without_the_newest_messages_ends_the_run_with_the_reason(measured):
    run = measured(Changing(lambda messages: messages[:2]))
    assert "newest messages have left" in run.stopped
    run = measured(Changing(lambda messages: [HumanMessage("a summary", id="s")]))
    assert "none of the recorded messages" in run.stopped


def test_pairs_are_matched_as_a_provider_matches_them():
    def ai(name: str, *calls: str) -> AIMessage:
        made = [{"id": call, "name": "look", "args": {}} for call in calls]
        return AIMessage("", id=name, tool_calls=made)

    def tool(name: str, call: str) -> ToolMessage:
        return ToolMessage("", id=name, tool_call_id=call)

    between = HumanMessage("and?", id="u")
    assert set(broken_pairs([ai("a", "x", "y"), tool("t", "y"), tool("s", "x")])) == set()
    assert set(broken_pairs([ai("a", "x")])) == {("a", "x")}
    assert set(broken_pairs([tool("t", "x")])) == {("t", "x")}
    assert set(broken_pairs([ai("a", "x"), tool("t", "y")])) == {("a", "x"), ("t", "y")}
    assert set(broken_pairs([ai("a", "x"), between, tool("t", "x")])) == {("a", "x"), ("t", "x")}
    assert set(broken_pairs([ai("a", "x"), tool("t", "x"), tool("s", "x")])) == {("s", "x")}
    twice = [ai("a", "x"), tool("t", "x"), ai("b", "x"), tool("s", "x")]
    assert set(broken_pairs(twice)) == set()
    assert set(broken_pairs(twice[:3])) == {("b", "x")}


# Summarisers


@pytest.mark.slow
def test_a_chat_model_is_asked_by_both_and_its_calls_are_counted():
    def answer(messages: Any) -> str:
        return "## Goal\n- read the parts of the source, all of src, part by part and step by step"

    model = ScriptedChatModel(answers=answer)
    found = replay(SESSION, window=WINDOW, summarizer=model, policies=["langchain", "conspectus"])
    for run in found.runs:
        assert run.stopped == ""
        assert run.summarizer_calls > 0
        assert run.summarizer_tokens > 0
    assert sum(run.summarizer_calls for run in found.runs) == len(model.calls)
    assert "Context Extraction Assistant" in model.calls[0].text
    assert run_of(found, "conspectus").read_share == 1.0


class Own:
    """A summariser of a caller's own."""

    name, identity = "own", "own-1"

    def summarize(self, request: SummaryRequest) -> Summary:
        raise NotImplementedError

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return self.summarize(request)


@pytest.mark.slow
def test_the_embedded_summariser_is_not_asked_and_reads_all(compared):
    for run in compared.runs:
        assert run.summarizer_calls == run.summarizer_tokens == 0
    last = [run_of(compared, name).compactions[-1] for name in ("langchain", "conspectus")]
    assert all("src/part_0.py" in done.summary for done in last)


@pytest.mark.slow
def test_a_summariser_of_ones_own_serves_all_policies():
    asked: list[int] = []

    class Listed(Own):
        def summarize(self, request: SummaryRequest) -> Summary:
            asked.append(request.limit)
            cites = [entry.cite for entry in request.entries]
            read = tuple(entry.key for entry in request.entries)
            return Summary(f"- Parts were read. [{', '.join(cites[:3])}]", read)

    found = replay(SESSION, window=WINDOW, summarizer=Listed(), summary_tokens=300)
    assert found.summarizer == "own"
    assert max(asked) == 300
    assert all("Parts were read." in run.compactions[-1].summary for run in found.runs[1:])


@pytest.mark.slow
def test_a_summariser_that_fails_ends_langchains_run_and_not_ours():
    class Failing(Own):
        def summarize(self, request: SummaryRequest) -> Summary:
            raise SummaryError("the service is down")

    found = replay(
        SESSION, window=WINDOW, summarizer=Failing(), policies=["langchain", "conspectus"]
    )
    assert "the service is down" in run_of(found, "langchain").stopped
    ours = run_of(found, "conspectus")
    assert (ours.stopped, ours.over, ours.missing) == ("", 0, 0)
    assert ours.read_share == 1.0  # by the embedded one, as the last resort


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"policies": ["best"]}, "no policy 'best'; known are none, langchain, conspectus"),
        ({"policies": []}, "no policy"),
        ({"window": 0}, "window must be"),
        ({"summary_tokens": 1.5}, "summary_tokens must be"),
        ({"trigger": None}, "needs a trigger"),
        ({"trigger": ("tokens", -1)}, "greater than 0"),
        ({"keep": ("pages", 3)}, "pages for keep"),
        ({"summarizer": 7}, "cannot summarise"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, told):
    with pytest.raises(PolicyError, match=told):
        replay(SESSION, **settings)


def test_a_recorded_tool_writes_nothing_out_but_its_arguments():
    """Parallel calls would read the state of the graph while it changes."""
    inputs: list[str] = []

    class Listens(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            inputs.append(input_str)

    call = {"name": "look", "args": {"page": 3}, "id": "c1", "type": "tool_call"}
    spoke = AIMessage("", id="m1", tool_calls=[call])
    heard = [HumanMessage("go"), spoke, ToolMessage("found", tool_call_id="c1")]
    [tool] = recorded_tools(Recording.of(heard))
    runtime = ToolRuntime(
        state={"messages": [spoke]}, tool_call_id="c1", config={}, context=None, store=None,
        stream_writer=print,
    )  # fmt: skip
    args = {**call, "args": {"page": 3, "runtime": runtime}}
    assert tool.invoke(args, {"callbacks": [Listens()]}).content == "found"
    assert inputs == ["{'page': 3}"]
