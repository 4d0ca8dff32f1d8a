"""Questions about a transcript, and the files that a user writes for a measurement."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from conspectus.errors import InputError

EXAM_FORM = '[{"question": "...", "evidence": [["text", "or this"]]}]'


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a transcript, with its evidence.

    Attributes:
        kind: its subject, such as `goal`, `rule`, `done` or `next`; `answer` is for people.
    """

    question: str
    evidence: tuple[tuple[str, ...], ...]  # groups of texts; one of each group must be in view
    kind: str = "question"
    answer: str = ""

    def missing(self, text: str) -> tuple[str, ...]:
        """Return the first text of each group without any text in `text`, which `plain` wrote."""
        return tuple(
            group[0] for group in self.evidence if not any(plain(each) in text for each in group)
        )


_QUESTIONS = TypeAdapter(list[Question])


def plain(text: str) -> str:
    """Return a text without differences of case, quotation marks, markup and white space.

    Example:
        >>> plain('At most  "3 retries"')
        'at most 3 retries'
    """
    return " ".join(text.casefold().translate(_MARKS).split())


_MARKS: dict[int, Any] = str.maketrans(dict.fromkeys("\"'`*“”‘’", ""))


def read_data(file: Path, advice: str = "") -> Any:
    """Read a JSON file.

    Raises:
        InputError: it cannot be read. `advice` is added to the error of a damaged file.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is no JSON: {error}{advice}") from error


def read_questions(file: Path) -> tuple[Question, ...]:
    """Read a `NAME.exam.json`: a list of objects with `question` and `evidence`.

    Raises:
        InputError: it cannot be read or has another form.
    """
    data = read_data(file)
    try:
        return tuple(_QUESTIONS.validate_python(data))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"{file}: {field}: {first['msg']}; write {EXAM_FORM}") from error
