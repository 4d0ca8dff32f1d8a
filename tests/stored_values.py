"""What a store holds, as it is read: an archive packs its values, and a test looks into them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from conspectus.archive.postings import terms_in
from conspectus.archive.wire import unpack


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
