"""Promise 1: every evicted message was read whole by a summariser."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from compactor_support import Scripted, compacted, new_compactor, short_summary
from conspectus import Compactor, Summary, SummaryRequest, is_summary_message
from conspectus.messages import read_messages
from conspectus.tokens import TokenMeter
from histories import talk, tool_result, user
from scripted_models import ScriptedChatModel
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import words_in
from stateful.oracle import plain, text_of


def test_a_summariser_that_skips_messages_is_refused():
    class Skipping(Scripted):
        def summarize(self, request: SummaryRequest) -> Summary:
            return Summary("- fine", tuple(e.key for e in request.entries[1:]))

    result = compacted(
        talk(40), new_compactor(Skipping(short_summary), on_failure="keep"), force=True
    )
    assert result.outcome == "kept"
    assert "1 of 60 messages were not read" in result.reason


def test_a_function_gets_its_summary_so_far():
    calls: list[list[Any]] = []

    def write(messages: list[Any]) -> str:
        calls.append(messages)
        summaries = [m for m in messages if is_summary_message(m)]
        return f"- call {len(calls)} after {len(summaries)}" + " and so on" * 20

    messages = talk(40, 60)
    compactor = new_compactor(write, trim_tokens_to_summarize=1_000, check_summaries=False)
    result = compacted(messages, compactor, force=True)
    assert len(calls) > 2
    summaries_read = [
        "".join(str(m.content) for m in call if is_summary_message(m)) for call in calls
    ]
    assert summaries_read[0] == ""
    assert all(f"call {n} after" in text for n, text in enumerate(summaries_read[1:], 1))
    read = [str(m.content) for call in calls for m in call if not is_summary_message(m)]
    assert read == [m["content"] for m in messages[: result.evicted]]


def test_every_word_call_and_result_stands_in_the_record():
    """Without a model: what is read is kept as data, whatever the view has room for."""
    use = {"type": "tool_use", "name": "look"}
    messages: list[Any] = [
        {"role": "system", "content": "Be careful."},
        user("Begin with one."),
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Two is why."},
                {**use, "id": "a", "input": {"at": "three"}},
                {**use, "id": "b", "input": {"at": "four"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "five came"},
                {"type": "tool_result", "tool_use_id": "a", "content": "six came"},
                {"type": "text", "text": "And seven."},
            ],
        },
        {"role": "assistant", "content": "Eight is the answer."},
        tool_result("nobody", "nine came to no call"),
        {"role": "user", "name": "helper", "content": "Ten, says the helper."},
    ]
    compactor = new_compactor(window=60_000, keep=("messages", 2))
    result = compacted([*messages, *talk(4)], compactor, force=True)
    lines = result.record.notes["lines"]

    def lines_of_kind(line_kind: str) -> str:
        return "\n".join(str(line) for line in lines if line["kind"] == line_kind)

    assert [line["text"] for line in lines if line["kind"] == "said"][:2] == [
        "Begin with one.",
        "And seven.",
    ]
    for words in ("Two is why.", "three", "four", "five came", "six came", "nine came to no call"):
        assert words in lines_of_kind("done")
    for words in ("Eight is the answer.", "Ten, says the helper."):
        assert words in lines_of_kind("agent")


def test_in_the_notes_it_stands_word_for_word_whoever_finds_more():
    turns = [m for n in range(20) for m in (HumanMessage(f"q{n}"), AIMessage(f"a{n} " * 30))]
    text = "- FOREIGN-1234 was agreed\n- and nothing else"
    foreign = HumanMessage(
        f"Here is a summary of the conversation to date:\n\n{text}",
        id="foreign",
        additional_kwargs={"lc_source": "summarization"},
    )
    model = ScriptedChatModel(answers=lambda _: "- the work goes on")
    for summarizer in (None, model):
        compactor = new_compactor(summarizer, keep=("messages", 4))
        result = compacted([foreign, *turns], compactor, force=True)
        assert result.outcome == "compacted", result.reason
        assert result.summary.count(text) == 1
        second_round = compacted([*result.messages, *turns], compactor, force=True)
        assert second_round.summary.count(text) == 1, "and through the next round"
        assert [result.archived, second_round.archived] == [False, False], (
            "nobody has what it stands for"
        )


DOCUMENT = {"type": "document", "source": {"type": "text", "data": "deep words"}}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}]}
FIRST_FORM = {"function_call": {"name": "grep", "arguments": '{"q": "needle"}'}}
BAD_CALL: Any = {
    "id": None,
    "name": "grep",
    "args": "{bad",
    "error": "",
    "type": "invalid_tool_call",
}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": [DOCUMENT]}, "deep words"),
        (AIMessage([THOUGHT]), "because"),
        (AIMessage("", additional_kwargs=FIRST_FORM), "needle"),
        (AIMessage("", invalid_tool_calls=[BAD_CALL]), "{bad"),
        ({"role": "user", "content": [{"type": "unheard_of", "note": "still text"}]}, "still text"),
    ],
)
def test_text_in_unusual_blocks_is_read_and_counted_as_text(message, text):
    (entry,) = read_messages([message])
    assert text in entry.reading
    assert not entry.media
    assert TokenMeter().count_entry(entry) < 100


TITLED = {"title": "The harbour of Lisbon", "context": "This contract says much. " * 300}
SEARCHED = {"title": TITLED["title"], "source": TITLED["context"]}
SEARCH_RESULT = [{"type": "text", "text": "body"}]
PRINTED = "a line of the harbour's log\n" * 400
# Anthropic lists files as `content` beside what was printed, also where there are none.
RAN = {"type": "code_execution_result", "stdout": PRINTED, "return_code": 1, "content": []}
RUNS = [
    {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "f()"}},
    {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": RAN},
]
LISTS = {"type": "exec", "command": ["ls"], "env": {}}
SHELL = [
    {"type": "local_shell_call", "id": "l1", "call_id": "c1", "action": LISTS},
    {"type": "local_shell_call_output", "id": "c1", "output": "harbour.txt"},
]


@pytest.mark.parametrize(
    ("content", "tokens", "shown_words"),
    [
        ([{"type": "document", "source": {"type": "text", "data": "body"}, **TITLED}], 1_000, ""),
        ([{"type": "document", "source": {"type": "base64", "data": "aGk="}, **TITLED}], 1_000, ""),
        ([{"type": "text-plain", "text": "body", **TITLED}], 1_000, ""),
        ([{"type": "search_result", "content": SEARCH_RESULT, **SEARCHED}], 1_000, ""),
        (RUNS, 2_000, "failed: return_code=1"),
        (SHELL, 10, "→ harbour.txt"),
    ],
)
def test_what_a_block_holds_is_counted_and_can_be_recalled(content, tokens, shown_words):
    role = "assistant" if content is RUNS else "user"
    turn = content if content is SHELL else [{"role": role, "content": content}]
    history = [user("Look at the coast. " * 40), *turn, user("Go on.")]
    compactor = Compactor(keep=("messages", 1), archive="memory:")
    result = compactor.compact(history, thread_id="t", force=True)
    assert result.outcome == "compacted"
    assert result.tokens_before > tokens
    assert shown_words in result.summary
    assert "(no result)" not in result.summary
    assert "harbour" in compactor.recall("harbour", thread_id="t").text


THOUGHT_OF = "the harbour of Lisbon " * 300
DETAILS = [
    {"type": "reasoning.text", "text": "First."},
    {"type": "reasoning.summary", "summary": THOUGHT_OF},
    {"type": "reasoning.encrypted", "data": "sealed" * 99},
]
FIELDS_BESIDE_CONTENT: list[dict[str, Any]] = [
    {"refusal": THOUGHT_OF},
    {"reasoning": THOUGHT_OF},
    {"reasoning_details": DETAILS},
]


@pytest.mark.parametrize("fields", FIELDS_BESIDE_CONTENT)
@pytest.mark.parametrize("form", ["dict", "langchain"])
def test_what_stands_beside_the_content_is_counted_and_can_be_recalled(fields, form):
    history: list[Any] = [user("Look."), {"role": "assistant", "content": "", **fields}]
    if form == "langchain":
        history = [HumanMessage("Look."), AIMessage("", additional_kwargs=fields)]
    history.append(history[0])
    compactor = Compactor(keep=("messages", 1), archive="memory:")
    result = compactor.compact(history, thread_id="t", force=True)
    assert result.tokens_before > 1_000
    assert "harbour" in compactor.recall("harbour", thread_id="t").text
    assert "sealed" not in result.summary
    assert ("harbour" in result.summary) == ("refusal" in fields)  # nobody was told a thought


class NothingUnreadLeaves:
    """Every evicted message stands in what some summariser was given, to the last word."""

    def judge(self, look: Look) -> None:
        evicted = look.not_shown if look.reach is None else look.reach[: look.covered]
        whole = {text for reading in look.readings for text in reading.originals}
        texts = "\n".join(reading.text for reading in look.readings)
        words = words_in(texts)
        for message in evicted:
            by_word = words_in(text_of(message))
            read = plain(message) in whole or (by_word <= words if by_word else bool(texts))
            assert read, f"nobody read {message!r:.300}"


class NothingUnreadLeavesCompactor(NothingUnreadLeaves, CompactorWorld):
    summarizer_kinds = ("protocol", "model", "side by side", "embedded")


TestNothingUnreadLeavesThroughCompactor = budgeted(NothingUnreadLeavesCompactor, short=7, long=600)


TestNothingUnreadLeavesThroughAgents = budgeted(NothingUnreadLeaves, AgentWorld, short=2, long=100)
