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


def message_of(form: str, role: str, text: str, name: str | None = None) -> Any:
    """A message as a dict without an id, or as LangChain's."""
    form_of_dict = "openai" if form == "dict" else "langchain"
    return speaking(form_of_dict, role, text, name=name if form == "langchain" else None)


def call_and_answer(form: str, call: str, result: str) -> list[Any]:
    """A tool is called, and answers so."""
    form_of_dict = "openai" if form == "dict" else "langchain"
    names = (None, None)
    if form == "langchain":
        names = (f"a-{call}", f"t-{call}")  # type: ignore[assignment]
    return [
        calling(form_of_dict, "", [(call, "x")], names[0]),
        answering(form_of_dict, call, result, names[1]),
    ]


def texts(messages: list[Any]) -> list[str]:
    return [text_of(message) for message in messages]


def record_ids(compactor: Compactor) -> list[str]:
    return [record.id for record in compactor.archive.chain(SCOPE)]


def summary_in(messages: Any) -> str:
    (summary,) = [text for text in texts(messages) if text.startswith(SUMMARY_LINE)]
    return summary


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sayer", ["user", "tool", "user before any answer"])
def test_a_summary_that_is_pasted_into_another_history_is_said_there(form, sayer):
    compactor = new_compactor(Scripted(short_summary), keep=("messages", 2))
    summary = summary_in(compacted(talk_of(form, 3), compactor, force=True).messages)
    pasted = message_of(form, "user", summary, "PASTE")
    history = talk_of(form, 6)[6:]
    compacted(history[:2], compactor)
    if sayer != "tool":
        history = [*history[: 2 if sayer == "user" else 1], pasted]
    else:
        history = [*history[:3], *call_and_answer(form, "c9", summary), history[4]]
    for answer in ([], talk_of(form, 8)[-3:-1]):
        history += answer
        assert texts(compacted(history, compactor).messages) == texts(history)
        assert record_ids(compactor) == []


def test_a_summary_that_comes_back_as_a_dict_is_recognised():
    view = list[Any]()
    looked = " I looked at it again." * 20
    middleware = SummarizationMiddleware(
        None, trigger=("messages", 8), keep=("messages", 3), window=4_000
    )
    graph, _ = new_agent(
        lambda asked: f"To {asked[-1].text[:20]}{looked}", middleware, checkpointer=None
    )
    roles = {"human": "user", "ai": "assistant"}
    for n in range(12):
        question = {"role": "user", "content": f"Never delete keep{n}.py"}
        state = graph.invoke({"messages": [*view, question]}, {"configurable": {"thread_id": "t"}})
        view = [
            {"role": roles[message.type], "content": message.text} for message in state["messages"]
        ]
    archive = Archive(graph.store)
    archived_by_record = [archive.get(SCOPE, record.covers) for record in archive.chain(SCOPE)]
    assert len(archived_by_record) > 2
    archived_texts = [original.message.text for part in archived_by_record for original in part]
    assert archived_texts[0] == "Never delete keep0.py"
    assert not [text for text in archived_texts if text.startswith(SUMMARY_LINE)]
    assert "keep0" in summary_in(view)


LOG = "a line of the log\n" * 1_500


def archived_texts(compactor: Compactor) -> list[str]:
    """The texts that the archive holds."""
    keys = [row["key"] for row in compactor.archive.export(SCOPE)]
    return [text_of(original.message) for original in compactor.archive.get(SCOPE, keys)]


def with_a_clip(form: str) -> list[Any]:
    """A call with a giant result, which is clipped."""
    return [
        message_of(form, "user", "Run it", "h1"),
        *call_and_answer(form, "c1", LOG),
        message_of(form, "assistant", "It failed.", "a2"),
        message_of(form, "user", "I see", "h2"),
    ]


def clip_in(view: Any) -> str:
    (clip,) = [text_of(m) for m in view if "archived as" in text_of(m)]
    return clip


def talk_of(form: str, count: int) -> list[Any]:
    return [
        message_of(form, role, f"{role} says {n}", f"{role}{n}")
        for n in range(count)
        for role in ("user", "assistant")
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize(
    ("whose", "original_left"), [("tool", True), ("user", True), ("user", False)]
)
def test_a_pasted_clip_is_a_message(form, whose, original_left):
    compactor = new_compactor(Scripted(short_summary), window=2_500, keep=("messages", 2))
    beginning = [message_of(form, "user", LOG, "h0")] if whose == "user" else with_a_clip(form)
    view = compacted(beginning, compactor).messages
    clip = clip_in(view)
    if original_left:
        view = compacted([*view, *talk_of(form, 3)], compactor, force=True).messages
        assert not any("archived as" in text_of(m) for m in view)
    pasted = message_of(form, "user", clip, "PASTE")
    sent = [*view, pasted]
    if original_left:
        sent = compacted(sent, compactor).messages
        assert sent[-1] is pasted
    compacted([*sent, *talk_of(form, 5)], compactor, force=True)
    rows = archived_texts(compactor)
    assert rows.count(LOG) == 1
    assert rows.count(clip) == 1


@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("whole", [False, True], ids=["what came back", "whole history"])
def test_a_summary_that_is_pasted_is_a_message(form, whole):
    compactor = new_compactor(Scripted(short_summary), window=1_500, keep=("messages", 2))
    history = talk_of(form, 6)
    view = compacted(history, compactor, force=True).messages
    (summary,) = [text_of(m) for m in view if text_of(m).startswith(SUMMARY_LINE)]
    sent = history if whole else [*view]
    for name in ("PASTE", "AGAIN"):
        pasted = message_of(form, "user", summary, name)
        sent = [*sent, pasted]
        result = compacted(sent, compactor)
        assert result.messages[-1] is pasted
        sent = [*sent, message_of(form, "assistant", "Yes?", f"{name}-a")]
        shown = compacted(sent, compactor).messages
        assert any(m is pasted for m in shown)
    compacted([*sent, *talk_of(form, 3)], compactor, force=True)
    rows = archived_texts(compactor)
    assert rows.count(summary) == 2


@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("who", ["user", "tool", "assistant"])
def test_a_clip_in_place_of_a_removed_original_is_a_message(form, who):
    compactor = new_compactor(Scripted(short_summary), window=1_500, keep=("messages", 4))
    beginning = [message_of(form, "user", LOG, "h1")] if who == "assistant" else with_a_clip(form)
    view = compacted(beginning, compactor).messages
    clip = clip_in(view)
    without_original = [] if who == "assistant" else [view[0], *view[3:]]
    pasted = (
        call_and_answer(form, "c2", clip)
        if who == "tool"
        else [message_of(form, who, clip, "PASTE")]
    )
    more_talk = talk_of(form, 0 if who == "tool" else 1)
    result = compacted(
        [*without_original, *pasted, *more_talk, *talk_of(form, 4)], compactor, force=True
    )
    assert not any(text_of(m) == clip for m in result.messages)
    assert clip in archived_texts(compactor)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dict", "langchain"])
@pytest.mark.parametrize("whole", [False, True], ids=["what came back", "whole history"])
@pytest.mark.parametrize("who", ["user", "tool"])
@pytest.mark.filterwarnings("ignore:keep")
def test_equal_messages_that_are_clipped_are_each_known_again(form, whole, who):
    """Without ids only their order tells them apart, and their clips say the same."""
    scripted = Scripted(short_summary)
    store = new_compactor().archive

    def restarted_compactor(**options: Any) -> Compactor:
        settings: Any = {"keep": ("messages", 8), "max_summary_tokens": 100, "archive": store}
        settings |= options
        return new_compactor(scripted, window=3_000, **settings)

    log = with_a_clip(form)[1:3] if who == "tool" else [message_of(form, "user", LOG)]
    history = [
        *log,
        message_of(form, "assistant", "ok"),
        *log,
        message_of(form, "assistant", "fine"),
    ]
    # By a trigger in messages nothing has to leave for room: both are clipped.
    view = compacted(history, restarted_compactor(trigger=("messages", 6))).messages
    assert sum("archived as" in text_of(m) for m in view) == 2
    sent = history if whole else list(view)
    next_turn = [message_of(form, "user", "go", "h8"), message_of(form, "assistant", "hm", "a8")]
    result = compacted([*sent, *next_turn], restarted_compactor())
    assert len(restarted_compactor().archive.chain(SCOPE)) == 1  # type: ignore[union-attr]
    sent = [
        *(sent if whole else result.messages),
        *(next_turn if whole else ()),
        *talk_of(form, 5),
    ]
    compacted(sent, restarted_compactor(), force=True)
    assert archived_texts(restarted_compactor()).count(LOG) == 2
    assert not [text for text in archived_texts(restarted_compactor()) if "archived as" in text]
    read = [entry.text for request in scripted.requests for entry in request.entries]
    assert read.count(LOG) == 2


def test_a_pasted_summary_stays_among_the_users_words_in_dicts_too():
    pasted = f"{SUMMARY_LINE}\n\nThe relay listens on port 48213. {'It is in rack 7. ' * 40}"
    history = [{"role": "user", "content": text} for text in ("Hello.", pasted, "And now?")]
    result = Compactor(keep=("messages", 1)).compact(history, thread_id="t", force=True)
    assert "port 48213" in result.summary
