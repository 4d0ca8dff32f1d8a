"""Make a request fit: find its thread, measure it, and compact it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from types import NoneType
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive, Scope
from conspectus.core.items import Size, Window
from conspectus.core.plan import budget_of
from conspectus.core.policy import Policy
from conspectus.core.records import Cost
from conspectus.engine.anchors import Anchor
from conspectus.engine.calls import compact_flow
from conspectus.engine.engine import Engine
from conspectus.engine.session import Session
from conspectus.engine.view import look
from conspectus.errors import ArchiveError, ConspectusError, MessageError
from conspectus.langchain.overflow import TRIES, Refused, read_overflow
from conspectus.messages import read_messages
from conspectus.messages.blocks import without_cache_marks
from conspectus.observe import heard_by
from conspectus_serve.asked import EditRequest
from conspectus_serve.models import Models
from conspectus_serve.originals import Originals
from conspectus_serve.protocols import Protocol
from conspectus_serve.threads import (
    Mark,
    Prefixes,
    ThreadMatch,
    find_flow,
    prefixes_of,
    settle_flow,
)

SIZES = 8_192
"""Prefixes of histories whose size is remembered."""

LEAST_NOTES, NOTES_SHARE = 1_024, 0.25
"""Maximum tokens of notes that a client asked for: a share of its history, but at least the
first."""


PLAIN = frozenset(("user", "assistant", "system", "developer"))
"""Roles of messages that the engine understands if their content is text or blocks."""


class TooLarge(ConspectusError):
    """Nothing makes the history of a request fit; the text has the numbers."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A request with its thread, its size and its view.

    Attributes:
        history: the messages as they came.
        plain: the same as they are archived: without cache marks, and whole where the client has
            cleared something.
        marks: by which the messages of `plain` are known again.
        came: messages as they came, by the identity of those in `plain`.
        prefixes: of the history.
        found: its thread.
        named: the client named the thread.
        hint: the client's name of its session; empty for none.
        room: the window; None if unknown.
        tokens: of the history as it came.
        view: the messages sent in its place; None if it is sent as it came.
        sent: tokens of the messages that are sent.
        left_out: number of messages that are not in view.
        head: id of the record in force; empty for none.
        fresh: a compaction was made for this request.
        notes: in force.
        cost: of this request's summary.
        spare: free tokens beside the messages that are sent; None if the window is unknown.
        due: it does not fit, or a compaction is in force: it goes on to `compacted_flow`.
        asked: edits of the context that the client asks for.
        refused: what the upstream has refused of it.
    """

    tenant: str
    model: str
    protocol: Protocol
    history: Sequence[Any]
    plain: Sequence[Any]
    marks: Sequence[Mark]
    came: Mapping[int, Any]
    prefixes: Prefixes
    found: ThreadMatch
    named: bool
    hint: str
    engine: Engine
    room: Window | None
    tokens: int
    view: list[Any] | None = None
    sent: int = 0
    left_out: int = 0
    head: str = ""
    fresh: bool = False
    notes: str = ""
    cost: Cost = field(default_factory=Cost)
    spare: int | None = None
    due: bool = False
    asked: EditRequest | None = None
    refused: Refused = field(default_factory=Refused)

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.found.thread)


class RequestFitter:
    """Make requests fit, and keep the progress of each thread.

    Args:
        archive: where originals go.
        models: engines and windows.
        send_stuck: send a history that nothing makes fit.
    """

    def __init__(self, archive: Archive, models: Models, *, send_stuck: bool = False) -> None:
        self._archive, self._models, self._send_stuck = archive, models, send_stuck
        self._sizes = Newest[tuple[str, str], int](SIZES)
        self._originals = Originals(archive)

    async def measured_flow(
        self,
        tenant: str,
        protocol: Protocol,
        body: Mapping[str, Any],
        history: Sequence[Any],
        thread: str | None = None,
        asked: EditRequest | None = None,
        hint: str = "",
        million: bool = False,
    ) -> Turn:
        """Measure a request and find its thread; `due` says that it must be compacted.

        Args:
            tenant, protocol: of the request.
            body: as it came.
            history: its messages.
            thread: its name, if the client gives one.
            asked: edits of the context that it asks for.
            hint: the client's name of its session.
            million: the client has asked for a window of a million tokens.

        Raises:
            MessageError, ValueError, TypeError: a message cannot be understood.
            ArchiveError: the archive cannot be read.
        """
        given = body.get("model")
        model = given if isinstance(given, str) else ""
        bare = [without_cache_marks(one) if isinstance(one, dict) else one for one in history]
        prefixes = prefixes_of(bare, protocol.name)
        window = self._models.window(tenant, model, million=million)
        engine = self._models.engine(model, window)
        read, odd = _understood(bare)
        if odd:
            pin, known = engine.pin, set(map(id, odd))
            engine = replace(
                engine, pin=lambda one: id(one) in known or (pin is not None and bool(pin(one)))
            )
        room = self._models.room(protocol, body, engine, window)
        tokens = self._size(read, prefixes, engine)
        engine = _as_asked(engine, asked, tokens)
        if thread is None:
            found = await find_flow(self._archive, tenant, prefixes, hint)
        else:
            head = await self._archive.flow(self._archive.pointer, Scope(tenant, thread))
            found = ThreadMatch(thread, head or "")
        source = Scope(tenant, found.left or found.thread)
        before = found.head
        if found.left:
            pointer: str | None = await self._archive.flow(self._archive.pointer, source)
            before = pointer or ""
        whole, marks = await self._originals.restored_flow(source, before, prefixes, read)
        came = {id(one): was for one, was in zip(whole, history, strict=True)}
        turn = Turn(
            tenant, model, protocol, history, whole, marks, came, prefixes, found,
            thread is not None, hint, engine, room, tokens, sent=tokens, asked=asked,
        )  # fmt: skip
        if not all(map(is_, whole, read)):
            turn = replace(turn, engine=_counting_as_sent(engine, whole, read))
        if found.left and (await self._taken_along(turn)):
            turn = replace(turn, found=replace(found, head="copied"))
        budget = budget_of(engine.policy, room)
        limit = None if budget is None else budget.limit
        over = budget is not None and tokens > budget.budget
        fired = engine.policy.fired(Size(tokens, len(bare)), limit)
        now = asked is not None and asked.compact == 0
        return replace(turn, due=bool(turn.found.head or over or fired or now))

    async def compacted_flow(self, turn: Turn) -> Turn:
        """Put the thread's compactions in force, and compact what does not fit.

        Raises:
            ArchiveError: the archive cannot be read.
            TooLarge: nothing makes it fit.
        """
        asked = turn.asked
        now = asked is not None and asked.compact == 0
        room = budget_of(turn.engine.policy, turn.room)
        focus = asked.focus if asked is not None else ""
        return await self._compacted(turn, room, now, focus)

    async def again_flow(self, turn: Turn, error: Exception) -> Turn | None:
        """Make a refused request smaller; return None if that is impossible."""
        beside = 0 if turn.room is None else turn.room.reserved
        overflow = read_overflow(error)
        refused = turn.refused.and_again(turn.sent, beside, overflow)
        if refused.tries > TRIES:
            return None
        most = refused.having_tried(refused.budget, turn.sent).most
        if overflow.limit is not None or turn.room is None:
            self._models.learn(turn.tenant, turn.model, most + beside)
        room = Window(refused.budget + beside, beside)
        try:
            smaller = await self._compacted(turn, room)
        except TooLarge:
            return None
        return replace(smaller, refused=refused) if smaller.sent < turn.sent else None

    async def settle_flow(self, turn: Turn) -> None:
        """Keep the thread's progress."""
        self._originals.remember(turn.scope, turn.marks, turn.plain)
        if not turn.named:
            await settle_flow(
                self._archive, turn.tenant, turn.found, turn.prefixes, turn.head, turn.hint
            )

    async def _compacted(
        self, turn: Turn, room: Window | None, now: bool = False, focus: str = ""
    ) -> Turn:
        anchor = Anchor(self._archive, turn.engine.memory, turn.scope)
        listeners = turn.engine.listeners
        session = Session(turn.engine, turn.scope, room, anchor)
        result = await heard_by(listeners, compact_flow(session, turn.plain, now, focus))
        over = room is not None and result.tokens_after > room.budget
        if over and result.failed == "archive":
            raise ArchiveError(f"{result.reason}; send the request again")
        if (over or result.outcome == "stuck") and not self._send_stuck:
            beside = 0 if room is None else room.reserved
            raise TooLarge(
                f"{result.reason} (system prompt, tools and the room for the answer take "
                f"{beside:,})"
            )
        if result.record is not None:
            await self._originals.covered_by_flow(turn.scope, result.record, turn.marks, turn.plain)
        view = [turn.came.get(id(message), message) for message in result.messages]
        same = len(view) == len(turn.history) and all(map(is_, view, turn.history))
        return replace(
            turn,
            view=None if same else view,
            sent=result.tokens_after,
            left_out=result.dropped + result.evicted,
            head=result.record_id or anchor.seen,
            fresh=now or result.record is not None,
            notes=result.summary,
            cost=result.cost,
            spare=None if room is None else room.budget - result.tokens_after,
        )

    async def _taken_along(self, turn: Turn) -> bool:
        """Copy the compactions of the former thread that still fit; False for none."""
        source = Scope(turn.tenant, turn.found.left)
        chain = await self._archive.flow(self._archive.chain, source)
        if not chain:
            return False
        fitting = look(turn.engine, read_messages(turn.plain), chain).chain
        if not fitting:
            return False
        await self._archive.flow(self._archive.copy, source, turn.scope, fitting[-1].id)
        return True

    def _size(self, bare: Sequence[Any], prefixes: Prefixes, engine: Engine) -> int:
        """Count the tokens of a history, taking known prefixes from memory."""
        meter = engine.meter
        kind = f"{meter.family} {meter.maker}"
        start = min(prefixes.exact) - 1 if len(bare) else 0
        total = sum(map(meter.message, bare[:start]))
        counts = sorted(prefixes.exact.items(), reverse=True)
        at, known = next(
            ((n, size) for n, name in counts if (size := self._sizes.get((kind, name)))), (start, 0)
        )
        mark = max(at, prefixes.answered)
        known += sum(map(meter.message, bare[at:mark]))
        if mark in prefixes.exact:
            self._sizes.put((kind, prefixes.exact[mark]), known)
        return total + known + sum(map(meter.message, bare[mark:]))


def _understood(bare: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Put another message in the place of one that the engine does not understand.

    An unknown call and its result become those of a function. Anything else stays where it is.

    Returns:
        The messages, and those that must stay.
    """
    made, stay = list(bare), list[Any]()
    for place, message in enumerate(bare):
        if isinstance(message, dict) and _is_plain(message):
            continue
        try:
            [entry] = read_messages([message])
            lone = _is_call(message) and not entry.calls and not entry.answers
        except MessageError:
            lone, entry = False, None
        text = json.dumps(message, sort_keys=True)
        if lone and str(message["type"]).endswith("_output"):
            made[place] = {"type": "function_call_output", "output": text}
        elif lone:
            made[place] = {"type": "function_call", "name": message["type"], "arguments": text}
        elif entry is None:
            made[place] = {"role": "system", "content": text}
            stay.append(made[place])
        if lone:
            made[place]["call_id"] = message["call_id"]
    return made, stay


def _is_plain(message: Mapping[str, Any]) -> bool:
    role = message.get("role")
    named = role == "tool" and isinstance(message.get("tool_call_id"), str)
    return (role in PLAIN or named) and isinstance(message.get("content"), (str, list, NoneType))


def _is_call(item: Mapping[str, Any]) -> bool:
    kind = str(item.get("type"))
    named = "role" not in item and isinstance(item.get("call_id"), str)
    return named and kind.endswith(("_call", "_call_output"))


def _counting_as_sent(engine: Engine, whole: Sequence[Any], sent: Sequence[Any]) -> Engine:
    """Return the engine with the sizes of what is sent where the originals are given back."""
    entries = read_messages(whole)
    sizes = {
        entry.key: engine.meter.message(short)
        for entry, full, short in zip(entries, whole, sent, strict=True)
        if full is not short
    }
    return replace(engine, meter=engine.meter.told(sizes))


def _as_asked(engine: Engine, asked: EditRequest | None, tokens: int) -> Engine:
    """Return the engine with the client's trigger, and nothing kept that may leave.

    A client that asks for a compaction has met its own limit, about the size of its request.
    """
    if asked is None or asked.compact is None:
        return engine
    policy = engine.policy
    if asked.alone:
        most = policy.max_summary_tokens or max(LEAST_NOTES, int(tokens * NOTES_SHARE))
        policy = replace(policy, keep=("messages", 1), max_summary_tokens=most)
    if asked.compact:
        own = Policy.build(trigger=("tokens", asked.compact)).trigger
        policy = replace(policy, trigger=(*own, *policy.trigger))
    return replace(engine, policy=policy)
