"""An archive of an earlier version brought up to the form of this one.

Only what never changes is rewritten: originals, records and drafts. What names the record in force
is small, and may be moved by an agent at the same moment.
"""

from __future__ import annotations

from typing import Any

from conspectus._drive import Flow
from conspectus.archive.operations import Item, Op
from conspectus.archive.originals import Originals
from conspectus.archive.scope import ROOT, Found
from conspectus.archive.shelf import Shelf
from conspectus.archive.wire import FORMAT, Wire, expired, unpack

LABELS = 5
"""Labels of a namespace of one history."""

AT_ONCE = 200
"""Values rewritten in one batch: whoever is stopped between two batches goes on from there."""


def renew_flow(wire: Wire) -> Flow[int]:
    """Rewrite what an earlier version wrote; answers how many values that were.

    Raises:
        ArchiveError: the store fails, or does not list its namespaces; what was rewritten stays so.
    """
    count = 0
    for place in (yield from wire.namespaces((ROOT,))):
        if len(place) != LABELS:
            continue
        scope, kind = Found(place[:-1]), place[-1]
        ops: list[Op] = []
        if kind == "records":
            ops = yield from Shelf(wire).shorter_flow(scope)
        elif kind in ("messages", "drafts"):
            items = yield from wire.items(place)
            old = {item.key: data for item in items if (data := _old(item)) is not None}
            if kind == "drafts":
                ops = [wire.put_op(place, key, data) for key, data in old.items()]
            for begin in range(0, len(old) if kind == "messages" else 0, AT_ONCE):
                part = dict(list(old.items())[begin : begin + AT_ONCE])
                yield from wire.batch(Originals(wire).ops(scope, part, {}))
                count += len(part)
        for begin in range(0, len(ops), AT_ONCE):
            yield from wire.batch(ops[begin : begin + AT_ONCE])
        count += len(ops)
    return count


def _old(item: Item) -> dict[str, Any] | None:
    """What a value of an earlier form holds. One with an index by meaning stays as it is, as it
    would have to be embedded again."""
    value: Any = item.value
    if not isinstance(value, dict) or value.get("v") == FORMAT or "text" in value:
        return None
    data = unpack(item)
    return None if data is None or expired(data) else data
