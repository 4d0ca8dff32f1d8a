"""Promises 1, 3 and 11: somebody repeats what we have shown, a summary or a clip.

A summary in view names the record that stands for what left. Its text alone, or that of a clip,
said by somebody elsewhere, is a message like any other: it stays in view, is read before it leaves,
and is archived under its own name. It brings nothing back that the history has left behind.
"""

from typing import Any

import pytest

from compactor_support import SCOPE, Scripted, compacted, new_compactor, short_summary
from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive
from conspectus.messages import SUMMARY_LINE
from graph_support import new_agent
from stateful.messages import answering, calling, speaking
from stateful.oracle import text_of

FORMS = ["dict", "langchain", "without ids"]


def said(form: str, role: str, text: str, name: str | None = None) -> Any:
    """A message as a dict without an id, or as LangChain's."""
    kind = "openai" if form == "dict" else "langchain"
    return speaking(kind, role, text, name=name if form == "langchain" else None)


def called(form: str, call: str, result: str) -> list[Any]:
    """A tool is called, and answers so."""
    kind = "openai" if form == "dict" else "langchain"
    names = (None, None)
    if form == "langchain":
        names = (f"a-{call}", f"t-{call}")  # type: ignore[assignment]
    return [calling(kind, "", [(call, "x")], names[0]), answering(kind, call, result, names[1])]


def texts(messages: list[Any]) -> list[str]:
    return [text_of(message) for message in messages]


def heads(compactor: Compactor) -> list[str]:
    return [record.id for record in compactor.archive.chain(SCOPE)]


def summary_in(messages: Any) -> str:
    (found,) = [text for text in texts(messages) if text.startswith(SUMMARY_LINE)]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("who", ["user", "tool", "user before any answer"])
def test_a_summary_that_is_pasted_into_another_history_is_said_there(form, who):
    compactor = new_compactor(Scripted(short_summary), keep=("messages", 2))
    summary = summary_in(compacted(more(form, 3), compactor, force=True).messages)
    pasted = said(form, "user", summary, "PASTE")
    history = more(form, 6)[6:]
    compacted(history[:2], compactor)
    if who != "tool":
        history = [*history[: 2 if who == "user" else 1], pasted]
    else:
        history = [*history[:3], *called(form, "c9", summary), history[4]]
    for answer in ([], more(form, 8)[-3:-1]):
        history += answer
        assert texts(compacted(history, compactor).messages) == texts(history)
        assert heads(compactor) == []


def test_a_graph_without_a_checkpointer_knows_the_summary_that_comes_back_as_a_dict():
    view = list[Any]()
    looked = " I looked at it again." * 20
    own = SummarizationMiddleware(None, trigger=("messages", 8), keep=("messages", 3), window=4_000)
    graph, _ = new_agent(lambda asked: f"To {asked[-1].text[:20]}{looked}", own, checkpointer=None)
    roles = {"human": "user", "ai": "assistant"}
    for n in range(12):
        said = {"role": "user", "content": f"Never delete keep{n}.py"}
        done = graph.invoke({"messages": [*view, said]}, {"configurable": {"thread_id": "t"}})
        view = [{"role": roles[one.type], "content": one.text} for one in done["messages"]]
    archive = Archive(graph.store)
    kept = [archive.get(SCOPE, record.covers) for record in archive.chain(SCOPE)]
    assert len(kept) > 2
    gone = [one.message.text for part in kept for one in part]
    assert gone[0] == "Never delete keep0.py"
    assert not [text for text in gone if text.startswith(SUMMARY_LINE)]
    assert "keep0" in summary_in(view)


LOG = "a line of the log\n" * 1_500


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


def clip_in(view: Any) -> str:
    (clip,) = [text_of(m) for m in view if "archived as" in text_of(m)]
    return clip


def more(form: str, count: int) -> list[Any]:
    return [
        said(form, role, f"{role} says {n}", f"{role}{n}")
        for n in range(count)
        for role in ("user", "assistant")
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize(("whose", "left"), [("tool", True), ("user", True), ("user", False)])
def test_a_clip_that_is_pasted_beside_its_original_or_after_it_has_left_is_a_message(
    form, whose, left
):
    compactor = new_compactor(Scripted(short_summary), window=2_500, keep=("messages", 2))
    begun = [said(form, "user", LOG, "h0")] if whose == "user" else with_a_clip(form)
    view = compacted(begun, compactor).messages
    clip = clip_in(view)
    if left:
        view = compacted([*view, *more(form, 3)], compactor, force=True).messages
        assert not any("archived as" in text_of(m) for m in view)
    pasted = said(form, "user", clip, "PASTE")
    sent = [*view, pasted]
    if left:
        sent = compacted(sent, compactor).messages
        assert sent[-1] is pasted
    compacted([*sent, *more(form, 5)], compactor, force=True)
    rows = archived(compactor)
    assert rows.count(LOG) == 1
    assert rows.count(clip) == 1


@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("whole", [False, True], ids=["what came back", "whole history"])
def test_a_summary_that_is_pasted_is_a_message(form, whole):
    compactor = new_compactor(Scripted(short_summary), window=1_500, keep=("messages", 2))
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
    compactor = new_compactor(Scripted(short_summary), window=1_500, keep=("messages", 4))
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
@pytest.mark.parametrize(
    "who",
    [
        "user",
        pytest.param(
            "tool",
            marks=pytest.mark.xfail(
                strict=True, reason="the first of two equal results leaves, so that one is clipped"
            ),
        ),
    ],
)
def test_equal_messages_that_are_clipped_are_each_known_again(form, whole, who):
    """Without ids only their order tells them apart, and their clips say the same."""
    scripted = Scripted(short_summary)
    store = new_compactor().archive

    def fresh() -> Compactor:
        more: Any = {"keep": ("messages", 8), "max_summary_tokens": 100, "archive": store}
        return new_compactor(scripted, window=3_000, **more)

    log = with_a_clip(form)[1:3] if who == "tool" else [said(form, "user", LOG)]
    history = [*log, said(form, "assistant", "ok"), *log, said(form, "assistant", "fine")]
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
