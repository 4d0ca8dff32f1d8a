"""What a store holds, as it is read: an archive packs its values, and a test looks into them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from conspectus.archive.postings import Part
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
            part = Part.unpack(data)
            assert part is not None, f"{item.key} is damaged"
            text += part.terms.decode("utf-8", "surrogatepass")
        found.append(Stored(tuple(item.namespace), item.key, text))
    return found
