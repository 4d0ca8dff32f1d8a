"""Read what a user writes for a measurement: configurations and questions."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from conspectus.errors import ConspectusError, InputError
from conspectus_lab.evaluate.run import Question
from conspectus_lab.evaluate.systems import ConspectusSystem, Keep

FORMS: Mapping[str, Callable[[str], Any]] = {".json": json.loads, ".toml": tomllib.loads}
_QUESTIONS = TypeAdapter(list[Question])


def read_data(file: Path, advice: str = "") -> Any:
    """Read a `.toml` file, or any other as JSON.

    Raises:
        InputError: it cannot be read; `advice` ends the error of a damaged one.
    """
    form = file.suffix if file.suffix in FORMS else ".json"
    try:
        return FORMS[form](file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is no {form[1:].upper()}: {error}{advice}") from error


def read_questions(file: Path) -> tuple[Question, ...]:
    """Read a `NAME.exam.json`: a list of objects with `question` and `evidence`.

    Raises:
        InputError: it cannot be read or has another form.
    """
    data = read_data(file)
    try:
        return tuple(_QUESTIONS.validate_python(data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{file}: {where}: {first['msg']}; "
            'write [{"question": "...", "evidence": [["text", "or this"]]}]'
        ) from error


def read_config(path: str | Path) -> ConspectusSystem:
    """Read a system from a TOML or JSON file of arguments of `Compactor`, and perhaps a `name`.

    `keep` and `trigger` may be written as `messages:20`.

    Raises:
        InputError: the file cannot be read, or a key or a value in it is invalid.

    Example:
        >>> made = Path("small.toml").write_text('keep = "messages:10"')
        >>> read_config("small.toml").settings
        {'keep': ('messages', 10)}
    """
    file = Path(path)
    data = read_data(file)
    if not isinstance(data, dict):
        raise InputError(f"{file} must hold settings of Compactor, such as keep and window")
    name = data.pop("name", file.stem)
    for key in ("keep", "trigger"):
        if isinstance(data.get(key), str):
            data[key] = size_of(data[key], f"{file}: {key}")
    system = ConspectusSystem(str(name), data)
    try:
        system.compactor(("messages", 20), 1_024).close()
    except (ConspectusError, TypeError) as error:
        raise InputError(f"{file}: {error}") from error
    return system


def size_of(value: str, what: str) -> Keep:
    """Parse `messages:20` or `tokens:4000`.

    Raises:
        InputError: it has another form; the text names `what`.

    Example:
        >>> size_of("messages:20", "keep")
        ('messages', 20)
    """
    kind, _, digits = value.strip().partition(":")
    if kind not in ("messages", "tokens") or not digits.isdecimal() or int(digits) < 1:
        raise InputError(f"{what} cannot be {value!r}; write messages:20 or tokens:4000")
    return kind, int(digits)
