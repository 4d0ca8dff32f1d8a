"""LangMem's way with limits of 15 to 30 tokens: a summary that fits by itself is used."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from conspectus.short_term import summarize_messages
from scripted_models import ScriptedChatModel

SAID = "They greeted each other."


@pytest.mark.parametrize("answer", [SAID, "invalid api key"])
@pytest.mark.parametrize("most", [20, 25, 30])
def test_a_summary_that_fits_by_itself_is_used_and_none_is_a_dash(most, answer):
    messages: list[BaseMessage] = []
    for n in range(6):
        messages += [HumanMessage(f"Message {n}", id=f"h{n}"), AIMessage(f"Said {n}", id=f"a{n}")]
    model = ScriptedChatModel(answers=lambda _: answer if answer == SAID else RuntimeError(answer))
    result = summarize_messages(
        [*messages, HumanMessage("Latest", id="last")],
        running_summary=None,
        model=model,
        max_tokens=most,
        max_summary_tokens=10,
        notes=False,
    )
    if answer == SAID:
        assert result.running_summary is not None
        assert result.running_summary.summary == SAID
    else:
        assert result.running_summary is None or result.running_summary.summary.strip() != "-"
