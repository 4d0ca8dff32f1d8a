"""The lead agent: its order, titles, questions that survive a restart, runs that were cut off."""

import os
from pathlib import Path
from typing import Any

import pytest

from graph_support import torn
from lead_agent.errors import BadRequest, Conflict, UnknownThread
from lead_agent_support import configured, model, opened, results, sent
from scripts import ran

ROOT = Path(__file__).resolve().parents[1]
MAIN = ROOT / "examples" / "lead_agent" / "main.py"


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


# Title


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


# Runs that were cut off


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


# One run at a time, ids
