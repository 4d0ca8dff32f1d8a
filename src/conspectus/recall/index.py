"""The search index of an archive: parts in the archive's own store, beside the originals.

Each record has a part with the terms of its messages. Many parts in a row become one, so that a
long thread has few. A part is a cache: if it is lost or damaged, it is built again from the
originals. It is in its thread's namespace, so it shares the thread's isolation, file and time to
live, and is forgotten with it. Two processes that build the same part write the same.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

from conspectus._core.records import Chain
from conspectus._drive import Flow, Io
from conspectus._langchain import is_memory_store
from conspectus.archive.flows import ArchiveFlows
from conspectus.archive.operations import PutOp
from conspectus.archive.scope import Scope
from conspectus.archive.trouble import unquoted
from conspectus.archive.values import Archived, from_data, manifest
from conspectus.errors import ArchiveError
from conspectus.events.notes import noted
from conspectus.messages.recalled import says_again
from conspectus.recall.corpus import Corpus, is_start
from conspectus.recall.postings import DamagedError, Doc, Part, Passage, digest
from conspectus.recall.steps import Act
from conspectus.recall.words import names_of, terms_of

logger = logging.getLogger("conspectus")

TOGETHER = 16  # Parts in a row that become one
REMEMBERED = 200_000  # Passages cached, over all histories
AT_ONCE = 200  # Messages read at a time
LAST = 400  # Characters at the end of a message that are searched for its question mark
WHOLE = "="  # Opens a whole identifier among words; no word holds it

PASSAGE = 480  # Bytes of a passage, about 120 tokens in any script: a few sentences
SHORT = 1.5  # Passages up to whose size a message stays whole, as a rest of a few words says little
MOST = 2_000  # Most passages of one message; those of a larger one are longer

_ENDS = tuple(re.compile(form) for form in (r"\n\s*\n", r"\n", r"[.!?;]\s|[。！？；…]", r"\s"))
"""Where a text divides: after a paragraph, or else a line, a sentence, a word."""

_MAKING = Lock()
_SPEAKER = re.compile(r"\s*(?:\[[^\]\n]{1,60}\]\s*)?(?P<name>[^\W\d_][^\n:：\[\]]{0,40}?)\s?[:：]")
"""The speaker's name in a transcript, if the message has none: `[date] Name: ...`."""

_ASKS = re.compile(r"[?？][\s\"'”’)»」』]*(?:\[[^\]]*\]\s*)?\Z")
"""The end of a question, perhaps with a bracket behind it, such as a picture's description."""


def index_of(archive: ArchiveFlows) -> SearchIndex:
    """Return the index of an archive; from the first call on, each commit adds to it."""
    with _MAKING:
        if archive.follower is None:
            archive.follower = SearchIndex(archive)
        assert isinstance(archive.follower, SearchIndex)
        return archive.follower


class SearchIndex:
    """The index of one archive, in the archive's own store; see `index_of`."""

    def __init__(self, archive: ArchiveFlows) -> None:
        self._wire, self._shelf = archive.wire, archive.shelf
        self._originals = archive.originals
        self._lock = Lock()
        self._corpora: OrderedDict[tuple[Scope, str], Corpus] = OrderedDict()
        self._names: dict[object, dict[object, list[str]]] = {}

    def corpus_flow(self, scope: Scope, chain: Chain, anew: bool = False) -> Flow[Corpus]:
        """Return the corpus of a chain; `anew` rebuilds it, as cached parts are damaged."""
        if not chain:
            return Corpus([], [])
        name = scope, chain[-1].id
        with self._lock:
            corpus = None if anew else self._corpora.get(name)
        if corpus is None or _over(corpus.expires):
            parts = yield from self._parts_flow(scope, _blocks(chain), anew)
            corpus = yield Io(partial(Corpus, parts, manifest(chain)))
        if corpus.gone and self._wire.ttl is None:
            # An original that is gone may come back with a restored archive.
            back = yield from self._wire.read(scope.namespace("messages"), corpus.gone)
            if back:
                yield from self.drop_flow(scope, chain, set(back))
                parts = yield from self._parts_flow(scope, _blocks(chain))
                corpus = yield Io(partial(Corpus, parts, manifest(chain)))
        with self._lock:
            self._corpora[name] = corpus
            self._corpora.move_to_end(name)
            while sum(len(one.starts) for one in self._corpora.values()) > REMEMBERED and (
                len(self._corpora) > 1
            ):
                self._corpora.popitem(last=False)
        return corpus

    def named_flow(self, scope: Scope, chain: Chain, name: str) -> Flow[list[str]]:
        """Return keys of messages by id or citation, in order.

        A store in memory has no index before the first query, and none is built for a name.
        """
        head = (scope, chain[-1].id) if chain else None
        with self._lock:
            known, names = head in self._corpora, self._names.get(head)
        if known or not is_memory_store(self._wire.store):
            corpus = yield from self.corpus_flow(scope, chain)
            found: list[str] = yield Io(partial(corpus.named, name))
            return found
        keys = manifest(chain)
        if names is None:
            names = {}
            for start in range(0, len(keys), AT_ONCE):
                data = yield from self._originals.read_flow(scope, keys[start : start + AT_ONCE])
                for key, one in data.items():
                    for called in {(one or {}).get("derived"), (one or {}).get("cite")}:
                        names.setdefault(called, []).append(key)
            with self._lock:
                self._names = {head: names}  # of the history that was asked last
        named = {*names.get(name, ()), *(k for k in keys if is_start(name) and k.startswith(name))}
        return [key for key in keys if key in named]

    def committed_flow(self, scope: Scope, record_id: str) -> Flow[None]:
        """Index a record, and join parts if there are many.

        If this fails, a later recall does it. A store in memory is indexed by recall alone, as no
        other process reads it.
        """
        if is_memory_store(self._wire.store):
            return
        with _later("a record is not indexed yet"):
            found = (yield from self._shelf.ancestry_flow(scope, record_id)) or ()
            size = 1
            while found and len(found) % (size * TOGETHER) == 0:
                size *= TOGETHER
            if found:
                yield from self._parts_flow(scope, [tuple(reversed(found[:size]))])

    def drop_flow(self, scope: Scope, chain: Chain, keys: Collection[str]) -> Flow[None]:
        """Delete the parts of a chain that know some messages; they are built again without."""
        wanted = set(keys)
        held = [block for block in _blocks(chain) if wanted.intersection(manifest(block))]
        with self._lock:
            self._forget(lambda one: one == scope)
        yield from self._delete(scope, held)

    def forgotten(self, tenant: str, thread: str | None = None) -> None:
        """Empty the cache of a tenant or of one thread."""
        with self._lock:
            self._forget(lambda one: one.tenant == tenant and thread in (None, one.thread))

    def _forget(self, which: Callable[[Scope], bool]) -> None:
        self._names = {}
        for name in [name for name in self._corpora if which(name[0])]:
            del self._corpora[name]

    def _parts_flow(
        self, scope: Scope, blocks: Sequence[Chain], anew: bool = False
    ) -> Flow[list[Part]]:
        names = [] if anew else [_name(block) for block in blocks]
        read = yield from self._wire.read(scope.namespace("index"), names)
        parts = []
        for block in blocks:
            packed = read.get(_name(block))
            part: Part | None = None
            if packed:
                part = yield Io(partial(Part.unpack, packed, manifest(block)))
            if part is None:
                part = yield from self._built(scope, block)
                yield from self._write(scope, block, part)
            parts.append(part)
        return parts

    def _built(self, scope: Scope, block: Chain) -> Flow[Part]:
        if len(block) > 1:
            size = len(block) // TOGETHER
            smaller = [block[at : at + size] for at in range(0, len(block), size)]
            parts = yield from self._parts_flow(scope, smaller)
            try:
                part: Part = yield Io(partial(Part.merged, parts))
            except DamagedError:
                part = yield from self._read_anew(scope, block)
            yield from self._delete(scope, smaller)
            return part
        return (yield from self._read_anew(scope, block))

    def _read_anew(self, scope: Scope, block: Chain) -> Flow[Part]:
        keys, found = manifest(block), []
        for start in range(0, len(keys), AT_ONCE):
            part_of = keys[start : start + AT_ONCE]
            data = yield from self._originals.read_flow(scope, part_of)
            found.append((yield Io(partial(_part, data))))
        whole: Part = yield Io(partial(Part.merged, found))
        return whole

    def _write(self, scope: Scope, block: Chain, part: Part) -> Flow[None]:
        """Write a part; a store that is read-only is searched all the same."""
        if not part.keys:
            return
        place, name = scope.namespace("index"), _name(block)
        with _later("a part of the search index is not kept"):
            data = yield Io(partial(part.pack, manifest(block)))
            if part.expires is not None:
                data["expires"] = part.expires
            yield from self._wire.batch([self._wire.put_op(place, name, data)])
            # If the thread was forgotten at this moment, the part must not stay.
            key = part.keys[0]
            if not (yield from self._wire.read(scope.namespace("messages"), [key])):
                yield from self._wire.batch([PutOp(place, name, None)])

    def _delete(self, scope: Scope, blocks: Sequence[Chain]) -> Flow[None]:
        place = scope.namespace("index")
        with _later("a part of the search index stays"):
            yield from self._wire.batch([PutOp(place, _name(block), None) for block in blocks])


@contextmanager
def _later(failed: str) -> Iterator[None]:
    """Log a failure of the store: a later recall builds or deletes the part."""
    try:
        yield
    except ArchiveError as error:
        logger.debug("%s: %s", failed, unquoted(error), extra=noted("index_behind"))


def _blocks(chain: Chain) -> list[Chain]:
    """Divide a chain, the largest blocks first: each of a power of `TOGETHER` records."""
    blocks, at = [], 0
    size = 1
    while size * TOGETHER <= len(chain):
        size *= TOGETHER
    while at < len(chain):
        while at + size > len(chain):
            size //= TOGETHER
        blocks.append(chain[at : at + size])
        at += size
    return blocks


def _name(block: Chain) -> str:
    """Name a block; the last record's id stands for all before it."""
    return f"{len(block)}-{block[-1].id}"


def _over(expires: float | None) -> bool:
    return expires is not None and time.time() >= expires


def _part(found: Mapping[str, dict[str, Any] | None]) -> Part:
    ends = [float(data["expires"]) for data in found.values() if data and "expires" in data]
    messages = [_read(from_data(key, data)) for key, data in found.items()]
    return Part.of(messages, min(ends, default=None))


def _read(one: Archived) -> tuple[str, Doc, list[Passage]]:
    said = _SPEAKER.match(one.text)
    speaker = one.name or (said.group("name") if said else one.role)
    again = one.role == "tool" and says_again(one.text)  # its originals are found, and not it too
    # A message is found by its speaker and date too, if its text does not name them.
    about = " ".join(part for part in (one.name, one.date) if part and part not in one.text)
    doc = Doc(
        f"{digest(one.id)} {digest(one.cite)}",
        kind_of(one),
        bool(_ASKS.search(one.text[-LAST:])),
        " ".join(sorted(names_of(speaker))),
        tuple(map(digest, one.answers)),
    )
    found = []
    for start, end, call in _pieces(one):
        terms = terms_of("" if again else f"{about}\n{one.text[start:end]}")
        held = Counter([*terms.words, *(WHOLE + whole for whole in terms.wholes)])
        found.append(Passage(start, end, held, len(terms.words), call))
    return one.key, doc, found


def _pieces(one: Archived) -> Iterator[tuple[int, int, str]]:
    """Yield the passages of a message; each of several calls has its own."""
    calls = one.calls if len(one.calls) > 1 else ()
    at = len(one.text) - sum(len(call.reading) + 1 for call in calls)
    if at > 0 or not calls:
        yield from (
            (start, end, "") for start, end in passages(one.text[:at] if calls else one.text)
        )
    for call in calls:
        for start, end in passages(call.reading, at + 1):
            yield start, end, digest(call.id)
        at += 1 + len(call.reading)


def kind_of(one: Archived) -> Act:
    """Return the kind of a message; calls answered by the provider in it do not count."""
    if any(call.id not in one.answers for call in one.calls):
        return Act.CALLS
    return Act.RESULT if one.answers and not one.speaks else Act.SAYS


def passages(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield start and end of each passage, in characters; together they cover the text.

    `start` is added to each position.
    """
    size = len(text.encode("utf-8", "surrogatepass")) or 1
    room = max(1, int(max(PASSAGE, size / MOST) * len(text) / size))
    at = 0
    while len(text) - at > SHORT * room:
        end = _end(text, at + room // 2, at + room)
        yield start + at, start + end
        at = end
    yield start + at, start + len(text)


def _end(text: str, least: int, most: int) -> int:
    """Return the last best end between two positions."""
    for form in _ENDS:
        ends = [match.end() for match in form.finditer(text, least, most)]
        if ends:
            return ends[-1]
    return most
