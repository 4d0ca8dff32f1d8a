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
from histories import assistant, tool

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
    """A call with a giant result, which is truncated."""
    return [
        said(form, "user", "Run it", "h1"),
        *called(form, "c1", LOG),
        said(form, "assistant", "It failed.", "a2"),
        said(form, "user", "I see", "h2"),
    ]


def called(form: str, name: str, result: str) -> list[Any]:
    if form == "langchain":
        call: Any = {"name": "run", "args": {}, "id": name, "type": "tool_call"}
        asks = AIMessage("", id=f"a-{name}", tool_calls=[call])
        return [asks, ToolMessage(result, tool_call_id=name, id=f"t-{name}")]
    return [assistant("", (name, "x")), tool(name, result)]


def clip_in(view: Any) -> str:
    (clip,) = [text_of(m) for m in view if "archived as" in text_of(m)]
    return clip


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
    clip = clip_in(view)
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
@pytest.mark.parametrize("who", ["user", "tool", "assistant"])
def test_a_clip_that_is_said_where_its_original_was_taken_out_is_a_message(form, who):
    compactor = engine(Scripted(short), window=1_500, keep=("messages", 4))
    begun = [said(form, "user", LOG, "h1")] if who == "assistant" else with_a_clip(form)
    view = compacted(begun, compactor).messages
    clip = clip_in(view)
    rest = [] if who == "assistant" else [view[0], *view[3:]]
    pasted = called(form, "c2", clip) if who == "tool" else [said(form, who, clip, "PASTE")]
    more_talk = more(form, 0 if who == "tool" else 1)
    result = compacted([*rest, *pasted, *more_talk, *more(form, 4)], compactor, force=True)
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
