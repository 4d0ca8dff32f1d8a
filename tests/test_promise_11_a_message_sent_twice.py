"""Promise 11, where a message comes twice with its id and all: it is two messages, whether a caller
sends the whole history or what was shown last."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from conspectus import Compactor
from engine import Scripted, engine, short


def turns(first: int, last: int, form: str) -> list[Any]:
    said: list[Any] = []
    for n in range(first, last):
        asked, answer = f"question {n} {'why ' * 60}", f"answer {n} {'because ' * 60}"
        if form == "dicts":
            said.append({"role": "user", "content": asked, "id": f"h{n}"})
            said.append({"role": "assistant", "content": answer, "id": f"a{n}"})
        else:
            said += [HumanMessage(asked, id=f"h{n}"), AIMessage(answer, id=f"a{n}")]
    return said


def twice(form: str) -> Any:
    if form == "dicts":
        return {"role": "user", "content": "go on", "id": "same"}
    return HumanMessage("go on", id="same")


def compactor(summarizer: Scripted, **more: Any) -> Compactor:
    return engine(summarizer, trigger=("messages", 8), keep=("messages", 2), **more)


@pytest.mark.parametrize("form", ["dicts", "langchain"])
@pytest.mark.parametrize("more", [{}, {"archive": None}], ids=["archived", "in memory"])
def test_a_whole_history_with_a_message_sent_twice_pays_for_nothing_again(form, more):
    summarizer = Scripted(short)
    one = compactor(summarizer, **more)
    first = [twice(form), *turns(0, 6, form)]
    later = [twice(form), *turns(6, 12, form)]
    view = one.compact(first, thread_id="t").messages
    result = one.compact([*view, *later], thread_id="t")
    paid = len(summarizer.requests)
    assert paid == 2
    again = one.compact([*first, *later], thread_id="t")
    assert len(summarizer.requests) == paid
    assert again.messages == result.messages
