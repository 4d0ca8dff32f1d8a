"""What a store holds, as it is read: an archive packs its values, and a test looks into them."""

import json
from base64 import b64decode
from typing import Any, NamedTuple

from conspectus.archive import Archive
from conspectus.archive.sqlite import SqliteTables
from conspectus.archive.values import unpacked


class Stored(NamedTuple):
    """One value: where it lies, and its data as JSON text."""

    namespace: tuple[str, ...]
    key: str
    text: str


def stored(store: Any, *prefix: str) -> list[Stored]:
    """Every value below a namespace, unpacked where an archive has packed it."""
    if isinstance(store, Archive):
        return in_tables(store)
    found = []
    for item in store.search(prefix, limit=100_000):
        packed = b64decode(item.value["z"]) if "z" in item.value else b""
        data = unpacked(packed) if packed else item.value
        text = json.dumps(data, ensure_ascii=False, default=repr)
        found.append(Stored(tuple(item.namespace), item.key, text))
    return found


def in_tables(archive: Archive) -> list[Stored]:
    """Every row of an archive in SQLite, and every word of its index."""
    tables = archive.backend
    assert isinstance(tables, SqliteTables)
    with tables.transaction(writes=False) as run:
        found = [
            Stored((table,), str(name), json.dumps(unpacked(body), ensure_ascii=False))
            for table, column in (("item", "number"),)
            for name, body in run(f"SELECT {column}, body FROM {table}")
        ]
        rows = run("SELECT name, about FROM item")
        found += [Stored(("original",), "", f"{name} {about}") for name, about in rows]
        return found + [Stored(("words",), "", word) for word in words_in(run)]


def words_in(run: Any) -> list[str]:
    """The words of an index, stemmed."""
    run(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'words', 'row')"
    )
    return [word for (word,) in run("SELECT term FROM temp.vocabulary")]
