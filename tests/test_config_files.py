"""Reading a configuration: what a value may be; each mistake is one sentence with a way out."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from typer.testing import CliRunner

from config_support import fits, load_section, write_file
from conspectus.cli.app import app
from conspectus.config import ConfigError, SummarizationConfig, json_schema, load_config

PRESETS = sorted((Path(__file__).parents[1] / "examples" / "config").glob("*.yaml"))

# As DeerFlow's pydantic models read them. Its `SummarizationConfig` takes each of these.
FORMS: list[tuple[str, str, Any]] = [
    ("enabled", "'yes'", True),
    ("enabled", "on", True),
    ("keep", "{type: messages, value: '30'}", ("messages", 30)),
    ("keep", "{type: tokens, value: 3e3}", ("tokens", 3000)),
    ("keep", "{type: fraction, value: '0.3'}", ("fraction", 0.3)),
    ("trim_tokens_to_summarize", "4000.0", 4000),
    ("trim_tokens_to_summarize", "null", None),
    ("recall", "off", "off"),
]


@pytest.mark.parametrize(("key", "value", "read"), FORMS)
def test_a_value_in_another_form_is_the_value_that_it_is(key, value, read, tmp_path):
    config = load_section(tmp_path, f"trigger: {{type: tokens, value: 1e4}}\n{key}: {value}")
    field_value = getattr(config, key)
    assert (field_value.pair if key == "keep" else field_value) == read
    assert config.trigger == [{"tokens": 10_000}]
    assert isinstance(config.trigger[0]["tokens"], int)


@pytest.mark.parametrize("text", ["models: []\n", "", "summarization:\n"])
def test_a_file_without_the_section_summarises_nothing(text, tmp_path):
    assert not load_config(write_file(tmp_path, text)).enabled


def test_variables_stand_for_values_and_neither_they_nor_passwords_are_shown(tmp_path, monkeypatch):
    values = {"LIMIT": "6000", "ON": "true", "MODEL": "hunter2"}
    for name, value in {**values, "ARCHIVE_URL": "postgresql://ann:hunter3@db/x"}.items():
        monkeypatch.setenv(name, value)
    config = load_section(tmp_path, """
        enabled: $ON
        archive: $ARCHIVE_URL
        trigger: {type: tokens, value: $LIMIT}
        summary_prompt: "costs $LIMIT: {messages}"
        model_name: "${MODEL}"
        fallback_models: ["postgresql://ann:hunter2@db/x"]
        """)  # fmt: skip
    monkeypatch.setenv("MODEL", "another one")  # what was read is what must not be shown
    assert (config.enabled, config.trigger) == (True, [{"tokens": 6000}])
    assert config.summary_prompt == "costs $LIMIT: {messages}"
    assert (config.model_name, config.archive) == ("hunter2", "postgresql://ann:hunter3@db/x")
    problem = config.source.problem(("model_name",), "no model 'hunter2'")
    assert problem.endswith("line 6: no model '${MODEL}'")
    unpickled = pickle.loads(pickle.dumps(config))
    for either in (config, unpickled):
        assert "hunter" not in f"{either!r} {either} {either.plain()} {either.source}"
    assert unpickled.model_name == "hunter2"
    with pytest.raises(ValidationError) as caught:
        SummarizationConfig(archive="mysql://ann:hunter2@db/x")
    assert "hunter2" not in str(caught.value)


def test_merged_keys_and_a_byte_order_mark_are_read(tmp_path):
    file = tmp_path / "config.yaml"
    base = "base: &base {enabled: true, trigger: {type: tokens, value: 4000}, window: 9000}\n"
    section_text = (
        "summarization:\n  <<: *base\n  keep: {type: messages, value: 7}\n  window: 8000\n"
    )
    file.write_text(base + section_text, encoding="utf-8-sig")
    config = load_config(file)
    assert (config.enabled, config.keep.value, config.window) == (True, 7, 8000)


def test_the_skills_of_the_file_are_the_skills_of_the_section(tmp_path):
    section = "skills: {container_path: /srv/skills}\nsummarization: {skills_path: /opt/s}"
    for text, folder in (
        ("summarization: {}", "/mnt/skills"),
        (section.replace("skills_path: /opt/s", ""), "/srv/skills"),
        (section, "/opt/s"),
    ):
        skills = load_config(write_file(tmp_path, text)).skills
        assert skills is not None
        assert (skills.tools, skills.folder) == (("read_file", "read", "view", "cat"), folder)
    assert load_section(tmp_path, "skill_file_read_tool_names: []").skills is None


@pytest.mark.parametrize("file", PRESETS, ids=lambda file: file.stem)
def test_the_schema_takes_every_preset_and_describes_every_key(file, monkeypatch):
    monkeypatch.setenv("ARCHIVE_URL", "postgresql://ann:hunter2@db/conspectus")
    assert fits(yaml.safe_load(file.read_text()))
    assert load_config(file).enabled
    schema = json.loads(json.dumps(json_schema()))
    section = schema["$defs"]["SummarizationConfig"]
    for key, description in section["properties"].items():
        assert description.get("description"), key


@pytest.mark.parametrize(
    "section",
    [
        {"triger": 3},
        {"trigger": 4000},
        {"trigger": {"type": "mesages", "value": 50}},
        {"trim_tokens_to_summarize": 0},
        {"on_failure": "degrad"},
        True,
    ],
)
def test_the_schema_refuses_what_an_editor_can_see(section):
    assert not fits({"summarization": section})


def section(*lines: str) -> str:
    return "\n".join(["summarization:", *(f"  {line}" for line in lines)]) + "\n"


def enabled_section(*lines: str) -> str:
    """Return a section that is valid but for these lines, from line 4 on."""
    return section("enabled: true", "trigger: {type: tokens, value: 4000}", *lines)


def broken() -> Iterator[tuple[str, tuple[str, int, str, str]]]:
    """Files with a mistake; its line, words that name it, and words that say what to do."""
    whole = Path(__file__).with_name("broken_configs.txt").read_text(encoding="utf-8")
    for part in whole.removeprefix("== ").split("\n== "):
        head, _, text = part.partition("\n")
        name, line, wrong, fix = head.split(" | ")
        yield name, (f"{text}\n", int(line), wrong, fix)


BROKEN: dict[str, tuple[str, int, str, str]] = {
    **dict(broken()),
    "a tab": ("summarization:\n\tenabled: true\n", 2, "YAML cannot read", "spaces, no tabs"),
    "keys not indented": ("summarization:\n\u00a0\u00a0trigger: {messages: 9}\n",
        2, "'trigger' is no section", "two spaces further in"),
    "a character of no text": (section('model_name: "a\x07"'), 1, "special characters", "UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_mistake_has_its_line_and_a_way_out(name, tmp_path):
    text, line, wrong, fix = BROKEN[name]
    file = write_file(tmp_path, text)
    finished = CliRunner().invoke(app, ["config", "check", str(file)])
    assert finished.exit_code == 2, finished.output
    [problem] = finished.stderr.splitlines()
    assert f"config.yaml, line {line}: " in problem
    assert wrong in problem
    assert fix in problem
    assert "hunter2" not in problem
    assert not finished.stdout


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        (("trigger: {messages: 20}", "keep: {type: messages, value: 25}"), "keep 25 messages can"),
        (("trigger: {type: messages, value: 15}",), "keep 20 messages can never"),
        (("trigger: {type: tokens, value: 4000}", "window: 3000"), "never reached in a window of"),
    ],
)
def test_sizes_that_cannot_have_their_effect_are_noted(tmp_path, lines, note):
    file = write_file(tmp_path, section("enabled: true", *lines))
    finished = CliRunner().invoke(app, ["config", "check", str(file), "--json"])
    [noted] = json.loads(finished.stdout)["notes"]
    assert note in noted


def test_all_mistakes_are_listed_by_line(tmp_path):
    lines = ("enabled: 3", "triger: x", "keep: {type: token, value: 5}", "recal: off")
    finished = CliRunner().invoke(
        app, ["config", "check", str(write_file(tmp_path, section(*lines))), "--json"]
    )
    report = json.loads(finished.stdout)
    assert (finished.exit_code, report["valid"]) == (2, False)
    line_numbers = [
        int(problem.partition("line ")[2].partition(":")[0]) for problem in report["problems"]
    ]
    assert line_numbers == [2, 3, 4, 5]


def test_a_file_that_cannot_be_read_is_told_without_a_traceback(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read \(No such.*check its path"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("summarization:\n  model_name: é\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"invalid continuation byte.*save it as UTF-8"):
        load_config(latin)


def test_what_others_write_in_their_sections_is_theirs(tmp_path):
    for text in ("- {name: !!int ''}", "- !theirs {x: 1}", "7"):
        file = tmp_path / "config.yaml"
        file.write_text(f"models:\n  {text}\nskills: [a]\nkeep: 3\ntrigger: {{on: push}}\n"
                        "enabled: 3\nsummarization:\n  window: 9\n")  # fmt: skip
        assert load_config(file).window == 9, text


def test_no_error_shows_a_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HIDDEN", "hunter2")
    monkeypatch.setenv("PART", "hunt")
    keys = ("archive", "trim_tokens_to_summarize", "on_failure", "token_counter", "keep")
    for key in (*keys, "trigger", "fallback_models", "pin", "recall", "window"):
        file = write_file(tmp_path, enabled_section("model_name: $PART", f"{key}: $HIDDEN"))
        assert "er2" not in CliRunner().invoke(app, ["config", "check", str(file)]).output, key


def test_wrong_values_do_not_matter_while_summarisation_is_off(tmp_path):
    lines = ("trigger: 7", "archive: $NO_SUCH_VARIABLE", "keep: {type: messages, value: 90}")
    file = write_file(tmp_path, section("enabled: 'no'", "colour: blue", *lines, "window: 900"))
    config = load_config(file)
    assert (config.enabled, config.trigger) == (False, None)
    finished = CliRunner().invoke(app, ["config", "check", str(file), "--json"])
    assert finished.exit_code == 0
    notes = "\n".join(json.loads(finished.stdout)["notes"])
    for part in ("line 3: ", "line 4: ", "line 5: ", "unknown key", "NO_SUCH_VARIABLE is not set"):
        assert part in notes
    with pytest.raises(ConfigError, match="line 5"):
        load_config(write_file(tmp_path, section("enabled: true", "colour: blue", *lines)))
