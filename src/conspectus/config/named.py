"""Import the functions that a file names: token counter, pin and redactor."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from conspectus.config.schema import SummarizationConfig
from conspectus.config.source import Path_
from conspectus.errors import PolicyError
from conspectus.redaction import redactor_of
from conspectus.tokens import TokenMeter


def counter_of(config: SummarizationConfig, model: Any = None) -> Any:
    """Return the token counter in the middleware's form."""
    spec = config.token_counter
    if spec is None:
        from langchain_core.messages.utils import count_tokens_approximately

        return count_tokens_approximately
    where = ("token_counter",)
    library, _, name = spec.partition(":")
    if library not in ("tiktoken", "tokenizers"):
        return _imported(config, spec, where)
    file = config.source.file
    if library == "tokenizers" and file is not None and not Path(name).is_absolute():
        beside = file.parent / name
        spec = f"tokenizers:{beside}" if beside.is_file() else spec
    try:
        return TokenMeter(spec, model=model).messages
    except PolicyError as error:
        raise config.source.error(where, str(error)) from error


def pin_of(config: SummarizationConfig) -> Any:
    """Return the marker or the function that marks messages that stay."""
    if config.pin is None or ":" not in config.pin:
        return config.pin
    return _imported(config, config.pin, ("pin",))


def redact_of(config: SummarizationConfig) -> Any:
    found: Any = config.redact
    if not isinstance(found, bool) and found != "secrets":
        found = _imported(config, found, ("redact",))
    try:
        made = found() if isinstance(found, type) else found
        redactor_of(made)
    except Exception as error:
        text = f"'{config.redact}' cannot redact: {error!s:.200}"
        raise config.source.error(("redact",), text) from error
    return made


def _imported(config: SummarizationConfig, spec: str, where: Path_) -> Any:
    """Import a function by the name of its module and its own."""
    module, _, name = spec.partition(":") if ":" in spec else spec.rpartition(".")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise config.source.error(
            where,
            f"'{spec}' cannot be imported ({type(error).__name__}: {error!s:.200}); check the "
            "name, and that its package is installed or on PYTHONPATH",
        ) from error
    if not callable(found):
        raise config.source.error(where, f"'{spec}' cannot be called")
    return found
