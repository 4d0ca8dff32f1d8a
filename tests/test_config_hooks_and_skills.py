"""What leaves is told to those who asked, and skill files stay known after they have left."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from config_support import SUMMARY, Agent, answering, loaded, summarising
from conspectus import SummarizationMiddleware
from conspectus.archive import Archive
from conspectus.config import create_summarization_middleware
from conspectus.errors import ArchiveError, PolicyError
from conspectus.langchain import SummarizationEvent
from conspectus.messages import is_summary_message, read_messages
from conspectus.notes.reading import read_segment
from conspectus.notes.skills import Skills

SIX = """
enabled: true
trigger: {type: messages, value: 6}
keep: {type: messages, value: 2}
"""


def talked(agent: Agent, turns: int = 4) -> None:
    for n in range(turns):
        agent.say(f"look at module {n}")


# The hook


def test_the_hook_gets_what_is_about_to_leave_whole_and_what_stays(tmp_path):
    seen: list[SummarizationEvent] = []
    in_state: list[int] = []
    agent = Agent(
        loaded(tmp_path, SIX),
        model=summarising(),
        before_summarization=lambda event: (
            seen.append(event),
            in_state.append(len(agent.messages)),
        ),
    )
    talked(agent)
    [event] = seen
    assert [m.text for m in event.messages_to_summarize] == [
        "look at module 0",
        SUMMARY,
        "look at module 1",
        SUMMARY,
        "look at module 2",
    ]
    assert [m.text for m in event.preserved_messages] == [SUMMARY, "look at module 3"]
    assert (event.thread_id, event.session, event.tenant) == ("t", "main", "local")
    assert "6 messages" in event.cause
    assert in_state == [7]  # nothing has left yet


def test_a_hook_may_be_async_with_and_without_an_event_loop(tmp_path):
    seen: list[str] = []

    async def remember(event: SummarizationEvent) -> None:
        await asyncio.sleep(0)
        seen.append(event.messages_to_summarize[0].text)  # type: ignore[union-attr]

    class Memory:
        async def __call__(self, event: SummarizationEvent) -> None:
            await asyncio.sleep(0)
            seen.append(f"object: {event.thread_id}")

    hooks = [remember, Memory()]
    talked(Agent(loaded(tmp_path, SIX), model=summarising(), before_summarization=hooks))

    async def turns() -> None:
        agent = Agent(loaded(tmp_path, SIX), model=summarising(), before_summarization=hooks)
        for n in range(4):
            await agent.asay(f"look at module {n}")

    asyncio.run(turns())
    assert seen == ["look at module 0", "object: t"] * 2


@pytest.mark.parametrize("loop", [False, True])
def test_a_hook_that_fails_is_logged_and_harms_neither_the_summary_nor_the_next_hook(
    loop, tmp_path, caplog
):
    told: list[int] = []

    def broken(event: SummarizationEvent) -> None:
        raise ConnectionError("the memory is down")

    async def slow(event: SummarizationEvent) -> None:
        await asyncio.sleep(60)

    agent = Agent(
        loaded(tmp_path, SIX + "summarizer_timeout: 0.2\n"),
        model=summarising(),
        before_summarization=[broken, slow, lambda event: told.append(1)],
    )
    if loop:

        async def turns() -> None:
            for n in range(4):
                await agent.asay(f"look at module {n}")

        asyncio.run(turns())
    else:
        talked(agent)
    assert told == [1]
    assert is_summary_message(agent.messages[0])
    assert caplog.text.count("before_summarization") >= 2
    assert "the memory is down" in caplog.text


def test_what_a_hook_does_to_its_messages_stays_with_it(tmp_path):
    def vandal(event: SummarizationEvent) -> None:
        for message in (*event.messages_to_summarize, *event.preserved_messages):
            message.content = "gone"  # type: ignore[union-attr]
            message.additional_kwargs["x"] = 1  # type: ignore[union-attr]

    agent = Agent(loaded(tmp_path, SIX), model=summarising(), before_summarization=vandal)
    talked(agent)
    assert "gone" not in [message.text for message in agent.messages]
    assert "look at module 3" in [message.text for message in agent.messages]


def test_nobody_is_told_where_no_summary_can_be_made(tmp_path):
    seen: list[Any] = []
    broken = answering()
    broken.answers = lambda messages: ValueError("no key")
    own = answering("")  # an empty summary is none
    config = loaded(tmp_path, SIX + "model_name: broken\n")
    agent = Agent(
        config, model=own, model_registry={"broken": broken}, before_summarization=seen.append
    )
    talked(agent, 6)
    assert seen == []
    assert len(agent.messages) == 12


def test_a_hook_is_told_before_the_record_is_in_force_and_again_if_that_fails():
    class Failing(Archive):
        broken = True

        def commit(self, *args: Any, **more: Any) -> None:
            if self.broken:
                raise ArchiveError("the disk is full")
            super().commit(*args, **more)

    seen: list[int] = []
    archive = Failing(InMemoryStore())
    ours = SummarizationMiddleware(
        None,
        trigger=("messages", 4),
        keep=("messages", 1),
        archive=archive,
        before_summarization=lambda event: seen.append(len(event.messages_to_summarize)),
    )
    said = [HumanMessage(f"look at module {n}", id=str(n)) for n in range(5)]
    assert not (ours.before_model({"messages": said}, Runtime()) or {}).get("messages")
    archive.broken = False
    update = ours.before_model({"messages": [*said, HumanMessage("go on", id="6")]}, Runtime())
    assert update is not None
    assert seen == [4, 5]


def test_what_cannot_be_called_is_no_hook(tmp_path):
    with pytest.raises(PolicyError, match="before_summarization must be callables"):
        create_summarization_middleware(
            loaded(tmp_path, SIX), model=answering(), before_summarization=["x"]  # type: ignore
        )  # fmt: skip


# Skills

SKILL = """---
name: pdf-forms
description: Fill in forms
---
# PDF forms

Always flatten the form before you save it.
Never write to the original file.
The library was written in 2019.
"""
PATH = "/mnt/skills/public/pdf/SKILL.md"


def reading(path: str, text: str, tool: str = "read_file", number: int = 1) -> list[Any]:
    """A call that reads a file, and its result."""
    call = {"id": f"c{number}", "name": tool, "args": {"path": path}}
    return [
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage(text, tool_call_id=f"c{number}", name=tool, id=f"r{number}"),
    ]


def skills_in(messages: list[Any], skills: Skills | None = None) -> tuple[str, ...]:
    """References to the skill files that were read, as the notes hold them."""
    return read_segment(read_messages(messages), skills=skills or Skills(("read_file",))).skills


def test_a_skill_file_that_was_read_is_kept_as_a_reference():
    assert skills_in(reading(PATH, SKILL)) == (f"pdf-forms ({PATH})",)
    assert skills_in(reading(PATH, "# No name of its own")) == (f"pdf ({PATH})",)


@pytest.mark.parametrize(
    ("path", "tool"),
    [
        ("/mnt/skills/public/pdf/notes.md", "read_file"),
        ("/srv/data/SKILL.md", "read_file"),
        ("/mnt/skills/../../srv/data/SKILL.md", "read_file"),
        ("/mnt/skills-of-others/SKILL.md", "read_file"),
        (PATH, "fetch_page"),
    ],
)
def test_no_other_file_and_no_other_tool_is_a_skill(path, tool):
    assert skills_in(reading(path, SKILL, tool)) == ()


@pytest.mark.parametrize("writes", ["a model", "embedded"])
def test_after_a_summary_the_agent_still_knows_its_skills(writes):
    summarizer = answering("## Goal\n- The form is filled in.") if writes == "a model" else None
    ours = SummarizationMiddleware(
        None,
        summarizer=summarizer or "embedded",
        trigger=("messages", 6),
        keep=("messages", 1),
        archive="memory:",
        skills=Skills(("read_file",)),
    )
    said: list[Any] = [HumanMessage("Fill in the form of Mrs Weber.", id="u")]
    said += reading(PATH, SKILL)
    said += [HumanMessage(f"and then page {n}, all of it " * 12, id=f"u{n}") for n in range(4)]
    update = ours.before_model({"messages": said}, Runtime())
    summary = update["messages"][1].text
    assert f"pdf-forms ({PATH})" in summary
    more = [HumanMessage(f"next {n}", id=f"v{n}") for n in range(6)]
    again = ours.before_model({**update, "messages": [*update["messages"][1:], *more]}, Runtime())
    assert f"pdf-forms ({PATH})" in again["messages"][1].text


def test_the_file_says_which_tools_read_skills_and_where_they_are(tmp_path):
    def skills_of(section: str) -> Any:
        made = create_summarization_middleware(loaded(tmp_path, SIX + section), model=answering())
        return made._setup.engine.skills

    assert skills_of("") == Skills(("read_file", "read", "view", "cat"), "/mnt/skills")
    own = "skill_file_read_tool_names: [skill_load]\nskills_path: /opt/skills\n"
    assert skills_of(own) == Skills(("skill_load",), "/opt/skills")
    assert skills_of("skill_file_read_tool_names: []\n") is None
