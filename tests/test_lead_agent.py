"""The lead agent: its order, titles, questions that survive a restart, runs that were cut off."""

import os
from pathlib import Path
from typing import Any

import pytest

from conspectus.messages import is_summary_message
from graph_support import torn
from lead_agent.errors import BadRequest, Conflict, UnknownThread
from lead_agent.title import LONGEST
from lead_agent_support import Held, TitlesFail, beside, configured, model, opened, results, sent
from postgres_support import postgres_schema
from scripts import ran

ROOT = Path(__file__).resolve().parents[1]
MAIN = ROOT / "examples" / "lead_agent" / "main.py"


def titles_asked(own: Any) -> int:
    return sum("Write a title" in call.messages[-1].text for call in own.calls)


class Cut(BaseException):
    """The process is gone."""


def test_the_middleware_stands_in_the_documented_order(tmp_path, monkeypatch):
    from lead_agent import agent as module

    seen: list[Any] = []
    real = module.create_agent

    def noting(*args: Any, **more: Any) -> Any:
        seen.extend(more["middleware"])
        return real(*args, **more)

    monkeypatch.setattr(module, "create_agent", noting)
    opened(tmp_path).close()
    assert [one.name for one in seen] == [
        "ThreadDataMiddleware",
        "SandboxMiddleware",
        "SummarizationMiddleware",
        "TitleMiddleware",
        "ClarificationMiddleware",
        "ContextGuard",
    ]


def test_the_folders_of_a_thread_are_there_before_the_model_is_asked(tmp_path):
    found: list[int] = []

    def script(messages: Any) -> None:
        found.append(len(list(tmp_path.glob("data/threads/*/workspace"))))

    with opened(tmp_path, model(script=script)) as agent:
        agent.turn("../../t", "hello")
        state = agent.graph.get_state({"configurable": {"thread_id": "../../t"}})
    assert found == [1]
    assert set(state.values["thread_data"]) == {"workspace", "uploads", "outputs"}
    assert all(Path(path).is_dir() for path in state.values["thread_data"].values())


# Title


def test_a_title_is_written_after_the_first_exchange_and_never_again(tmp_path):
    own = model()
    with opened(tmp_path, own, trigger=8) as agent:
        first = agent.turn("t", "write workspace/plan.md: the plan")
        assert first["title"] == "write workspace/plan.md: the plan"
        for n in range(8):
            assert agent.turn("t", f"write workspace/{n}.md: more")["title"] == first["title"]
        assert titles_asked(own) == 1
        state = agent.graph.get_state({"configurable": {"thread_id": "t"}})
        assert any(map(is_summary_message, state.values["messages"]))
        agent.graph.update_state({"configurable": {"thread_id": "t"}}, {"title": "By hand"})
        assert agent.turn("t", "list")["title"] == "By hand"
        assert agent.turn("u", "list")["title"] == "list"
    with opened(tmp_path, again := model()) as agent:
        assert agent.turn("t", "list")["title"] == "By hand"
        assert titles_asked(again) == 0


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ('"The office moves."\n\nI hope that helps!', "The office moves."),
        ("**Title: The office moves**", "The office moves"),
        ("<think>Hm.\n\nSo?</think>\nThe office moves", "The office moves"),
        ("one two three four five six seven eight nine", "one two three four five six seven eight"),
        ("x" * 500, "x" * (LONGEST - 1) + "…"),
        ("搬办公室", "搬办公室"),
    ],
)
def test_a_title_is_one_short_line(tmp_path, written, title):
    with opened(tmp_path, model(TitlesFail, title=written)) as agent:
        assert agent.turn("t", "plan the move")["title"] == title


def test_a_title_waits_until_the_first_question_is_answered(tmp_path):
    with opened(tmp_path) as agent:
        assert agent.turn("t", "ask which room?")["title"] is None
        assert agent.answer("t", "the blue one")["title"] == "ask which room"


# Clarification


def test_a_question_stops_the_run_and_the_answer_goes_on_with_it(tmp_path):
    own = model()
    with opened(tmp_path, own) as agent:
        reply = agent.turn("t", "ask which room?")
        assert reply["clarification"] == {"question": "which room?", "options": []}
        assert "answer" not in reply
        with pytest.raises(Conflict, match="waits for an answer to 'which room\\?'"):
            agent.turn("t", "list")
        for wrong in ("", "  ", None, 7):
            with pytest.raises(BadRequest):
                agent.answer("t", wrong)  # type: ignore[arg-type]
        assert agent.look("t") == reply
        calls = len(own.calls)
        assert agent.answer("t", "the blue one")["answer"] == "The user answered: the blue one"
        assert len(own.calls) == calls + 2  # the agent, and its title: nothing was asked twice
        with pytest.raises(Conflict, match="has asked nothing"):
            agent.answer("t", "the blue one")
        with pytest.raises(UnknownThread):
            agent.answer("nobody", "the blue one")
        assert torn(sent(own)) == []


def chatted(folder: Path, *lines: str) -> str:
    """What `main.py chat` prints, in a process of its own."""
    done = ran(
        *(MAIN, "chat", "--config", folder / "config.yaml", "--thread", "t"),
        input="".join(f"{line}\n" for line in lines),
        timeout=120,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_question_survives_the_end_of_the_process(tmp_path):
    configured(tmp_path)
    first = chatted(tmp_path, "write workspace/a.txt: hello", "ask which room?")
    assert first.splitlines()[-1].startswith("? which room?")
    second = chatted(tmp_path, "the blue one", "read workspace/a.txt")
    assert second.splitlines() == [
        "? which room?",
        "[write workspace/a.txt: hello] The user answered: the blue one",
        "[write workspace/a.txt: hello] hello",
    ]


@pytest.mark.postgres
def test_a_question_survives_a_restart_on_postgres(tmp_path):
    with postgres_schema() as address:
        with opened(tmp_path, checkpointer=address) as agent:
            agent.turn("t", "ask which room?")
        with opened(tmp_path, checkpointer=address) as agent:
            assert agent.look("t")["clarification"]["question"] == "which room?"
            assert agent.answer("t", "blue")["answer"] == "The user answered: blue"
            agent.turn("t", "write workspace/a.txt: hello")
            assert agent.compact("t")["compacted"]
        with opened(tmp_path, checkpointer=address) as agent:
            assert agent.turn("t", "read workspace/a.txt")["answer"] == "hello"


# Runs that were cut off


def test_a_message_sent_again_under_its_id_goes_on_and_is_not_said_twice(tmp_path):
    def cut(messages: Any) -> Any:
        return Cut() if messages[-1].type == "tool" else None

    agent = opened(tmp_path, model(script=cut))
    with pytest.raises(Cut):
        agent.turn("t", "write workspace/a.txt: hello", "m1")
    agent.close()
    with opened(tmp_path, own := model()) as agent:
        reply = agent.turn("t", "write workspace/a.txt: hello", "m1")
        assert reply["answer"] == "Wrote 5 bytes to workspace/a.txt."
        assert [m.type for m in sent(own)] == ["system", "human", "ai", "tool"]
        calls = len(own.calls)
        assert agent.turn("t", "write workspace/a.txt: hello", "m1") == reply
        assert len(own.calls) == calls
        asked = agent.turn("t", "ask which room?", "m2")
        assert agent.turn("t", "ask which room?", "m2") == asked


@pytest.fixture
def cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ended in the middle of a tool."""
    from lead_agent import files

    def cut(*args: Any) -> None:
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(files.Files, "write", cut)
        agent = opened(tmp_path)
        with pytest.raises(Cut):
            agent.turn("t", "write workspace/a.txt: hello", "m1")
        agent.close()


@pytest.mark.usefixtures("cut_off")
def test_a_new_message_after_a_run_was_cut_off_leaves_no_call_without_a_result(tmp_path):
    with opened(tmp_path, own := model()) as agent:
        assert agent.turn("t", "list workspace")["answer"] == "[empty]"
        assert torn(sent(own)) == []
        assert "cut off" in results(agent)[0]


def test_a_model_that_fails_leaves_the_thread_usable(tmp_path):
    failures = [ConnectionError("no route")]

    def script(messages: Any) -> Any:
        return failures.pop() if failures else None

    with opened(tmp_path, own := model(script=script)) as agent:
        with pytest.raises(ConnectionError):
            agent.turn("t", "list workspace")
        assert agent.turn("t", "list workspace")["answer"] == "[empty]"
        assert torn(sent(own)) == []


# One run at a time, ids


def test_one_run_at_a_time_on_a_thread_and_others_beside_it(tmp_path):
    held = Held()
    own = model(script=lambda messages: held(messages) if "slow" in messages[-1].text else None)
    with opened(tmp_path, own) as agent:
        running = beside(lambda: agent.turn("t", "slow"))
        assert held.begun.wait(60)
        for refused in (
            lambda: agent.turn("t", "list"),
            lambda: agent.answer("t", "x"),
            lambda: agent.compact("t"),
        ):
            with pytest.raises(Conflict, match="in flight"):
                refused()
        assert agent.turn("u", "list workspace")["answer"] == "[empty]"
        held.go_on.set()
        running.join(60)
        assert agent.turn("t", "list workspace")["answer"] == "[empty]"


@pytest.mark.parametrize("thread", ["", "a\0b", "a\nb", "\ud800", "x" * 201, 7, None], ids=repr)
def test_ids_that_cannot_be_kept_are_refused(tmp_path, thread):
    with opened(tmp_path) as agent:
        for refused in (
            lambda: agent.turn(thread, "list"),
            lambda: agent.look(thread),
            lambda: agent.compact(thread),
        ):
            with pytest.raises(BadRequest, match="id has 1 to 200"):
                refused()
