"""Agents out of a configuration: models, windows, archives, hooks, redactors."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from config_support import Agent, answering, loaded, summarising
from conspectus.config import ConfigError, create_middleware, create_summarization_middleware
from conspectus.errors import ArchiveError, ConspectusError, InputError
from conspectus.langchain import SummarizationEvent
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


def summaries(messages: list[BaseMessage]) -> int:
    return sum(map(is_summary_message, messages))


def test_what_is_not_enabled_is_no_middleware(tmp_path):
    config = loaded(tmp_path, "enabled: false\ntrigger: {type: tokens, value: 4000}")
    assert create_summarization_middleware(config, model=answering()) is None
    between = create_summarization_middleware(loaded(tmp_path, SIX), model=answering())
    assert between is not None
    assert create_middleware(config, between, model=answering()) == [between]


def test_models_come_from_a_mapping_or_a_function_and_unknown_ones_are_refused(tmp_path):
    config = loaded(tmp_path, SIX + "model_name: small\n")
    small = summarising()
    for registry in ({"small": small}, {"small": small}.__getitem__):
        agent = Agent(config, model_registry=registry)
        agent.middleware.close()
    with pytest.raises(ConfigError, match=r"line 6: .*no such name; known are smal"):
        create_summarization_middleware(config, model_registry={"smal": small})
    with pytest.raises(ConfigError, match=r"line 6: the model 'small' cannot be had \(KeyError"):
        create_summarization_middleware(config, model_registry={}.__getitem__)
    with pytest.raises(ConfigError, match="int is no chat model"):
        create_summarization_middleware(config, model_registry=lambda name: 7)  # type: ignore


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


# The hook


@pytest.mark.parametrize("loop", [False, True])
def test_a_hook_that_fails_is_logged_and_harms_neither_the_summary_nor_the_next_hook(
    loop, tmp_path, caplog
):
    called: list[int] = []

    def broken(event: SummarizationEvent) -> None:
        for message in (*event.messages_to_summarize, *event.preserved_messages):
            message.content = "gone"  # type: ignore[union-attr]
        raise ConnectionError("the memory is down")

    async def slow(event: SummarizationEvent) -> None:
        await asyncio.sleep(60)

    agent = Agent(
        loaded(tmp_path, SIX + "summarizer_timeout: 0.2\n"),
        model=summarising(),
        before_summarization=[broken, slow, lambda event: called.append(1)],
    )

    async def turns() -> None:
        for n in range(4):
            await agent.asay(f"look at module {n}")

    if loop:
        asyncio.run(turns())
    for n in range(0 if loop else 4):
        agent.say(f"look at module {n}")
    assert called == [1]
    assert is_summary_message(agent.messages[0])
    assert "gone" not in [message.text for message in agent.messages]
    assert caplog.text.count("before_summarization") >= 2
    assert "the memory is down" in caplog.text


def drop_zebra(text: str) -> str:
    return text.replace("zebra", "[redacted: animal]")


def test_redaction_is_off_or_by_the_default_redactor_or_by_a_function(tmp_path):
    for line, redact in {
        "": False,
        "redact: false": False,
        "redact: 'yes'": True,
        "redact: secrets": "secrets",
        f"redact: {__name__}:drop_zebra": drop_zebra,
    }.items():
        made = create_summarization_middleware(loaded(tmp_path, SIX + line), model=answering())
        assert made is not None
        assert made.redact == redact
    for value in ("yes please", "5", "[a]", "no.such.module:function", "secrets!"):
        with pytest.raises(ConspectusError, match=r"config.yaml, line 6: .*redact"):
            loaded(tmp_path, SIX + f"redact: {value}")
