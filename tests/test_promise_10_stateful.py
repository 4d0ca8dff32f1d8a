"""Promise 10 as a property: equal histories give equal plans, records and views, in this process
and in one that hashes otherwise."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from conspectus import Compactor
from conspectus.core.plan import plan
from stateful.agent_twins import TwinAgents
from stateful.budgets import budgeted
from stateful.looks import Look
from stateful.twins import TwinWorld, fresh

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


def planned(*args: Any, **more: Any) -> Any:
    answer = plan(*args, **more)
    assert plan(*args, **more) == answer
    if len(PLANNED) < 3_000:
        PLANNED.append((args, more, repr(answer)))
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
