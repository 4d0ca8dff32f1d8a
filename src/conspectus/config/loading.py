"""`load_config`: check a whole file; each mistake has its line and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conspectus._core.stale import OF_A_TOOL, SETTINGS
from conspectus.archive import without_password
from conspectus.config.reading import read_text, read_yaml
from conspectus.config.schema import KEYS, SUBAGENT_KEYS, SummarizationConfig
from conspectus.config.source import SECTION, Path_, Read, Secret
from conspectus.config.values import LONGEST
from conspectus.config.words import meant, nearest
from conspectus.errors import ConfigError

SIZE = "{type: tokens, value: 6000}"
FORMS = {
    "enabled": "true or false",
    "model_name": "the name of a model, or null",
    "trigger": f"such as {SIZE}, a list of these, or {{tokens: 4000, messages: 10}}",
    "keep": "such as {type: messages, value: 20}",
    "type": "tokens, messages or fraction",
    "value": "a number",
    "tokens": "a whole number above 0",
    "messages": "a whole number above 0",
    "fraction": "a number above 0 and at most 1",
    "trim_tokens_to_summarize": "a whole number of tokens above 0, or null for no limit",
    "summary_prompt": "a text with {messages} in it, or null",
    "skill_file_read_tool_names": "a list of names of tools, such as [read_file]",
    "skills_path": "the path of a folder, or null",
    "token_counter": "tiktoken:o200k_base, tokenizers:FILE, package.module:function, or null",
    "notes": "true or false",
    "max_summary_tokens": "a whole number of at least 64 tokens, or null",
    "summarizer_timeout": f"seconds above 0 and at most {LONGEST:,}, or null",
    "fallback_models": "a list of names of models, such as [gpt-4o-mini]",
    "recall_tokens": "a whole number of at least 64 tokens",
    "redact": "true, false, secrets, or package.module:function",
    "pin": "the name of a marker, package.module:function, or null",
    "window": "a whole number of tokens above 0, or null",
    "reserved_tokens": "a whole number of tokens, 0 or more",
    "least_gain": "a share of the history, 0 or more and less than 1",
    "background": "true, false, or {prepare: 0.7}",
    "stale_results": "true, false, or a mapping such as {newest: 3, least: 2000}",
    "over": "a whole number of at least 201 tokens",
    "newest": "a whole number of results, 0 or more",
    "least": "a whole number of tokens above 0, or null",
    "tools": "a list of names of tools, a mapping from them to settings, or null",
    "exclude": "a list of names of tools",
    "prepare": "a share of the trigger above 0 and at most 1",
    "file_tokens": "a whole number of tokens above 0, or null",
    "archive": "sqlite:///FILE, postgresql://..., memory:, or null",
    "subagents": "a mapping from names of subagents to their settings",
}
"""The allowed values of each key in words, but for those that pydantic's own error lists."""

OF_ALTERNATIVES = frozenset({"bool_type", "list_type"})
"""Pydantic's errors of a mapping that stands where `true` or a list may stand, too."""

SHOWN = 60  # Characters of a wrong value that are shown


def load_config(path: str | Path) -> SummarizationConfig:
    """Read the `summarization:` section of a YAML file, and check all of it.

    Without the section nothing is summarised. Values such as `$ARCHIVE_URL` are those of
    environment variables. Other sections are ignored, except `skills.container_path` and the
    windows in `models`.

    Raises:
        ConfigError: it cannot be read, or is invalid; each mistake with its line.

    Example:
        >>> made = Path("config.yaml").write_text('''
        ... summarization:
        ...   enabled: true
        ...   trigger: {type: tokens, value: 6000}
        ... ''')
        >>> load_config("config.yaml").clauses[0].value
        6000
    """
    file = Path(path).expanduser()
    return config_of(file, read_text(file))


def config_of(file: Path, text: bytes) -> SummarizationConfig:
    read = read_yaml(file, text)
    section = read.section
    if section is None:
        section = {}
    if not isinstance(section, Mapping):
        line = read.source.problem((), f"'{SECTION}' holds keys such as 'enabled: true', each on")
        raise ConfigError((f"{line} a line of its own, two spaces further in",))
    try:
        config = SummarizationConfig.model_validate(section)
    except ValidationError as error:
        raise ConfigError(tuple(_told(error, section, read))) from None
    config._read = read
    return config


def _told(error: ValidationError, section: Mapping[str, Any], read: Read) -> Iterable[str]:
    """List each mistake once, in the order of the lines."""
    found: list[tuple[int, str]] = []
    errors = error.errors(include_url=False, include_input=False)
    places = [_path(one["loc"], section) for one in errors]
    for one, where in zip(errors, places, strict=True):
        if one["type"] == "contradictions":
            told = [(tuple(path), text) for path, text in one["ctx"]["found"]]
        elif one["type"] in OF_ALTERNATIVES and any(_inside(place, where) for place in places):
            continue  # the value may be a mapping; what is wrong is inside it
        else:
            told = [_in_words(where, one, section)]
        for path, text in told:
            line = read.source.line(path) or 0
            named = ".".join(map(str, (SECTION, *path)))
            found.append((line, read.source.problem(path, f"{named}: {text}")))
    return dict.fromkeys(text for _, text in sorted(found, key=lambda one: one[0]))


def _inside(place: Path_, where: Path_) -> bool:
    return len(place) > len(where) and place[: len(where)] == where


def _path(loc: Sequence[str | int], section: Any) -> Path_:
    """Return the place of a mistake, without pydantic's names of alternatives."""
    where: list[str | int] = []
    value = section
    for step in loc:
        if isinstance(value, Mapping) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            continue
        where.append(step)
    return tuple(where)


def _at(section: Any, where: Path_) -> Any:
    for step in where:
        section = section[step]
    return section


def _in_words(where: Path_, error: Any, section: Any) -> tuple[Path_, str]:
    """Describe one mistake: its place, its cause and its remedy."""
    kind, loc = error["type"], error["loc"]
    if kind == "extra_forbidden":
        known = _known(where, section)
        return where, f"unknown key; {_meant_key(str(where[-1]), known, where)}"
    if kind == "missing":
        key = str(loc[-1])
        return where, f"'{key}' is missing; add '{key}: ...' ({FORMS.get(key, 'a value')})"
    if kind == "conspectus":
        return where, error["msg"]
    key = next((str(step) for step in reversed(where) if isinstance(step, str)), "")
    listed = isinstance(where[-1], int) if where else False
    choices = error["ctx"]["expected"].replace("'", "") if kind == "literal_error" else ""
    other = choices or ("a mapping of settings" if "subagents" in where else "another value")
    form = FORMS.get(key, other)
    if key.startswith("preserve_recent_skill"):
        form = "left out, as it has no effect"
    if listed and key in ("fallback_models", "skill_file_read_tool_names"):
        form = f"a name ({form})"
    value = _at(section, where)
    said = f"must be {form}, not {_shown(value)}"
    if isinstance(value, str) and choices:
        near = nearest(value, re.split(", | or ", choices))
        said += f"; did you mean '{near}'?" if near else ""
    elif isinstance(value, str) and not isinstance(value, Secret) and _is_number(value):
        said += f"; write it as {_plainly(value)}, without quotes"
    return where, said


def _known(where: Path_, section: Any) -> tuple[str, ...]:
    """List the keys that are allowed in place of an unknown one."""
    if len(where) == 1:
        return KEYS
    if where[0] == "subagents" and len(where) == 3:
        return SUBAGENT_KEYS
    if "background" in where:
        return ("prepare",)
    if "stale_results" in where:
        return OF_A_TOOL if "tools" in where else SETTINGS
    beside = _at(section, where[:-1])
    if "keep" not in where and not {"type", "value"} & set(beside):
        return ("tokens", "messages", "fraction")
    return ("type", "value")


def _meant_key(key: str, known: tuple[str, ...], where: Path_) -> str:
    if where[0] == "subagents" and key in ("archive", "subagents"):
        return "it is set once, for all agents; leave it out here"
    if key in KEYS and known not in (KEYS, SUBAGENT_KEYS):
        holder = next(step for step in reversed(where[:-1]) if isinstance(step, str))
        takes = f"'{holder}' takes {', '.join(known)}"
        return f"it is no part of '{holder}'; indent it as far as '{holder}' is; {takes}"
    if key == "summarizer" and "model_name" in known:
        return "did you mean 'model_name'?"
    return meant(key, known)


def _shown(value: Any) -> str:
    """Shorten a wrong value for a message, and hide secrets."""
    if isinstance(value, Secret):
        return f"what {value.shown} holds"
    if isinstance(value, (Mapping, list)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    # Hide a password before cutting, which could make it unrecognisable.
    text = repr(without_password(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("true", "false")
    return True


def _plainly(text: str) -> str:
    """Write a number in YAML's form; YAML reads `1e4` as a text."""
    if text in ("true", "false"):
        return text
    value = float(text)
    return str(int(value)) if value.is_integer() else text.strip()
