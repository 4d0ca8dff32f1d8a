"""Write originals as readable files into a Deep Agents backend.

Each record has a file of its own, written once: equal records have equal originals, so a retried
step writes the same bytes. Recall and the commit rule use the archive alone; a failed write is
logged and tried again at the next step.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from deepagents.backends.protocol import BackendProtocol

from conspectus.archive import Scope
from conspectus.archive.values import label_hash
from conspectus.bridge import io
from conspectus.core.records import Record
from conspectus.messages import Entry, Source, read_messages
from conspectus.messages.media import media_of
from conspectus.observe import log

FOLDER = "conversation_history"
"""Under the backend's root for artifacts."""


def folder_of(backend: BackendProtocol, scope: Scope) -> str:
    """Return the folder of one session; its name is a hash."""
    root = str(getattr(backend, "artifacts_root", "/")).rstrip("/")
    return f"{root}/{FOLDER}/{label_hash(chr(0).join(scope.hashes))}"


async def write(
    backend: BackendProtocol,
    folder: str,
    number: int,
    record: Record,
    find: Callable[[Sequence[str]], Awaitable[Mapping[str, Source]]],
) -> bool:
    """Write the originals that a record covers or clips; return whether all were written."""
    short = tuple(mark.key for mark in record.clips)
    found = await find(tuple(dict.fromkeys((*record.covers, *short))))
    texts, media = [], {}
    for title, keys in (("Summarised", record.covers), ("Shown short from here on", short)):
        if not keys:
            continue
        texts.append(f"# {title}: {len(keys)} messages\n")
        for key in keys:
            if key not in found:
                texts.append(f"## {key[:8]}: the original is gone (expired or forgotten)\n")
                continue
            entry = read_messages([found[key]])[0]
            entry.key = key
            files = files_of(entry, f"{folder}/media")
            media.update(files)
            texts.append(readable(entry, list(files)))
    text = "\n".join(texts).encode("utf-8", "backslashreplace")
    all_files = [*media.items(), (f"{folder}/{number:04}-{record.id}.md", text)]
    upload = partial(backend.upload_files, all_files)
    try:
        answers = await io(upload, partial(backend.aupload_files, all_files))
        problems = [f"{one.path}: {one.error}" for one in answers if one.error]
    except Exception as error:  # a backend may raise anything
        problems = [f"{type(error).__name__}: {error}"]
    if problems:
        log("mirror_failed", "readable copies could not be written: %s", "; ".join(problems))
    return not problems


def readable(entry: Entry, media: Sequence[str] = ()) -> str:
    """Write a message for a person: its text, calls with all arguments, paths of media."""
    what = entry.role if entry.name is None else f"{entry.role} {entry.name}"
    answers = f", answers call {', '.join(entry.answers)}" if entry.answers else ""
    date = f", {entry.date}" if entry.date else ""
    parts = [f"## [{entry.cite}] {what}{answers}{date}\n", entry.text]
    for call in entry.calls:
        parts.append(f"calls {call.name} (call {call.id}) with:\n{call.args}")
    parts += [f"media: {path}" for path in media]
    return "\n".join(part for part in parts if part) + "\n"


def files_of(entry: Entry, folder: str) -> dict[str, bytes]:
    files = {}
    for block in entry.media:
        media = media_of(block)
        if content := media.raw():
            ending = mimetypes.guess_extension(media.mime) or ".bin"
            files[f"{folder}/{hashlib.sha256(content).hexdigest()[:32]}{ending}"] = content
    return files
