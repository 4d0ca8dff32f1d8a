"""Promise 10: the core is pure: no clock, I/O, randomness or logging; the rest is repeatable."""

import ast
import copy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata

import conspectus.core
from compactor_support import compacted, new_compactor
from conspectus.engine.summary import hash_of
from conspectus.messages import read_messages
from histories import agent_history, talk, user
from scripts import run_python
from stateful.budgets import budgeted
from stateful.twins import TwinAgents, TwinWorld

CORE = Path(conspectus.core.__file__).parent
ALLOWED = {
    "__future__", "bisect", "collections", "collections.abc", "dataclasses", "functools",
    "hashlib", "itertools", "json", "math", "types", "typing",
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
                assert inner or name in ALLOWED, f"{path.name} imports {name}"


def printed(code: str) -> set[str]:
    """What this prints in processes that hash texts in other ways; the package is ours here."""
    prelude = "import sys; sys.path.insert(0, 'tests')\n"
    root = Path(__file__).parent.parent
    plain = {"PATH": "", "PYTHONPATH": str(CORE.parents[1])}
    return {
        run_python(
            "-c", prelude + code, check=True, cwd=root, env={**plain, "PYTHONHASHSEED": seed}
        ).stdout.strip()
        for seed in ("1", "2")
    }


# Each has the words of another one; not all of them fit.
ALIKE = [
    " ".join(f"w{(n // 2 * 7 + (k + n % 2 * 5) % 14) % 40}" for k in range(14)) for n in range(40)
]


@pytest.mark.slow
def test_every_process_makes_the_same_record_and_draft():
    code = (
        "from conspectus.engine.summary import hash_of\n"
        "from compactor_support import compacted, new_compactor\n"
        "from histories import agent_history, user\n"
        "from test_promise_10_same_input_same_plan import ALIKE\n"
        "r = compacted([*map(user, ALIKE), *agent_history(60)], new_compactor(window=4000))\n"
        f"print(r.record_id, r.tokens_after, hash_of({PLAN}))"
    )
    result = compacted([*map(user, ALIKE), *agent_history(60)], new_compactor(window=4_000))
    assert printed(code) == {f"{result.record_id} {result.tokens_after} {hash_of(PLAN)}"}


def test_the_order_of_keys_makes_no_other_message():
    block = {"type": "text", "text": "go on"}
    message = {"role": "user", "content": [block], "name": "ann"}
    turned = {"name": "ann", "content": [dict(reversed(block.items()))], "role": "user"}
    (entry,) = read_messages([message])
    (turned_entry,) = read_messages([turned])
    assert entry.key == turned_entry.key


def test_what_was_compacted_before_changes_no_plan():
    usage = UsageMetadata(input_tokens=3_000, output_tokens=1, total_tokens=3_001)
    reported: list[Any] = [HumanMessage("word " * 900), AIMessage("yes", usage_metadata=usage)]
    used = new_compactor(window=4_000)
    compacted([*reported, HumanMessage("word " * 900)], used)
    messages = talk(40)
    result = used.compact(messages, thread_id="another")
    assert result == new_compactor(window=4_000).compact(messages, thread_id="another")
    assert result.outcome == "compacted"


class SameInputSamePlanCompactor(TwinWorld):
    def given_to_second(self, messages: list[Any]) -> list[Any]:
        return copy.deepcopy(messages)


TestEqualHistoriesGiveEqualPlansThroughCompactor = budgeted(
    SameInputSamePlanCompactor, short=6, long=400
)
TestEqualThreadsGiveEqualRecordsThroughAgents = budgeted(TwinAgents, short=2, long=70)
