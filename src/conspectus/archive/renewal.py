"""Bring an archive of an earlier version up to the form of this one.

Only values that never change are rewritten: originals, records and drafts. The head is small, and
an agent may move it at the same moment.
"""

from __future__ import annotations

from typing import Any

from conspectus._drive import Flow
from conspectus.archive.operations import Item, Op
from conspectus.archive.originals import Originals
from conspectus.archive.scope import ROOT, Found
from conspectus.archive.shelf import Shelf
from conspectus.archive.wire import FORMAT, Wire, expired, unpack

LABELS = 5  # Labels of the namespace of one history

AT_ONCE = 200
"""Values rewritten in one batch; after an interruption the next run goes on from there."""


def renew_flow(wire: Wire) -> Flow[int]:
    """Rewrite the values of an earlier version, and return their number."""
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
    """Return the data of an older value, but not if it has a semantic index.

    Such a value would have to be embedded again.
    """
    value: Any = item.value
    if not isinstance(value, dict) or value.get("v") == FORMAT or "text" in value:
        return None
    data = unpack(item)
    return None if data is None or expired(data) else data
