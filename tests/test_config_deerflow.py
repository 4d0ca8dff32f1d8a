"""A file of DeerFlow's: the same keys and values, its `models`, and its own classes."""

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from config_support import SUMMARY, answering, loaded, summarising, written
from conspectus.config import (
    ConfigError,
    create_summarization_middleware,
    load_config,
)
from scripted_models import ScriptedChatModel

FILE = """
models:
  - name: house
    display_name: House model
    use: {use}
    model: gpt-4o-mini
    api_key: $HOUSE_KEY
    temperature: 0.2
    context_window: 10000
    supports_thinking: true
    when_thinking_enabled: {{extra_body: {{thinking: {{type: enabled}}}}}}
    when_thinking_disabled: {{temperature: 0.4}}
summarization:
  enabled: true
  model_name: house
  trigger: [{{type: messages, value: 6}}]
  keep: {{type: messages, value: 2}}
"""


class HouseModel(ScriptedChatModel):
    """A model that an entry of `models` names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(answers=lambda messages: SUMMARY)
        MADE.append(settings)


MADE: list[dict[str, Any]] = []


def config_of(folder: Path, use: str = f"{__name__}:HouseModel") -> Any:
    return load_config(written(folder, FILE.format(use=use)))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "hunter2")
    MADE.clear()


@pytest.mark.parametrize("use", [f"{__name__}:HouseModel", f"{__name__}.HouseModel"])
def test_a_model_that_the_file_defines_is_built_from_there(use, tmp_path):
    made = create_summarization_middleware(config_of(tmp_path, use), model=answering())
    assert MADE == [{"model": "gpt-4o-mini", "api_key": "hunter2", "temperature": 0.4}]
    assert made is not None
    said = [HumanMessage(f"look at module {n}, the one in src/module_{n}.py") for n in range(6)]
    update = made.before_model({"messages": said}, Runtime())
    assert SUMMARY.splitlines()[1] in str(update["messages"][1].text)


@pytest.mark.parametrize(
    ("use", "name", "why"),
    [
        ("no_such_package:Model", "house", "No module named 'no_such_package'"),
        (f"{__name__}:MADE", "house", "not callable"),
        ("langchain_openai:ChatOpenAI", "hosue", "did you mean 'house'?"),
        ("langchain_openai:ChatOpenAI\n    base_url: $NO_SUCH_URL", "house", "NO_SUCH_URL is not"),
    ],
)
def test_a_model_that_cannot_be_had_is_the_runs_own_and_that_is_said(
    use, name, why, tmp_path, caplog
):
    text = FILE.format(use=use).replace("model_name: house", f"model_name: {name}")
    config = load_config(written(tmp_path, text))
    own = summarising()
    made = create_summarization_middleware(config, model=own, model_registry={})
    assert made is not None
    assert made._setup.engine.order[0] == made._setup.engine.order[-1]
    [said] = [one.getMessage() for one in caplog.records]
    assert re.search(r"line 1[45]: the model '", said)
    assert why in said
    assert "the agent's own model stands in" in said
    with pytest.raises(ConfigError, match=r"line 1[45]: the model"):
        create_summarization_middleware(config, model_registry={})


def test_no_message_shows_the_key_of_a_model(tmp_path, caplog):
    create_summarization_middleware(config_of(tmp_path, f"{__name__}:refusing"), model=answering())
    assert "cannot be had" in caplog.text
    assert "hunter2" not in caplog.text
    assert "\n" not in caplog.records[0].getMessage()


def refusing(**settings: Any) -> BaseChatModel:
    raise ValueError(f"no such key:\n\n{settings['api_key']}")


def test_a_file_of_an_earlier_version_loads(tmp_path):
    earlier = "preserve_recent_skill_count: 5\npreserve_recent_skill_tokens: 25000\n"
    more = "preserve_recent_skill_tokens_per_skill: 5000\n"
    config = loaded(
        tmp_path, "enabled: true\ntrigger: {type: tokens, value: 4000}\n" + earlier + more
    )
    assert config.enabled


# DeerFlow's public examples, key by key: they load here and do what that page says they do.
# What each says: the section, tokens or messages at which it fires, what stays.


# With DeerFlow's own classes: DEERFLOW names the folder `backend/packages/harness` of a checkout.
