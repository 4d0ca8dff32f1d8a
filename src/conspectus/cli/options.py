"""Options that several commands share, and the forms of their values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conspectus.errors import InputError

if TYPE_CHECKING:
    from conspectus.archive import Archive

LOCAL = "local"  # The tenant of a single user

FORM = "write tokens:8000, messages:50 or fraction:0.8"

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ArchiveOption = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="PATH_OR_URL",
        help="Where the originals are: a file, or the URL of a database.",
        show_default="the user's own archive",
    ),
]
SessionOption = Annotated[
    str, typer.Option(help="Which agent's own history, where several share a thread.")
]
TenantOption = Annotated[str, typer.Option("--tenant", help="Whose conversation it is.")]


def triggers(values: list[str]) -> list[dict[str, int | float]] | None:
    """Parse `--trigger` for the compactor: any of the clauses is enough."""
    return [_clause(value) for value in values] or None


def _clause(value: str) -> dict[str, int | float]:
    clause: dict[str, int | float] = {}
    for part in value.split("+"):
        kind, amount = size(part, "--trigger")
        if kind in clause:
            raise InputError(f"--trigger {value!r} names {kind} twice; {FORM}, joined with +")
        clause[kind] = amount
    return clause


def size(value: str, option: str) -> tuple[str, int | float]:
    """Parse one size, such as `tokens:8000`."""
    from conspectus._core.sizes import check_size

    kind, _, amount = value.strip().partition(":")
    try:
        return check_size((kind, float(amount) if kind == "fraction" else int(amount)), option)
    except ValueError as error:
        raise InputError(f"{option} cannot be {value!r}; {FORM}") from error


def summarizer_of(name: str) -> Any:
    """Parse `--summarizer` for the compactor; None for the embedded one."""
    from conspectus._core.choices import names_embedded

    if names_embedded(name):
        return None
    provider, colon, model = name.partition(":")
    if not (provider and colon and model):
        raise InputError(
            f"--summarizer cannot be {name!r}; write embedded, or provider:model such as "
            "openai:gpt-4o-mini"
        )
    return name


def archive_of(given: str | None) -> str:
    """Return the address of the archive: the given one, else the user's own."""
    if given is not None:
        if not given.strip():
            raise InputError("--archive is empty; give a path or the URL of a database")
        return given
    from conspectus.archive import default_archive_path

    return str(default_archive_path())


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
    archive = Archive.open(where)
    try:
        yield archive
    finally:
        archive.close()


def check_thread(archive: Archive, tenant: str, thread: str) -> None:
    """Refuse an unknown thread, so that a mistyped name does not look empty."""
    from conspectus.recall.flow import unknown_thread

    if thread not in archive.threads(tenant):
        raise unknown_thread(tenant, thread)


def file_of(where: str) -> Path | None:
    """Return the file of an archive, or None."""
    path = where.removeprefix("sqlite:///")
    in_no_file = "://" in path or path in ("memory:", ":memory:")
    return None if in_no_file else Path(path).expanduser()
