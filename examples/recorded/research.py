"""The tools of the reading room: a small fixed collection, notes in real files, a to-do list."""

from __future__ import annotations

import csv
import re
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from recorded.tools import Refused, Toolbox, calculate

CORPUS = Path(__file__).with_name("corpus")
MOST_HITS = 12
MOST_ROWS = 40
STATES = ("pending", "in_progress", "completed")


class ReadingRoom:
    """A session's documents and notes; the notes live in a folder that goes with it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="notes")
        self._notes = Path(self._folder.name)
        self._tables = sqlite3.connect(":memory:")
        for file in sorted(CORPUS.glob("*.csv")):
            self._load(file)

    def tools(self) -> Toolbox:
        """The tools by name."""
        names = (
            *("list_documents", "search_documents", "read_document", "query_table"),
            *("write_todos", "write_note", "read_note", "replace_in_note", "count_words"),
        )
        return Toolbox({name: getattr(self, name) for name in names} | {"calculate": calculate})

    def list_documents(self) -> str:
        """The documents, with their first line and their length."""
        shown = []
        for file in self._documents():
            lines = _lines(file)
            shown.append(f"{file.name} ({len(lines)} lines): {lines[0]}")
        return "\n".join(shown)

    def search_documents(self, query: str) -> str:
        """Lines that hold all words of a query, as `document:line: text`."""
        words = query.lower().split()
        hits = [
            f"{file.name}:{number}: {line.strip()}"
            for file in self._documents()
            for number, line in enumerate(_lines(file), 1)
            if words and all(word in line.lower() for word in words)
        ]
        if not hits:
            raise Refused(f"no line holds all of: {query}")
        rest = f"\n({len(hits) - MOST_HITS} more)" if len(hits) > MOST_HITS else ""
        return "\n".join(hits[:MOST_HITS]) + rest

    def read_document(self, name: str) -> str:
        """A whole document, with numbered lines."""
        if name not in {file.name for file in self._documents()}:
            raise Refused(f"there is no document {name}")
        lines = _lines(CORPUS / name)
        return "\n".join(f"{number:>3} {line}" for number, line in enumerate(lines, 1))

    def query_table(self, sql: str) -> str:
        """Ask the tables in SQL; a table has the name of its file, with `_` for `-`."""
        if not re.match(r"\s*select\b", sql, re.IGNORECASE):
            raise Refused("only SELECT can be asked")
        try:
            found = self._tables.execute(sql)
        except sqlite3.Error as problem:
            raise Refused(str(problem)) from problem
        names = [column[0] for column in found.description]
        rows = [[_shown(value) for value in row] for row in found.fetchmany(MOST_ROWS)]
        return "\n".join(" | ".join(row) for row in [names, *rows])

    def write_todos(self, todos: list[dict[str, str]]) -> str:
        """Put a list of tasks in the place of the one before."""
        for todo in todos:
            if todo.get("status") not in STATES or not todo.get("content"):
                raise Refused(f"a task has content and status, one of {', '.join(STATES)}")
        open_ones = sum(todo["status"] != "completed" for todo in todos)
        return f"{len(todos)} tasks, {open_ones} of them open"

    def write_note(self, path: str, text: str) -> str:
        """Write a note; one of the same name is replaced."""
        file = self._note(path)
        before = "replaced" if file.exists() else "created"
        file.write_text(text, encoding="utf-8")
        return f"{before} {path}, {len(text.splitlines())} lines, {len(text.split())} words"

    def read_note(self, path: str) -> str:
        """A whole note."""
        return self._existing(path).read_text(encoding="utf-8")

    def replace_in_note(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs once in a note."""
        file = self._existing(path)
        text = file.read_text(encoding="utf-8")
        if (count := text.count(old)) != 1:
            raise Refused(f"the text occurs {count} times in {path}; it must occur once")
        file.write_text(text.replace(old, new), encoding="utf-8")
        return f"changed {path}, now {len(text.replace(old, new).split())} words"

    def count_words(self, path: str) -> str:
        """Number of words of a note."""
        return f"{path}: {len(self._existing(path).read_text(encoding='utf-8').split())} words"

    def _documents(self) -> list[Path]:
        return sorted(file for file in CORPUS.iterdir() if file.suffix in (".txt", ".csv"))

    def _note(self, path: str) -> Path:
        if not re.fullmatch(r"[a-z0-9-]+\.md", path):
            raise Refused(f"{path} is no name of a note, such as energy.md")
        return self._notes / path

    def _existing(self, path: str) -> Path:
        if not (file := self._note(path)).is_file():
            notes = ", ".join(sorted(one.name for one in self._notes.iterdir())) or "none"
            raise Refused(f"there is no note {path}; there are: {notes}")
        return file

    def _load(self, file: Path) -> None:
        with file.open(encoding="utf-8", newline="") as opened:
            names, *rows = csv.reader(opened)
        table = file.stem.replace("-", "_")
        columns = ", ".join(
            f"{name} {'TEXT' if '-' in rows[0][at].lstrip('-') else 'REAL'}"
            for at, name in enumerate(names)
        )
        self._tables.execute(f"CREATE TABLE {table} ({columns})")
        for row in rows:
            self._tables.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _shown(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
