"""Promise 13 as a property: deeds stand in order with their outcomes, and failures as failures."""

import json
import re
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from notes_read import COUNTED, DONE, under
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import answering, calling, speaking
from stateful.oracle import text_of

DEED = re.compile(r"deed-(\d+)-(well|badly)")


class DeedsAreTold:
    settings_of: ClassVar = {"max_summary_tokens": 1_200, "window": 9_000}

    @rule(well=st.lists(st.booleans(), min_size=1, max_size=3), at_once=st.booleans())
    def the_agent_does_something(self, well: list[bool], at_once: bool) -> None:
        """Deeds that go well or badly, each by a number of its own; side by side or in turn."""
        made = []
        for done in well:
            self.planted += 1  # type: ignore[attr-defined]
            made.append(f"deed-{self.planted}-{'well' if done else 'badly'}")  # type: ignore[attr-defined]
        for group in [made] if at_once else [[one] for one in made]:
            calls = [(f"do-{one}", one) for one in group]
            self.say(calling(self.form, "", calls, self.name(), tool="send_parcel"))  # type: ignore[attr-defined]
            for call, one in calls:
                result = (
                    f"sent {one}"
                    if one.endswith("well")
                    else json.dumps({"error": f"refused by the clerk, {one}"})
                )
                self.say(answering(self.form, call, result, self.name()))  # type: ignore[attr-defined]
        self.say(speaking(self.form, "assistant", "done", name=self.name()))  # type: ignore[attr-defined]

    def judge(self, look: Look) -> None:
        if look.reach is None or look.error is not None or not look.covered:
            return
        did = {int(n): how for message in look.whole for n, how in DEED.findall(text_of(message))}
        gone = {
            int(n)
            for message in look.reach[: look.covered]
            for n, _ in DEED.findall(text_of(message))
        }
        lines = under(DONE, look.summary)
        told: list[int] = []
        counts = "\n".join(line for line in lines if COUNTED.match(line))
        dropped = sum(map(int, re.findall(r"\b(?:send_parcel|others) (\d+)", counts)))
        for line in lines:
            call, arrow, outcome = line.partition(" → ")
            for n, how in dict.fromkeys(DEED.findall(call)):
                assert arrow, line
                assert int(n) in did, f"deed {n} was not done"
                assert how == did[int(n)]
                failed = outcome.startswith("failed: ")
                assert failed == (how == "badly"), f"told otherwise: {line}"
                told.append(int(n))
        assert told == sorted(told), "deeds stand in another order"
        missing = len(gone - set(told))
        assert missing <= dropped, f"{missing} deeds are gone and {dropped} are said to be"


TestDeedsAreToldThroughCompactor = budgeted(DeedsAreTold, CompactorWorld, short=6, long=600)


class DeedsAreToldAgent(DeedsAreTold, AgentWorld):
    def judge(self, look: Look) -> None:
        if look.known:
            super().judge(look)


TestDeedsAreToldThroughAgents = budgeted(DeedsAreToldAgent, short=2, long=100)
