"""What a store holds, as it is read: an archive packs its values, and a test looks into them."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore

from conspectus.archive import Archive, operations
from conspectus.archive.file_store import FileStore
from conspectus.archive.wire import unpack
from conspectus.recall.postings import terms_in


class Stored(NamedTuple):
    """One value: where it lies, and its data as JSON text; of a search index its words, too."""

    namespace: tuple[str, ...]
    key: str
    text: str


def stored(store: Any, *prefix: str) -> list[Stored]:
    """Every value below a namespace, unpacked where an archive has packed it."""
    found = []
    for item in store.search(prefix, limit=100_000):
        data = unpack(item) if "z" in item.value else item.value
        assert data is not None, f"{item.key} is damaged"
        text = json.dumps(data, ensure_ascii=False, default=repr)
        if item.namespace[-1] == "index":
            text += "\n".join(term for block in data["blocks"] for term in terms_in(block))
        found.append(Stored(tuple(item.namespace), item.key, text))
    return found


class OfFile(BaseStore):
    """The store of a file, with the methods and the operations of LangGraph's stores."""

    supports_ttl = takes_bytes = True

    def __init__(self, inner: FileStore) -> None:
        self.inner = inner

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        return self.inner.batch([_ours(op) for op in ops])

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        raise NotImplementedError


def _ours(op: Any) -> Any:
    """An operation of LangGraph's as an archive has it."""
    if type(op).__name__ == "ListNamespacesOp":
        [begins] = op.match_conditions
        return operations.NamespacesOp(begins.path, op.limit)
    kind = getattr(operations, type(op).__name__)
    return kind(**{name: getattr(op, name) for name in kind._fields})


def store_of(archive: Archive) -> BaseStore:
    """The store that an archive lies in."""
    store = archive.wire.store
    return OfFile(store) if isinstance(store, FileStore) else store
