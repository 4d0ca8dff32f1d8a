"""A compaction pays: it leaves room for what comes, and nothing is compacted twice for nothing."""

import json
import logging
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from compactor_support import Scripted
from conspectus import Compactor, ContextGuard, SummarizationMiddleware
from conspectus.archive import Scope
from conspectus.errors import SummaryError
from conspectus.tokens import TokenMeter
from histories import assistant, tool_result, user
from scripted_models import ScriptedChatModel

TEXTS = {
    "prose": "the ferry leaves at noon and nobody on the pier has asked why ",
    "digits": "48213-7 99102-4 10377-1 ",
    "code": "    return [value for value in rows if value.size > limit]\n",
    "Chinese": "渡轮中午出发，码头上没有人问为什么。",
}


def turns(text: str, count: int) -> Iterator[list[dict[str, Any]]]:
    """Requests and answers, with a call and its result in each third turn."""
    rnd = random.Random(count)
    for n in range(count):
        yield [user(f"Request {n}: {text * rnd.randint(1, 6)}")]
        if n % 3 == 0:
            yield [assistant("", (f"c{n}", "{}")), tool_result(f"c{n}", text * rnd.randint(4, 20))]
        yield [assistant(f"Answer {n}: {text * rnd.randint(1, 6)}")]


def writer_of(words: int) -> Any:
    """A summariser that writes so many words."""
    return lambda _: "- " + " ".join(f"part {n} was found sound [m{n}]" for n in range(words // 5))


SETTINGS: list[tuple[dict[str, Any], int]] = [
    ({"window": 8_000}, 8_000),
    ({"window": 8_000, "keep": ("messages", 20)}, 8_000),
    ({"window": 16_000, "keep": ("fraction", 0.3)}, 16_000),
    ({"window": 16_000, "trigger": ("tokens", 5_000)}, 5_000),
    ({"window": 16_000, "trigger": ("tokens", 5_000), "keep": ("tokens", 4_500)}, 5_000),
    ({"window": 8_000, "trigger": [("messages", 900), {"tokens": 4_000, "messages": 5}]}, 4_000),
    ({"trigger": ("tokens", 4_000), "keep": ("messages", 30)}, 4_000),
    ({"window": 9_000, "reserved_tokens": 3_000, "trigger": ("messages", 24)}, 6_000),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("words", [None, 30, 300, 1_500])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("settings", "size"), SETTINGS)
def test_two_fifths_are_free_after_each_compaction(settings, size, text, words):
    summarizer = None if words is None else Scripted(writer_of(words))
    compactor = Compactor(summarizer=summarizer, archive="memory:", **settings)
    view: list[Any] = []
    compactions = 0
    for step in turns(TEXTS[text], 120):
        result = compactor.compact([*view, *step], thread_id="t")
        view = list(result.messages)
        if result.outcome == "compacted":
            compactions += 1
            assert result.tokens_after <= 0.6 * size, result
    assert compactions > 1


def test_notes_get_half_beside_what_must_stay():
    rules = {"role": "system", "content": "Rule: " + "be careful with the boats. " * 600}
    compactor = Compactor(window=8_000, archive="memory:")
    view: list[Any] = [rules]
    fixed = TokenMeter().count_message(rules)
    assert fixed > 0.4 * 8_000
    for step in turns(TEXTS["prose"], 80):
        result = compactor.compact([*view, *step], thread_id="t")
        view = list(result.messages)
        if result.outcome == "compacted":
            request = [message for message in view if message["role"] == "user"][-1]
            must_stay = fixed + TokenMeter().count_message(request)
            assert result.tokens_after <= must_stay + (8_000 - must_stay) / 2
            assert "- The user: " in result.summary
    assert view[0] == rules


def talk_with_usage(ratio: float, size: int) -> Iterator[list[Any]]:
    """Turns whose answers report this share of the estimated tokens."""
    meter = TokenMeter()
    sent: list[Any] = []
    for n in range(400):
        new: list[Any] = [HumanMessage(f"q{n} " + "word " * size, id=f"u{n}")]
        used = int(ratio * meter.count_messages([*sent, *new]))
        usage: Any = {"input_tokens": used, "output_tokens": 9, "total_tokens": used + 9}
        new.append(AIMessage(f"a{n} " + "word " * size, id=f"a{n}", usage_metadata=usage))
        sent += new
        yield [*new, HumanMessage("go on", id=f"g{n}")]


SENT_BACK: dict[str, Any] = {
    "the same objects": lambda view: view,
    "through JSON": lambda view: messages_from_dict(json.loads(json.dumps(messages_to_dict(view)))),
    "without usage": lambda view: [
        message.model_copy(update={"usage_metadata": None}) if message.type == "ai" else message
        for message in view
    ],
}


@pytest.mark.parametrize("sent_back", SENT_BACK)
@pytest.mark.parametrize("keep", [None, ("messages", 20), ("fraction", 0.6)])
@pytest.mark.parametrize("ratio", [0.5, 0.6, 0.8, 1.4, 1.9, 40.0])
def test_what_comes_back_with_nothing_new_is_kept_whatever_was_reported(ratio, keep, sent_back):
    compactor = Compactor(window=8_000, archive="memory:", keep=keep)
    view: list[Any] = []
    for step in talk_with_usage(ratio, 40):
        result = compactor.compact([*view, *step], thread_id="t")
        view = list(result.messages)
        if result.outcome == "compacted":
            break
    assert result.outcome == "compacted"
    for _ in range(3):
        second_result = compactor.compact(SENT_BACK[sent_back](view), thread_id="t")
        assert (second_result.outcome, second_result.evicted) == ("kept", 0), second_result
        view = list(second_result.messages)


@pytest.mark.slow
def test_a_guard_does_not_compact_again_what_the_middleware_has_compacted():
    """The model reports little more than half of the estimate, so the estimate alone is too large.

    What the middleware leaves fits the window by the corrected estimate. Without the correction a
    guard would compact it at the next turn.
    """
    meter = TokenMeter()

    def answer(messages: list[Any]) -> AIMessage:
        used = int(0.55 * meter.count_messages(messages))
        usage: Any = {"input_tokens": used, "output_tokens": 9, "total_tokens": used + 9}
        return AIMessage("it is sound " * 40, usage_metadata=usage)

    summary = "All parts were looked at, and each of them was found sound. " * 10
    middleware = SummarizationMiddleware(
        ScriptedChatModel(answers=answer),
        trigger=("tokens", 20_000),  # so that the window asks for compactions
        keep=("messages", 90),  # more than fits, so that as much stays as may
        window=8_000,
        summarizer=lambda _: summary,
        check_summaries=False,
    )
    agent = create_agent(
        ScriptedChatModel(answers=answer),
        [],
        middleware=[middleware, ContextGuard(middleware, window=8_000)],
        checkpointer=InMemorySaver(),
    )
    sizes: list[int] = []
    for n in range(90):
        question = HumanMessage(f"Look at part {n}. " + "please look at it with care " * 12)
        state = agent.invoke({"messages": [question]}, {"configurable": {"thread_id": "t"}})
        sizes.append(len(state["messages"]))
    compactions = [n for n in range(1, len(sizes)) if sizes[n] < sizes[n - 1]]
    turns_between = [later - earlier for earlier, later in pairwise(compactions)]
    assert turns_between
    assert min(turns_between) > 10


def test_the_log_names_once_the_setting_that_is_too_tight(caplog):
    caplog.set_level(logging.WARNING, "conspectus")
    compactor = Compactor(window=8_000, archive="memory:", keep=("messages", 60))
    for thread in ("a", "b"):
        view: list[Any] = []
        for step in turns(TEXTS["prose"], 120):
            view = list(compactor.compact([*view, *step], thread_id=thread).messages)
    warnings = [record for record in caplog.records if record.conspectus["event"] == "too_tight"]
    assert len(warnings) == 2, "once for each history"
    assert 'keep=("messages", 60) holds' in warnings[0].getMessage()
    assert "of 8,000 tokens" in warnings[0].getMessage()


def no_summary(_: Any) -> str:
    raise SummaryError("it is not there")


def compactions_that_are_no_larger(histories: int, force: bool, **settings: Any) -> int:
    """Compact short histories by short triggers, each three times; count what was compacted."""
    rnd = random.Random(7)
    compacted = 0
    for n in range(histories):
        keep = ("messages", rnd.randint(1, 3))
        trigger = ("messages", rnd.randint(1, 4))
        compactor = Compactor(trigger=trigger, keep=keep, **settings)
        history = [
            {"role": "user" if at % 2 == 0 else "assistant", "content": "word " * rnd.choice(SIZES)}
            for at in range(rnd.randint(1, 8))
        ]
        for _ in range(3):
            result = compactor.compact(history, thread_id=f"t{n}", force=force)
            assert result.tokens_after <= result.tokens_before, result
            assert TokenMeter().count_messages(result.messages) <= TokenMeter().count_messages(
                history
            )
            compacted += result.outcome == "compacted"
            history = list(result.messages)
    return compacted


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("archive", [None, "memory:"])
@pytest.mark.filterwarnings("ignore:keep")
def test_the_embedded_summariser_never_makes_a_history_larger(archive, force):
    assert compactions_that_are_no_larger(300, force, archive=archive) > 20


@pytest.mark.filterwarnings("ignore:keep")
def test_as_the_last_resort_it_makes_no_history_larger_either():
    settings: Any = {"summarizer": Scripted(no_summary), "on_failure": "degrade"}
    assert compactions_that_are_no_larger(40, True, **settings) > 5


SIZES = (1, 2, 5, 20, 60, 200)


class CountedWriter(ScriptedChatModel):
    """A model that answers, and counts the summaries that it is asked for."""

    summary_calls: int = 0

    def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
        if not any("AGENT" in str(message.content) for message in messages):
            self.summary_calls += 1
        return super()._generate(messages, *args, **options)


def quarter_of_the_characters(messages: Any) -> int:
    return sum(len(str(message.content)) for message in messages) // 4


@pytest.mark.parametrize("text", ["digits", "Chinese"])
def test_a_model_is_asked_as_often_as_the_trigger_says(text):
    trigger = 4_000
    model = CountedWriter(answers=lambda _: f"It was found sound. {TEXTS[text] * 8}")
    middleware = SummarizationMiddleware(
        model,
        trigger=("tokens", trigger),
        keep=("messages", 6),
        token_counter=quarter_of_the_characters,
        archive="memory:",
        check_summaries=False,
    )
    guard = ContextGuard(middleware, window=8_000)
    agent = create_agent(
        model,
        [],
        system_prompt="AGENT " + "Be careful with the boats. " * 700,
        middleware=[middleware, guard],
        checkpointer=InMemorySaver(),
    )
    words = TEXTS[text] * 10
    answer = f"It was found sound. {TEXTS[text] * 8}"
    config: Any = {"configurable": {"thread_id": "t"}}
    records: set[str] = set()
    for n in range(120):
        agent.invoke({"messages": [HumanMessage(f"Request {n}: {words}")]}, config)
        records |= {record.id for record in middleware.archive.chain(Scope("local", "t", "main"))}
    tokens_of_talk = quarter_of_the_characters([HumanMessage((words + answer) * 120)])
    # At most once for each time that the trigger's size was said anew.
    assert 1 <= model.summary_calls <= tokens_of_talk // trigger + 1
    assert len(records) > model.summary_calls  # the window asked more often


@pytest.mark.parametrize("text", ["digits", "Chinese"])
@pytest.mark.parametrize("archive", [None, "memory:"])
def test_a_state_with_one_record_knows_what_no_model_has_summarised(text, archive):
    """Without an archive and a checkpointer a state holds the newest record alone."""
    window = 8_000
    model = CountedWriter(
        answers=lambda _: "It was found sound.", profile={"max_input_tokens": window}
    )
    middleware = SummarizationMiddleware(
        model,
        trigger=("fraction", 0.85),
        keep=("messages", 20),
        archive=archive,
        check_summaries=False,
    )
    state: dict[str, Any] = {"messages": []}
    said = HumanMessage(TEXTS[text] * 30)
    came = 0
    for n in range(160):
        for message in (HumanMessage(f"{n}. {said.content}"), AIMessage(f"{n}: noted.")):
            came += count_tokens_approximately([message])
            added = add_messages(state["messages"], [message])
            state["messages"] = added
            update = middleware.before_model(state, Runtime()) or {}
            messages = add_messages(state["messages"], update.get("messages", []))
            state.update(update | {"messages": messages})
    assert came > 2 * window
    assert came // window <= model.summary_calls <= came // (0.85 * window) + 1


@pytest.mark.parametrize("reserved", [0, 1_600, 4_000])
def test_a_model_writes_each_summary_although_room_is_reserved(reserved):
    """The trigger, a share of the whole window, is then above what is left of it."""
    compactor = Compactor(
        summarizer=Scripted(lambda _: "- They agreed. [x]"),
        window=8_000,
        reserved_tokens=reserved,
        archive="memory:",
    )
    messages: list[Any] = []
    writers: list[str] = []
    for n in range(60):
        messages += [user(f"Request {n} " + "why " * 150), assistant(f"Answer {n} " + "so " * 150)]
        result = compactor.compact([*messages, user(f"Go on {n}.")], thread_id="t")
        if result.record is not None:
            writers.append(result.record.by)
    assert len(writers) > 2
    assert set(writers) == {"scripted"}


def test_long_findings_leave_room_to_read_in_few_calls():
    """A model that writes much more than it is asked for, in a small window."""
    findings = " ".join(f"Part {n} was looked at, and it is sound." for n in range(100))
    model = ScriptedChatModel(answers=lambda _: findings, profile={"max_input_tokens": 8_000})
    compactor = Compactor(summarizer=model, window=8_000, keep=("messages", 20))
    history: list[Any] = []
    calls: list[int] = []
    for n in range(250):
        history += [user(f"{n}. {TEXTS['prose'] * 5}"), assistant(f"{n}: {TEXTS['prose'] * 5}")]
        result = compactor.compact(history, thread_id="t")
        history = list(result.messages)
        if result.record is not None:
            calls.append(result.record.cost.calls)
    assert len(calls) > 4
    assert max(calls) <= 2
