"""Artifacts nested deeper than JSON takes, or that hold themselves: described; no step fails."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from conspectus import Compactor, SummarizationMiddleware
from conspectus.archive import Archive, Scope


def nested(levels: int) -> Any:
    value: Any = ["core"]
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


def holding_itself() -> Any:
    value: list[Any] = ["core"]
    value += [value, {"again": value}]
    return value


def history(artifact: Any) -> list[AnyMessage]:
    made: list[AnyMessage] = []
    for n in range(8):
        call = {"name": "read", "args": {"n": n}, "id": f"c{n}"}
        made += [
            HumanMessage(f"Read part {n}.", id=f"h{n}"),
            AIMessage("", tool_calls=[call], id=f"a{n}"),
            ToolMessage(
                f"part {n} " * 30, tool_call_id=f"c{n}", artifact={"n": n, "tree": artifact}
            ),
            AIMessage(f"Part {n} is read.", id=f"b{n}"),
        ]
    return made


@pytest.mark.parametrize("redact", [None, True])
@pytest.mark.parametrize("artifact", [nested(260), nested(50_000), holding_itself()])
def test_an_artifact_beyond_json_is_described_and_fails_no_step(artifact, redact):
    with Archive.open("memory:") as archive:
        compactor = Compactor(
            window=2_000,
            trigger=("messages", 10),
            keep=("messages", 4),
            archive=archive,
            redact=redact,
        )
        result = compactor.compact(history(artifact), thread_id="deep")
        assert result.outcome == "compacted"
        rows = archive.export(Scope("local", "deep"))
        kept = [row for row in rows if row["role"] == "tool"]
        assert kept
        for row in kept:
            data = row["message"]["data"]
            assert not row["lossless"]
            assert data["content"].startswith("part ")
            assert data["artifact"]["n"] == int(data["content"].split()[1])
            assert "nested more than 200" in str(data) or "holds itself" in str(data)


@pytest.mark.slow
def test_an_agents_step_goes_on_behind_such_an_artifact():
    model = GenericFakeChatModel(messages=iter([AIMessage("Done.")] * 9))
    with Archive.open("memory:") as archive:
        middleware: Any = SummarizationMiddleware(
            model, trigger=("messages", 10), keep=("messages", 4), archive=archive
        )
        agent = create_agent(model, [], middleware=[middleware])
        try:
            state = agent.invoke({"messages": [*history(nested(50_000)), HumanMessage("And now?")]})
        except RecursionError:
            pytest.fail("the step failed")
    assert state["messages"][-1].content == "Done."
