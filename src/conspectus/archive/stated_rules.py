"""The rules of an archived history: which there are, and which a person has taken out."""

from __future__ import annotations

from dataclasses import dataclass

from conspectus.archive.archive import Archive
from conspectus.archive.values import Scope
from conspectus.errors import NotFoundError
from conspectus.notes.data import Notes
from conspectus.rules import rule_id

RULES = "rules"
"""The kind of the archive's remarks on rules."""

REMOVED = "removed"
"""The name of the remark that holds the ids of statements that count as rules no more."""


@dataclass(frozen=True, slots=True)
class ListedRule:
    """A statement that counts as a rule in a history, and where it was said.

    Attributes:
        id: its name, by which it is removed and restored. Equal statements have the same.
        text: the statement, word for word.
        message: the id of its message, by which it can be recalled; empty if the program laid it
            down.
        position: the number of that message among all that were evicted, from 1; 0 for none.
        speaker: who said it, such as `system` or the path of a file; empty for the user.
        in_summary: whether it stands in the summary in force.
        removed: whether a person has removed it. Then it is an ordinary sentence of the user from
            the next compaction on.
    """

    id: str
    text: str
    message: str
    position: int
    speaker: str
    in_summary: bool
    removed: bool


def list_rules(archive: Archive, scope: Scope) -> list[ListedRule]:
    """Return the rules of the branch in force, in the order in which they were said.

    Raises:
        ArchiveError: the archive cannot be read, or its newest record is damaged.
    """
    chain = archive.in_force(scope)
    record = next((record for record in reversed(chain) if record.notes), None)
    if record is None:
        return []
    notes = Notes.from_json(record.notes)
    removed = frozenset(removed_rules(archive, scope))
    left_out = {text for _, text in notes.rules_left_out}
    stated = [(rule, "", 0, "") for rule in notes.rules]
    for line in notes.lines:
        message = line.ids[0] if line.ids else ""
        stated += [(rule, message, line.span[0] + 1, line.speaker) for rule in line.rules]
    return [
        ListedRule(
            id=rule_id(text),
            text=text,
            message=message,
            position=position,
            speaker=speaker,
            in_summary=text not in left_out,
            removed=rule_id(text) in removed,
        )
        for text, message, position, speaker in stated
    ]


def removed_rules(archive: Archive, scope: Scope) -> tuple[str, ...]:
    """Return the ids of the statements that were removed from the rules of a history."""
    return archive.read_ids(scope, RULES, REMOVED)


def remove_rule(archive: Archive, scope: Scope, name: str) -> ListedRule:
    """Take a statement out of the rules of a history, by its id; no original is changed.

    Raises:
        NotFoundError: no rule of the history has this id.
    """
    rule = _rule_named(archive, scope, name)
    _write(archive, scope, {*removed_rules(archive, scope), name})
    return rule


def restore_rule(archive: Archive, scope: Scope, name: str) -> ListedRule:
    """Put a statement that was removed back among the rules of a history, by its id.

    Raises:
        NotFoundError: no rule of the history has this id.
    """
    rule = _rule_named(archive, scope, name)
    _write(archive, scope, {*removed_rules(archive, scope)} - {name})
    return rule


def _rule_named(archive: Archive, scope: Scope, name: str) -> ListedRule:
    for rule in list_rules(archive, scope):
        if rule.id == name:
            return rule
    raise NotFoundError(
        f"no rule of thread {scope.thread!r} has the id {name!r}; conspectus rules --thread "
        f"{scope.thread} lists those that there are"
    )


def _write(archive: Archive, scope: Scope, names: set[str]) -> None:
    archive.write_remarks(scope, RULES, {REMOVED: {"ids": sorted(names)}}, durable=True)
