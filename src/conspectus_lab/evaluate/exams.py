"""Read questions with evidence and planted statements, for runs in a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from conspectus.errors import InputError


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a run, with its evidence.

    Attributes:
        evidence: groups of texts; one of each group must stand in view.
        kind: its subject, such as `goal`, `rule`, `done`, `state`, `finding` or `next`.
        answer: for people.
    """

    question: str
    evidence: tuple[tuple[str, ...], ...]
    kind: str = "question"
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Planted:
    """A statement of a user to plant in a run.

    Attributes:
        id: its name.
        text: the words of the message.
        evidence: groups of texts; one of each group must stand in view.
        kind: such as `rule`, `preference`, `decision`, `fact` or `safety`.
        stale: texts that it makes obsolete: they may only stand before it.
        replaces: id of the statement that it makes obsolete.
    """

    id: str
    text: str
    evidence: tuple[tuple[str, ...], ...]
    kind: str = "statement"
    stale: tuple[str, ...] = ()
    replaces: str | None = None


T = TypeVar("T")
_ASKED, _PLANTED = TypeAdapter(list[Asked]), TypeAdapter(list[Planted])


def asked_of(data: object, name: str) -> tuple[Asked, ...]:
    """Read the questions of a `NAME.exam.json`.

    Args:
        data: a list of objects with `question`, `evidence` (lists of alternative texts), and
            perhaps `kind` and `answer`; other keys are ignored.
        name: the file, for errors.

    Raises:
        InputError: it has another form; says where.

    Example:
        >>> asked_of([{"question": "Which key?", "evidence": [["K-77"]]}], "a")[0].evidence
        (('K-77',),)
    """
    return tuple(_read(_ASKED, data, name, '{"question": "...", "evidence": [["text"]]}'))


def planted_of(data: object, name: str) -> tuple[Planted, ...]:
    """Read the statements of a `--statements` file; see `asked_of`.

    Example:
        >>> said = {"id": "s1", "text": "Never push.", "evidence": [["never push"]]}
        >>> planted_of([said], "a")[0].kind
        'statement'
    """
    form = '{"id": "...", "text": "...", "evidence": [["text"]]}'
    return tuple(_read(_PLANTED, data, name, form))


def _read(reader: TypeAdapter[list[T]], data: object, name: str, form: str) -> list[T]:
    if not isinstance(data, list) or not all(isinstance(row, Mapping) for row in data):
        raise InputError(f"{name} must hold a JSON list of objects such as {form}")
    try:
        return reader.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise InputError(f"{name}: {where}: {first['msg']}; give objects such as {form}") from error
