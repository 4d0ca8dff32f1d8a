"""Read settings of the compactor from a small TOML or JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately

from conspectus.compactor import Compactor
from conspectus.errors import ConspectusError, InputError
from conspectus_lab.evaluate.conspectus_system import ConspectusSystem
from conspectus_lab.evaluate.texts import TokenCount
from conspectus_lab.files import FORMS, read_data

PASSED_ON = (
    "summarizer",
    "trigger",
    "window",
    "reserved_tokens",
    "clip_over",
    "stale_results",
    "trim_tokens_to_summarize",
)
"""Settings that go to `Compactor` as they are."""

KNOWN = ("name", "keep", "summary_tokens", *PASSED_ON)


def read_config(
    path: str | Path,
    keep: tuple[str, int] = ("messages", 20),
    count: TokenCount = count_tokens_approximately,
) -> ConspectusSystem:
    """Read a system from a file.

    Keys are `name` (default: that of the file), `keep` (`"messages:20"` or `"tokens:4000"`),
    `summary_tokens` (one size or a list), and the arguments of `Compactor` in `PASSED_ON`;
    `clip_over = false` switches clipping off.

    Args:
        path: a file that ends with `.toml` or `.json`.
        keep: the default tail.
        count: the token counter.

    Raises:
        InputError: the file cannot be read, or a key or a value in it is invalid.

    Example:
        >>> made = Path("small.toml").write_text('keep = "messages:10"')
        >>> read_config("small.toml").keep
        ('messages', 10)
    """
    file = Path(path)
    data = _data(file)
    if unknown := [key for key in data if key not in KNOWN]:
        raise InputError(f"{file}: unknown is {unknown[0]!r}; known are {', '.join(KNOWN)}")
    settings = {key: data[key] for key in PASSED_ON if key in data}
    if settings.get("clip_over") is False:
        settings["clip_over"] = None
    if isinstance(settings.get("trigger"), str):
        settings["trigger"] = size_of(settings["trigger"], f"{file}: trigger")
    if "keep" in data:
        keep = size_of(data["keep"], f"{file}: keep")
    rest = {key: value for key, value in settings.items() if key != "summarizer"}  # may need a key
    try:
        Compactor(keep=keep, **rest)
    except ConspectusError as error:
        raise InputError(f"{file}: {error}") from error
    name = data.get("name", file.stem)
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{file}: name must be a text, not {name!r}")
    return ConspectusSystem(
        name=name,
        keep=keep,
        sizes=_sizes(data["summary_tokens"], file) if "summary_tokens" in data else None,
        settings=settings,
        count=count,
    )


def size_of(value: object, what: str) -> tuple[str, int]:
    """Parse `messages:20` or `tokens:4000`, or a pair as a list.

    Raises:
        InputError: it has another form; the text names `what`.

    Example:
        >>> size_of("messages:20", "keep")
        ('messages', 20)
    """
    kind, amount = value if isinstance(value, list) and len(value) == 2 else (None, None)
    if isinstance(value, str):
        kind, _, digits = value.strip().partition(":")
        amount = int(digits) if digits.isascii() and digits.isdigit() else None
    if kind not in ("messages", "tokens") or type(amount) is not int or amount < 1:
        raise InputError(f"{what} cannot be {value!r}; write messages:20 or tokens:4000")
    return kind, amount


def _data(file: Path) -> Mapping[str, Any]:
    form = file.suffix[1:].upper()
    if form not in FORMS:
        raise InputError(f"{file} must be a .toml or a .json file")
    data = read_data(file, form)
    if not isinstance(data, dict):
        raise InputError(f"{file} must hold settings such as keep and summary_tokens")
    return data


def _sizes(value: object, file: Path) -> tuple[int, ...]:
    sizes = value if isinstance(value, list) else [value]
    if not sizes or any(type(size) is not int or size < 1 for size in sizes):
        raise InputError(f"{file}: summary_tokens cannot be {value!r}; give tokens, or a list")
    return tuple(dict.fromkeys(sizes))
