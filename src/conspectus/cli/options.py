"""Options that several commands share, and the forms of their values."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from conspectus.errors import InputError, NotFoundError, did_you_mean

if TYPE_CHECKING:
    from conspectus.archive import Archive

NAMED = 10  # threads that an error names
LOCAL = "local"  # the tenant of a single user
IN_MEMORY = ("memory:", ":memory:")  # archives that end with the command
FORM = "write tokens:8000, messages:50 or fraction:0.8"

UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_COUNT = re.compile(r"(\d{1,12})([kKmM]?)")

FileArgument = Annotated[str, Argument(metavar="FILE", help="The history; - for standard input.")]
JsonOption = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
OutOption = Annotated[Path | None, Option("-o", "--output", metavar="FILE", help="Write here.")]
ARCHIVE = "Where the originals are: a file, or the URL of a database. Default: your own archive."
ArchiveOption = Annotated[
    str | None, Option("--archive", metavar="PATH_OR_URL", help=ARCHIVE, show_default=False)
]
ThreadOption = Annotated[str | None, Option(help="Which conversation.")]
SESSION = "Which agent's own history, where several share a thread."
SessionOption = Annotated[str, Option(help=SESSION)]
TenantOption = Annotated[str, Option("--tenant", help="Whose conversation it is.")]


def token_count(text: str | int) -> int:
    """Read a number of tokens, such as 8000, 8k or 1M."""
    match = _COUNT.fullmatch(str(text))
    count = int(match[1]) * UNITS[match[2].lower()] if match else 0
    if not count:
        raise BadParameter(f"{text!r} is no number of tokens; write it as 8000, 8k or 1M")
    return count


def tokens(help: str, **more: Any) -> Any:
    """Return an option that takes a number of tokens."""
    return Option(parser=token_count, metavar="TOKENS", help=help, **more)


WINDOW = "Input limit of the model that answers. Default: as FILE or its profile says."
WindowOption = Annotated[int | None, tokens(WINDOW, show_default=False)]


def triggers(values: list[str]) -> list[dict[str, int | float]] | None:
    """Parse `--trigger` for the compactor: any of the clauses is enough."""
    return [dict(size(part, "--trigger") for part in one.split("+")) for one in values] or None


def size(value: str, option: str) -> tuple[str, int | float]:
    """Parse one size, such as `tokens:8000`."""
    from conspectus.core.policy import check_size

    kind, _, amount = value.strip().partition(":")
    try:
        number = float(amount) if kind == "fraction" else token_count(amount)
        return check_size((kind, number), option)
    except (ValueError, BadParameter) as error:
        raise InputError(f"{option} cannot be {value!r}; {FORM}") from error


def known_model(model: str | None) -> str | None:
    """Return the name of a model whose tokenizer is known; None for another."""
    from conspectus.tokens import family_of

    return model if model and family_of(model)[0] != "unknown" else None


def archive_of(address: str | None) -> str:
    """Return the address of the archive: the named one, else the user's own."""
    if address is None:
        from conspectus.archive import default_archive_path

        return str(default_archive_path())
    if not address.strip():
        raise InputError("--archive is empty; give a path or the URL of a database")
    return address


@contextlib.contextmanager
def opened(where: str, *, existing: bool = False) -> Iterator[Archive]:
    """Open an archive, and close it at the end.

    With `existing`, a missing file is an error, so that reading creates none.
    """
    from conspectus.archive import Archive, check_address

    check_address(where)
    file = file_of(where)
    if existing and file is not None and not file.exists():
        raise InputError(f"there is no archive at {file}; check --archive, or compact first")
    with Archive.open(where) as archive:
        yield archive


def check_thread(archive: Archive, tenant: str, thread: str, session: str | None = None) -> None:
    """Refuse an unknown thread or session, and name those that are kept."""
    scopes = archive.scopes(tenant)
    threads = sorted({one.thread for one in scopes})
    sessions = [one.session for one in scopes if one.thread == thread]
    for what, name, known in (("thread", thread, threads), ("session", session, sessions)):
        if name is not None and name not in known:
            more = f" and {len(known) - NAMED:,} more" if len(known) > NAMED else ""
            named = f"known are {', '.join(map(repr, known[:NAMED]))}{more}"
            meant = did_you_mean(name, known) or " 'conspectus archive list' shows all"
            fix = f"{named};{meant}" if known else "check --archive and --tenant, or compact first"
            raise NotFoundError(f"the archive keeps no {what} {name!r} of {tenant!r}; {fix}")


def file_of(where: str) -> Path | None:
    """Return the file of an archive, or None."""
    path = where.removeprefix("sqlite:///")
    in_no_file = "://" in path or path in IN_MEMORY
    return None if in_no_file else Path(path).expanduser()
