"""Broken files: each error is one sentence with file, line, what is wrong and what to write."""

import contextlib
import json
import textwrap
import time

import pytest
from typer.testing import CliRunner

from config_support import written
from conspectus.cli.app import app
from conspectus.config import ConfigError, load_config


def section(*lines: str) -> str:
    return "\n".join(["summarization:", *(f"  {line}" for line in lines)]) + "\n"


def on(*lines: str) -> str:
    """Return a section that is valid but for these lines, from line 4 on."""
    return section("enabled: true", "trigger: {type: tokens, value: 4000}", *lines)


def fires(trigger: str, *lines: str) -> str:
    return section("enabled: true", f"trigger: {trigger}", *lines)


# What is in the file; the line of the mistake; words that name it; words that say what to do.
BROKEN: dict[str, tuple[str, int, str, str]] = {
    "a key misspelt": (on("kep: {}"), 4, "summarization.kep: unknown key", "did you mean 'keep'?"),
    "a key like none": (on("colour: blue"), 4, "unknown key", "known are enabled, model_name"),
    "a letter that looks right": (on("wind\u043ew: 3"), 4, "wind\\u043ew", "mean 'window'?"),
    "a key indented too far": (
        on("keep:", "  type: messages", "  value: 10", "  trim_tokens_to_summarize: 15564"),
        7, "no part of 'keep'", "indent it as far as 'keep' is"),
    "no trigger": (section("enabled: true"), 2, "without a trigger", "add 'trigger: {type: tok"),
    "no trigger in a list": (fires("[]"), 3, "without a trigger", "add 'trigger: {type: tokens"),
    "a misspelt type": (fires("", "- {type: tokens, value: 4}", "- {type: mesages, value: 5}"),
        5, "not 'mesages'", "did you mean 'messages'?"),
    "a misspelt condition": (fires("{tokns: 4000}"), 3, "unknown key", "did you mean 'tokens'?"),
    "a missing value": (fires("{type: tokens}"), 3, "'value' is missing", "add 'value: ...'"),
    "a share as tokens": (fires("", "  type: tokens", "  value: 0.8"),
        5, "whole number", "did you mean 'type: fraction'?"),
    "a percentage": (fires("{type: fraction, value: 80}"), 3, "at most 1", "did you mean 0.8?"),
    "a bare number": (fires("4000"), 3, "mapping, not 4000", "{type: tokens, value: 6000}"),
    "no number": (on("window: many"), 4, "integer, not 'many'", "input limit of the answering"),
    "no word": (on("on_failure: degrad"), 4, "not 'degrad'", "did you mean 'degrade'?"),
    "a recall that is on": (on("recall: on"), 4, "not true", "'off', 'tool' or 'auto'"),
    "no reading at all": (on("trim_tokens_to_summarize: 0"), 4, "not 0", "null for no limit"),
    "a number without end": (fires("{tokens: %s}" % ("9" * 400)), 3, "a number up to", "1,000,000"),
    "more kept than the trigger": (fires("{messages: 20}", "keep: {type: messages, value: 25}"),
        4, "25 messages can never get below the trigger", "lower keep, or raise the trigger"),
    "fewer than are kept by default": (fires("{type: messages, value: 15}"),
        3, "20 messages, which is the default of keep", "lower keep"),
    "a trigger above the window": (
        fires("[{fraction: 0.9}, {tokens: 6000}]", "window: 7000", "reserved_tokens: 3000"),
        3, "never reached in a window of 7,000 tokens less 3,000 reserved", "use a fraction"),
    "a window with nothing left": (on("window: 8000", "reserved_tokens: 8000"),
        5, "leaves nothing of the window", "lower it"),
    "a fraction of an unknown window": (fires("{type: fraction, value: 0.8}"),
        3, "a fraction means nothing", "write 'window: <its input limit in tokens>'"),
    "a share of an unknown window to keep": (on("keep: {type: fraction, value: 0.2}"),
        4, "window of the answering model is unknown", "write 'window:"),
    "a summary as large as the trigger": (on("max_summary_tokens: 4000"),
        4, "alone reaches the trigger", "lower it"),
    "a share above 1": (on("background: {prepare: 1.5}"), 4, "background.prepare", "equal to 1"),
    "a key of background": (on("background: {prepar: 1}"), 4, "unknown key", "mean 'prepare'?"),
    "stale results": (on("stale_results: {over: 100}"), 4, "over must be", "at least 201"),
    "a prompt without messages": (on("summary_prompt: Say it."), 4, "prompt must be", "{messages}"),
    "a counter of no form": (on("token_counter: gpt4"), 4, "'gpt4' cannot", "tiktoken:o200k_base"),
    "a counter that is not there": (on("token_counter: no_such.tokens:count"),
        4, "cannot be imported", "installed or on PYTHONPATH"),
    "a vocabulary that is not there": (on("token_counter: tokenizers:no-such.json"),
        4, "there is no file", "tokenizers:path/to/tokenizer.json"),
    "a redactor that redacts nothing": (on("redact: os:getcwd"), 4, "cannot redact", "redact"),
    "an archive of no kind": (on("archive: mysql://ann:hunter2@db/x"),
        4, "'mysql:...' names no archive", "write sqlite:///FILE"),
    "a variable in an address": (on("archive: postgresql://ann:${PASSWORD}@db/x"),
        4, "stands for a whole value", "put the whole address into one"),
    "a variable that is not set": (on("archive: $CONSPECTUS_NO_SUCH_VARIABLE"),
        4, "CONSPECTUS_NO_SUCH_VARIABLE is not set", "set it, or write the value"),
    "a subagent's own mistake": (
        fires("{messages: 50}", "subagents:", "  one:", "    keep: {type: messages, value: 60}"),
        6, "subagents.one.keep: keeping 60 messages can never", "lower keep"),
    "a subagent's own archive": (section("subagents:", "  one:", '    archive: "memory:"'),
        4, "subagents.one.archive: unknown key", "known are"),
    "subagents as a list": (section("subagents: [one]"), 2, "not a list", "should be a mapping"),
    "a password in a wrong place": (on(f"history: postgresql://ann:hunter2{'-and-on' * 9}@db/x"),
        4, "postgresql://ann:***@db/x", "'replace' or 'preserve'"),
    "a password as a key": (on("postgresql://ann:hunter2@db/x: 1"), 4, "ann:***@db/x", "known are"),
    "a tab": ("summarization:\n\tenabled: true\n", 2, "malformed YAML", "spaces, no tabs"),
    "a wrong indent": (section("keep:", "    type: messages", "  value: 20"),
        4, "malformed YAML", "check the indentation"),
    "an open bracket": (section("pin: [one", "enabled: true"), 3, "malformed YAML", "brackets"),
    "a key twice": (on("enabled: false"), 4, "'enabled' is there twice, first in line 2", "delete"),
    "the section twice": (section("enabled: false") * 2, 3, "is there twice", "join the two"),
    "the section misspelt": ("models: []\nsummarisation: {}\n",
        2, "unknown section", "did you mean 'summarization'?"),
    "keys without their section": ("trigger: {type: tokens, value: 4}\n",
        1, "'trigger' stands at the top", "put it under 'summarization:'"),
    "keys not indented": ("summarization:\n\u00a0\u00a0enabled: true\n",
        2, "'enabled' stands at the top", "two spaces further in"),
    "one key not indented": (on() + "keep: {type: messages, value: 5}\n",
        4, "'keep' stands at the top", "put it under 'summarization:'"),
    "a section without keys": ("summarization: on\n", 1, "holds keys", "such as 'enabled: true'"),
    "a tag without its value": (section("window: !!int ''"), 1, "cannot read a value", "section"),
    "a character of no text": (section('model_name: "a\x07"'), 1, "special characters", "section"),
    "two documents": ("summarization:\n---\na: 1\n", 2, "another document", "check"),
    "no sections": ("- one\n- two\n", 1, "is made of sections", "such as 'summarization:'"),
    "an alias without end": ("summarization: &all\n  subagents: {one: *all}\n",
        1, "nested without end", "check brackets and aliases"),
    "brackets without end": ("summarization: " + "[" * 20_000,
        1, "nested without end", "check brackets and aliases"),
    "aliases that multiply": (
        section("a0: &a0 [x]", *(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 9))),
        1, "or huge", "check brackets and aliases"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_mistake_has_its_line_and_a_way_out(name, tmp_path):
    text, line, wrong, fix = BROKEN[name]
    file = written(tmp_path, text)
    done = CliRunner().invoke(app, ["config", "check", str(file)])
    assert done.exit_code == 2, done.output
    [said] = done.stderr.splitlines()
    assert f"config.yaml, line {line}: " in said
    assert wrong in said
    assert fix in said
    assert "hunter2" not in said
    assert not done.stdout


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines(tmp_path):
    lines = ("enabled: 3", "triger: x", "keep: {type: token, value: 5}", "recal: off")
    done = CliRunner().invoke(
        app, ["config", "check", str(written(tmp_path, section(*lines))), "--json"]
    )
    found = json.loads(done.stdout)
    assert (done.exit_code, found["valid"]) == (2, False)
    told = [int(one.partition("line ")[2].partition(":")[0]) for one in found["problems"]]
    assert told == [2, 3, 4, 5]


def test_a_file_that_cannot_be_read_is_told_without_a_traceback(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: there is no such file; check the path"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("summarization:\n  model_name: é\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"line 2: is not UTF-8; save the file as UTF-8"):
        load_config(latin)


@pytest.mark.parametrize(
    "piece", ["word ", "://", "a://b:c", "1_", "1:1", "{x} ", "@", "password="]
)
@pytest.mark.parametrize("key", ["summary_prompt", "archive", "window", "colour"])
def test_a_long_value_is_read_in_linear_time(key, piece, tmp_path):
    def seconds(length: int) -> float:
        file = written(tmp_path, section(f'{key}: "{piece * (length // len(piece))}"'))
        began = time.process_time()
        with contextlib.suppress(ConfigError):
            load_config(file)
        return time.process_time() - began

    with pytest.raises(ConfigError) as caught:
        load_config(written(tmp_path, section(f'window: "{piece * 9_000}"')))
    assert "window: should be" in str(caught.value)
    assert len(str(caught.value)) < 1_000
    short = min(seconds(8_000) for _ in range(3))
    assert min(seconds(64_000) for _ in range(3)) < 20 * short + 0.05


def test_what_others_write_in_their_sections_is_theirs(tmp_path):
    merged = "\n".join(f"  - &m{n} {{<<: [{f'*m{n - 1}, ' * 9}]}}" for n in range(1, 9))
    for text in ("- {name: !!int ''}", "- !theirs {x: 1}", "7", f"- &m0 {{x: 1}}\n{merged}"):
        file = tmp_path / "config.yaml"
        file.write_text(f"models:\n  {text}\nskills: [a]\nkeep: 3\ntrigger: {{on: push}}\n"
                        "enabled: 3\nsummarization:\n  window: 9\n")  # fmt: skip
        assert load_config(file).window == 9, text


def test_no_error_shows_a_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HIDDEN", "hunter2")
    keys = ("enabled", "archive", "trim_tokens_to_summarize", "on_failure", "token_counter", "keep")
    for key in (*keys, "trigger", "fallback_models", "subagents", "pin", "recall", "window"):
        file = written(tmp_path, on(f"{key}: $HIDDEN") if key not in keys[:1] else section())
        done = CliRunner().invoke(app, ["config", "check", str(file)])
        assert "hunter2" not in done.output + done.stderr, key


def test_wrong_values_do_not_matter_while_summarisation_is_off(tmp_path):
    lines = ("trigger: 7", "archive: $NO_SUCH_VARIABLE", "keep: {type: messages, value: 90}")
    file = written(tmp_path, section("enabled: 'no'", "colour: blue", *lines, "window: 900"))
    config = load_config(file)
    assert (config.enabled, config.window, config.trigger) == (False, 900, None)
    done = CliRunner().invoke(app, ["config", "check", str(file), "--json"])
    assert done.exit_code == 0
    told = "\n".join(json.loads(done.stdout)["notes"])
    for part in ("line 3: ", "line 4: ", "line 5: ", "unknown key", "NO_SUCH_VARIABLE is not set"):
        assert part in told
    with pytest.raises(ConfigError, match="line 5"):
        load_config(written(tmp_path, section("enabled: true", "colour: blue", *lines)))
    subagent = "subagents: {one: {enabled: true, trigger: 3}}"
    with pytest.raises(ConfigError, match=r"subagents\.one\.trigger"):
        load_config(written(tmp_path, section("enabled: false", subagent)))


def test_the_text_of_a_file_is_shown_as_it_stands(tmp_path):
    file = written(tmp_path, textwrap.dedent(section("enabled: 'maybe'")))
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert str(caught.value).startswith(f"{file}, line 2: summarization.enabled: should be a valid")
    assert caught.value.problems == (str(caught.value),)
