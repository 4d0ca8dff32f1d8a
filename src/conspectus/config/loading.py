"""`load_config`: check a whole file; each mistake is one sentence with its line and a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conspectus.config.reading import SECTION, Location, Source, read_section
from conspectus.config.schema import Size, SubagentSettings, SummarizationConfig
from conspectus.errors import ConfigError, did_you_mean

OFF = ("false", "no", "off", "n", "f", "0")  # values of `enabled`, as pydantic reads them
EARLIER = "preserve_recent_skill_"  # keys of earlier versions of DeerFlow, without effect
UNKNOWN = "extra_forbidden"  # pydantic's name for a key that is not known
OURS = ("trigger", "keep", "trim_tokens_to_summarize", "summary_prompt")  # no names of sections


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
    except ValidationError as error:
        problems = _sentences(error, section, source) | problems
    listed = sorted(problems.items(), key=lambda one: source.line(one[0]))
    notes = tuple(source.problem(where, what) for where, what in listed)
    if problems:
        agents = _mapping(section.get("subagents")).values()
        on = any(_mapping(one).get("enabled") for one in agents)
        if on or str(section.get("enabled")).lower() not in OFF:
            raise ConfigError(notes)
        wrong = {where[0] for where in problems}
        sound = {key: value for key, value in section.items() if key not in wrong}
        config = SummarizationConfig.model_validate(sound, context=context)
    for one in (config, *config.subagents.values()):
        one._source = replace(source, notes=notes)
    return config


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


def _sentences(
    error: ValidationError, section: Mapping[str, Any], source: Source
) -> dict[Location, str]:
    """Describe the mistakes, one for each location."""
    sentences: dict[Location, str] = {}
    for one in error.errors(include_url=False, include_input=False):
        listed = one["ctx"]["all"] if one["type"] == "contradictions" else [(one["loc"], None)]
        for loc, text in listed:
            value: Any = section
            at: Location = ()
            for step in loc:  # steps that are not there are pydantic's names of alternatives
                known: Any = range(len(value)) if isinstance(value, list) else value
                if isinstance(value, (list, dict)) and step in known:
                    value, at = value[step], (*at, step)  # type: ignore[index]
            value = at[-1] if loc and loc[-1] == "[key]" else value
            text = text or source.hidden(_sentence(one, at, source.quoted(value)))
            sentences.setdefault(at, f"{'.'.join(map(str, (SECTION, *at)))}: {text}")
    inner = {at[:end] for at in sentences for end in range(len(at))}
    return {at: text for at, text in sentences.items() if at not in inner}


def _sentence(error: Any, at: Location, value: str) -> str:
    """Say what is wrong with a value, and what to write."""
    kind, last, text = error["type"], str(error["loc"][-1]), str(error["msg"])
    within = at[2:] if at[0] == "subagents" and len(at) > 2 else at
    fields = (SummarizationConfig if within is at else SubagentSettings).model_fields
    if kind == "missing" or (
        len(within) > 1 and (kind == UNKNOWN or within[-1] in Size.model_fields)
    ):
        fields = Size.model_fields
    if kind == "value_error":
        return text.removeprefix("Value error, ")
    if kind == UNKNOWN:
        return f"unknown key;{did_you_mean(last, fields) or ' known are ' + ', '.join(fields)}"
    name = last if kind == "missing" else within[-1] if fields is Size.model_fields else within[0]
    about = " ".join(str(fields[str(name)].description).split())
    if kind == "missing":
        return f"'{last}' is missing; add '{last}: ...' ({about})"
    text = re.sub("Input should|, unable.*", "", text).strip()
    text = re.sub("a valid dictionary.*", "a mapping", text)
    return f"should {text}, not {value} ({about})"
