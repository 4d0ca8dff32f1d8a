"""`load_config`: check a whole file; each mistake is one sentence with its line and a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conspectus.config.reading import SECTION, Location, Source, read_section
from conspectus.config.schema import (
    Size,
    SubagentSettings,
    SummarizationConfig,
    contradictions,
)
from conspectus.errors import ConfigError, did_you_mean

OFF = ("false", "no", "off", "n", "f", "0")  # values of `enabled`, as pydantic reads them
EARLIER = "preserve_recent_skill_"  # keys of earlier versions of DeerFlow, without effect
OURS = ("trigger", "keep", "trim_tokens_to_summarize", "summary_prompt")  # no names of sections

FIELDS = {**SummarizationConfig.model_fields, **Size.model_fields}

TRUTH, NUMBER, WHOLE = "true or false", "a number such as 0.5", "a whole number such as 8000"
MAPPING = "a mapping such as {{key: value}}"
WORDS = {
    "bool_parsing": TRUTH,
    "bool_type": TRUTH,
    "dict_type": MAPPING,
    "float_parsing": NUMBER,
    "float_type": NUMBER,
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:,}",
    "int_from_float": WHOLE,
    "int_parsing": WHOLE,
    "int_type": WHOLE,
    "less_than_equal": "at most {le:,}",
    "list_type": "a list such as [first, second]",
    "literal_error": "{expected}",
    "model_type": MAPPING,
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
}
"""What a value should be, by pydantic's name for it."""


def load_config(path: str | Path) -> SummarizationConfig:
    """Read the `summarization:` section of a YAML file, and check all of it.

    Without the section nothing is summarised. Values such as `$ARCHIVE_URL` are those of
    environment variables. Other sections are ignored, except `skills.container_path` and `models`.
    With `enabled: false` wrong values are left out; `config.source.notes` lists them.

    Raises:
        ConfigError: it cannot be read, or is invalid; each mistake with its line.

    Example:
        >>> made = Path("config.yaml").write_text('''
        ... summarization:
        ...   enabled: true
        ...   trigger: {type: tokens, value: 6000}
        ... ''')
        >>> load_config("config.yaml").conditions
        [{'tokens': 6000}]
    """
    file = Path(path).expanduser()
    section, source = read_section(file)
    section = {} if section is None else section
    _check_sections(section, source)
    section = {key: value for key, value in section.items() if not key.startswith(EARLIER)}
    context, problems = {"folder": file.absolute().parent}, dict(source.missing)
    try:
        config = SummarizationConfig.model_validate(section, context=context)
        problems = _clashes(config) | problems
    except ValidationError as error:
        problems = sentences(error, section, source) | problems
    listed = sorted(problems.items(), key=lambda problem: source.line(problem[0]))
    notes = tuple(
        source.problem(at, f"{'.'.join(map(str, (SECTION, *at)))}: {text}") for at, text in listed
    )
    if problems:
        agents = _mapping(section.get("subagents")).values()
        on = any(_mapping(agent).get("enabled") for agent in agents)
        if on or str(section.get("enabled")).lower() not in OFF:
            raise ConfigError(notes)
        wrong = {at[0] for at in problems}
        sound = {key: value for key, value in section.items() if key not in wrong}
        config = SummarizationConfig.model_validate(sound, context=context)
    for part in (config, *config.subagents.values()):
        part._source = replace(source, notes=notes)
    return config


def _clashes(config: SummarizationConfig) -> dict[Location, str]:
    """Find what contradicts itself, in the main agent's settings, then in each subagent's."""
    problems = dict(contradictions(config))
    for name in config.subagents:
        for at, text in contradictions(config.for_subagent(name)):
            if text not in problems.values():
                problems["subagents", name, *at] = text
    return problems


def _check_sections(section: Any, source: Source) -> None:
    """Refuse a section of another form, one that is misspelt, and keys outside of it."""
    if not isinstance(section, dict):
        text = f"'{SECTION}' holds keys such as 'enabled: true', each on a line of its own, two"
        raise source.error((), f"{text} spaces further in")
    missing = SECTION not in source.names
    wanted = OURS if missing else SummarizationConfig.model_fields
    for name, line in source.names.items():
        key = name.strip()  # a no-break space looks like indentation, and is a part of the key
        meant = did_you_mean(name, [SECTION]) if missing else ""
        sized = key in OURS and "type" in _mapping(source.sections.get(key))
        text = f"unknown section '{name}';{meant}" if meant else ""
        if sized or (not section and key in wanted):
            text = f"'{key}' stands at the top of the file; put it under '{SECTION}:', two spaces "
            text += "further in"
        if text:
            raise ConfigError((f"{source.file}, line {line}: {text}",))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def sentences(
    error: ValidationError, section: Mapping[str, Any], source: Source
) -> dict[Location, str]:
    """Say for each wrong place what is wrong there, and what to write."""
    problems: dict[Location, str] = {}
    for mistake in error.errors(include_url=False, include_input=False):
        value: Any = section
        at: Location = ()
        for step in mistake["loc"]:  # steps that are not there are pydantic's names of alternatives
            known: Any = range(len(value)) if isinstance(value, list) else value
            if isinstance(value, (list, dict)) and step in known:
                value, at = value[step], (*at, step)  # type: ignore[index]
        value = at[-1] if mistake["loc"][-1:] == ("[key]",) else value
        problems.setdefault(at, source.hidden(_sentence(mistake, at, source.quoted(value))))
    inner = {at[:end] for at in problems for end in range(len(at))}
    return {at: text for at, text in problems.items() if at not in inner}


def _sentence(mistake: Any, at: Location, value: str) -> str:
    kind, loc, text = mistake["type"], mistake["loc"], mistake["msg"]
    if kind == "value_error":
        return str(text.removeprefix("Value error, "))
    if kind == "extra_forbidden":
        is_subagents = at[0] == "subagents" and len(at) > 2
        model = SubagentSettings if is_subagents else SummarizationConfig
        fields = Size.model_fields if len(at) > 1 + 2 * is_subagents else model.model_fields
        return f"unknown key;{did_you_mean(loc[-1], fields) or ' known are ' + ', '.join(fields)}"
    name = next(step for step in reversed(loc) if step in FIELDS)
    about = " ".join(str(FIELDS[name].description).split())
    if kind == "missing":
        return f"'{name}' is missing; add '{name}: ...' ({about})"
    if kind not in WORDS:
        return f"{value} does not suit ({text}); write another value ({about})"
    wanted = WORDS[kind].format(**mistake.get("ctx", {}))
    return f"should be {wanted}, not {value} ({about})"
