"""`load_config`: check a whole file; each mistake is one sentence with its line and a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conspectus.config.reading import SECTION, Location, Source, read_section
from conspectus.config.schema import Size, SummarizationConfig, contradictions
from conspectus.errors import ConfigError, did_you_mean

OFF = ("false", "no", "off", "n", "f", "0")  # values of `enabled`, as pydantic reads them
EARLIER = "preserve_recent_skill_"  # keys of earlier versions of DeerFlow, without effect
OURS = ("trigger", "keep", "trim_tokens_to_summarize", "summary_prompt")  # no names of sections
QUOTED = 60  # characters of a wrong value that are shown
FIELDS = {**SummarizationConfig.model_fields, **Size.model_fields}


def load_config(path: str | Path) -> SummarizationConfig:
    """Read the `summarization:` section of a YAML file, and check all of it.

    Without the section nothing is summarised. Values such as `$ARCHIVE_URL` are those of
    environment variables. Other sections are ignored, except `skills.container_path` and `models`.
    With `enabled: false` a file with mistakes is read as an empty one; `config.source.notes` lists
    them.

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
    problems: dict[Location, str] = {}
    try:
        folder = {"folder": file.absolute().parent}
        config = SummarizationConfig.model_validate(section, context=folder)
        problems = dict(contradictions(config))
    except ValidationError as error:
        problems = sentences(error, section, source)
    problems |= source.missing
    notes = source.problems(problems)
    if notes:
        if str(section.get("enabled")).lower() not in OFF:
            raise ConfigError(notes)
        config = SummarizationConfig()
    config._source = replace(source, notes=notes)
    return config


def _check_sections(section: Any, source: Source) -> None:
    """Refuse a section of another form, one that is misspelt, and keys that stand outside of it."""
    further = f"put it under '{SECTION}:', on a line of its own, two spaces further in"
    if not isinstance(section, dict):
        raise source.error((), f"'{SECTION}' holds keys such as 'enabled: true'; {further}")
    missing = SECTION not in source.names
    ours = OURS if missing else SummarizationConfig.model_fields
    for name, line in source.names.items() if not section else ():
        key = name.strip()  # a no-break space looks like indentation, and is a part of the key
        meant = did_you_mean(name, [SECTION]) if missing else ""
        text = f"'{key}' stands at the top of the file; {further}" if key in ours else ""
        text = f"unknown section '{name}';{meant}" if meant else text
        if text:
            raise ConfigError((f"{source.file}, line {line}: {text}",))


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
        problems.setdefault(at, source.hidden(_sentence(mistake, at, source.hidden(value))))
    inner = {at[:end] for at in problems for end in range(len(at))}
    return {at: text for at, text in problems.items() if at not in inner}


def _sentence(mistake: Any, at: Location, value: Any) -> str:
    kind, loc, said = mistake["type"], mistake["loc"], mistake["msg"]
    unknown = kind == "extra_forbidden"
    inner = [step for step in (loc[:-1] if unknown else loc) if step in FIELDS]
    about = f" ({' '.join(str(FIELDS[inner[-1]].description).split())})" if inner else ""
    if unknown:
        fields = (Size if inner else SummarizationConfig).model_fields
        known = f" known are {', '.join(fields)}{about}"
        return f"unknown key;{did_you_mean(loc[-1], fields) or known}"
    if kind == "missing":
        return f"'{inner[-1]}' is missing; add '{inner[-1]}: ...'{about}"
    text = re.sub("^Value error, |^(Input|String) |, (got|unable to) .*| or instance .*", "", said)
    text = text.replace("valid dictionary", "mapping").replace("a valid boolean", "true or false")
    quoted = "" if kind == "value_error" else f", not {_quoted(value)}"
    return f"{text}{quoted}{about}"


def _quoted(value: Any) -> str:
    """Return a wrong value for a message, if it is short."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:  # Python may write none so long
        return "a number of too many digits"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"
