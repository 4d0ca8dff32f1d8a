"""Options that several commands share, and the forms of their values."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from conspectus._arguments import meaning
from conspectus.archive import Archive, Scope, check_address, default_archive_path
from conspectus.core.policy import check_size
from conspectus.engine.settings import CompactorSettings
from conspectus.errors import InputError, NotFoundError
from conspectus.recall.flow import unknown_thread
from conspectus.tokens import family_of

LOCAL = "local"
"""The tenant of a single user."""

IN_MEMORY = ("memory:", ":memory:")
"""Archives that are gone after the command."""

UNITS = {"": 1, "k": 1_000, "m": 1_000_000}

FileArgument = Annotated[
    str, Argument(metavar="FILE", help="The file with the history; - is standard input.")
]
JsonOption = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
OUT = "The file to write; - is standard output."
OutOption = Annotated[Path | None, Option("-o", "--output", metavar="FILE", help=OUT)]
ARCHIVE = (
    "The archive of the originals: a file, or the URL of a database. Default: your own archive, "
    "conspectus/archive.db in $XDG_DATA_HOME or ~/.local/share."
)
ArchiveOption = Annotated[
    str | None, Option("--archive", metavar="PATH_OR_URL", help=ARCHIVE, show_default=False)
]
ThreadOption = Annotated[str | None, Option(help="The name of the conversation.")]
SESSION = "The name of one of several agents in the conversation."
SessionOption = Annotated[str, Option(help=SESSION)]
TenantOption = Annotated[str, Option("--tenant", help="The owner of the conversation.")]


def token_count(text: str | int) -> int:
    """Read a number of tokens, such as 8000, 8k or 1M."""
    match = re.fullmatch(r"(\d{1,12})([kKmM]?)", str(text))
    count = int(match[1]) * UNITS[match[2].lower()] if match else 0
    if not count:
        raise BadParameter(f"{text!r} is no number of tokens; write it as 8000, 8k or 1M")
    return count


def tokens(help: str, *, show_default: bool = True) -> Any:
    """Return an option that takes a number of tokens."""
    return Option(parser=token_count, metavar="TOKENS", help=help, show_default=show_default)


def help_of(setting: str, form: str = "") -> str:
    """Return the help of the option for a setting: what it means, then the form of its value."""
    return f"{meaning(CompactorSettings, setting)} {form}".strip()


WINDOW = help_of("window", "Default: the limit in FILE, or in the profile of the model in FILE.")
WindowOption = Annotated[int | None, tokens(WINDOW, show_default=False)]


def triggers(values: list[str]) -> list[dict[str, int | float]] | None:
    """Parse `--trigger` for the compactor: any of the clauses is enough."""
    clauses = (value.split("+") for value in values)
    return [dict(size(part, "--trigger") for part in clause) for clause in clauses] or None


def size(value: str, option: str) -> tuple[str, int | float]:
    """Parse one size, such as `tokens:8000`."""
    unit, _, amount = value.strip().partition(":")
    try:
        number = float(amount) if unit == "fraction" else token_count(amount)
        return check_size((unit, number), option)
    except (ValueError, BadParameter) as error:
        form = "write tokens:8000, messages:50 or fraction:0.8"
        raise InputError(f"{option} cannot be {value!r}; {form}") from error


def known_model(model: str | None) -> str | None:
    """Return the name of a model whose tokenizer is known; None for another."""
    return model if model and family_of(model)[0] != "unknown" else None


def archive_of(address: str | None) -> str:
    """Return the address of the archive: the named one, else the user's own."""
    if address is None:
        return str(default_archive_path())
    if not address.strip():
        raise InputError("--archive is empty; give a path or the URL of a database")
    return address


@contextlib.contextmanager
def open_archive(
    address: str,
    tenant: str = LOCAL,
    thread: str | None = None,
    session: str | None = None,
    *,
    existing: bool = False,
) -> Iterator[Archive]:
    """Open an archive, and close it at the end.

    With `existing`, a missing or empty file is an error, so that reading never makes a file. A
    tenant without data is an error, too, except for the default one. An unknown thread or session
    is always an error.
    """
    check_address(address)
    file = file_of(address)
    if existing and file is not None and not file.exists():
        raise InputError(f"there is no archive at {file}; check --archive, or compact first")
    if existing and file is not None and file.is_file() and not file.stat().st_size:
        raise InputError(f"{file} is empty and no archive; check --archive, or compact first")
    with Archive.open(address) as archive:
        if existing and thread is None and tenant != LOCAL and not archive.scopes(tenant):
            raise NotFoundError(
                f"the archive keeps nothing of {tenant!r}; check --tenant and --archive, or "
                "compact something of it first"
            )
        if thread is not None:
            scopes = archive.scopes(tenant)
            sessions = [scope.session for scope in scopes if scope.thread == thread]
            if not sessions or session not in (None, *sessions):
                raise unknown_thread(Scope(tenant, thread, session or "main"), sessions)
        yield archive


def file_of(address: str) -> Path | None:
    """Return the file of an archive, or None."""
    path = address.removeprefix("sqlite:///")
    in_no_file = "://" in path or path in IN_MEMORY
    return None if in_no_file else Path(path).expanduser()
