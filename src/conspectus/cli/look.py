"""`conspectus undo`, `show` and `blame`: take a compaction back, and look at what one has done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from typer import Argument, Option

from conspectus.archive import Archive, Scope
from conspectus.cli import options, output
from conspectus.cli.options import LOCAL, ArchiveOption, JsonOption, SessionOption, TenantOption
from conspectus.cli.output import many
from conspectus.engine import Compactor, UndoResult
from conspectus.engine.sent_then import SentMessage, SentThen, sent_then
from conspectus.errors import NotFoundError
from conspectus.recall.blame import BlamedLine, blame

FIRST_WORDS = 80
"""Characters of an original, and of a line, that a table shows."""

THREAD = "The name of the conversation, as compact prints it."
TO = (
    "The id of the record that is to be in force; start for none. Default: the one before the "
    "newest. With a record that was taken back, it is in force again."
)
RECORD = "The id of the record, as archive show lists it. Default: the one in force."
NOT_STORED = "not stored: it had not left the view at the last compaction, so only its agent has it"
NO_CLIP = "(clipped; tokens are counted in another way now, so the clip cannot be made again)"


def undo(
    thread: Annotated[str, Option(help=THREAD)],
    to: Annotated[str | None, Option(metavar="RECORD", help=TO, show_default=False)] = None,
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Take the newest compaction of a conversation back, or put one in force again.

    Nothing is deleted. The next request of the agent has the messages as they were before that
    compaction; if the trigger is reached then, a new one is made.
    """
    address = options.archive_of(archive)
    with options.open_archive(address, tenant, thread, session, existing=True) as kept:
        result = Compactor(archive=kept).undo(thread, tenant=tenant, session=session, to=to)
    if as_json:
        facts = asdict(result)
        del facts["messages"]  # none were given
        output.print_json(facts)
        return
    output.say(_told(result))
    if result.taken_back:
        command = ["conspectus", "undo", "--thread", thread, "--to", result.taken_back[0]]
        command += ["--tenant", tenant] if tenant != LOCAL else []
        command += ["--session", session] if session != "main" else []
        command += ["--archive", archive] if archive else []
        output.say(f"{shlex.join(command)} puts it in force again.", err=True)


def _told(result: UndoResult) -> str:
    """Say what an undo has done, and what remains."""
    parts: list[str] = []
    if result.taken_back:
        clips = f", {many(result.unclipped, 'clip')} undone" if result.unclipped else ""
        back = many(result.came_back, "message")
        parts.append(f"Taken back: {_named(result.taken_back)}; {back} in view again{clips}.")
    if result.put_in_force:
        left = many(result.left, "message")
        parts.append(f"In force again: {_named(result.put_in_force)}; {left} out of view.")
    if not parts:
        return f"Nothing has changed: {result.head_id or 'no compaction'} was in force before."
    head = f"record {result.head_id}" if result.head_id else "no compaction, so all is in view"
    sizes = f"{result.tokens_before:,} → {result.tokens_after:,} tokens"
    parts.append(f"In force now: {head} ({sizes}).")
    if result.changed:
        count = many(len(result.changed), "message")
        ids = ", ".join(result.changed)
        parts.append(f"The archive keeps {count} without secrets, or in part: {ids}.")
    return " ".join(parts)


def _named(records: Sequence[str]) -> str:
    return f"{many(len(records), 'compaction')} ({', '.join(records)})"


def show(
    thread: Annotated[str, Option(help=THREAD)],
    record: Annotated[str | None, Option(metavar="ID", help=RECORD, show_default=False)] = None,
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Print what the model was sent once a compaction was in force.

    The archive knows the summary, and all messages that have left the view since. Messages that
    are still in view are in no archive, so only their number is printed.
    """
    address = options.archive_of(archive)
    scope = Scope(tenant, thread, session)
    with options.open_archive(address, tenant, thread, session, existing=True) as kept:
        record_id = record or _head(kept, scope)
        then = sent_then(kept, scope, record_id)
    if as_json:
        output.print_json(_as_json(then))
        return
    output.say(_heading(then), bold=True)
    for message in then.messages:
        output.say(f"--- {_label(message)}", bold=True)
        output.say(message.text or (NO_CLIP if message.known == "clipped" else ""))


def _head(kept: Archive, scope: Scope) -> str:
    chain = kept.in_force(scope)
    if not chain:
        raise NotFoundError(f"no compaction is in force in thread {scope.thread!r}; give --record")
    return chain[-1].id


def _heading(then: SentThen) -> str:
    record = then.record
    lines = [
        f"Record {record.id}, compaction {then.number}: {many(record.messages_after, 'message')}, "
        f"{record.tokens_after:,} tokens were sent."
    ]
    unstored = sum(message.known == "not stored" for message in then.messages)
    if unstored or then.unknown:
        lines.append(
            f"The archive does not have {many(unstored + then.unknown, 'message')} of them: "
            "leading system messages, and messages that are still in view."
        )
    return "\n".join(lines)


def _label(message: SentMessage) -> str:
    if message.known == "summary":
        return "user (the summary)"
    if message.known == "not stored":
        return f"{message.key[:8]} ({NOT_STORED})"
    notes = ["clipped"] if message.known == "clipped" else []
    notes += [] if message.lossless else ["as the archive keeps it, without secrets"]
    added = f" ({', '.join(notes)})" if notes else ""
    return f"{message.role} {message.id}{added}"


def _as_json(then: SentThen) -> dict[str, Any]:
    record = then.record
    return {
        "record": record.id,
        "compaction": then.number,
        "messages_sent": record.messages_after,
        "tokens_sent": record.tokens_after,
        "not_stored": then.unknown + sum(each.known == "not stored" for each in then.messages),
        "messages": [asdict(message) for message in then.messages],
    }


def blame_line(
    words: Annotated[str, Argument(metavar="WORDS", help="Words of a line of the notes.")],
    thread: Annotated[str, Option(help=THREAD)],
    archive: ArchiveOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Name the archived originals that a line of the notes comes from.

    Lines cite them. For a line without a citation, the originals that are nearest to its words are
    named.
    """
    address = options.archive_of(archive)
    with options.open_archive(address, tenant, thread, session, existing=True) as kept:
        lines = blame(kept, Scope(tenant, thread, session), words)
    if as_json:
        output.print_json([asdict(line) for line in lines])
        return
    output.print_rows([row for line in lines for row in _rows(line)])


def _rows(line: BlamedLine) -> list[dict[str, Any]]:
    shown = {"line": _first_words(line.text)}
    if not line.sources:
        return [{**shown, "id": None, "place": None, "role": None, "by": None, "original": None}]
    return [
        {
            **shown,
            "id": source.id,
            "place": source.position,
            "role": source.role,
            "by": line.ground,
            "original": _first_words(source.text),
        }
        for source in line.sources
    ]


def _first_words(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= FIRST_WORDS else f"{words[: FIRST_WORDS - 2]} …"
