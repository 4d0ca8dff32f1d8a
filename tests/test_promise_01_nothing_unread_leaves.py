"""Promise 1: every evicted message was read whole by a summariser."""

from typing import Any

from conspectus import Summary, SummaryRequest, is_summary_message
from engine import Scripted, compacted, engine, short
from histories import talk, tool, user


def test_a_summariser_that_skips_messages_is_refused():
    class Skipping(Scripted):
        def summarize(self, request: SummaryRequest) -> Summary:
            return Summary("- fine", tuple(e.key for e in request.entries[1:]))

    result = compacted(talk(40), engine(Skipping(short)), force=True)
    assert result.outcome == "kept"
    assert "1 of 60 messages were not read" in result.reason


def test_a_function_that_reads_in_several_calls_gets_what_it_has_written_so_far():
    given: list[list[Any]] = []

    def write(messages: list[Any]) -> str:
        given.append(messages)
        before = [m for m in messages if is_summary_message(m)]
        return f"- call {len(given)} after {len(before)}" + " and so on" * 20

    messages = talk(40, 60)
    compactor = engine(write, trim_tokens_to_summarize=1_000)
    result = compacted(messages, compactor, force=True)
    assert len(given) > 2
    said = ["".join(str(m.content) for m in call if is_summary_message(m)) for call in given]
    assert said[0] == ""
    assert all(f"call {n} after" in text for n, text in enumerate(said[1:], 1))
    read = [str(m.content) for call in given for m in call if not is_summary_message(m)]
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
        tool("nobody", "nine came to no call"),
        {"role": "user", "name": "helper", "content": "Ten, says the helper."},
    ]
    compactor = engine(window=60_000, keep=("messages", 2))
    result = compacted([*messages, *talk(4)], compactor, force=True)
    lines = result.record.segment["lines"]

    def held(kind: str) -> str:
        return "\n".join(str(line) for line in lines if line["kind"] == kind)

    assert [line["text"] for line in lines if line["kind"] == "said"][:2] == [
        "Begin with one.",
        "And seven.",
    ]
    for words in ("Two is why.", "three", "four", "five came", "six came", "nine came to no call"):
        assert words in held("done")
    for words in ("Eight is the answer.", "Ten, says the helper."):
        assert words in held("agent")
