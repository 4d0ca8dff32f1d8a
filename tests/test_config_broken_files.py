"""Broken files: each error names the file, the line, what is wrong and what to write instead."""

import json
import textwrap
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from conspectus.cli.app import app
from conspectus.config import ConfigError, load_config


def section(*lines: str) -> str:
    return "\n".join(["summarization:", *(f"  {line}" for line in lines)]) + "\n"


def on(*lines: str) -> str:
    """Return a section that is valid but for these lines, from line 4 on."""
    return section("enabled: true", "trigger: {type: tokens, value: 4000}", *lines)


# What is in the file; the line of the mistake; words that name it; words that say what to do.
BROKEN: dict[str, tuple[str, int, str, str]] = {
    "a key misspelt": (
        section("enabled: true", "triger: {type: tokens, value: 4000}",
            "trigger: {type: tokens, value: 4000}"),
        3, "unknown key", "did you mean 'trigger'?"),
    "a key in another style": (on("maxSummaryTokens: 900"),
        4, "unknown key", "did you mean 'max_summary_tokens'?"),
    "a key that is like none": (on("colour: blue"),
        4, "unknown key", "known are enabled, model_name, trigger"),
    "a key by another name": (on("summarizer: embedded"),
        4, "unknown key", "did you mean 'model_name'?"),
    "no trigger": (section("enabled: true", "keep: {type: messages, value: 20}"),
        2, "enabled without a trigger", "add 'trigger: {type: tokens, value: 6000}'"),
    "an empty list of triggers": (section("enabled: true", "trigger: []"),
        3, "enabled without a trigger", "add 'trigger:"),
    "a misspelt type": (
        section("enabled: true", "trigger:", "  - type: tokens", "    value: 4000",
            "  - type: mesages", "    value: 50"),
        6, "not 'mesages'", "did you mean 'messages'?"),
    "a misspelt condition": (section("enabled: true", "trigger: {tokns: 4000}"),
        3, "unknown key", "did you mean 'tokens'?"),
    "a value that is missing": (section("enabled: true", "trigger:", "  type: tokens"),
        3, "'value' is missing", "add 'value: ...'"),
    "a share instead of tokens": (
        section("enabled: true", "trigger:", "  type: tokens", "  value: 0.8"),
        5, "whole number", "did you mean 'type: fraction'?"),
    "a percentage": (section("enabled: true", "trigger:", "  type: fraction", "  value: 80"),
        5, "above 0 and at most 1", "did you mean 0.8?"),
    "a bare number": (section("enabled: true", "trigger: 4000"),
        3, "not 4000", "such as {type: tokens, value: 6000}"),
    "nothing kept": (
        section("enabled: true", "trigger: {type: messages, value: 50}",
            "keep: {type: messages, value: 0}"),
        4, "not 0", "above 0"),
    "more kept than the trigger": (
        section("enabled: true", "trigger: {type: messages, value: 20}", "keep:",
            "  type: messages", "  value: 25"),
        4, "25 messages can never get below the trigger", "lower keep, or raise the trigger"),
    "fewer than the 20 messages that are kept where the file does not say": (
        section("enabled: true", "trigger: {type: messages, value: 15}"),
        3, "20 messages, which is the default of keep", "write a lower keep"),
    "a key indented too far": (
        on("keep:", "  type: messages", "  value: 10", "  trim_tokens_to_summarize: 15564"),
        7, "unknown key", "it is no part of 'keep'; indent it as far as 'keep' is"),
    "a truth value in quotes": (section('enabled: "true"', "trigger: {type: tokens, value: 4000}"),
        2, "true or false", "write it as true, without quotes"),
    "a number in quotes": (on('trim_tokens_to_summarize: "4000"'),
        4, "whole number", "write it as 4000, without quotes"),
    "no reading at all": (on("trim_tokens_to_summarize: 0"), 4, "not 0", "or null for no limit"),
    "a tab": (
        """
        summarization:
        \tenabled: true
        """, 2, "tab", "use spaces"),
    "malformed indentation": (
        section("enabled: true", "keep:", "    type: messages", "  value: 20"),
        5, "malformed YAML", "check the indentation"),
    "a bracket that is left open": (
        section("enabled: true", "fallback_models: [one, two",
            "trigger: {type: tokens, value: 4000}"),
        4, "malformed YAML", "brackets"),
    "a key twice": (on("enabled: false"), 4, "'enabled' is there twice", "first in line 2"),
    "the section misspelt": (
        """
        models: []
        summarisation:
          enabled: true
        """, 2, "unknown section", "did you mean 'summarization'?"),
    "keys without their section": (
        """
        trigger:
          type: tokens
          value: 4000
        """, 1, "stands at the top", "put it under 'summarization:'"),
    "a section without keys": (
        """
        summarization: on
        """, 1, "holds keys", "such as 'enabled: true'"),
    "a variable that is not set": (on("archive: $CONSPECTUS_NO_SUCH_VARIABLE"),
        4, "CONSPECTUS_NO_SUCH_VARIABLE is not set", "set it, or write the value"),
    "an archive of no known kind": (on("archive: mysql://ann:hunter2@db/x"),
        4, "'mysql://...' names no archive", "write sqlite:///FILE"),
    "a variable inside of an address": (on("archive: postgresql://ann:${PASSWORD}@db/x"),
        4, "stands for a whole value", "put the whole address into one"),
    "a number in a form of its own": (
        section("enabled: true", "trigger:", "  type: tokens", "  value: 4e3"),
        5, "not '4e3'", "write it as 4000"),
    "a prompt without messages": (on("summary_prompt: |", "  Say what matters."),
        4, "summary_prompt must be a text", "with {messages} where the messages are to go"),
    "a counter of no known form": (on("token_counter: gpt4"),
        4, "'gpt4' names no counter", "write tiktoken:o200k_base"),
    "a counter that cannot be imported": (on("token_counter: no_such_package.tokens:count"),
        4, "cannot be imported", "installed or on PYTHONPATH"),
    "a vocabulary file that is missing": (on("token_counter: tokenizers:no-such-tokenizer.json"),
        4, "there is no file", "tokenizers:path/to/tokenizer.json"),
    "no word for a failure": (on("on_failure: degrad"),
        4, "not 'degrad'", "did you mean 'degrade'?"),
    "a recall that is on": (on("recall: on"), 4, "not true", "off, tool or auto"),
    "a trigger above the window": (
        section("enabled: true", "window: 8000", "trigger:", "  - {type: fraction, value: 0.9}",
            "  - {type: tokens, value: 9000}"),
        6, "never reached in a window of 8,000", "lower it, or use a fraction"),
    "a window with nothing left": (
        section("enabled: true", "trigger: {type: fraction, value: 0.9}", "window: 8000",
            "reserved_tokens: 8000"),
        5, "leaves nothing of the window", "lower it"),
    "a summary as large as the trigger": (
        section("enabled: true", "trigger: {type: tokens, value: 1000}",
            "max_summary_tokens: 1000"),
        4, "alone reaches the trigger", "lower it"),
    "a share of the trigger above 1": (on("background: {prepare: 1.5}"),
        4, "background.prepare: must be a share of the trigger", "above 0 and at most 1"),
    "a key of background misspelt": (on("background: {prepar: 0.5}"),
        4, "background.prepar: unknown key", "did you mean 'prepare'?"),
    "a setting of stale results below its least": (on("stale_results: {over: 100}"),
        4, "stale_results.over: must be", "at least 201 tokens"),
    "a setting of one tool misspelt": (on("stale_results: {tools: {read: {ovr: 400}}}"),
        4, "stale_results.tools.read.ovr: unknown key", "did you mean 'over'?"),
    "a fallback that has failed already": (
        section("enabled: true", "model_name: small", "fallback_models:", "  - large", "  - small",
            "trigger: {type: tokens, value: 4000}"),
        6, "'small' has been tried before", "name another model"),
    "a subagent's own mistake": (
        section("enabled: true", "trigger: {type: messages, value: 50}", "subagents:",
            "  researcher:", "    keep: {type: messages, value: 60}"),
        6, "60 messages can never get below", "lower keep"),
    "a subagent's own archive": (section("subagents:", "  researcher:", '    archive: "memory:"'),
        4, "unknown key", "set once, for all agents"),
    "subagents as a list": (section("subagents: [researcher]"),
        2, "not a list", "a mapping from names of subagents"),
    "a key that is a list": (section("? [enabled, trigger]", ": true"),
        2, "a key must be", "a plain word"),
    "a tag that the value does not bear": (section("window: !!int ''"),
        2, "YAML does not know this value", "write a text, a number"),
    "a number with a nought before it": (section("window: 010000"),
        2, "YAML reads 010000 as 4096", "write it as a plain number"),
    "a number with a colon in it": (section("window: 12:30"),
        2, "YAML reads 12:30 as 750", "write it as a plain number"),
    "a number larger than any window": (
        """
        summarization:
          trigger: {type: fraction, value: %s}
        """ % ("9" * 400), 2, "a number above 1,000,000,000,000", "more than anything has"),
    "a time without an end": (section("summarizer_timeout: .inf"),
        2, "not inf", "seconds above 0 and at most 86,400, or null"),
    "keys of a section that are not indented": (
        """
        summarization:
        enabled: true
        trigger: {type: tokens, value: 6000}
        """, 2, "'enabled' stands at the top of the file", "put it under 'summarization:'"),
    "keys that spaces which do not break indent": (
        """
        summarization:
        \u00a0\u00a0enabled: true
        """, 2, "'enabled' stands at the top of the file", "two spaces further in"),
    "one key of the section that is not indented": (
        """
        summarization:
          enabled: true
          trigger: {type: tokens, value: 6000}
        keep: {type: messages, value: 5}
        """, 4, "'keep' stands at the top of the file", "put it under 'summarization:'"),
    "a letter that only looks right": (
        """
        summarization:
          wind\u043ew: 3
        """, 2, "did you mean 'window'?", "It has U+043E in it"),
    "a character of no text": (
        """
        summarization:
          model_name: "a\x07"
        """, 2, "YAML takes no character U+0007", "delete it"),
    "two documents": (
        """
        summarization:
          enabled: false
        ---
        summarization:
        """, 3, "a configuration is one document", "take out this '---'"),
    "a key of the section in a subagent's trigger": (
        section("subagents:", "  researcher:", "    trigger: {type: tokens, value: 4000, keep: 3}"),
        4, "no part of 'trigger'", "indent it as far as 'trigger' is"),
    "an old key with a wrong value": (section("preserve_recent_skill_count: many"),
        2, "has no effect", "must be left out"),
    "a bare variable inside of an address": (section("archive: sqlite:///$HOME/archive.db"),
        2, "a variable stands for a whole value", "put the whole address into one"),
    "a trigger that the reserve leaves no room for": (
        section("enabled: true", "trigger: {type: tokens, value: 6000}", "window: 7000",
            "reserved_tokens: 3000"),
        3, "never reached in a window of 7,000 tokens less 3,000 reserved", "lower it"),
    "a password in a place for something else": (
        section(
            "history: postgresql://ann:hunter2-and-so-on-and-on-and-on-and-on-and-on-and-on@db/x"),
        2, "postgresql://ann:***@db/x", "replace or preserve"),
    "a password as a key": (section("postgresql://ann:hunter2@db/x: 1"),
        2, "postgresql://ann:***@db/x", "known are enabled"),
    "a password of a counter": (section("token_counter: postgresql://ann:hunter2@db/x"),
        2, "names no counter", "write tiktoken"),
    "an alias without an end": (
        """
        summarization: &all
          subagents:
            one: *all
        """, 3, "aliases make this endless", "write it out"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_mistake_has_its_line_and_a_way_out(name, tmp_path):
    text, line, wrong, fix = BROKEN[name]
    file = tmp_path / "config.yaml"
    file.write_text(textwrap.dedent(text).lstrip("\n").replace("\\t", "\t"), encoding="utf-8")
    done = CliRunner().invoke(app, ["config", "check", str(file)])
    assert done.exit_code == 2
    [said] = done.stderr.splitlines()
    assert f"config.yaml, line {line}: " in said
    assert wrong in said
    assert fix in said
    assert "hunter2" not in said
    assert not done.stdout


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "summarization:\n  enabled: 3\n  triger: x\n  keep: {type: token, value: 5}\n  recal: off\n"
    )
    done = CliRunner().invoke(app, ["config", "check", str(file), "--json"])
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert found["valid"] is False
    lines = [int(one.partition("line ")[2].partition(":")[0]) for one in found["problems"]]
    assert lines == [2, 3, 4, 5]
    assert len(done.stderr.splitlines()) == 4


@pytest.mark.parametrize(
    "line",
    ["background: {prepare: 2}", "stale_results: {over: 1}", "stale_results: {tools: {a: {b: 1}}}"],
)
def test_a_mistake_inside_a_mapping_is_told_once(line, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(on(line), encoding="utf-8")
    with pytest.raises(ConfigError) as told:
        load_config(file)
    assert len(told.value.problems) == 1


def test_a_file_that_is_none_is_told_without_a_traceback(tmp_path):
    missing = tmp_path / "none.yaml"
    with pytest.raises(ConfigError, match=r"none\.yaml: there is no such file; check the path"):
        load_config(missing)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("summarization:\n  model_name: é\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"line 2: is not UTF-8; save the file as UTF-8"):
        load_config(tmp_path / "latin.yaml")
    (tmp_path / "large.yaml").write_text("# " + "x" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than 1,000,000 bytes"):
        load_config(tmp_path / "large.yaml")
    (tmp_path / "list.yaml").write_text("- one\n- two\n")
    with pytest.raises(ConfigError, match=r"line 1: a configuration is made of sections"):
        load_config(tmp_path / "list.yaml")
    (tmp_path / "two.yaml").write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(ConfigError, match=r"line 2: "):
        load_config(tmp_path / "two.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "summarization: " + "[" * 20_000 + "]" * 20_000,
        "summarization: " + "{a: " * 20_000 + "1" + "}" * 20_000,
        "summarization:\n  " + "- " * 20_000 + "x",
        "a: " + "[" * 20_000,
    ],
    ids=["lists", "mappings", "dashes", "open"],
)
def test_a_file_that_is_nested_without_end_is_refused_before_it_is_scanned(
    tmp_path, text, monkeypatch
):
    scanned: list[int] = []
    fetch = yaml.scanner.Scanner.fetch_more_tokens

    def counted(self: Any) -> Any:
        scanned.append(1)
        return fetch(self)

    monkeypatch.setattr(yaml.scanner.Scanner, "fetch_more_tokens", counted)
    file = tmp_path / "deep.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"line [12]: is nested deeper than 100 levels"):
        load_config(file)
    assert len(scanned) < 500  # the scanner's time is the square of the depth


def test_aliases_cannot_make_more_of_a_file_than_memory_has(tmp_path):
    file = tmp_path / "config.yaml"
    levels = [f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    file.write_text("summarization:\n  l0: &l0 [x]\n" + "\n".join(levels) + "\n")
    with pytest.raises(ConfigError, match="huge"):
        load_config(file)


@pytest.mark.parametrize("section", ["summarization", "models"])
def test_merges_cannot_make_more_of_a_file_than_memory_has(section, tmp_path):
    file = tmp_path / "config.yaml"
    levels = [f"l{n}: &l{n} {{<<: [{', '.join([f'*l{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    text = "\n".join(["l0: &l0 {x: 1}", *levels, f"{section}:", "  <<: *l11", ""])
    file.write_text(text)
    if section == "models":
        assert not load_config(file).enabled
        return
    with pytest.raises(ConfigError, match="line 14: aliases make this endless, or huge"):
        load_config(file)


def test_what_others_write_in_their_sections_is_theirs(tmp_path):
    file = tmp_path / "config.yaml"
    for text in ("name: !!int ''", "name: !!bool maybe", "name: !!timestamp never", "[a]: 1"):
        file.write_text(
            f"models:\n  - {{{text}}}\nkeep: 3\ntrigger: {{on: push}}\n"
            "summarization:\n  window: 9\n"
        )
        assert load_config(file).window == 9


def test_no_error_shows_a_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HIDDEN", "hunter2")
    file = tmp_path / "config.yaml"
    keys = ("enabled", "archive", "trim_tokens_to_summarize", "on_failure", "token_counter", "keep")
    for key in (*keys, "trigger", "fallback_models", "subagents", "pin", "recall", "window"):
        file.write_text(f"summarization:\n  {key}: $HIDDEN\n")
        done = CliRunner().invoke(app, ["config", "check", str(file)])
        assert "hunter2" not in done.output + done.stderr, key
