"""Messages: read in every form, remembered, named, written and read back, clipped, framed."""

import tracemalloc
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage
from langgraph.runtime import Runtime

from conspectus import Compactor
from conspectus.langchain import SummarizationMiddleware
from conspectus.messages import read_messages
from conspectus.messages.harmless import as_notes
from conspectus.messages.message import decode
from conspectus.messages.thoughts import without_stale_thoughts
from histories import user

CALL: Any = {"name": "grep", "args": {"pattern": "x"}, "id": "c1", "type": "tool_call"}
USE = {"type": "tool_use", "id": "c1", "name": "grep", "input": {"pattern": "x"}}
DATA = "A" * 4_000


def blocks(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


@dataclass(frozen=True)
class ReadBlock:
    """What a block says and does."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()  # of each, its id, the tool, the arguments
    answers: tuple[str, ...] = ()


BLOCKS: list[tuple[dict[str, Any], ReadBlock]] = [
    ({"type": "text", "text": "hi"}, ReadBlock("hi")),
    (USE, ReadBlock(calls=(("c1", "grep", '{"pattern": "x"}'),))),
    (
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "ok"}]},
        ReadBlock("ok", answers=("c1",)),
    ),
    (
        {"toolUse": {"toolUseId": "c1", "name": "grep", "input": {"pattern": "x"}}},
        ReadBlock(calls=(("c1", "grep", '{"pattern": "x"}'),)),
    ),
    (
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "ok"}]}},
        ReadBlock("ok", answers=("c1",)),
    ),
    (
        {"type": "document", "title": "A plan", "source": {"type": "text", "data": "Step one."}},
        ReadBlock("Step one.\nA plan"),
    ),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}, ReadBlock("Hm.")),
]
"""Blocks in the forms of their providers, and what is read of each."""


@pytest.mark.parametrize(("block", "expected"), BLOCKS)
def test_a_block_is_read_as_the_table_says(block, expected):
    role = "assistant" if expected.calls else "user"
    [message] = read_messages([{"role": role, "content": [block]}])
    calls = tuple(tuple(call) for call in message.calls)
    assert ReadBlock(message.text, calls, message.answers) == expected


def test_calls_that_langchain_lists_twice_are_one_call():
    (read,) = read_messages([AIMessage([USE], tool_calls=[CALL])])
    assert [call.id for call in read.calls] == ["c1"]


@pytest.mark.parametrize(
    "message",
    [
        blocks("user", {"type": "tool_result", "tool_use_id": "x", "content": 5}),
        blocks("user", {**USE, "input": {"n": 10**5_000}}),
        blocks("user", {"type": "tool_result", "tool_use_id": "x", "content": {"rows": [1]}}),
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": "[" * 10**5}}]},
    ],
)
def test_odd_values_are_read_as_text(message):
    (read,) = read_messages([message])
    assert read.reading


def test_a_call_in_openais_first_form_pairs_with_its_result():
    first = {"name": "grep", "arguments": '{"pattern": "x"}'}
    result = {"role": "function", "name": "grep", "content": "3 lines"}
    for calling in ({"function_call": first}, {"additional_kwargs": {"function_call": first}}):
        ai = "function_call" not in calling
        asks: Any = AIMessage("", **calling) if ai else {"role": "assistant", **calling}
        gives: Any = FunctionMessage("3 lines", name="grep") if ai else result
        call, answer = read_messages([asks, gives])
        assert [tool_call.name for tool_call in call.calls] == ["grep"]
        assert answer.answers == (call.calls[0].id,)


def test_edited_messages_and_duplicate_ids_have_own_keys():
    original, edited, duplicate, twin = read_messages(
        [user("a", id="1"), user("b", id="1"), user("c", id="2"), user("c", id="2")]
    )
    assert original.id == edited.id
    assert len({original.key, edited.key, duplicate.key, twin.key}) == 4


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(), st.integers(), st.just("~conspectus")), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


@given(st.text(), JSON)
def test_any_message_comes_back_equal_from_its_text(text, extra):
    fields: Any = {"extra": extra}
    message_and_id: list[tuple[Any, str | None]] = [
        ({"role": "user", "content": text, **fields}, None),
        (HumanMessage(text, additional_kwargs=fields, id="7"), "7"),
    ]
    for message, name in message_and_id:
        coded = read_messages([message])[0].encoded
        assert coded.text.isascii()
        assert coded.lossless
        assert decode(coded.form, coded.text, name) == message


NO_ROLES = """\
"System": "linux",
"user": user,
'tool': make(),
user (str): whose it is.
12:user: str
[user]
[system] started
{user}: {text}
<user>@<host>
<invoke>
AIX: 7.2
if a < b and c > d: print('<div>', x | y)  # systems: ok, a[INSTANCE]
ssh <user>@<host>, 10. users: 3"""


@pytest.mark.parametrize("line", NO_ROLES.split("\n"))
def test_a_line_of_code_or_a_log_stays_as_it_is(line):
    assert as_notes(f"before\n{line}\nafter") == f"before\n{line}\nafter"


@pytest.mark.parametrize("reader", ["text", "image", "compactor", "agent"])
def test_what_is_remembered_of_histories_is_bounded_by_their_characters(reader):
    compactor = Compactor(trigger=("tokens", 10_000_000), keep=("messages", 20))
    middleware = SummarizationMiddleware("embedded", trigger=("tokens", 10_000_000))
    tracemalloc.start()
    try:
        for number in range(14):
            content: Any = f"{number} " * 5_000_000
            if reader != "text":
                content = [{"type": "image_url", "image_url": {"url": f"data:,{content}"}}]
            if reader == "compactor":
                compactor.compact([HumanMessage(content)], thread_id=f"large-{number}")
            elif reader == "agent":
                middleware.before_model({"messages": [HumanMessage(content)]}, Runtime())
            else:
                read_messages([{"role": "user", "content": content}], thread=f"{reader}-{number}")
        del content
        traced_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert traced_bytes < 80_000_000


def test_what_a_provider_alone_can_read_stays():
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 99}
    history = [{"role": "user", "content": f"Part {n}. " * 20} for n in range(30)]
    older = {**sealed, "id": "cmp_0"}  # for which the newest one stands, too
    result = Compactor().compact([older, history[0], sealed, *history], thread_id="t", force=True)
    assert [message for message in result.messages if "type" in message] == [sealed]


def test_thoughts_of_other_providers_stay():
    content: list[Any] = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]
    for provider, left in (("google_genai", content), (None, content[1:])):
        message = AIMessage(content, response_metadata={"model_provider": provider})
        assert without_stale_thoughts([message, HumanMessage("And?")], 2)[0].content == left


def test_bytes_in_an_unknown_block_are_a_file():
    scan = {"type": "acme_scan", "data": "QUJD" * 10_000, "page": 3}
    note = {"type": "acme_note", "data": "A note of some words. " * 100}
    [entry] = read_messages([{"role": "user", "content": [scan, note]}])
    assert "[acme_scan: 30,000 bytes]" in entry.reading
    assert "QUJD" not in entry.reading
    assert "A note of some words." in entry.reading
    assert entry.source["content"][0] is scan
