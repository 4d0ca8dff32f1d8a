"""Reading a configuration: what a value may be, where it comes from, and what stays hidden."""

import json
import pickle
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from config_support import fits, loaded, written
from conspectus.config import ConfigError, Size, SummarizationConfig, json_schema, load_config
from test_config_broken_files import BROKEN
from test_config_public_examples import EXAMPLES

PRESETS = sorted((Path(__file__).parents[1] / "examples" / "config").glob("*.yaml"))


def test_a_file_without_the_section_summarises_nothing(tmp_path):
    assert not load_config(written(tmp_path, "models: []\n")).enabled
    assert not load_config(written(tmp_path, "")).enabled
    assert not load_config(written(tmp_path, "summarization:\n")).enabled


def test_other_sections_are_left_alone_whatever_is_in_them(tmp_path):
    config = load_config(written(tmp_path, """
        tools: !theirs {x: 1}
        models: 7
        skills: [a]
        summarization: {enabled: true, trigger: {type: tokens, value: 4000}}
        enabled: 3
        """))  # fmt: skip
    assert config.clauses == [Size(type="tokens", value=4000)]


def test_conditions_of_a_mapping_must_all_hold_and_those_of_a_list_need_not(tmp_path):
    config = loaded(tmp_path, """
        enabled: true
        trigger: [{type: messages, value: 90}, {tokens: 4000, messages: 30}]
        """)  # fmt: skip
    assert [str(one) for one in config.clauses] == ["90 messages", "4,000 tokens and 30 messages"]


def test_a_condition_that_is_always_met_is_taken_beside_one_that_is_not(tmp_path):
    text = "summarization:\n  enabled: true\n  trigger: {tokens: 4000, messages: 10}\n"
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert load_config(file).keep.pair == ("messages", 20)


def test_values_of_environment_variables_stand_for_texts_and_for_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMIT", "6000")
    monkeypatch.setenv("ON", "true")
    monkeypatch.setenv("WHO", "123")
    config = loaded(tmp_path, """
        enabled: $ON
        model_name: ${WHO}
        trigger: {type: tokens, value: $LIMIT}
        summary_prompt: "costs $LIMIT: {messages}"
        """)  # fmt: skip
    assert config.enabled
    assert config.model_name == "123"
    assert config.clauses[0] == Size(type="tokens", value=6000)
    assert config.summary_prompt == "costs $LIMIT: {messages}"


def test_a_configuration_shows_neither_passwords_nor_the_values_of_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIVE_URL", "postgresql://ann:hunter2@db/x")
    hidden = loaded(tmp_path, "archive: $ARCHIVE_URL")
    assert hidden.archive == "postgresql://ann:hunter2@db/x"
    for text in (repr(hidden), str(hidden), hidden.shown(("archive",))):
        assert "hunter2" not in text
    written_out = loaded(tmp_path, "archive: postgresql://ann:hunter2@db/x?password=hunter2")
    for text in (repr(written_out), written_out.shown(("archive",))):
        assert "hunter2" not in text
        assert "ann" in text
    with pytest.raises(ValidationError) as caught:
        SummarizationConfig(archive="mysql://ann:hunter2@db/x")
    assert "hunter2" not in str(caught.value)


def test_a_subagents_settings_show_no_secret_either_and_name_its_lines(tmp_path, monkeypatch):
    monkeypatch.setenv("MODEL", "hunter2")
    own = "{model_name: $MODEL, fallback_models: [postgresql://ann:hunter2@db/x]}"
    config = loaded(tmp_path, f"model_name: house\nsubagents:\n  researcher: {own}\n")
    monkeypatch.setenv("MODEL", "another one")  # what was read is what must not be shown
    researcher = config.for_subagent("researcher")
    assert researcher.model_name == "hunter2"
    problem = researcher.source.problem(("model_name",), "no model 'hunter2'")
    assert problem.endswith("line 4: no model '$MODEL'")
    assert config.source.problem(("model_name",), "?").endswith("line 2: ?")
    again = pickle.loads(pickle.dumps(config))
    for one in (config, again, researcher, config.subagents["researcher"], config.read):
        assert "hunter2" not in f"{one!r} {one}"
    assert again.for_subagent("researcher").model_name == "hunter2"


def test_a_section_may_come_whole_out_of_a_merge(tmp_path):
    file = tmp_path / "config.yaml"
    text = "base: &base\n  summarization: {enabled: true, trigger: {type: tokens, value: 9}}\n"
    file.write_text(text + "<<: *base\n")
    assert load_config(file).enabled


def test_merged_keys_and_a_byte_order_mark_are_read(tmp_path):
    file = tmp_path / "config.yaml"
    text = """
base: &base {enabled: true, trigger: {type: tokens, value: 4000}}
summarization:
  <<: *base
  keep: {type: messages, value: 7}
"""
    file.write_text(text, encoding="utf-8-sig")
    config = load_config(file)
    assert config.enabled
    assert config.keep.value == 7


def test_a_bare_off_is_yamls_false_and_switches_recall_off(tmp_path):
    assert loaded(tmp_path, "recall: off").recall == "off"
    assert loaded(tmp_path, "recall: 'off'").recall == "off"
    assert loaded(tmp_path, "recall: auto").recall == "auto"


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
    config = loaded(
        tmp_path, "subagents: {one: {enabled: true, trigger: {type: tokens, value: 900}}}"
    )
    assert not config.enabled
    assert config.for_subagent("one").enabled
    with pytest.raises(ConfigError, match=r"line 2: summarization\.subagents\.one.*without a trig"):
        loaded(tmp_path, "subagents: {one: {enabled: true}}")


def test_a_configuration_made_in_python_is_checked_as_a_file_is():
    with pytest.raises(ValidationError, match="enabled without a trigger"):
        SummarizationConfig(enabled=True)
    with pytest.raises(ValidationError, match="triger"):
        SummarizationConfig(triger=3)  # type: ignore[call-arg]


def test_the_skills_of_the_file_are_the_skills_of_the_section(tmp_path):
    assert load_config(written(tmp_path, "summarization: {}")).skills_folder == "/mnt/skills"
    both = "skills: {container_path: /srv/skills}\nsummarization: {}"
    assert load_config(written(tmp_path, both)).skills_folder == "/srv/skills"
    own = "skills: {container_path: /srv/skills}\nsummarization: {skills_path: /opt/s}"
    assert load_config(written(tmp_path, own)).skills_folder == "/opt/s"


# The schema for editors says the same as the loader.


def section_of(text: str) -> Any:
    return yaml.safe_load(text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_schema_takes_every_public_example(name):
    assert fits({"summarization": section_of(EXAMPLES[name][0])})


@pytest.mark.parametrize("file", PRESETS, ids=lambda file: file.stem)
def test_the_schema_takes_every_preset(file):
    assert fits(yaml.safe_load(file.read_text()))


REFUSED = (
    "a key misspelt",
    "a key that is like none",
    "a misspelt type",
    "a value that is missing",
    "a bare number",
    "a truth value in quotes",
    "a number in quotes",
    "no reading at all",
    "no word for a failure",
    "a recall that is on",
    "a subagent's own archive",
    "subagents as a list",
    "a section without keys",
)


@pytest.mark.parametrize("name", REFUSED)
def test_the_schema_refuses_what_an_editor_can_see(name):
    data = yaml.safe_load(textwrap.dedent(BROKEN[name][0]))
    assert not fits(data)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("keep", {"type": "fraction", "value": 3}),
        ("keep", {"type": "messages", "value": 0.5}),
        ("keep", {"type": "tokens", "value": -3}),
        ("trigger", {}),
        ("trigger", []),
        ("trigger", None),
        ("window", 0),
    ],
)
def test_the_schema_refuses_sizes_that_mean_nothing(key, value):
    section = {"enabled": True, "trigger": {"type": "tokens", "value": 6000}, key: value}
    assert not fits({"summarization": section})


def test_the_schema_takes_a_variable_wherever_the_loader_does():
    keep = {"type": "$KIND", "value": "$MOST"}
    section = {"history": "$HISTORY", "on_failure": "${FAILURE}", "window": "$WINDOW", "keep": keep}
    assert fits({"summarization": section})
    assert not fits({"summarization": {"history": "HISTORY"}})


def test_the_schema_is_plain_json_and_describes_every_key():
    schema = json.loads(json.dumps(json_schema()))
    section = schema["properties"]["summarization"]["anyOf"][0]
    for key, one in section["properties"].items():
        assert one.get("deprecated") or one.get("description"), key
    assert "preserve_recent_skill_count" in section["properties"]
