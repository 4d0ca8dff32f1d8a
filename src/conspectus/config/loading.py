"""`load_config`: check a whole file; each mistake is one sentence with its line and a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conspectus.config.reading import SECTION, Location, Source, read_section, read_text
from conspectus.config.schema import EARLIER, Size, SubagentSettings, SummarizationConfig
from conspectus.errors import ConfigError, did_you_mean

OFF = ("false", "no", "off", "n", "f", "0")  # Values of `enabled`, as pydantic reads them
OURS = ("trigger", "keep", "trim_tokens_to_summarize", "summary_prompt")
"""Keys that are no names of other sections."""


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
    return config_of(file, read_text(file))


def config_of(file: Path, text: bytes) -> SummarizationConfig:
    """Read the section of a file that holds these bytes; see `load_config`."""
    section, source = read_section(file, text)
    section = {} if section is None else section
    _check_sections(section, source)
    problems, config = dict(source.missing), None
    while config is None:
        listed = sorted(problems.items(), key=lambda one: source.line(one[0]))
        told = tuple(source.problem(where, what) for where, what in listed)
        if told and not _is_off(section):
            raise ConfigError(told)
        wrong = {where[0] for where in problems}
        try:
            sound = {key: value for key, value in section.items() if key not in wrong}
            config = SummarizationConfig.model_validate(sound)
        except ValidationError as error:
            problems |= _sentences(error, section, source)
    config._source = replace(source, notes=told)
    for one in config.subagents.values():
        one._source = config._source
    return config


def _is_off(section: Mapping[str, Any]) -> bool:
    """Tell whether all summarisation is switched off, so that nothing else counts."""
    agents = _mapping(section.get("subagents")).values()
    on = any(_mapping(one).get("enabled") for one in agents)
    return str(section.get("enabled")).lower() in OFF and not on


def _check_sections(section: Any, source: Source) -> None:
    """Refuse a section of another form, one that is misspelt, and keys outside of it."""
    if not isinstance(section, dict):
        text = f"'{SECTION}' holds keys such as 'enabled: true', each on a line of its own, two"
        raise source.error((), f"{text} spaces further in")
    wanted = OURS if SECTION not in source.names else SummarizationConfig.model_fields
    for name, line in source.names.items():
        key = name.strip()  # a no-break space looks like indentation, and is a part of the key
        where, sized = f"{source.file}, line {line}: ", source.sections.get(key)
        if SECTION not in source.names and (meant := did_you_mean(name, [SECTION])):
            raise ConfigError((f"{where}unknown section '{name}';{meant}",))
        if (not section and key in wanted) or (key in OURS and "type" in _mapping(sized)):
            text = f"'{key}' stands at the top of the file; put it under '{SECTION}:', two spaces"
            raise ConfigError((f"{where}{text} further in",))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sentences(
    error: ValidationError, section: Mapping[str, Any], source: Source
) -> dict[Location, str]:
    """Describe the mistakes, one for each location."""
    found: dict[Location, str] = {}
    for one in error.errors(include_url=False, include_input=False):
        listed = one["ctx"]["all"] if one["type"] == "contradictions" else [(one["loc"], None)]
        for loc, text in listed:
            value: Any = section
            at: Location = ()
            for step in loc:  # steps that are not there are pydantic's names of alternatives
                known: Any = range(len(value)) if isinstance(value, list) else value
                if isinstance(value, (list, dict)) and step in known:
                    value, at = value[step], (*at, step)  # type: ignore[index]
            text = text or _sentence(one, at, value, source)
            found.setdefault(at, f"{'.'.join(map(str, (SECTION, *at)))}: {text}")
    inner = {at[:end] for at in found for end in range(len(at))}
    return {at: text for at, text in found.items() if at not in inner}


def _sentence(error: Any, where: Location, value: Any, source: Source) -> str:
    """Say what is wrong with a value, and what to write."""
    kind, last, text = error["type"], str(error["loc"][-1]), str(error["msg"])
    choices = re.findall(r"'(\w+)'", error["ctx"]["expected"]) if kind == "literal_error" else []
    within = where[2:] if where[0] == "subagents" and len(where) > 2 else where
    fields: Any = SummarizationConfig if within is where else SubagentSettings
    if kind == "missing":
        return f"'{last}' is missing; add '{last}: ...' ({Size.model_fields[last].description})"
    if kind == "value_error":
        return text.removeprefix("Value error, ")
    if kind == "extra_forbidden" or last == "[key]":
        outer = [key for key, one in fields.model_fields.items() if one.description != EARLIER]
        name = str(where[-1])
        if len(within) > 1 and name in outer:
            text = f"unknown key; it is no part of '{within[-2]}'; indent it as far as"
            return f"{text} '{within[0]}' is"
        known = outer if len(within) == 1 else choices or list(Size.model_fields)
        return f"unknown key;{did_you_mean(name, known) or ' known are ' + ', '.join(known)}"
    text = re.sub("Input should|, unable.*", "", text).strip()
    text = re.sub("a valid dictionary.*", "a mapping", text)
    model = Size if len(within) > 1 and within[-1] in Size.model_fields else fields
    about = model.model_fields[str(within[-1] if model is Size else within[0])].description or ""
    about = " ".join(about.split())
    near = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"should {text}, not {source.shown(value)}{';' + near if near else ''} ({about})"
