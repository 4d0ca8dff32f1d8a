"""`conspectus rules`: what counts as a rule of the user, and what does not."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated, Any

from typer import Option

from conspectus.archive import Archive, Scope
from conspectus.archive.stated_rules import ListedRule, list_rules, remove_rule, restore_rule
from conspectus.cli import options, output
from conspectus.cli.options import (
    LOCAL,
    ArchiveOption,
    JsonOption,
    SessionOption,
    TenantOption,
    ThreadOption,
)
from conspectus.errors import InputError

REMOVE = "The id of a rule that is to count as one no more. No original is changed."
RESTORE = "The id of a rule that was removed, to put it back."


def rules(
    thread: ThreadOption = None,
    tenant: TenantOption = LOCAL,
    session: SessionOption = "main",
    remove: Annotated[str | None, Option(metavar="ID", help=REMOVE)] = None,
    restore: Annotated[str | None, Option(metavar="ID", help=RESTORE)] = None,
    archive: ArchiveOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the user's rules in a conversation, and where each of them was said.

    Rules are left out of summaries last. They are instructions, prohibitions, decisions,
    corrections and limits in messages that have left the view. Without --thread, the rules of all
    conversations are listed.
    """
    if remove is not None and restore is not None:
        raise InputError("--remove and --restore exclude each other; give one")
    name = remove or restore
    if name is not None and thread is None:
        raise InputError("name the --thread of the rule")
    address = options.archive_of(archive)
    names = (None, None) if thread is None else (thread, session)
    with options.open_archive(address, tenant, *names, existing=True) as kept:
        if name is not None and thread is not None:
            change = remove_rule if remove is not None else restore_rule
            changed = change(kept, Scope(tenant, thread, session), name)
            _report_change(changed, is_removed=remove is not None, thread=thread, as_json=as_json)
            return
        listed = _listed(kept, tenant, thread, session)
    if as_json:
        output.print_json([{"thread": of, **asdict(rule)} for of, rule in listed])
        return
    command = shlex.join(["conspectus", "rules", *(["--archive", archive] if archive else [])])
    output.print_rows(
        [_row(of, rule) for of, rule in listed],
        "No rules have left a view there; those in view need no summary.",
    )
    if listed:
        output.say(f"{command} --thread NAME --remove ID takes one out.", err=True)


def _listed(
    kept: Archive, tenant: str, thread: str | None, session: str
) -> list[tuple[str, ListedRule]]:
    """Return the rules of one conversation, or of all, each with its conversation."""
    if thread is not None:
        scopes = [Scope(tenant, thread, session)]
    else:
        scopes = sorted(kept.scopes(tenant), key=attrgetter("thread", "session"))
    return [(scope.thread, rule) for scope in scopes for rule in list_rules(kept, scope)]


def _row(thread: str, rule: ListedRule) -> dict[str, Any]:
    state = "in the summary" if rule.in_summary else "left out"
    return {
        "id": rule.id,
        "thread": thread,
        "message": rule.message,
        "place": rule.position or None,
        "by": rule.speaker or ("user" if rule.message else "program"),
        "state": "removed" if rule.removed else state,
        "rule": " ".join(rule.text.split()),
    }


def _report_change(rule: ListedRule, *, is_removed: bool, thread: str, as_json: bool) -> None:
    if as_json:
        output.print_json({"thread": thread, "id": rule.id, "removed": is_removed})
        return
    done = "counts as a rule no more" if is_removed else "counts as a rule again"
    text = " ".join(rule.text.split())
    output.say(f"{rule.id} {done}, from the next compaction on: {text}")
