"""Promises 1 and 3, where somebody repeats what we have shown: a clip, or a summary.

What users and agents say is theirs, whatever it looks like: it stays in view, is read before it
leaves, and is archived under its own name.
"""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from conspectus import Compactor
from conspectus.messages import SUMMARY_LINE
from engine import SCOPE, Scripted, compacted, engine, short

LOG = "a line of the log\n" * 1_500


def said(form: str, role: str, text: str, name: str) -> Any:
    """A message as a dict without an id, or as LangChain's."""
    if form == "dict":
        return {"role": role, "content": text}
    return {"user": HumanMessage, "assistant": AIMessage}[role](text, id=name)


def text_of(message: Any) -> str:
    return str(message["content"] if isinstance(message, dict) else message.text)


def archived(compactor: Compactor) -> list[str]:
    """The texts that the archive holds."""
    keys = [row["key"] for row in compactor.archive.export(SCOPE)]
    return [text_of(one.message) for one in compactor.archive.get(SCOPE, keys)]


def with_a_clip(form: str) -> list[Any]:
    call = {"name": "run", "args": {}, "id": "c1", "type": "tool_call"}
    made: list[Any] = [
        HumanMessage("Run it", id="h1"),
        AIMessage("", id="a1", tool_calls=[call]),  # type: ignore[list-item]
        ToolMessage(LOG, tool_call_id="c1", id="t1"),
        AIMessage("It failed.", id="a2"),
        HumanMessage("I see", id="h2"),
    ]
    if form == "langchain":
        return made
    asked = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Run it"},
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": LOG},
        {"role": "assistant", "content": "It failed."},
        {"role": "user", "content": "I see"},
    ]


def more(form: str, count: int) -> list[Any]:
    return [
        said(form, role, f"{role} says {n}", f"{role}{n}")
        for n in range(count)
        for role in ("user", "assistant")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dict", "langchain"])
def test_a_user_who_repeats_the_clip_of_his_own_message_has_said_both(form):
    compactor = engine(Scripted(short), window=1_500, keep=("messages", 4))
    view = compacted(
        [said(form, "user", LOG, "h1"), said(form, "assistant", "ok", "a1")], compactor
    )
    clip = text_of(view.messages[0])
    assert "archived as" in clip
    again = [*view.messages, said(form, "user", clip, "h2"), said(form, "assistant", "Why?", "a2")]
    result = compacted([*again, *more(form, 4)], compactor, force=True)
    assert result.evicted == len(again) + 4
    rows = archived(compactor)
    assert rows.count(LOG) == 1
    assert rows.count(clip) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("whose", ["tool", "user"])
def test_a_clip_that_is_pasted_after_its_original_has_left_is_a_message(form, whose):
    compactor = engine(Scripted(short), window=2_500, keep=("messages", 2))
    begun = [said(form, "user", LOG, "h0")] if whose == "user" else with_a_clip(form)
    view = compacted(begun, compactor).messages
    (clip,) = [text_of(m) for m in view if "archived as" in text_of(m)]
    view = compacted([*view, *more(form, 3)], compactor, force=True).messages
    assert not any("archived as" in text_of(m) for m in view)
    pasted = said(form, "user", clip, "PASTE")
    result = compacted([*view, pasted], compactor)
    assert result.messages[-1] is pasted
    compacted([*result.messages, *more(form, 3)], compactor, force=True)
    rows = archived(compactor)
    assert rows.count(LOG) == 1
    assert rows.count(clip) == 1


@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("whole", [False, True], ids=["what came back", "whole history"])
def test_a_summary_that_is_pasted_is_a_message(form, whole):
    compactor = engine(Scripted(short), window=1_500, keep=("messages", 2))
    history = more(form, 6)
    view = compacted(history, compactor, force=True).messages
    (summary,) = [text_of(m) for m in view if text_of(m).startswith(SUMMARY_LINE)]
    sent = history if whole else [*view]
    for name in ("PASTE", "AGAIN"):
        pasted = said(form, "user", summary, name)
        sent = [*sent, pasted]
        result = compacted(sent, compactor)
        assert result.messages[-1] is pasted
        sent = [*sent, said(form, "assistant", "Yes?", f"{name}-a")]
        shown = compacted(sent, compactor).messages
        assert any(m is pasted for m in shown)
    compacted([*sent, *more(form, 3)], compactor, force=True)
    rows = archived(compactor)
    assert rows.count(summary) == 2


@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("who", ["user", "tool"])
def test_a_clip_that_is_said_where_its_original_was_taken_out_is_a_message(form, who):
    compactor = engine(Scripted(short), window=1_500, keep=("messages", 4))
    view = compacted(with_a_clip(form), compactor).messages
    (clip,) = [text_of(m) for m in view if "archived as" in text_of(m)]
    rest = [view[0], *view[3:]]
    if who == "user":
        again = [*rest, said(form, "user", clip, "PASTE"), *more(form, 1)]
    elif form == "dict":
        call = {"id": "c2", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        asked: Any = {"role": "assistant", "content": "", "tool_calls": [call]}
        again = [*rest, asked, {"role": "tool", "tool_call_id": "c2", "content": clip}]
    else:
        call = {"name": "run", "args": {}, "id": "c2", "type": "tool_call"}
        again = [*rest, AIMessage("", tool_calls=[call]), ToolMessage(clip, tool_call_id="c2")]  # type: ignore[list-item]
    result = compacted([*again, *more(form, 4)], compactor, force=True)
    assert not any(text_of(m) == clip for m in result.messages)
    assert clip in archived(compactor)


@pytest.mark.parametrize("form", ["dict", "langchain"])
def test_an_assistant_who_says_the_clip_of_what_was_taken_out_has_said_it(form):
    compactor = engine(Scripted(short), window=1_500, keep=("messages", 4))
    view = compacted([said(form, "user", LOG, "h1")], compactor).messages
    clip = text_of(view[0])
    assert "archived as" in clip
    again = [said(form, "assistant", clip, "PASTE"), *more(form, 1)]
    result = compacted([*again, *more(form, 4)], compactor, force=True)
    assert not any(text_of(m) == clip for m in result.messages)
    assert clip in archived(compactor)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("whole", [False, True], ids=["what came back", "whole history"])
@pytest.mark.parametrize("who", ["user", "tool"])
def test_equal_messages_that_are_clipped_are_each_known_again(form, whole, who):
    """Without ids only their order tells them apart, and their clips say the same."""
    scripted = Scripted(short)
    store = engine().archive

    def fresh() -> Compactor:
        more: Any = {"keep": ("messages", 8), "max_summary_tokens": 100, "archive": store}
        return engine(scripted, window=3_000, **more)

    def unnamed(role: str, text: str) -> Any:
        if form == "dict":
            return {"role": role, "content": text}
        return {"user": HumanMessage, "assistant": AIMessage}[role](text)

    log = with_a_clip(form)[1:3] if who == "tool" else [unnamed("user", LOG)]
    history = [*log, unnamed("assistant", "ok"), *log, unnamed("assistant", "fine")]
    view = compacted(history, fresh()).messages
    assert sum("archived as" in text_of(m) for m in view) == 2
    sent = history if whole else list(view)
    again = [said(form, "user", "go", "h8"), said(form, "assistant", "hm", "a8")]
    result = compacted([*sent, *again], fresh())
    assert len(fresh().archive.chain(SCOPE)) == 1  # type: ignore[union-attr]
    sent = [*(sent if whole else result.messages), *(again if whole else ()), *more(form, 5)]
    compacted(sent, fresh(), force=True)
    assert archived(fresh()).count(LOG) == 2
    assert not [text for text in archived(fresh()) if "archived as" in text]
    read = [entry.text for request in scripted.requests for entry in request.entries]
    assert read.count(LOG) == 2
