"""Promise 10: the core is pure: no clock, I/O, randomness or logging; the rest is repeatable."""

import ast
import os
import pickle
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata

import conspectus.core
from conspectus import Compactor
from conspectus.core.items import Item
from conspectus.core.plan import plan
from conspectus.engine.writing import hash_of
from conspectus.messages import read_messages
from engine import compacted, engine
from histories import agent, talk, user
from stateful.agent_twins import TwinAgents
from stateful.budgets import budgeted
from stateful.looks import Look
from stateful.twins import TwinWorld, fresh

CORE = Path(conspectus.core.__file__).parent
ALLOWED = {
    "__future__", "bisect", "collections", "collections.abc", "conspectus", "dataclasses",
    "functools",
    "hashlib", "itertools", "json", "math", "typing",
}  # fmt: skip

PLAN = [None, ["k0", "k1"], 500, "", "- said before [x]"]


def test_the_core_imports_nothing_that_could_see_the_world():
    for path in CORE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                inner = name.startswith(("conspectus.core", "conspectus.errors"))
                assert inner or name in ALLOWED - {"conspectus"}, f"{path.name} imports {name}"


def printed(code: str) -> set[str]:
    """What this prints in processes that hash texts in other ways; the package is ours here."""
    prelude = "import sys; sys.path.insert(0, 'tests')\n"
    root = Path(__file__).parent.parent
    return {
        subprocess.run(
            [sys.executable, "-c", prelude + code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": str(CORE.parents[1])},
        ).stdout.strip()
        for seed in ("1", "2")
    }


@pytest.mark.slow
def test_the_same_history_gives_the_same_record_in_every_process():
    code = (
        "from engine import compacted, engine; from histories import agent, user\n"
        "rules = [user(f'Never touch part_{n}.py.') for n in range(9)]\n"
        "r = compacted([*rules, *agent(60)], engine(window=4000))\n"
        "print(r.record_id, r.tokens_after)"
    )
    rules = [user(f"Never touch part_{n}.py.") for n in range(9)]
    result = compacted([*rules, *agent(60)], engine(window=4_000))
    assert printed(code) == {f"{result.record_id} {result.tokens_after}"}


@pytest.mark.slow
def test_another_process_finds_the_draft_of_the_same_plan():
    code = f"from conspectus.engine.writing import hash_of; print(hash_of({PLAN}))"
    assert printed(code) == {hash_of(PLAN)}


def test_the_order_of_keys_makes_no_other_message():
    block = {"type": "text", "text": "go on"}
    message = {"role": "user", "content": [block], "name": "ann"}
    turned = {"name": "ann", "content": [dict(reversed(block.items()))], "role": "user"}
    (one,), (other,) = read_messages([message]), read_messages([turned])
    assert one.key == other.key


def test_what_was_compacted_before_changes_no_plan():
    usage = UsageMetadata(input_tokens=3_000, output_tokens=1, total_tokens=3_001)
    reported: list[Any] = [HumanMessage("word " * 900), AIMessage("yes", usage_metadata=usage)]
    used = engine(window=4_000)
    compacted([*reported, HumanMessage("word " * 900)], used)
    other = talk(40)
    result = used.compact(other, thread_id="another")
    assert result == engine(window=4_000).compact(other, thread_id="another")
    assert result.outcome == "compacted"


PLANNED: list[tuple[Any, ...]] = []
"""Plans of this process, a bounded number: what was asked and what was answered."""

AGAIN = """
import pickle, sys
from conspectus.core.plan import plan
told = pickle.load(sys.stdin.buffer)
assert told
for args, more, answer in told:
    assert repr(plan(*args, **more)) == answer, (args, more, answer)
print(len(told))
"""


def bare(item: Item) -> Item:
    """An item without its message, as another process can have it."""
    parts = {one.name: getattr(item, one.name) for one in fields(Item)}
    return Item(**{**parts, "floor": item.least})


def planned(items: Any, *args: Any, **more: Any) -> Any:
    answer = plan(items, *args, **more)
    plain = [bare(item) for item in items]
    assert plan(plain, *args, **more) == answer
    if len(PLANNED) < 3_000:
        PLANNED.append(((plain, *args), more, repr(answer)))
    return answer


class SameInputSamePlanCompactor(TwinWorld):
    def __init__(self) -> None:
        super().__init__()
        self.stack.enter_context(patch("conspectus.engine.thread.plan", planned))

    def given_to_second(self, messages: list[Any]) -> list[Any]:
        return fresh(messages)

    def judge(self, look: Look) -> None:
        """The twins have compared all there is."""


Machine = budgeted(SameInputSamePlanCompactor, short=6, long=400)


@pytest.mark.slow
class TestEqualHistoriesGiveEqualPlansThroughCompactor(Machine):  # type: ignore[misc]
    through = "Compactor"

    def runTest(self) -> None:  # noqa: N802
        super().runTest()
        with patch("conspectus.engine.thread.plan", planned):  # walks may plan nothing
            Compactor(window=1_500, keep=("messages", 4)).compact(
                [{"role": "user", "content": f"Part {n}. " * 40} for n in range(30)], thread_id="t"
            )
        told = subprocess.run(
            [sys.executable, "-c", AGAIN],
            input=pickle.dumps(PLANNED),
            capture_output=True,
            check=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONHASHSEED": "12345"},
        )
        assert int(told.stdout) == len(PLANNED)


del Machine


class SameInputSamePlanAgent(TwinAgents):
    def judge(self, look: Look) -> None:
        """The twins have compared all there is."""


TestEqualThreadsGiveEqualRecordsThroughAgents = budgeted(SameInputSamePlanAgent, short=2, long=70)
