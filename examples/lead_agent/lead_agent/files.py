"""Files below one folder, and nowhere else.

Each part of a path is opened relative to the one before it, and no link is followed, so there is
no moment between a check and its use in which a folder could be swapped for a link.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from langchain_core.tools import ToolException

LARGEST = 5_000_000
"""Bytes of a file that is read or written, at most."""

ENTRIES = 200
"""Entries of a folder that are listed, at most."""

WRITABLE = ("workspace", "outputs")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe would wait for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Refusal(ToolException):
    """A path or a file that tools may not touch; told to the model in words."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one thread.

    Attributes:
        root: its folder. Paths are relative to it.
    """

    root: Path

    def read(self, path: str) -> str:
        """The text of a file.

        Raises:
            Refusal: the path leaves the folder, or there is no plain file.
        """
        *folders, name = _parts(path)
        with _told(path), self._opened(folders) as folder:
            number = os.open(name, _FILE, dir_fd=folder)
            with os.fdopen(number, "rb") as file:
                _check_plain(os.fstat(number), path)
                data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Refusal(f"{path!r} has more than {LARGEST:,} bytes, too many for a tool.")
        return data.decode("utf-8", "replace")

    def write(self, path: str, text: str) -> int:
        """Write a file whole, or leave what was there; folders on the way are made.

        Returns:
            Its size in bytes.

        Raises:
            Refusal: as for `read`, or it is not below `workspace/` or `outputs/`.
        """
        *folders, name = _parts(path)
        if not folders or folders[0] not in WRITABLE:
            raise Refusal(f"{path!r}: only workspace/ and outputs/ are for writing.")
        data = text.encode("utf-8", "replace")
        if len(data) > LARGEST:
            raise Refusal(f"{path!r}: {len(data):,} bytes; write at most {LARGEST:,} at once.")
        with _told(path), self._opened(folders, make=True) as folder:
            with suppress(FileNotFoundError):
                _check_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
            draft = f".{secrets.token_hex(8)}.tmp"
            try:
                with os.fdopen(os.open(draft, _NEW, 0o600, dir_fd=folder), "wb") as file:
                    file.write(data)
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
                raise
        return len(data)

    def listed(self, path: str = ".") -> list[str]:
        """The entries of a folder by name: folders with a slash, files with their size.

        Raises:
            Refusal: as for `read`.
        """
        with _told(path), self._opened(_parts(path, least=0)) as folder:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
            found = [_entry(name, folder) for name in names[:ENTRIES]]
        more = len(names) - len(found)
        return [*found, f"... and {more} more"] if more else found

    @contextmanager
    def _opened(self, folders: list[str], *, make: bool = False) -> Iterator[int]:
        """A folder below the root, by its number."""
        with ExitStack() as stack:
            here = os.open(self.root, _FOLDER)
            stack.callback(os.close, here)
            for name in folders:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=here)
                here = os.open(name, _FOLDER, dir_fd=here)
                stack.callback(os.close, here)
            yield here


def _parts(path: str, least: int = 1) -> list[str]:
    """The components of a relative path.

    Raises:
        Refusal: it is absolute, goes up, or is no path.
    """
    if path.startswith(("/", "~")) or "\\" in path or (path[1:2] == ":" and path[0].isalpha()):
        raise Refusal(f"{path!r}: absolute paths are refused; write workspace/notes.txt.")
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise Refusal(f"{path!r}: '..' is refused; give a path such as workspace/notes.txt.")
    if len(parts) < least or not path.isprintable():
        raise Refusal(f"{path!r} names no file; give a path such as workspace/notes.txt.")
    return list(parts)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What the system refuses, in words, and without saying where the folder is."""
    try:
        yield
    except FileNotFoundError:
        raise Refusal(f"{path!r}: there is no such file; list_files shows some.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no path"
        raise Refusal(f"{path!r}: refused ({why}); links and special files are.") from None


def _check_plain(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Refusal(f"{path!r}: is no plain file; links, folders and special files are refused.")
    if found.st_nlink > 1:  # it may be a file from anywhere on the same disk
        raise Refusal(f"{path!r}: has another name elsewhere (a hard link), which is refused.")


def _entry(name: str, folder: int) -> str:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return name
    if stat.S_ISDIR(found.st_mode):
        return f"{name}/"
    plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    return f"{name} ({found.st_size:,} bytes)" if plain else f"{name} (refused: no plain file)"
