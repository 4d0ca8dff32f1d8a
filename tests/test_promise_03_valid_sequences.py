"""Promise 3: calls and results stay together, and what is pending or newest stays in view."""

import itertools
import json
import random
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from compactor_support import (
    Scripted,
    check_nothing_missing,
    check_sequence,
    compacted,
    new_compactor,
    short_summary,
)
from conspectus import Archive, Compactor
from conspectus.messages import SUMMARY_LINE, read_messages
from conspectus.messages.recalled import recalled_message, with_recalled
from conspectus.messages.shortening import clip_message
from conspectus.tokens import TokenMeter
from histories import assistant, histories, talk, tool_result, user
from providers import anthropic, bedrock, google, openai
from providers.making import Maker, Provider
from stateful.agent_world import AgentWorld
from stateful.budgets import LONG, budgeted, few
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look, counted
from stateful.messages import words_in
from stateful.oracle import (
    anthropic_rejects,
    calls_of,
    is_summary,
    openai_rejects,
    plain,
    role_of,
    text_of,
    unanswered,
)


@given(histories(broken=True), st.integers(200, 3_000), st.integers(1, 12))
def test_no_pair_is_broken_and_nothing_pending_leaves(messages, window, keep):
    compactor = new_compactor(window=window, keep=("messages", keep))
    result = compacted(messages, compactor, force=True)
    check_sequence(messages, result)
    check_nothing_missing(messages, result, compactor)


def test_an_orphan_in_the_kept_part_goes_to_the_archive():
    messages = [*talk(40), tool_result("nobody", "who asked?"), user("go on")]
    compactor = new_compactor()
    result = compacted(messages, compactor, force=True)
    assert not any(m["role"] == "tool" for m in result.messages)
    check_nothing_missing(messages, result, compactor)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_results_of_calls_without_ids_stay_with_them(keep):
    """Some servers give their calls no ids, and the newest result is what the agent waits for."""
    steps = [
        [
            assistant(f"I look, {n}", ("", "a"), ("", "b")),
            tool_result("", f"a {n}"),
            tool_result("", f"b {n}"),
        ]
        for n in range(3)
    ]
    messages = [*talk(20), user("go on"), *itertools.chain(*steps)]
    result = compacted(messages, new_compactor(keep=("messages", keep)), force=True)
    assert result.messages[-3:] == messages[-3:]


def test_a_pending_approval_early_in_the_history_is_never_compacted():
    waiting = assistant("", ("p", "delete everything?"))
    messages = [user("start"), waiting, *talk(40)]
    result = compacted(messages, new_compactor(), force=True)
    assert any(m is waiting for m in result.messages)
    assert "the call of tool without a result is below, although it came before" in result.summary


@pytest.mark.parametrize("window", [300, 900])
def test_a_call_that_may_yet_be_carried_out_is_never_clipped(window):
    """With half of its arguments it would do something else, once it is approved."""
    writes = assistant("I will write the file. " * 10, ("p", "line " * 300))
    compactor = new_compactor(window=window, keep=("messages", 1))
    result = compactor.compact([*talk(40), writes], thread_id="t")
    assert result.messages[-1] is writes
    assert result.outcome == ("compacted" if window == 900 else "stuck")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dicts", "messages"])
@pytest.mark.parametrize("archived", [True, False])
def test_what_a_client_asks_again_stays_wherever_a_summary_ends(form, archived):
    history: list[Any] = talk(12)
    if form == "messages":
        message_classes: dict[str, Any] = {"user": HumanMessage, "assistant": AIMessage}
        history = [
            message_classes[m["role"]](m["content"], id=f"m{n}") for n, m in enumerate(history)
        ]
    for n in range(0, len(history), 2):
        compactor = Compactor(
            trigger=("messages", 10),
            keep=("messages", 4),
            archive=Archive(InMemoryStore()) if archived else None,
            alternate_roles="off",
        )
        for end in range(1, len(history) + 1):
            compactor.compact(history[:end], thread_id="t")
        result = compactor.compact(history[: n + 1], thread_id="t")
        assert result.messages[-1] is history[n], n


def test_another_librarys_summary_is_not_what_a_user_said_last():
    mark = {"lc_source": "summarization"}
    foreign_summary = HumanMessage(f"{SUMMARY_LINE}\n\nWe began.", id="s", additional_kwargs=mark)
    history = [foreign_summary, *(AIMessage(f"Step {n} is done.", id=f"a{n}") for n in range(10))]
    compactor = Compactor(trigger=("messages", 10), keep=("messages", 4))
    result = compactor.compact(history, thread_id="t")
    assert result.outcome == "compacted"
    second_result = compactor.compact(history, thread_id="t")
    assert (second_result.outcome, second_result.messages) == ("kept", result.messages)


FORMS = {
    "Anthropic": anthropic.PROVIDERS,
    "OpenAI Chat Completions": openai.CHAT,
    "OpenAI Responses": openai.RESPONSES,
    "Mistral": openai.MISTRAL,
    "Google": google.PROVIDERS,
    "Bedrock": bedrock.PROVIDERS,
}
"""The forms in which callers have the messages of each."""

EXAMPLES = settings(
    max_examples=2_000 if LONG else few(6), deadline=None, suppress_health_check=list(HealthCheck)
)


def history_of(provider: Provider, seed: int, turns: int) -> Maker:
    maker = Maker(random.Random(seed), provider.unique_ids)
    for _ in range(turns):
        provider.make(maker)
    return maker


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("provider_name", FORMS)
@EXAMPLES
@given(
    seed=st.integers(0, 2**40),
    turns=st.integers(1, 4),
    window=st.sampled_from([300, 600, 1_200, 2_400, 5_000]),
    keep=st.integers(1, 12),
    force=st.booleans(),
)
def test_no_request_is_refused_after_a_compaction(provider_name, seed, turns, window, keep, force):
    provider = FORMS[provider_name][seed % len(FORMS[provider_name])]
    maker = history_of(provider, seed, turns)
    compactor = new_compactor(Scripted(short_summary), window=window, keep=("messages", keep))
    for request_place in maker.request_places:
        history = maker.messages[:request_place]
        whole = provider.request(history)
        assert provider.refuses(whole, whole) == [], "it is no history of this provider"
        result = compacted(history, compactor, force=force)
        assert provider.refuses(provider.request(result.messages), whole) == []


POINTER = "archived as "
"""Stands in each clip."""

TINY = 500
"""Tokens."""


class ValidSequences:
    """No provider rejects what is shown; pending calls and what the user asked last stay."""

    def judge(self, look: Look) -> None:
        if look.error is not None:
            return
        for rejects in (openai_rejects, anthropic_rejects):
            assert not rejects(look.shown) - rejects(look.whole), "a provider would reject it"
        summaries, said_messages, clips = look.parts
        assert len(summaries) <= 1
        unanswered_elsewhere = counted(unanswered(look.whole)) - counted(said_messages)
        # Once the agent has spoken again, such a call may be clipped, to make room.
        spoke = [plain(m) for m in look.whole if role_of(m) == "assistant"]
        assert not spoke or not unanswered_elsewhere[spoke[-1]], (
            "a call that may yet be carried out is clipped"
        )
        clipped_calls = Counter(tuple(calls_of(clip)) for clip in clips if POINTER in plain(clip))
        unanswered_left = [m for m in unanswered(look.whole) if unanswered_elsewhere[plain(m)]]
        lost_calls = (
            Counter(tuple(calls_of(message)) for message in unanswered_left) - clipped_calls
        )
        assert not lost_calls, "a call without a result has left"
        self.newest_user_stays(look, said_messages)
        leading = 0
        while leading < len(look.whole) and role_of(look.whole[leading]) == "system":
            leading += 1
        starts = [role_of(message) for message in look.shown[:leading]]
        assert starts == ["system"] * leading, "a leading system message has left"

    def newest_user_stays(self, look: Look, said_messages: list[object]) -> None:
        newest_of_user = [m for m in look.whole if role_of(m) == "user"][-1:]
        for message in newest_of_user:
            words = words_in(text_of(message))
            users = [m for m in look.shown if role_of(m) == "user" and not is_summary(m)]
            # In the smallest windows nothing but the pointer to it may be left.
            tiny = look.budget is not None and look.budget <= TINY
            partly_shown = words & words_in([text_of(m) for m in users]) or (
                tiny and any(POINTER in text_of(m) for m in users)
            )
            assert partly_shown or plain(message) in {plain(m) for m in said_messages}, (
                "what was asked last left"
            )


TestSequencesStayValidThroughCompactor = budgeted(ValidSequences, CompactorWorld, short=7, long=600)


TestSequencesStayValidThroughAgents = budgeted(ValidSequences, AgentWorld, short=2, long=100)


METER = TokenMeter()
LONG_TEXT = "word " * 3_000


def clipped(message: Any, limit: int = 1) -> Any:
    [entry] = read_messages([message])
    return clip_message(entry, limit, METER.count_message)


def block_of(message: Any) -> Any:
    content = message["content"] if isinstance(message, dict) else message.content
    return content[0]


SHOT = {"type": "computer_screenshot", "image_url": "https://x/y.png"}
CLICK = {"type": "computer_call", "call_id": "c1", "id": "cu1", "action": {"type": "click"}}
PATCH = {"type": "apply_patch_call", "call_id": "c2", "operation": {"type": "delete_file"}}
QUESTIONS_AND_ANSWERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "mcp_approval_request", "id": "r1", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": True},
    ),
    (CLICK, {"type": "computer_call_output", "call_id": "c1", "output": SHOT}),
    (PATCH, {"type": "apply_patch_call_output", "call_id": "c2", "status": "completed"}),
    (
        {"type": "non_standard", "value": {"type": "shell_call", "call_id": "c3"}},
        {"type": "non_standard", "value": {"type": "shell_call_output", "call_id": "c3"}},
    ),
    (
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "tool_result", "tool_use_id": "t1", "content": "4"},
    ),
    (
        {"toolUse": {"toolUseId": "t2", "name": "f", "input": {}}},
        {"toolResult": {"toolUseId": "t2", "content": [{"text": "4"}]}},
    ),
]


@pytest.mark.parametrize(("question", "answer"), QUESTIONS_AND_ANSWERS)
@pytest.mark.parametrize("form", ["dicts", "messages"])
def test_an_answer_in_a_users_message_keeps_its_question(question, answer, form):
    content = [answer, {"type": "text", "text": "And go on with it."}]
    history: list[Any] = talk(20)
    if form == "dicts":
        asks: Any = {"role": "assistant", "content": [question]}
        newest: Any = {"role": "user", "content": content}
    else:
        history = [HumanMessage(m["content"]) for m in history]
        asks = AIMessage([question])
        newest = HumanMessage(content)
    history = [*history[:10], asks, newest, *({"role": "assistant", "content": "ok"},) * 6]
    result = compacted(history, new_compactor(keep=("messages", 2)), force=True)
    assert result.outcome == "compacted"
    shown = [id(message) for message in result.messages]
    assert id(asks) in shown
    assert id(newest) in shown


NEVER_REWRITTEN = [
    {
        "type": "a_kind_of_next_year",
        "text": LONG_TEXT,
        "content": [{"type": "text", "text": LONG_TEXT}],
    },
    {"type": "thinking", "thinking": LONG_TEXT, "signature": "s"},
    {"type": "redacted_thinking", "data": LONG_TEXT},
    {"type": "reasoning", "reasoning": LONG_TEXT, "extras": {"signature": "s"}},
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": LONG_TEXT}]},
    {"type": "reasoning_content", "reasoning_content": {"text": LONG_TEXT, "signature": "s"}},
    {"type": "non_standard", "value": {"type": "redacted_thinking", "data": LONG_TEXT}},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": LONG_TEXT}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": LONG_TEXT}]},
    {"type": "web_search_call", "id": "ws", "action": {"query": LONG_TEXT}},
    {"type": "code_interpreter_call", "id": "ci", "code": LONG_TEXT, "outputs": []},
    {"type": "mcp_call", "id": "m", "arguments": "{}", "output": LONG_TEXT},
    {"type": "computer_call", "call_id": "c", "id": "cu", "action": {"text": LONG_TEXT}},
    {"type": "text", "text": LONG_TEXT, "citations": [{"cited_text": "word"}]},
    {"type": "text", "text": LONG_TEXT, "annotations": [{"type": "citation"}]},
    {"type": "text", "text": LONG_TEXT, "extras": {"signature": "s"}},
    {"type": "container_upload", "file_id": LONG_TEXT},
]


@pytest.mark.parametrize("block", NEVER_REWRITTEN, ids=lambda block: str(block["type"]))
def test_what_the_table_gives_nothing_of_is_never_rewritten(block):
    original = deepcopy(block)
    message = AIMessage([block, {"type": "text", "text": LONG_TEXT}])
    shown = clipped(message)
    assert block_of(shown) == original
    assert shown.content[1]["text"] != LONG_TEXT
    assert clipped({"role": "assistant", "content": [block]})["content"] == [original]


LONG_ARGS = {"path": "a.txt", "text": LONG_TEXT}
CALLS = [
    {"type": "function_call", "id": "fc", "call_id": "c", "name": "f"},
    {"type": "tool_call", "id": "c", "name": "f", "args": LONG_ARGS},
    {"type": "tool_use", "id": "c", "name": "f", "input": LONG_ARGS},
]
CALLS[0]["arguments"] = json.dumps(LONG_ARGS)
CALLS[1]["extras"] = {"item_id": "fc", "arguments": json.dumps(LONG_ARGS)}


@pytest.mark.parametrize("limit", [1, 200])
@pytest.mark.parametrize("block", CALLS, ids=lambda block: str(block["type"]))
def test_arguments_are_shortened_in_place_in_each_form_of_a_call(block, limit):
    call = {"id": "c", "name": "f", "args": LONG_ARGS, "type": "tool_call"}
    message = AIMessage([block], tool_calls=[call])
    shown = clipped(message, limit)
    shown_block = block_of(shown)
    unchanged_fields = ("type", "id", "call_id", "name")
    assert {k: shown_block[k] for k in unchanged_fields if k in block} == {
        k: block[k] for k in unchanged_fields if k in block
    }
    assert LONG_TEXT[:2_000] not in json.dumps(shown_block)
    assert LONG_TEXT[:2_000] not in json.dumps(shown.tool_calls)
    args = (
        shown_block.get("input") or shown_block.get("args") or json.loads(shown_block["arguments"])
    )
    assert args == shown.tool_calls[0]["args"]
    if "extras" in block:
        assert json.loads(shown_block["extras"]["arguments"]) == args


def test_the_copy_that_google_makes_of_a_call_waits_for_nothing():
    calls_and_results: list[Any] = []
    for n in range(8):
        call = {"id": f"c{n}", "name": "f", "args": {"q": LONG_TEXT[:400]}, "type": "tool_call"}
        extra = {"function_call": {"name": "f", "arguments": json.dumps(call["args"])}}
        calls_and_results.append(AIMessage("", tool_calls=[call], additional_kwargs=extra))
        calls_and_results.append(ToolMessage(LONG_TEXT[:400], tool_call_id=f"c{n}"))
    history = [HumanMessage("go"), *calls_and_results, AIMessage("done")]
    compactor = Compactor(keep=("messages", 2), alternate_roles="off")
    result = compactor.compact(history, thread_id="t", force=True)
    assert result.outcome == "compacted"
    assert len(result.messages) == 5


def test_recalled_text_stands_between_no_call_and_its_result():
    result = {"type": "tool_result", "tool_use_id": "t", "content": "4"}
    asks = AIMessage([{"type": "tool_use", "id": "t", "name": "f", "input": {}}])
    newest = HumanMessage([result, {"type": "text", "text": "And now?"}])
    recalled = recalled_message("an old text", "turn")
    assert with_recalled([asks, newest], recalled) == [asks, newest, recalled]


def test_a_kind_of_call_that_nobody_knows_stays_with_its_result():
    items: list[Any] = [{"type": "message", "role": "user", "content": "Book a flight."}]
    for n in range(20):
        items.append({"type": "browser_call", "call_id": f"c{n}", "action": "click"})
        items.append({"type": "browser_call_output", "call_id": f"c{n}", "output": "a page"})
    for count in range(12, len(items) + 1):
        compactor = Compactor(trigger=("messages", 10), keep=("messages", 3))
        messages: list[Any] = compactor.compact(items[:count], thread_id="t").messages
        shown_calls = {
            message["call_id"] for message in messages if message.get("type") == "browser_call"
        }
        assert {message["call_id"] for message in messages if "output" in message} <= shown_calls


def test_a_late_second_answer_stays_until_it_was_read():
    """Then it stays while its call does; where that leaves, the notes tell both outcomes."""
    talk = [user(f"Look at module {n}. " * 40) for n in range(12)]
    late = [user("Run the tests."), assistant("", ("c", "all")), tool_result("c", "still running")]
    late += [assistant("They are running."), tool_result("c", "3 tests failed")]
    compactor = Compactor(keep=("messages", 8), archive="memory:")
    first_result = compactor.compact([*talk, *late], thread_id="t", force=True)
    assert first_result.outcome == "compacted"
    assert late[-1] in first_result.messages
    late.append(assistant("So they fail."))
    second_result = compactor.compact([*late, *talk], thread_id="gone", force=True)
    assert late[-2] not in second_result.messages
    assert "3 tests failed" in second_result.summary


def test_a_late_answer_of_half_the_room_leaves_rather_than_block():
    talk = [user(f"Look at module {n}. " * 40) for n in range(12)]
    late = [user("Run the tests."), assistant("", ("c", "all")), tool_result("c", "still running")]
    late += [assistant("They are running."), tool_result("c", "a test failed. " * 1_500)]
    for archive in (None, "memory:"):
        compactor = Compactor(window=8_000, keep=("messages", 2), archive=archive)
        result = compactor.compact([*talk, *late], thread_id="t", force=True)
        assert result.outcome == "compacted"
        assert late[-1] not in result.messages
        assert result.tokens_after < 4_000
