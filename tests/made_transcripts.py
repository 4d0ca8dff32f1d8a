"""Small made transcripts with what is needed later in known places, and a system that keeps notes.

One agent reads files for many steps. In step 1 a tool shows a path and a code, which the agent
writes again in its last message only; so at every cut both are needed, and both are far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from conspectus_lab.evaluate import Compacted, TailSystem
from conspectus_lab.evaluate.systems import Family

KEEP = ("messages", 4)
STEPS = 20
RULE = "Never push to the branch called main."
PATH, CODE = "src/core/engine.py", "ZX81Q7"
PATH_LINE = f"the wrong value comes out of {PATH} near the end"
CODE_LINE = f"ticket {CODE} tells more about it than anybody wants"
TOLD = f"{RULE}\n{PATH_LINE}.\n{CODE_LINE}."
FILLER = "nothing of note happens in this place and so we go on reading slowly " * 3


def agent(
    steps: int = STEPS, last: str = f"I mend {PATH} and close {CODE}", *, told: bool = False
) -> list[dict[str, Any]]:
    """One user message and `steps` calls with results; the last message holds what is needed.

    Where `told`, the user says what that is after step 1, with a rule, and says something else
    two steps later: a user's words stay, and the newest of them stay in view.
    """
    made: list[dict[str, Any]] = [{"role": "user", "content": "please mend the build " + FILLER}]
    for step in range(steps):
        said = last if step == steps - 1 else FILLER
        shown = f"{PATH_LINE}\n{CODE_LINE}\n{FILLER}" if step == 1 else FILLER
        function = {"name": "look", "arguments": '{"where": "here"}'}
        call = {"id": f"c{step}", "type": "function", "function": function}
        made.append({"role": "assistant", "content": said, "tool_calls": [call]})
        made.append({"role": "tool", "tool_call_id": f"c{step}", "content": shown})
        if told and step in (1, 3):
            made.append({"role": "user", "content": TOLD if step == 1 else "Go on, please."})
    return made


TALK = [
    {"id": "D1:1", "role": "user", "name": "Ann", "content": "I adopted a grey kitten yesterday"},
    {"id": "D1:2", "role": "assistant", "name": "Ben", "content": "Lovely, is it a tomcat?"},
    {"id": "D1:3", "role": "user", "name": "Ann", "content": "She is called Pepper and likes tuna"},
    *(
        {"id": f"D2:{n}", "role": role, "name": name, "content": f"so it goes, says {name}"}
        for n in range(20)
        for role, name in [("user", "Ann"), ("assistant", "Ben")][n % 2 :][:1]
    ),
]
for _message in TALK:
    _message["session_time"] = "1:56 pm on 8 May, 2023"
QUESTIONS = [
    {"question": "What is the kitten called?", "answer": "Pepper", "evidence": ["D1:3"]},
    {"question": "What does the kitten like?", "answer": "tuna", "evidence": ["D1:3"]},
    {
        "question": "When did Ann adopt a kitten?",
        "answer": "8 May 2023",
        "evidence": ["D1:1"],
        "category": 2,
    },
    {"question": "What is the dog called?", "answer": "", "evidence": ["D1:3"], "category": 5},
]


@dataclass(frozen=True, slots=True)
class Notes:
    """A system that keeps the tail after a message with fixed notes.

    Attributes:
        notes: the text of that message; None to keep the whole history.
        recalled: what recall answers.
        later: the notes from the second compaction of a thread on, if they are others.
        torn: leave out the newest message, which parts a call from its result.
    """

    notes: str | None
    name: str = "notes"
    family: Family = "conspectus"
    keep: tuple[str, int] = KEEP
    sizes: tuple[int, ...] | None = None
    recalled: str = ""
    later: str | None = None
    torn: bool = False

    def open(self, summary_tokens: int) -> "NotesThread":
        return NotesThread(self)


@dataclass(slots=True)
class NotesThread:
    system: Notes
    times: int = 0

    def compact(self, messages: Sequence[BaseMessage]) -> Compacted:
        if self.system.notes is None:
            return Compacted(list(messages))
        self.times += 1
        later = self.system.later if self.times > 1 else None
        notes = self.system.notes if later is None else later
        tail = TailSystem(self.system.keep).open(0).compact(messages)
        kept = tail.messages[:-1] if self.system.torn else tail.messages
        shown = [HumanMessage(notes, id="notes"), *kept]
        size = len(notes) // 4 + 4
        return Compacted(shown, done=True, evicted=tail.evicted, summary_tokens=size)

    def recall(self, query: str, tokens: int) -> str:
        return self.system.recalled

    def close(self) -> None:
        pass
