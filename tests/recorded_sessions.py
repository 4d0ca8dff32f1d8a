"""A made session of an agent; what its last message needs was shown or said near its beginning."""

from typing import Any

STEPS = 20
RULE = "Never push to the branch called main."
PATH, CODE = "src/core/engine.py", "ZX81Q7"
PATH_LINE = f"the wrong value comes out of {PATH} near the end"
CODE_LINE = f"ticket {CODE} tells more about it than anybody wants"
TOLD = f"{RULE}\n{PATH_LINE}.\n{CODE_LINE}."
FILLER = "nothing of note happens in this place and so we go on reading slowly " * 3
EXAM = [
    {"kind": "rule", "question": "Which branch is not pushed to?", "evidence": [["called main"]]},
    {"question": "Which ticket tells more?", "evidence": [["tells more about it", "no such text"]]},
]


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
