"""Where the summary stands in a request, beside other middleware's additions."""

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, LLMToolSelectorMiddleware
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda

from conspectus import ContextGuard
from graph_support import agent, is_summary, look, middleware, said, steps, thread
from scripted_models import ScriptedChatModel


class SystemFirst(AgentMiddleware[Any, Any, Any]):
    """Puts a system message before the messages, as outer middleware does."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        rules = [SystemMessage("Be careful."), SystemMessage("Be brief.")]
        return handler(request.override(messages=[*rules, *request.messages]))


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_the_newest_human_message_is_the_request_in_a_long_turn(history):
    asked: list[str] = []

    class Selector(ScriptedChatModel):
        def with_structured_output(self, schema: Any, **more: Any) -> Any:
            def chosen(messages: Any) -> Any:
                asked.append(messages[-1].content)
                return {"tools": ["look"]}

            return RunnableLambda(chosen)

    own = middleware(history=history)
    select = LLMToolSelectorMiddleware(model=Selector(answers=[]))
    graph, model = agent(steps(30), own, select, ContextGuard(own, window=20_000), tools=[look])
    graph.invoke(said("Please look at all modules."), thread())
    assert any(map(is_summary, model.calls[-1].messages))
    assert set(asked) == {"Please look at all modules."}


@pytest.mark.parametrize("own_rule", [False, True])
@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_the_summary_stands_behind_all_leading_system_messages(history, own_rule):
    own = middleware(history=history)
    graph, model = agent(steps(30), SystemFirst(), own, ContextGuard(own, window=20_000))
    first = [SystemMessage("Yours.", id="own")] if own_rule else []
    graph.invoke({"messages": [*first, HumanMessage("Look at all.")]}, thread())
    request = model.calls[-1].messages
    kinds = ["summary" if is_summary(one) else one.type for one in request]
    system = 2 + own_rule
    assert kinds[: system + 2] == ["system"] * system + ["summary", "human"]
    assert "system" not in kinds[system:]
