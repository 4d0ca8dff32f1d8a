"""Replay: every message of a transcript comes back as recorded; nothing escapes the measure."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage

from conspectus.messages import read_messages
from conspectus_lab.policies import ComparedPolicy
from conspectus_lab.recording import Recording
from conspectus_lab.replay import PolicyRun, Question, replay
from conspectus_lab.report import replay_page
from histories import tool_result, user

STEPS = 20
RULE = "Never push to the branch called main."
PATH = "src/core/engine.py"
CODE = "ZX81Q7"
PATH_LINE = f"the wrong value comes out of {PATH} near the end"
CODE_LINE = f"ticket {CODE} tells more about it than anybody wants"
WHAT_IS_NEEDED = f"{RULE}\n{PATH_LINE}.\n{CODE_LINE}."
REST = "nothing of note happens in this place and so we go on reading slowly " * 3
EXAM = [
    {"kind": "rule", "question": "Which branch is not pushed to?", "evidence": [["called main"]]},
    {"question": "Which ticket tells more?", "evidence": [["tells more about it", "no such text"]]},
]


def agent_transcript(
    steps: int = STEPS, last: str = f"I mend {PATH} and close {CODE}", *, user_tells: bool = False
) -> list[dict[str, Any]]:
    """One user message and `steps` calls with results; the last message holds what is needed.

    With `user_tells`, the user says after step 1 what that is, with a rule, and says something
    else two steps later: a user's words stay, and the newest of them stay in view.
    """
    messages = [user("please mend the build " + REST)]
    for step in range(steps):
        words = last if step == steps - 1 else REST
        shown = f"{PATH_LINE}\n{CODE_LINE}\n{REST}" if step == 1 else REST
        messages += [assistant_row(words, f"c{step}"), tool_result(f"c{step}", shown)]
        if user_tells and step in (1, 3):
            messages.append(user(WHAT_IS_NEEDED if step == 1 else "Go on, please."))
    return messages


Row = dict[str, Any]
FILLER = "nothing of note happens in this place and so we go on reading slowly " * 4


def assistant_row(text: str = "well", *calls: str, args: str = '{"where": "here"}') -> Row:
    tool_calls = [
        {"id": call, "type": "function", "function": {"name": "look", "arguments": args}}
        for call in calls
    ]
    return {
        "role": "assistant",
        "content": text,
        **({"tool_calls": tool_calls} if tool_calls else {}),
    }


def session(steps: int = 30, turns: int = 3) -> list[Row]:
    """An agent's session of several turns; the ids of calls come again in each turn."""
    rows: list[Row] = [{"role": "system", "content": "You are a careful agent."}]
    for turn in range(turns):
        rows.append(user(f"Always read src/part_{turn}.py whole. {FILLER}"))
        for step in range(steps // turns):
            rows.append(assistant_row(f"Step {turn}.{step}: I look. {FILLER}", f"c{step}"))
            rows.append(tool_result(f"c{step}", f"found in src/part_{turn}_{step}.py: {FILLER}"))
        rows.append(assistant_row(f"Part {turn} is done."))
    return rows


WINDOW = 3_000
TEXT = {"type": "text", "text": "and be quick"}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"where": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x"}]}
ANTHROPIC = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": [TEXT, CALL]},
    {"role": "user", "content": [RESULT, TEXT]},
    {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
]


def rows_of(form: str) -> list[Row]:
    """A transcript of words: `u` a user, `a(x,y)` an agent with calls, `x` a result, `s` a system.

    What stands behind `=` is the text, behind `@` the id.
    """
    rows: list[Row] = []
    for number, word in enumerate(form.split()):
        word, _, name = word.partition("@")
        word, has_text, text = word.partition("=")
        text = text if has_text else f"words {number}"
        calls = re.fullmatch(r"a\((.*)\)", word)
        if calls or word == "a":
            row = assistant_row(text, *(calls[1].split(",") if calls else ()))
        elif word in ("u", "s"):
            row = {"role": {"u": "user", "s": "system"}[word], "content": text}
        else:
            row = tool_result(word.removeprefix("r"), text)
        rows.append({**row, "id": name} if name else row)
    return rows


FORMS = {
    "parallel calls": "u a(x,y) rx ry a",
    "ids used again in one turn": "u a(x) rx=first a(x) rx=second a",
    "a result missing": "u a(x,y) rx a",
    "no result before the user speaks": "u a(x) u a",
    "the user speaks between results": "u a(x,y) rx u ry a",
    "a result without a call": "u rz a rq u a",
    "a second result": "u a(x) rx rx=again a",
    "a call with the id of another": "u a(x,x) rx a",
    "a call without an id": "u a() r a",
    "several system messages": "s=one s=two u a s=three u a",
    "the assistant speaks first": "a u a",
    "the same words again": "u=ok a=ok u=ok a=ok",
    "it ends with the user": "u a u",
    "it ends with half of the results": "u a(x,y) rx",
    "nothing said": "u= a(x)= rx= a=",
}
AWKWARD = '{"self": 1, "runtime": 2, "config": 3, "run_manager": 4}'
ODD: dict[str, list[Row]] = {
    **{name: rows_of(form) for name, form in FORMS.items()},
    "no JSON": [
        user("go on"),
        assistant_row("a", "x", args='{"whe'),
        tool_result("x", "seen"),
        assistant_row("b"),
    ],
    "awkward names": [
        user("go on"),
        assistant_row("a", "x", args=AWKWARD),
        tool_result("x", "seen"),
        assistant_row("b"),
    ],
    "the form of Anthropic": ANTHROPIC,
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ODD)
def test_every_message_of_an_odd_transcript_goes_through_the_graph(name):
    rows = ODD[name]
    run = replay(rows, policies=["none"]).runs[0]
    assert (run.stopped, run.missing, run.broken) == ("", 0, 0)
    assert len(run.steps) == sum(row["role"] == "assistant" for row in rows)
    recorded_text = "\n".join(e.reading for e in read_messages(Recording.of(rows).messages))
    assert all(
        e.text in recorded_text
        for e in read_messages(rows)
        if e.role not in ("system", "assistant")
    )


REPLAY_SETTINGS: dict[str, Any] = {"window": 3_000, "keep": ("messages", 4), "summary_tokens": 256}
QUESTIONS = [Question(str(q["question"]), tuple(map(tuple, q["evidence"]))) for q in EXAM]  # type: ignore[arg-type]


def run_with_notes(text: str, recalled: str = "") -> PolicyRun:
    """Replay a session in which one message stands for all that is older than the newest four."""

    class Notes(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            notes = HumanMessage(text, id="notes")
            return handler(request.override(messages=[notes, *request.messages[-4:]]))

    policy = ComparedPolicy(
        "notes", "Notes", lambda setting: [Notes()], recall=lambda *arguments: recalled, ours=True
    )
    return replay(
        agent_transcript(), policies=[policy], questions=QUESTIONS, **REPLAY_SETTINGS
    ).runs[0]


@pytest.mark.parametrize(
    ("notes", "quoted", "in_view"),
    [
        (f"- {PATH_LINE}\n- {CODE_LINE}", 1.0, 0.5),
        (f"- {PATH_LINE}", 0.5, 0.0),
        (PATH, 0.0, 0.0),  # a bare list of identifiers
        ("never push to the branch CALLED 'main'", 0.0, 0.5),
    ],
)
def test_what_the_agent_writes_again_counts_where_its_words_stand(notes, quoted, in_view):
    totals = run_with_notes(notes, recalled=CODE_LINE).totals
    assert (totals["needed"], totals["quoted_share"]) == (2, quoted)
    assert (totals["asked"], totals["in_view_share"]) == (2, in_view)
    assert totals["with_recall_share"] >= 0.5


HOSTILE = (
    "</pre></details></script><script>document.title='owned'</script>"
    '<img src=x onerror="alert(1)"><style>body{display:none}</style>'
    "\u202egnp.exe \u2028 \x00\x1b[31m \ud800"
)


def test_a_page_holds_figures_and_originals_and_hostile_text_stays_text():
    rows = session()
    rows[1]["content"] += HOSTILE
    replayed = replay(rows, window=WINDOW, policies=["conspectus"])
    page = replay_page([replayed])
    [run] = replayed.runs
    assert run.compactions
    for figure in (run.totals["peak_tokens"], run.totals["sent_tokens"]):
        assert f"<td>{figure:,}</td>" in page
    assert "found in src/part_0_0.py" in page
    drawn = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", page, re.DOTALL)[0])
    assert len(drawn.findall("polyline")[0].attrib["points"].split()) == len(run.steps)
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<(script|link|img|iframe|object|form)|\b(src|href|on\w+)=.?http", page)
    assert "&lt;script&gt;document.title" in page
    assert not re.search(r"[\x00\x1b]", page)
    page.encode("utf-8")
    assert "default-src 'none'" in page
