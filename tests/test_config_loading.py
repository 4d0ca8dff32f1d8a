"""Reading a configuration: what a value may be, where it comes from, and what stays hidden."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from config_support import fits, loaded, written
from conspectus.config import ConfigError, SummarizationConfig, json_schema, load_config

PRESETS = sorted((Path(__file__).parents[1] / "examples" / "config").glob("*.yaml"))


@pytest.mark.parametrize("text", ["models: []\n", "", "summarization:\n"])
def test_a_file_without_the_section_summarises_nothing(text, tmp_path):
    assert not load_config(written(tmp_path, text)).enabled


# As DeerFlow's pydantic models read them. Its `SummarizationConfig` takes each of these.
FORMS: list[tuple[str, str, Any]] = [
    ("enabled", "'yes'", True),
    ("enabled", "on", True),
    ("enabled", "1", True),
    ("keep", "{type: messages, value: '30'}", ("messages", 30)),
    ("keep", "{type: messages, value: 30.0}", ("messages", 30)),
    ("keep", "{type: tokens, value: 3e3}", ("tokens", 3000)),
    ("keep", "{type: fraction, value: '0.3'}", ("fraction", 0.3)),
    ("trim_tokens_to_summarize", "'4000'", 4000),
    ("trim_tokens_to_summarize", "4000.0", 4000),
    ("trim_tokens_to_summarize", "null", None),
    ("recall", "off", "off"),
]


@pytest.mark.parametrize(("key", "value", "read"), FORMS)
def test_a_value_in_another_form_is_the_value_that_it_is(key, value, read, tmp_path):
    config = loaded(tmp_path, f"trigger: {{type: tokens, value: 1e4}}\n{key}: {value}")
    found = getattr(config, key)
    assert (found.pair if key == "keep" else found) == read
    assert config.conditions == [{"tokens": 10_000}]
    assert isinstance(config.conditions[0]["tokens"], int)


def test_conditions_of_a_mapping_must_all_hold_and_those_of_a_list_need_not(tmp_path):
    trigger = "[{type: messages, value: 90}, {tokens: 4000, messages: 30}]"
    config = loaded(tmp_path, f"enabled: true\ntrigger: {trigger}")
    assert config.conditions == [{"messages": 90}, {"tokens": 4000, "messages": 30}]
    always = "enabled: true\ntrigger: {tokens: 4000, messages: 10}"  # fewer than are kept
    assert loaded(tmp_path, always).keep.pair == ("messages", 20)


def test_values_of_environment_variables_stand_for_texts_and_for_numbers(tmp_path, monkeypatch):
    for name, value in {"LIMIT": "6000", "ON": "true", "WHO": "123"}.items():
        monkeypatch.setenv(name, value)
    config = loaded(tmp_path, """
        enabled: $ON
        model_name: ${WHO}
        trigger: {type: tokens, value: $LIMIT}
        summary_prompt: "costs $LIMIT: {messages}"
        """)  # fmt: skip
    assert (config.enabled, config.model_name) == (True, "123")
    assert config.conditions == [{"tokens": 6000}]
    assert config.summary_prompt == "costs $LIMIT: {messages}"


def test_a_configuration_shows_neither_passwords_nor_the_values_of_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("MODEL", "hunter2")
    monkeypatch.setenv("ARCHIVE_URL", "postgresql://ann:hunter3@db/x")
    own = "{model_name: $MODEL, fallback_models: [postgresql://ann:hunter2@db/x]}"
    config = loaded(
        tmp_path, f"model_name: house\narchive: $ARCHIVE_URL\nsubagents:\n  researcher: {own}\n"
    )
    monkeypatch.setenv("MODEL", "another one")  # what was read is what must not be shown
    researcher = config.for_subagent("researcher")
    assert (researcher.model_name, config.archive) == ("hunter2", "postgresql://ann:hunter3@db/x")
    problem = researcher.source.problem(("model_name",), "no model 'hunter2'")
    assert problem.endswith("line 5: no model '$MODEL'")
    assert config.source.problem(("model_name",), "?").endswith("line 2: ?")
    again = pickle.loads(pickle.dumps(config))
    for one in (config, again, researcher, config.subagents["researcher"], config.source):
        assert "hunter" not in f"{one!r} {one}"
    for one in (config, again, researcher):
        assert "hunter" not in str(one.plain())
    assert again.for_subagent("researcher").model_name == "hunter2"
    with pytest.raises(ValidationError) as caught:
        SummarizationConfig(archive="mysql://ann:hunter2@db/x")
    assert "hunter2" not in str(caught.value)


def test_merged_keys_and_a_byte_order_mark_are_read(tmp_path):
    file = tmp_path / "config.yaml"
    base = "base: &base {enabled: true, trigger: {type: tokens, value: 4000}, window: 9000}\n"
    own = "summarization:\n  <<: *base\n  keep: {type: messages, value: 7}\n  window: 8000\n"
    file.write_text(base + own, encoding="utf-8-sig")
    config = load_config(file)
    assert (config.enabled, config.keep.value, config.window) == (True, 7, 8000)
    whole = "base: &base\n  summarization: {enabled: true, trigger: {type: tokens, value: 9}}\n"
    assert load_config(written(tmp_path, whole + "<<: *base\n")).enabled


def test_a_subagent_has_the_main_agents_settings_save_its_own(tmp_path):
    config = loaded(tmp_path, """
        enabled: true
        trigger: {type: tokens, value: 4000}
        keep: {type: messages, value: 9}
        archive: "memory:"
        subagents:
          researcher: {keep: {type: tokens, value: 500}, history: preserve}
          quiet: {enabled: false}
        """)  # fmt: skip
    own = config.for_subagent("researcher")
    assert (own.keep.pair, own.history, own.archive) == (("tokens", 500), "preserve", "memory:")
    assert own.trigger == config.trigger
    assert not config.for_subagent("quiet").enabled
    assert config.for_subagent("nobody").keep == config.keep
    assert config.keep.pair == ("messages", 9)


def test_a_subagent_may_be_switched_on_alone(tmp_path):
    one = "{one: {enabled: true, trigger: {type: tokens, value: 900}}}"
    config = loaded(tmp_path, f"subagents: {one}")
    assert (config.enabled, config.for_subagent("one").enabled) == (False, True)
    with pytest.raises(ConfigError, match=r"line 2: summarization\.subagents\.one.*without a trig"):
        loaded(tmp_path, "subagents: {one: {enabled: true}}")


def test_a_configuration_made_in_python_is_checked_as_a_file_is():
    with pytest.raises(ValidationError, match="enabled without a trigger"):
        SummarizationConfig(enabled=True)
    with pytest.raises(ValidationError, match="triger"):
        SummarizationConfig(triger=3)  # type: ignore[call-arg]


def test_the_skills_of_the_file_are_the_skills_of_the_section(tmp_path):
    both = "skills: {container_path: /srv/skills}\nsummarization: {}"
    assert load_config(written(tmp_path, "summarization: {}")).skills_folder == "/mnt/skills"
    assert load_config(written(tmp_path, both)).skills_folder == "/srv/skills"
    own = both.replace("{}", "{skills_path: /opt/s}")
    assert load_config(written(tmp_path, own)).skills_folder == "/opt/s"


# The schema for editors


@pytest.mark.parametrize("file", PRESETS, ids=lambda file: file.stem)
def test_the_schema_takes_every_preset(file):
    assert fits(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    "section",
    [
        {"triger": 3},
        {"trigger": 4000},
        {"trigger": {"type": "mesages", "value": 50}},
        {"trigger": {"type": "tokens"}},
        {"trim_tokens_to_summarize": 0},
        {"on_failure": "degrad"},
        {"history": "HISTORY"},
        {"subagents": ["one"]},
        {"subagents": {"one": {"archive": "memory:"}}},
        True,
    ],
)
def test_the_schema_refuses_what_an_editor_can_see(section):
    assert not fits({"summarization": section})


def test_the_schema_takes_a_variable_wherever_the_loader_does():
    keep = {"type": "$KIND", "value": "$MOST"}
    section = {"history": "$HISTORY", "on_failure": "${FAILURE}", "window": "$WINDOW", "keep": keep}
    assert fits({"summarization": section, "other": 1})


def test_the_schema_is_plain_json_and_describes_every_key():
    schema = json.loads(json.dumps(json_schema()))
    section = schema["properties"]["summarization"]["anyOf"][0]
    for key, one in section["properties"].items():
        assert one.get("description"), key
