"""What an agent answered after rounds of tool calls is found by the words of the question."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus import Compactor

TALKS = [
    pytest.param(
        "Which port does the staging database use?",
        "It is 5433.",
        "Remind me: what port did the staging database use?",
        id="English",
    ),
    pytest.param(
        "预发布数据库用的是哪个端口？",
        "是5433。",
        "再说一遍，预发布数据库是哪个端口？",
        id="Chinese",
    ),
]


def calls(rounds: int, at_once: int, of: str) -> list[list[dict[str, Any]]]:
    return [
        [{"name": "look", "args": {"path": f"/{of}/{n}/{one}.yaml"}} for one in range(at_once)]
        for n in range(rounds)
    ]


def langchain_turn(question: str, answer: str, steps: list[list[dict[str, Any]]]) -> list[Any]:
    turn: list[BaseMessage] = [HumanMessage(question)]
    for n, step in enumerate(steps):
        named = [{**call, "id": f"{question[:9]}-{n}-{m}"} for m, call in enumerate(step)]
        turn.append(AIMessage("", tool_calls=named))
        turn += [ToolMessage("nothing special", tool_call_id=call["id"]) for call in named]
    return [*turn, AIMessage(answer)]


def anthropic_turn(question: str, answer: str, steps: list[list[dict[str, Any]]]) -> list[Any]:
    turn: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for n, step in enumerate(steps):
        names = [f"{question[:9]}-{n}-{m}" for m in range(len(step))]
        uses = [
            {"type": "tool_use", "id": name, "name": call["name"], "input": call["args"]}
            for name, call in zip(names, step, strict=True)
        ]
        results = [
            {"type": "tool_result", "tool_use_id": name, "content": "nothing special"}
            for name in names
        ]
        turn.append({"role": "assistant", "content": uses})
        turn.append({"role": "user", "content": results})
    return [*turn, {"role": "assistant", "content": answer}]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turn", [langchain_turn, anthropic_turn])
@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize(("question", "answer", "again"), TALKS)
def test_an_answer_after_four_rounds_is_recalled_in_a_few_tokens(
    turn, at_once, question, answer, again
):
    other = [
        turn(f"What has boat {n}?", f"A sail, {n}.", calls(3, 2, f"boat{n}")) for n in range(40)
    ]
    turns = [*other[:20], turn(question, answer, calls(4, at_once, "x")), *other[20:]]
    history = [message for messages in turns for message in messages]
    compactor = Compactor(window=100_000, keep=("messages", 4), archive="memory:")
    compactor.compact(history, thread_id="t", force=True)
    found = compactor.recall(again, thread_id="t", tokens=80)
    assert answer in found.text
    assert found.tokens <= 80
