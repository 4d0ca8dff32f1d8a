"""Make a request fit: find its thread, measure it, and compact it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from types import NoneType
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.core.items import Size, Window
from conspectus.core.plan import budget_of
from conspectus.core.records import Cost
from conspectus.engine.compaction import compact
from conspectus.engine.folding import fold
from conspectus.engine.settings import Engine
from conspectus.engine.thread import Thread
from conspectus.errors import ArchiveError, ConspectusError, MessageError
from conspectus.langchain.overflow import TRIES, Refused, read_overflow
from conspectus.messages import read_messages
from conspectus.messages.blocks import without_cache_marks
from conspectus.observe import heard_by
from conspectus_serve.compaction import Asked
from conspectus_serve.models import Learned, Models, Odd
from conspectus_serve.protocols import Route
from conspectus_serve.threads import Mark, Match, Originals, Trail, find, hint_of, keep, trail_of

SIZES = 65_536  # messages whose size is remembered

LEAST_NOTES, NOTES_SHARE = 1_024, 0.25
"""Maximum tokens of notes that a client asked for: a share of its history, but at least the
first."""

PLAIN = frozenset(("user", "assistant", "system", "developer"))
"""Roles of messages that the engine understands if their content is text or blocks."""

MILLION_BETA = "context-1m"
"""Beginning of the beta by which Anthropic gives a model its window of a million tokens."""


class TooLarge(ConspectusError):
    """Nothing makes the history of a request fit; the text has the numbers."""


@dataclass(slots=True)
class Exchange:
    """A request with a history, and what is sent in its place."""

    tenant: str
    route: Route
    raw: bytes
    headers: Mapping[str, str]
    asked: Asked = field(default_factory=lambda: Asked({}))  # with the body for the upstream
    model: str = ""  # its name, at most so much of it as is kept and logged
    history: Sequence[Any] = ()  # whole
    before: Sequence[Any] = ()  # the part of it up to the response that the client names
    new: Sequence[Any] = ()  # the part that the client has sent
    parent: str = ""  # id of that response
    named: str = ""  # the thread that the client, an item or a response names
    streamed: bool = False
    filled: bool = False  # the body for the upstream is not the client's own in any case
    state: str = ""  # which server holds the history, if the client leaves it to one
    note: str = ""  # for the client
    hint: str = ""  # the client's name of its session
    trail: Trail | None = None  # None for a history that is not read
    match: Match = field(default_factory=lambda: Match(""))
    engine: Engine | None = None
    learned: Learned = field(default_factory=Learned)  # of its model
    plain: Sequence[Any] = ()  # the history as it is archived, whole where the client has cleared
    marks: Sequence[Mark] = ()  # of the messages of `plain`
    came: Mapping[int, Any] = field(default_factory=dict)  # messages by the id() in `plain`
    room: Window | None = None
    tokens: int = 0  # of the history as it came
    due: bool = False  # it does not fit, or a compaction is in force
    view: list[Any] | None = None  # the messages sent in its place; None if it is sent as it came
    sent: int = 0  # tokens of what is sent, beside the recalled ones
    recalled: int = 0
    left_out: int = 0
    head: str = ""  # id of the record in force
    fresh: bool = False  # a compaction was made for this request
    compactions: int = 0
    retries: int = 0  # further requests to the upstream
    notes: str = ""
    cost: Cost = field(default_factory=Cost)
    spare: int | None = None  # free tokens of the window
    refused: Refused = field(default_factory=Refused)
    content: bytes = b""  # to send
    answer: bytes | None = None  # the endpoint's own
    body: Mapping[str, Any] = field(default_factory=dict)  # in `content`, if not the client's own
    with_tool: bool = False  # the model has the endpoint's own tool
    betas: Sequence[bytes] = ()  # more of Anthropic's beta headers

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.match.thread)

    @property
    def beside(self) -> int:
        """Tokens of the window that the history cannot have."""
        return 0 if self.room is None else self.room.reserved


class Fitter:
    """Make requests fit, and keep the progress of each thread; for worker threads."""

    def __init__(self, archive: Archive, models: Models, *, send_stuck: bool = False) -> None:
        self._archive, self._models, self._send_stuck = archive, models, send_stuck
        self._sizes = Newest[tuple[str, bytes], int](SIZES)
        self._locks = Newest[Scope, threading.Lock](1_024)
        self._originals = Originals(archive)

    def measure(self, x: Exchange) -> None:
        """Measure a request and find its thread; `due` says that it must be compacted.

        Raises ArchiveError, and MessageError, ValueError or TypeError for a message that cannot be
        understood.
        """
        if not all(isinstance(one, dict) for one in x.history):
            raise TypeError("a message is no object")
        bare = [without_cache_marks(one) for one in x.history]
        protocol, asked = x.route.protocol, x.asked
        read = [_odd(one) if _is_odd(one) else one for one in bare]
        x.trail = trail = trail_of(bare, protocol.name)
        million = MILLION_BETA in x.headers.get("anthropic-beta", "")
        x.learned = self._models.learned(x.tenant, x.model)
        window = self._models.window(x.model, x.learned, million=million)
        engine = self._models.engine(x.model, window)
        x.tokens = x.sent = self._size(read, trail.marks, engine)
        if asked.at is not None:
            most = max(LEAST_NOTES, int(x.tokens * NOTES_SHARE)) if asked.alone else None
            engine = self._models.engine(x.model, window, asked.at, most)
        x.engine, x.room = engine, self._models.room(protocol, asked.body, engine, window)
        x.hint = hint_of(x.headers, asked.body)
        if x.named:
            x.match = Match(x.named, self._archive.pointer(Scope(x.tenant, x.named)) or "")
        else:
            x.match = find(self._archive, x.tenant, trail, x.hint)
        source, head = x.scope, x.match.head
        if x.match.left:
            source = Scope(x.tenant, x.match.left)
            head = self._archive.pointer(source) or ""
        x.plain, x.marks = self._originals.restored(source, head, trail.marks, read)
        x.came = {id(one): was for one, was in zip(x.plain, x.history, strict=True)}
        if x.match.left and self._took_along(x, source):
            x.match = replace(x.match, head="copied")
        budget = budget_of(engine.policy, x.room)
        limit = None if budget is None else budget.limit
        over = budget is not None and x.tokens > budget.budget
        fired = engine.policy.fired(Size(x.tokens, len(read)), limit)
        x.due = bool(x.match.head or over or fired or asked.at == 0)

    def shrink(self, x: Exchange, error: Exception) -> bool:
        """Make a refused request smaller; False if that is impossible. Raises ArchiveError."""
        overflow, sent = read_overflow(error), x.sent + x.recalled
        refused = x.refused.and_again(sent, x.beside, overflow)
        if refused.tries > TRIES:
            return False
        x.refused = refused
        if overflow.limit is not None or x.room is None:
            most = refused.having_tried(refused.budget, sent).most
            x.learned.refused = most + x.beside
        try:
            self.compact(x, Window(refused.budget + x.beside, x.beside))
        except TooLarge:
            return False
        return x.sent < sent

    def settle(self, x: Exchange) -> None:
        """Keep the thread's progress. Raises ArchiveError."""
        self._originals.remember(x.scope, x.marks, x.plain)
        if not x.named and x.trail is not None:
            keep(self._archive, x.tenant, x.match, x.trail, x.head, x.hint)

    def compact(self, x: Exchange, smaller: Window | None = None) -> None:
        """Put the thread's compactions in force, and compact what does not fit.

        Raises ArchiveError, and TooLarge where nothing makes it fit.
        """
        assert x.engine is not None
        room = smaller or budget_of(x.engine.policy, x.room)
        now, focus = smaller is None and x.asked.at == 0, x.asked.focus
        # A client that gives up and sends its request again waits for the compaction under way.
        with self._locks.get_or_make(x.scope, threading.Lock):
            thread = Thread(x.engine, x.scope, room)
            flow = compact(thread, x.plain, now, "" if smaller else focus)
            result = run(heard_by(x.engine.listeners, flow))
        over = room is not None and result.tokens_after > room.budget
        if over and result.failed == "archive":
            raise ArchiveError(f"{result.reason}; send the request again")
        if (over or result.outcome == "stuck") and not self._send_stuck:
            beside = "system prompt, tools and the room for the answer take"
            raise TooLarge(f"{result.reason} ({beside} {x.beside:,})")
        if result.record is not None:
            x.compactions += 1
            self._originals.cover(x.scope, result.record, x.marks, x.plain)
        view = [x.came.get(id(message), message) for message in result.messages]
        same = len(view) == len(x.history) and all(map(is_, view, x.history))
        x.view, x.sent = None if same else view, result.tokens_after
        x.left_out, x.head = result.dropped + result.evicted, result.record_id or thread.pointer
        x.fresh, x.notes = now or result.record is not None, result.summary
        x.cost = result.cost
        x.spare = None if room is None else room.budget - result.tokens_after

    def _took_along(self, x: Exchange, source: Scope) -> bool:
        """Copy the compactions of the former thread that still fit; False for none."""
        chain = self._archive.chain(source)
        entries = read_messages(x.plain)
        fitting = fold(chain, entries).chain
        if fitting:
            self._archive.copy(source, x.scope, fitting[-1].id)
        return bool(fitting)

    def _size(self, history: Sequence[Any], marks: Sequence[Mark], engine: Engine) -> int:
        kind, total = f"{engine.meter.family} {engine.meter.maker}", 0
        for message, mark in zip(history, marks, strict=True):
            size = self._sizes.get((kind, mark.digest))
            if size is None:
                size = engine.meter.message(message)
                self._sizes.put((kind, mark.digest), size)
            total += size
        return total


def _is_odd(message: Mapping[str, Any]) -> bool:
    """Return whether the engine does not understand a message, or one of its calls."""
    role = message.get("role")
    known = role in PLAIN or (role == "tool" and isinstance(message.get("tool_call_id"), str))
    if known and isinstance(message.get("content"), (str, list, NoneType)):
        return False
    try:
        [entry] = read_messages([message])
    except MessageError:
        return True
    return "role" not in message and "call_id" in message and not entry.calls + entry.answers


def _odd(message: Any) -> Odd:
    """Put a message that stays in view in the place of one that is not understood."""
    return Odd(role="system", content=json.dumps(message, sort_keys=True))
