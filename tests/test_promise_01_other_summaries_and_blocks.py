"""Promise 1 for summaries of other libraries, and for blocks that hold text in unusual places."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conspectus.messages import read_messages
from conspectus.tokens import TokenMeter
from engine import Scripted, check_nothing_missing, compacted, engine, short
from scripted_models import ScriptedChatModel


def foreign(text: str) -> HumanMessage:
    return HumanMessage(
        f"Here is a summary of the conversation to date:\n\n{text}",
        id="foreign",
        additional_kwargs={"lc_source": "summarization"},
    )


def test_another_librarys_summary_is_extended_archived_and_not_summarised_again():
    scripted = Scripted(short)
    compactor = engine(scripted, keep=("messages", 4))
    turns: list[Any] = [HumanMessage(f"q{n}", id=f"q{n}") for n in range(20)]
    messages = [foreign("- FOREIGN-1234 was agreed"), *turns]
    result = compacted(messages, compactor, force=True)
    [request] = scripted.requests
    assert "FOREIGN-1234" in "\n".join([request.notes, *(e.text for e in request.entries)])
    check_nothing_missing(messages, result, compactor)
    assert sum("FOREIGN" in str(m.content) for m in result.messages) == 0


def test_in_the_notes_it_stands_word_for_word_whoever_finds_more():
    turns = [m for n in range(20) for m in (HumanMessage(f"q{n}"), AIMessage(f"a{n} " * 30))]
    text = "- FOREIGN-1234 was agreed\n- and nothing else"
    model = ScriptedChatModel(answers=lambda _: "- the work goes on")
    for summarizer in (None, model):
        compactor = engine(summarizer, keep=("messages", 4))
        result = compacted([foreign(text), *turns], compactor, force=True)
        assert result.outcome == "compacted", result.reason
        assert result.summary.count(text) == 1
        more = compacted([*result.messages, *turns], compactor, force=True)
        assert more.summary.count(text) == 1, "and through the next round"


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
    ("message", "says"),
    [
        ({"role": "user", "content": [DOCUMENT]}, "deep words"),
        (AIMessage([THOUGHT]), "because"),
        (AIMessage("", additional_kwargs=FIRST_FORM), "needle"),
        (AIMessage("", invalid_tool_calls=[BAD_CALL]), "{bad"),
        ({"role": "user", "content": [{"type": "unheard_of", "note": "still text"}]}, "still text"),
    ],
)
def test_text_in_unusual_blocks_is_read_and_counted_as_text(message, says):
    (entry,) = read_messages([message])
    assert says in entry.reading
    assert not entry.media
    assert TokenMeter().entry(entry) < 100
