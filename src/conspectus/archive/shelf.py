"""Keep records as differences from their parents, so that a long chain stays small.

A record repeats most facts of its parent, and a good part of its summary.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus._core.records import FORMAT, Record
from conspectus._drive import Flow
from conspectus._newest import Newest
from conspectus.archive.operations import Op
from conspectus.archive.scope import Namespaced
from conspectus.archive.wire import Wire, check_version, dumps

REMEMBERED = 256  # Records cached, over all scopes

_PIECE = re.compile(r"(?s).+?(?:\\n|[}\]],|\Z)")
"""In the JSON of a record: a line of a text, a fact, or an item of a list."""

LEAST = 24  # Characters of the shortest piece that is pointed to

Delta = list[str | list[int]]
"""Text, or a first piece of the base and a count: `["new", [12, 40], "new"]`."""


class Shelf:
    """The records of an archive.

    A record is written whole, or as a delta of its parent's text with that text's digest. Branches
    may commit the same record with other bills, so the bill is kept beside that text. Readers of a
    chain read the parents anyway, and without its parent a record's coverage is unknown.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._known: Newest[tuple[Namespaced, str], Record] = Newest(REMEMBERED)

    def forget(self) -> None:
        """Empty the cache."""
        self._known.clear()

    def ops_flow(self, scope: Namespaced, records: Sequence[Record]) -> Flow[list[Op]]:
        """Return the operations that write records.

        The parent of a record is among them, in the store, or unknown.
        """
        given = {one.id: _text(one) for one in records}
        ops: list[Op] = []
        for one in records:
            base = given.get(one.parent or "")
            if base is None and one.parent is not None:
                found = yield from self._back_flow(scope, one.parent, whole_chain=False)
                base = found[0].text if found else None
            data: dict[str, Any] = {"record": json.loads(given[one.id])}
            if base is not None:
                data = _short(one.id, str(one.parent), base, given[one.id])
            if one.bill:
                data["bill"] = dict(one.bill)
            ops.append(self._wire.put_op(scope.namespace("records"), one.id, data))
        return ops

    def shorter_flow(self, scope: Namespaced) -> Flow[list[Op]]:
        """Return the operations that rewrite whole records as deltas where possible."""
        values = yield from self._wire.everything(scope.namespace("records"))
        by_id = {name: data for data in values if (name := _id_of(data)) is not None}
        ops: list[Op] = []
        every = _all(by_id)
        for name, read in every.items():
            base = every.get(read.record.parent or "")
            if "record" in by_id[name] and base is not None:
                data = _short(name, base.record.id, base.text, read.text)
                data |= {key: by_id[name][key] for key in ("expires", "bill") if key in by_id[name]}
                ops.append(self._wire.put_op(scope.namespace("records"), name, data))
        return ops

    def one_flow(self, scope: Namespaced, record_id: str) -> Flow[Record | None]:
        """Return a record; None if it or one that it is made of is missing or damaged."""
        found = yield from self._back_flow(scope, record_id, whole_chain=False)
        return found[0].record if found else None

    def ancestry_flow(self, scope: Namespaced, record_id: str) -> Flow[list[Record] | None]:
        """Return a record and its ancestors, newest first; None if one is missing or damaged."""
        found = yield from self._back_flow(scope, record_id, whole_chain=True)
        return None if found is None else [one.record for one in found]

    def every_flow(self, scope: Namespaced) -> Flow[list[Record]]:
        """Return all sound records of a scope, in no order."""
        values = yield from self._wire.everything(scope.namespace("records"))
        by_id = {name: data for data in values if (name := _id_of(data)) is not None}
        return [one.record for one in _all(by_id).values()]

    def _back_flow(
        self, scope: Namespaced, record_id: str, *, whole_chain: bool
    ) -> Flow[list[_Read] | None]:
        """Return a record and those before it, up to the first or to one that is whole.

        Newest first; None if one is missing or damaged.
        """
        steps: dict[str, _Read | Mapping[str, Any]] = {}
        wanted: str | None = record_id
        while wanted is not None:
            if wanted in steps:
                return None
            # The newest is always read from the store: if it is there, so are its ancestors.
            known = self._known.get((scope, wanted)) if steps else None
            if known is not None:
                steps[wanted] = _Read(known, _text(known))
                wanted = known.parent if whole_chain else None
                continue
            place = scope.namespace("records")
            data = (yield from self._wire.read(place, [wanted])).get(wanted)
            if data is None:
                return None
            steps[wanted] = data
            wanted = _parent_of(data) if whole_chain or "delta" in data else None
        found: list[_Read] = []
        for name, one in reversed(steps.items()):
            read = one if isinstance(one, _Read) else _made(name, one, found[-1] if found else None)
            if read is None:
                return None
            self._remember(scope, read)
            found.append(read)
        return found[::-1]

    def _remember(self, scope: Namespaced, read: _Read) -> None:
        """Cache a record, unless it can expire or a newer version wrote more than we know of."""
        if self._wire.ttl is None and _text(read.record) == read.text:
            self._known.put((scope, read.record.id), read.record)


@dataclass(frozen=True, slots=True)
class _Read:
    """A record and its stored text."""

    record: Record
    text: str


def _text(record: Record) -> str:
    """Return the text on which children stand: without the bill, which may differ each time."""
    return dumps({key: value for key, value in record.to_json().items() if key != "bill"})


def _made(name: str, data: Mapping[str, Any], before: _Read | None) -> _Read | None:
    """Return the record in a value; None if it is damaged or has another id."""
    try:
        if "delta" not in data:
            text = dumps(data["record"])
        elif before is None or digest(before.text) != data["sum"]:
            return None
        else:
            text = applied(before.text, data["delta"])
        plain = json.loads(text)
        check_version(plain.get("v"), FORMAT)
        if "bill" in data:
            plain["bill"] = data["bill"]
        record = Record.from_json(plain)
        return _Read(record, text) if record.id == name else None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _short(name: str, parent: str, base: str, text: str) -> dict[str, Any]:
    return {"id": name, "base": parent, "sum": digest(base), "delta": delta(base, text)}


def _all(by_id: Mapping[str, Mapping[str, Any]]) -> dict[str, _Read]:
    """Return the sound records among some values."""
    made: dict[str, _Read | None] = {}
    for name in by_id:
        down: dict[str, None] = {}  # it and those it is made of, as far as they are not made yet
        while name in by_id and name not in made and name not in down:
            down[name] = None
            name = str(by_id[name].get("base"))
        for one in reversed(down):
            made[one] = _made(one, by_id[one], made.get(str(by_id[one].get("base"))))
    return {name: one for name, one in made.items() if one is not None}


def _id_of(data: Mapping[str, Any]) -> str | None:
    named = data.get("id") if "delta" in data else (data.get("record") or {}).get("id")
    return named if isinstance(named, str) else None


def _parent_of(data: Mapping[str, Any]) -> str | None:
    if "delta" in data:
        return str(data.get("base"))
    parent = (data.get("record") or {}).get("parent")
    return parent if isinstance(parent, str) else None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def delta(base: str, text: str) -> Delta:
    """Return the delta that makes a text of a base.

    Example:
        >>> delta('{"facts":[{"quote":"one is here"},{"quote":"two"}]}',
        ...       '{"facts":[{"quote":"one is here"},{"quote":"three"}]}')
        [[0, 1], '{"quote":"three"}]}']
    """
    pieces = _PIECE.findall(base)
    place: dict[str, int] = {}
    for at, piece in enumerate(pieces):
        place.setdefault(piece, at)
    made: Delta = []
    for piece in _PIECE.findall(text):
        last = made[-1] if made else None
        following = last[0] + last[1] if isinstance(last, list) else len(pieces)
        if isinstance(last, list) and following < len(pieces) and pieces[following] == piece:
            last[1] += 1
        elif len(piece) >= LEAST and piece in place:
            made.append([place[piece], 1])
        elif isinstance(last, str):
            made[-1] = last + piece
        else:
            made.append(piece)
    return made


def applied(base: str, made: Sequence[Any]) -> str:
    """Apply a delta to its base; one of another base is a `ValueError`."""
    pieces = _PIECE.findall(base)
    parts: list[str] = []
    for one in made:
        if isinstance(one, str):
            parts.append(one)
            continue
        start, count = one
        if not 0 <= start < start + count <= len(pieces):
            raise ValueError("it points beyond its base")
        parts += pieces[start : start + count]
    return "".join(parts)
