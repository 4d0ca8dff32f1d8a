"""Agents out of a configuration: models, windows, and a file that is edited meanwhile."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from config_support import Agent, answering, loaded, summarising
from conspectus.config import (
    ConfigError,
    SummarizationConfig,
    create_middleware,
    create_summarization_middleware,
)
from conspectus.errors import ArchiveError, InputError, PolicyError
from conspectus.langchain import ContextGuard
from conspectus.messages import is_summary_message

SIX = """
enabled: true
trigger: {type: messages, value: 6}
keep: {type: messages, value: 2}
archive: "memory:"
"""


def count_words(messages: Any) -> int:
    """A counter that a file can name."""
    return sum(len(str(message.text).split()) for message in messages)


def about_money(message: Any) -> bool:
    """A pin that a file can name."""
    return "money" in str(message.text)


def text_of(messages: Any) -> str:
    return "\n".join(str(message.text) for message in messages)


def summaries(messages: list[BaseMessage]) -> int:
    return sum(map(is_summary_message, messages))


def test_what_is_not_enabled_is_no_middleware(tmp_path):
    config = loaded(tmp_path, "enabled: false\ntrigger: {type: tokens, value: 4000}")
    assert create_summarization_middleware(config, model=answering()) is None
    between = create_summarization_middleware(loaded(tmp_path, SIX), model=answering())
    assert between is not None
    assert create_middleware(config, between, model=answering()) == [between]


def test_the_list_has_summarisation_first_and_the_guard_last(tmp_path):
    other = ContextGuard(name="other")
    stack = create_middleware(loaded(tmp_path, SIX), other, model=answering())
    assert [type(one).__name__ for one in stack] == [
        "ConfiguredSummarization",
        "ContextGuard",
        "ConfiguredGuard",
    ]
    assert [one.name for one in stack] == ["SummarizationMiddleware", "other", "ContextGuard"]


def test_models_come_from_a_mapping_or_a_function_and_unknown_ones_are_refused(tmp_path):
    config = loaded(tmp_path, SIX + "model_name: small\n")
    small = summarising()
    for registry in ({"small": small}, {"small": small}.__getitem__):
        agent = Agent(config, model_registry=registry)
        agent.middleware.close()
    with pytest.raises(
        ConfigError,
        match=r"line 6: .*no such name; did you mean 'smal'",
    ):
        create_summarization_middleware(config, model_registry={"smal": small})
    with pytest.raises(ConfigError, match=r"line 6: the model 'small' cannot be had \(KeyError"):
        create_summarization_middleware(config, model_registry={}.__getitem__)
    with pytest.raises(ConfigError, match="int is no chat model"):
        create_summarization_middleware(config, model_registry=lambda name: 7)  # type: ignore
    with pytest.raises(PolicyError, match="model_registry must be a mapping"):
        create_summarization_middleware(config, model_registry=7)  # type: ignore[arg-type]


def test_null_is_the_agents_own_model_which_must_then_be_given(tmp_path):
    config = loaded(tmp_path, SIX)
    with pytest.raises(ConfigError, match="pass it as model="):
        create_summarization_middleware(config)
    own = answering("## Goal\n- Look at the modules.")
    made = create_summarization_middleware(config, model="own", model_registry={"own": own})
    assert made.model is own


def test_models_are_tried_in_their_order_and_the_agents_own_last(tmp_path):
    tried: list[str] = []

    def failing(name: str) -> Any:
        model = answering()
        model.answers = lambda messages: tried.append(name) or ValueError("no key")
        return model

    config = loaded(tmp_path, SIX + "model_name: one\nfallback_models: [two, three]\n")
    agent = Agent(config, model_registry=failing, model=summarising())
    for n in range(4):
        agent.say(f"look at module {n}")
    assert tried == ["one"] * 3 + ["two"] * 3 + ["three"] * 3
    assert summaries(agent.messages) == 1


def test_everything_is_checked_before_anything_is_opened(tmp_path):
    where = tmp_path / "archive.db"
    config = loaded(tmp_path, f"""
        enabled: true
        trigger: {{type: messages, value: 6}}
        keep: {{type: messages, value: 2}}
        archive: sqlite:///{where}
        pin: no_such_module:function
        """)  # fmt: skip
    with pytest.raises(ConfigError, match="line 6: pin: 'no_such_module:function' cannot"):
        create_summarization_middleware(config, model=answering())
    assert not where.exists()


@pytest.mark.parametrize("archive", ["sqlite:///notes.db", "notes.db"])
def test_a_relative_archive_is_beside_the_configuration(tmp_path, monkeypatch, archive):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder = tmp_path / "settings"
    folder.mkdir()
    middleware = create_summarization_middleware(
        loaded(folder, SIX.replace("memory:", archive)), model=answering()
    )
    assert (folder / "notes.db").is_file()
    assert not list(elsewhere.iterdir())
    middleware.close()


def test_an_archive_that_cannot_be_opened_has_its_line_and_no_password(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, whatever its name")
    config = loaded(tmp_path, SIX.replace("memory:", f"sqlite:///{tmp_path}/notes.txt"))
    with pytest.raises(ArchiveError, match=r"line 5: .*not a SQLite database"):
        create_summarization_middleware(config, model=answering())
    broken = loaded(tmp_path, SIX.replace("memory:", "postgresql://ann:hunter2@:hunter2/x"))
    with pytest.raises(InputError, match="line 5: the PostgreSQL address is malformed") as caught:
        create_summarization_middleware(broken, model=answering())
    assert "hunter2" not in str(caught.value)
    assert "@host:5432/database" in str(caught.value)
    assert "%40 for @" in str(caught.value)


def test_a_counter_and_a_pin_may_be_functions_that_the_file_names(tmp_path):
    config = loaded(tmp_path, """
        enabled: true
        trigger: {type: tokens, value: 40}
        keep: {type: messages, value: 2}
        token_counter: test_config_agents:count_words
        pin: test_config_agents:about_money
        archive: "memory:"
        """)  # fmt: skip
    agent = Agent(config, model=summarising(), model_registry={})
    agent.say("the money is in the safe")
    for n in range(8):
        sent = agent.say(f"please look at module number {n} now")
    assert summaries(agent.messages) == 1
    assert "the money is in the safe" in [message.text for message in sent]


def test_a_vocabulary_file_is_found_beside_the_configuration(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "words.json"))
    config = loaded(tmp_path, SIX + "token_counter: tokenizers:words.json\n")
    made_of = create_summarization_middleware(config, model=answering())
    assert made_of._setup.engine.meter.text("a b c d") == 4


def test_a_subagents_middleware_has_its_own_settings(tmp_path):
    config = loaded(tmp_path, SIX + "subagents: {one: {trigger: {type: messages, value: 30}}}\n")
    made = create_summarization_middleware(config, model=answering(), subagent="one")
    assert made.trigger == [("messages", 30)]
    other = create_summarization_middleware(config, model=answering(), subagent="two")
    assert other.trigger == [("messages", 6)]


def test_the_window_of_the_file_is_the_window_of_the_guard(tmp_path):
    config = loaded(tmp_path, SIX.replace("value: 6", "value: 600") + "window: 900\n")
    agent = Agent(config, model=summarising())
    for n in range(6):
        sent = agent.say(f"module {n}: " + "word " * 200)
    assert summaries(list(sent)) == 1


# An edited file


class Edited:
    """An agent whose file is edited while it runs."""

    def __init__(self, folder: Path, section: str = SIX, **settings: Any) -> None:
        self.folder = folder
        self.agent = Agent(loaded(folder, section), model=summarising(), **settings)

    def edit(self, section: str) -> None:
        loaded(self.folder, section)

    def raw(self, text: str) -> None:
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")

    def talk(self, turns: int, what: str = "module") -> None:
        for n in range(turns):
            self.agent.say(f"look at {what} {n}, the one in src/{what}_{n}.py")


def test_an_edited_file_counts_at_the_next_turn_and_the_thread_goes_on(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    edited = Edited(tmp_path)
    edited.agent.say("Never touch the file settings.py.")
    edited.talk(3)
    summary = next(m for m in edited.agent.messages if is_summary_message(m))
    edited.edit(SIX.replace("value: 6", "value: 12"))
    edited.talk(2, "page")
    assert edited.agent.middleware.trigger == [("messages", 12)]
    assert "are in force" in caplog.text
    assert summary.text in text_of(edited.agent.sent[-1])
    edited.talk(6, "file")
    now = next(m for m in edited.agent.messages if is_summary_message(m))
    assert now.text != summary.text
    assert "Never touch the file settings.py." in now.text


@pytest.mark.parametrize(
    "text",
    [
        "summarization:\n  enabled: maybe\n",
        "summarization:\n enabled: true\n  trigger: 3\n",
        "",
        "other: 1\n",
        "summarization:\n  enabled: true\n  trigger: {type: messages, value: 4}\n"
        "  keep: {type: messages, value: 1}\n  pin: no.such:function\n",
    ],
    ids=["a wrong value", "malformed", "emptied", "without its section", "an unknown function"],
)
def test_an_edit_that_is_not_valid_keeps_the_settings_and_says_so_once(text, tmp_path, caplog):
    edited = Edited(tmp_path, model_registry={})
    edited.raw(text)
    edited.talk(3)
    assert edited.agent.middleware.trigger == [("messages", 6)]
    said = [r for r in caplog.records if "the configuration in force is kept" in r.message]
    assert len(said) == 1
    edited.edit(SIX.replace("value: 6", "value: 14"))
    edited.talk(1)
    assert edited.agent.middleware.trigger == [("messages", 14)]


def test_an_archive_an_edit_names_waits_for_a_new_agent_so_that_no_original_is_lost(
    tmp_path, caplog
):
    edited = Edited(tmp_path, SIX + "recall: tool\n")
    edited.talk(4)
    archive = edited.agent.middleware.archive
    edited.edit(SIX.replace("memory:", f"sqlite:///{tmp_path}/other.db") + "recall: 'off'\n")
    edited.talk(1)
    assert edited.agent.middleware.archive is archive
    assert not (tmp_path / "other.db").exists()
    assert "line 5: 'archive' counts when the agent is built anew" in caplog.text
    assert "line 6: 'recall' counts when the agent is built anew" in caplog.text
    assert archive.threads("local") == ("t",)


def test_history_cannot_change_under_an_agent(tmp_path, caplog):
    edited = Edited(tmp_path, SIX + "history: preserve\n")
    edited.talk(5)
    edited.edit(SIX + "history: replace\n")
    edited.talk(3)
    assert edited.agent.middleware.history == "preserve"
    assert len(edited.agent.messages) == 16
    assert "'history' counts when the agent is built anew" in caplog.text


def test_switching_off_needs_nothing_but_the_switch(tmp_path):
    edited = Edited(tmp_path, SIX + "model_name: small\n", model_registry={"small": summarising()})
    for text in (
        "enabled: false\n",
        "enabled: false\nmodel_name: nobody\ntoken_counter: no.such\n",
    ):
        edited.edit(text)
        edited.talk(1)
        assert not edited.agent.middleware.enabled
        edited.edit(SIX + "model_name: small\n")
        edited.talk(1)
        assert edited.agent.middleware.enabled


@pytest.mark.parametrize("history", ["replace", "preserve"])
def test_switched_off_by_an_edit_nothing_more_is_summarised_and_what_is_summarised_stays(
    history, tmp_path
):
    section = SIX + f"history: {history}\nwindow: 3000\n"
    edited = Edited(tmp_path, section)
    edited.talk(4)
    summary = next(m for m in edited.agent.sent[-1] if is_summary_message(m))
    edited.edit(section.replace("enabled: true", "enabled: false"))
    edited.talk(12)
    assert not edited.agent.middleware.enabled
    shown = edited.agent.sent[-1]
    assert [m.text for m in shown if is_summary_message(m)] == [summary.text]
    assert len(shown) > 20
    edited.edit(section)
    edited.talk(1)
    assert len(edited.agent.sent[-1]) < 8


@pytest.mark.slow
def test_threads_that_run_at_once_all_go_on_while_the_file_is_edited(tmp_path):
    async def turns() -> list[int]:
        edited = Edited(tmp_path)
        agent = edited.agent

        async def one(name: str) -> int:
            thread = {"configurable": {"thread_id": name}}
            for n in range(8):
                if name == "0":
                    edited.edit(SIX.replace("value: 6", f"value: {5 + n % 3}"))
                await agent.graph.ainvoke({"messages": [("user", f"module {n}")]}, thread)
            state = await agent.graph.aget_state(thread)
            return summaries(state.values["messages"])

        return list(await asyncio.gather(*(one(str(n)) for n in range(6))))

    assert asyncio.run(turns()) == [1] * 6


def test_a_configuration_that_was_made_in_python_is_never_looked_for(tmp_path):
    config = SummarizationConfig(
        enabled=True,
        trigger={"type": "messages", "value": 6},  # type: ignore[arg-type]
        keep={"type": "messages", "value": 2},  # type: ignore[arg-type]
    )
    agent = Agent(config, model=summarising())
    for n in range(4):
        agent.say(f"module {n}")
    assert summaries(agent.messages) == 1
    assert not agent.middleware.refresh()
