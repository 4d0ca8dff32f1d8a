"""Keep an archive in SQL tables, the same in SQLite and in PostgreSQL."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import wraps
from itertools import chain
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from conspectus.archive.backend import KINDS, Commit, Kind, Listed, Original
from conspectus.archive.scope import Scope
from conspectus.archive.values import archived, original_of, packed, unpacked
from conspectus.errors import ArchiveError

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA = (
    "CREATE TABLE scope (id {serial}, tenant TEXT NOT NULL, thread TEXT NOT NULL, "
    "session TEXT NOT NULL, name {bytes} NOT NULL, head TEXT, next BIGINT NOT NULL, "
    "expires DOUBLE PRECISION, UNIQUE (tenant, thread, session))",
    "CREATE TABLE original (scope BIGINT NOT NULL, key {bytes} NOT NULL, number BIGINT NOT NULL, "
    "size INTEGER NOT NULL, about TEXT NOT NULL, expires DOUBLE PRECISION, "
    "PRIMARY KEY (scope, key)) {clustered}",
    "CREATE TABLE body (number {number} PRIMARY KEY, body {bytes} NOT NULL)",
    *(
        f"CREATE TABLE {kind} (scope BIGINT NOT NULL, name TEXT NOT NULL, body {{bytes}} NOT NULL, "
        "expires DOUBLE PRECISION, PRIMARY KEY (scope, name))"
        for kind in KINDS
    ),
)
"""`number` counts the passages of a scope: that of an original is its first passage's."""

SPAN = 32
"""Bits of a passage's number. In `body` and in the index of words it stands behind the scope's."""

AT_ONCE = 500  # Keys in one statement
_ALIVE = "(expires IS NULL OR expires > ?)"


class Run(Protocol):
    """A transaction under way."""

    def __call__(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run one statement, with `?` for each value, and return its rows."""

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of many rows."""


def _one(
    work: Callable[Concatenate[Tables, Run, P], T], *, writes: bool
) -> Callable[Concatenate[Tables, P], T]:
    """Return work as one transaction."""

    @wraps(work)
    def done(self: Tables, *args: P.args, **kwargs: P.kwargs) -> T:
        def whole() -> T:
            with self.transaction(writes=writes) as run:
                return work(self, run, *args, **kwargs)

        return self.within(whole)

    return cast("Callable[Concatenate[Tables, P], T]", done)


class Tables(ABC):
    """The work of an archive as SQL; see `Backend` for what the methods do."""

    def __init__(self, ttl: float | None) -> None:
        self.ttl = ttl

    @abstractmethod
    def transaction(self, *, writes: bool) -> AbstractContextManager[Run]:
        """Begin a transaction, and commit it at the end."""

    @abstractmethod
    def index(self, run: Run, rows: Sequence[tuple[int, str]]) -> None:
        """Add passages to the index of words."""

    @abstractmethod
    def unindex(self, run: Run, rows: Sequence[tuple[int, str]]) -> None:
        """Delete passages from the index of words."""

    @abstractmethod
    def look_up(self, run: Run, word: str, low: int, high: int) -> list[Any]:
        """Return a row for each passage between two numbers that holds a word, counted from low."""

    def within(self, work: Callable[[], T]) -> T:
        """Wait for a transaction no longer than the caller is willing to."""
        return work()

    def scrub(self) -> None:
        """Take what was deleted out of the files, too."""
        return

    # Originals

    def _originals(self, run: Run, scope: Scope, keys: Sequence[str]) -> dict[str, bytes]:
        number, _ = self._scope(run, scope)
        rows: list[Any] = []
        for part in _parts(keys):
            rows += run(
                "SELECT key, body.body FROM original JOIN body ON body.number = ? + "
                f"original.number WHERE scope = ? AND key IN ({_marks(part)}) AND {_ALIVE}",
                (number << SPAN, number, *map(short, part), time.time()),
            )
        return {long(key): bytes(body) for key, body in rows}

    def _keep(self, run: Run, scope: Scope, originals: Sequence[Original]) -> None:
        number, after = self._scope(run, scope, make=True)
        base, ends, known = number << SPAN, self._ends(), dict[bytes, int]()
        for part in _parts([one.key for one in originals]):
            known |= {
                bytes(key): at
                for key, at in run(
                    f"SELECT key, number FROM original WHERE scope = ? AND key IN ({_marks(part)})",
                    (number, *map(short, part)),
                )
            }
        new, bodies, words = [], [], []
        for one in originals:
            key = short(one.key)
            if key not in known:
                size = sum(passage.count(" ") + 1 for passage in one.passages)
                new.append((number, key, after, size, one.about, ends))
                words += [(base + after + at, text) for at, text in enumerate(one.passages)]
                known[key] = after
                after += len(one.passages)
            bodies.append((base + known[key], one.body))
        run.many("INSERT INTO original VALUES (?, ?, ?, ?, ?, ?)", new)
        run.many(
            "INSERT INTO body VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET body = "
            "excluded.body",
            bodies,
        )
        if len(new) < len(originals):
            keys = [(ends, number, short(one.key)) for one in originals]
            run.many("UPDATE original SET expires = ? WHERE scope = ? AND key = ?", keys)
        self.index(run, words)
        run("UPDATE scope SET next = ? WHERE id = ?", (after, number))

    def _listed(self, run: Run, scope: Scope, keys: Sequence[str]) -> list[Listed]:
        sql = f"SELECT key, number, size, about FROM original WHERE scope = ? AND {_ALIVE}"
        rows = run(sql, (self._scope(run, scope)[0], time.time()))
        return [(long(key), number, size, about) for key, number, size, about in rows]

    def _holding(self, run: Run, scope: Scope, words: Sequence[str]) -> dict[str, frozenset[int]]:
        low, high = self._span(self._scope(run, scope)[0])
        return {
            word: frozenset(chain.from_iterable(self.look_up(run, word, low, high)))
            for word in words
        }

    # Records, drafts, notes and the head

    def _values(
        self, run: Run, scope: Scope, kind: Kind, names: Sequence[str] | None
    ) -> dict[str, bytes]:
        number, _ = self._scope(run, scope)
        sql = f"SELECT name, body FROM {kind} WHERE scope = ? AND {_ALIVE}"
        if names is None:
            rows = run(sql, (number, time.time()))
        else:
            which = f"{sql} AND name IN ({_marks(names)})"
            rows = run(which, (number, time.time(), *names)) if names else []
        return {name: bytes(body) for name, body in rows}

    def _save(self, run: Run, scope: Scope, kind: Kind, values: Mapping[str, bytes]) -> None:
        number, _ = self._scope(run, scope, make=True)
        run.many(
            f"INSERT INTO {kind} VALUES (?, ?, ?, ?) ON CONFLICT (scope, name) DO UPDATE SET "
            "body = excluded.body, expires = excluded.expires",
            [(number, name, body, self._ends()) for name, body in values.items()],
        )

    def _head(self, run: Run, scope: Scope) -> str | None:
        rows = run(
            f"SELECT head FROM scope WHERE tenant = ? AND thread = ? AND session = ? AND {_ALIVE}",
            (*scope.hashes, time.time()),
        )
        return rows[0][0] if rows else None

    lock = ""
    """Locks the rows that a statement reads, where the transaction itself does not."""

    def _point(self, run: Run, scope: Scope, head: str) -> None:
        number, _ = self._scope(run, scope, make=True)
        run("UPDATE scope SET head = ? WHERE id = ?", (head, number))

    def _commit(self, run: Run, scope: Scope, commit: Commit) -> str | None:
        number, _ = self._scope(run, scope, make=True)
        head = self._head(run, scope)
        if commit.seen is not None and head and head not in (commit.seen, commit.record):
            return head
        self._save(run, scope, "record", {commit.record: commit.body})
        self._save(run, scope, "note", commit.names)
        if self.ttl is not None:
            renewed = [(self._ends(), number, name) for name in commit.ancestors]
            run.many("UPDATE record SET expires = ? WHERE scope = ? AND name = ?", renewed)
            self._sweep(run)
        self._point(run, scope, commit.record)
        return commit.record

    # All of it

    def _scopes(self, run: Run, tenant: str) -> list[Scope]:
        hashed = Scope(tenant, "").hashes[0]
        sql = f"SELECT name FROM scope WHERE tenant = ? AND {_ALIVE} ORDER BY id"
        return [Scope(*unpacked(bytes(name))) for (name,) in run(sql, (hashed, time.time()))]

    def _size(self, run: Run, scope: Scope) -> int:
        span = self._span(self._scope(run, scope)[0])
        sql = "SELECT coalesce(sum(length(body)), 0) FROM body WHERE number BETWEEN ? AND ?"
        return int(run(sql, span)[0][0])

    def _forget(self, run: Run, scopes: Sequence[Scope]) -> int:
        count = 0
        for scope in scopes:
            number, _ = self._scope(run, scope)
            keys = [
                long(key) for (key,) in run("SELECT key FROM original WHERE scope = ?", (number,))
            ]
            count += len(keys)
            for part in _parts(keys):
                self._drop(run, number, part)
            for kind in KINDS:
                [(kept,)] = run(f"SELECT count(*) FROM {kind} WHERE scope = ?", (number,))
                count += 0 if kind == "note" else kept
                run(f"DELETE FROM {kind} WHERE scope = ?", (number,))
            run("DELETE FROM scope WHERE id = ?", (number,))
        return count

    def _drop(self, run: Run, scope: int, keys: Sequence[str]) -> None:
        """Delete originals; the words of one go by its text, as the index does not keep them."""
        rows = run(
            "SELECT key, body.number, body.body FROM original JOIN body ON body.number = ? + "
            f"original.number WHERE scope = ? AND key IN ({_marks(keys)})",
            (scope << SPAN, scope, *map(short, keys)),
        )
        for key, number, body in rows:
            with suppress(ArchiveError):  # the number of a damaged one names nothing any more
                one = original_of(archived(long(key), bytes(body)), b"")
                self.unindex(run, [(number + at, text) for at, text in enumerate(one.passages)])
        run.many("DELETE FROM body WHERE number = ?", [(number,) for _, number, _ in rows])
        gone = [(scope, short(key)) for key in keys]
        run.many("DELETE FROM original WHERE scope = ? AND key = ?", gone)

    def _sweep(self, run: Run) -> int:
        now, by_scope = time.time(), dict[int, list[str]]()
        for scope, key in run("SELECT scope, key FROM original WHERE expires <= ?", (now,)):
            by_scope.setdefault(scope, []).append(long(key))
        for scope, keys in by_scope.items():
            for part in _parts(keys):
                self._drop(run, scope, part)
        for kind in KINDS:
            run(f"DELETE FROM {kind} WHERE expires <= ?", (now,))
        run("DELETE FROM scope WHERE expires <= ?", (now,))
        return len(by_scope)

    def forget(self, scopes: Sequence[Scope]) -> int:
        count = _one(Tables._forget, writes=True)(self, scopes)
        self.scrub()
        return count

    def sweep(self) -> None:
        if _one(Tables._sweep, writes=True)(self):
            self.scrub()

    originals = _one(_originals, writes=False)
    keep = _one(_keep, writes=True)
    listed = _one(_listed, writes=False)
    holding = _one(_holding, writes=False)
    values = _one(_values, writes=False)
    save = _one(_save, writes=True)
    head = _one(_head, writes=False)
    point = _one(_point, writes=True)
    commit = _one(_commit, writes=True)
    scopes = _one(_scopes, writes=False)
    size = _one(_size, writes=False)

    def _scope(self, run: Run, scope: Scope, *, make: bool = False) -> tuple[int, int]:
        """Return the number of a scope, and that of its next passage; -1 without one."""
        sql = "SELECT id, next FROM scope WHERE tenant = ? AND thread = ? AND session = ?"
        rows = run(sql + self.lock * make, scope.hashes)
        if not rows and make:
            name = packed([scope.tenant, scope.thread, scope.session])
            made = "INSERT INTO scope (tenant, thread, session, name, next, expires) VALUES "
            ignored = "(?, ?, ?, ?, 0, ?) ON CONFLICT (tenant, thread, session) DO NOTHING"
            run(made + ignored, (*scope.hashes, name, self._ends()))
            rows = run(sql + self.lock, scope.hashes)
        elif make:  # it lives as long as whatever is kept in it
            ends, number = self._ends(), rows[0][0]
            if ends is None:
                run("UPDATE scope SET expires = NULL WHERE id = ? AND expires > 0", (number,))
            else:
                run(
                    "UPDATE scope SET expires = ? WHERE id = ? AND expires < ?",
                    (ends, number, ends),
                )
        return (rows[0][0], rows[0][1]) if rows else (-1, 0)

    def _span(self, scope: int) -> tuple[int, int]:
        return scope << SPAN, (scope + 1 << SPAN) - 1

    def _ends(self) -> float | None:
        return None if self.ttl is None else time.time() + self.ttl


def short(key: str) -> bytes:
    """Return a key as the tables have it: a hash as its bytes."""
    content, dash, count = key.partition("-")
    try:
        raw = bytes.fromhex(content)
        if raw.hex() != content:
            raise ValueError
        if len(raw) == 16 and not dash:
            return raw
        if len(raw) == 14 and dash and str(int(count)) == count and int(count) < 1 << 24:
            return raw + int(count).to_bytes(3, "big")
    except (ValueError, OverflowError):
        pass
    return b"\xff" * 18 + key.encode("utf-8", "surrogatepass")


def long(kept: bytes) -> str:
    """Return the key that `short` wrote."""
    raw = bytes(kept)
    if len(raw) == 16:
        return raw.hex()
    if len(raw) == 17:
        return f"{raw[:14].hex()}-{int.from_bytes(raw[14:], 'big')}"
    return raw[18:].decode("utf-8", "surrogatepass")


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[at : at + AT_ONCE] for at in range(0, len(keys), AT_ONCE))
