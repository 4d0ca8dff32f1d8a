"""Turn the bytes of a request into the bytes to send, or into the endpoint's own answer.

Each public method of `Fitter` is a step of an exchange; those that are no coroutines are for worker
threads.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.config import SummarizationConfig
from conspectus.core.items import Size, Window
from conspectus.core.plan import budget_of
from conspectus.engine.folding import fold
from conspectus.engine.history import HistoryContext
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.langchain.overflow import TRIES
from conspectus.messages import read_messages
from conspectus.model.provider_errors import is_overflow
from conspectus_serve.bodies import Bodies
from conspectus_serve.entrance import add_tenant
from conspectus_serve.exchange import Exchange
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.held import Held, HeldHistories, answer_of, asked_of
from conspectus_serve.models import CUT, LEAST, NO_WINDOW, Models, form_of, formed
from conspectus_serve.numbers import written
from conspectus_serve.protocols import RESPONSES, TOO_LONG, Refusal
from conspectus_serve.recall import Recall
from conspectus_serve.settings import ServeSettings
from conspectus_serve.threads import TAIL, Originals, Places, hint_of, scope_of
from conspectus_serve.trails import trail_of
from conspectus_serve.upstream import RefusedByUpstream
from conspectus_serve.work import UNREADABLE, Compacted, Work

logger = logging.getLogger("conspectus.serve")

THREAD = "x-conspectus-thread"
LARGE = 50_000  # bytes of what takes longer to read than small requests shall wait
LONGEST_NAME = 200  # maximum characters of a thread's name in a header, and of a model's name

LEAST_NOTES, NOTES_SHARE = 1_024, 0.25
"""Maximum tokens of notes that a client asked for: a share of its history; at least the first."""

NOT_UNDERSTOOD = "a message was not understood; the request is sent on as it came"


def _is_reference(item: Any) -> bool:
    """Return whether an item only names one that its server holds."""
    return isinstance(item, dict) and item.get("type") == "item_reference"


class Fitter:
    """Read requests, make them fit, write what is sent, and keep the progress of each thread."""

    def __init__(
        self,
        archive: Archive,
        settings: ServeSettings,
        config: SummarizationConfig,
        work: Work | None = None,
    ) -> None:
        self._archive, self._settings = archive, settings
        self.health = ArchiveHealth(archive)
        self._bodies = Bodies()
        self._models = Models(settings, config, archive)
        self._work = work or Work(archive, self._models)
        self.places, self._originals = Places(archive, self.health), Originals(archive)
        self._held = HeldHistories(archive)
        self._holds = not config.redact  # what is held is kept as it was sent
        self.compacts = self._holds and settings.compaction == "here"  # for those who ask for it
        self._recall = Recall(settings.recall_tokens)
        self._locks, self._turn = BoundedCache[Scope, asyncio.Lock](256), asyncio.Semaphore(1)

    async def in_turn(self, call: Callable[..., None], *args: Any) -> None:
        """Make a call that computes for long in a thread, and no other one at the same time.

        Beside many of them the event loop, and small requests with it, would get no turn.
        """
        async with self._turn:
            thread = asyncio.ensure_future(asyncio.to_thread(call, *args))
            try:
                await asyncio.shield(thread)
            finally:  # if its client goes, it computes on all the same
                await asyncio.wait({thread})

    @contextmanager
    def _refusing(self, x: Exchange) -> Iterator[None]:
        """Turn errors of the engine into refusals; a message that is not understood goes on."""
        try:
            yield
        except ArchiveError as error:
            self.health.note_failure()
            why = f"the archive is not there just now: {error}"
            raise Refusal(503, why, reason="archive") from None
        except RecursionError:
            raise Refusal(400, "the request is nested too deeply; send less of it") from None
        except UNREADABLE as error:
            if x.filled or x.compacts:
                raise Refusal(400, f"a message is not understood: {error}") from None
            x.note = NOT_UNDERSTOOD
            x.trail, x.view, x.due = None, None, False

    # Read

    def is_soon_read(self, x: Exchange) -> bool:
        """Return whether little is new since a request for which nothing was due."""
        known = self._bodies.known(x.tenant, x.raw, x.route.protocol.field)
        return bool(known and known.quiet and len(x.raw) - len(known.raw) + known.start < LARGE)

    def read(self, x: Exchange) -> None:
        """Read a request, measure it, and find its thread. Raises Refusal."""
        x.named, x.note, x.content = x.headers.get(THREAD, ""), "", x.raw
        if THREAD in x.headers and not 0 < len(x.named) <= LONGEST_NAME:
            raise Refusal(400, f"{THREAD} is a name of up to {LONGEST_NAME} characters")
        protocol = x.route.protocol
        x.body = self._bodies.read(x.tenant, x.raw, protocol.field)
        body, x.body.fields = x.body.fields, {}  # what is remembered of a body is its history
        x.streamed = body.get("stream") is True and not x.route.counts
        x.model = str(body.get("model") or x.route.model)[:LONGEST_NAME]
        x.given, x.compacts = asked_of(x.route.name, body) if self.compacts else (body, False)
        items = protocol.history(body) if protocol is RESPONSES else ()
        if body.get("conversation") or any(map(_is_reference, items)):
            x.state = "upstream"
            return
        with self._refusing(x):
            parent, of_item = body.get("previous_response_id"), ""
            if isinstance(parent, str) and parent and protocol is RESPONSES:
                held = self._held.find(x.tenant, parent) if self._holds else None
                x.pending = ""
                if held is None:
                    x.state = "upstream"
                    if self._holds and self._held.is_pending(x.tenant, parent):
                        x.pending = parent
                    return
                x.state, x.held, x.named = "held", held, held.thread
                x.given = {k: v for k, v in x.given.items() if k != "previous_response_id"}
            x.history = [*x.held.messages, *protocol.history(x.given)]
            if protocol is RESPONSES:
                x.history, of_item = self._held.expanded(x.tenant, x.history)
            x.named, x.filled = x.named or of_item, x.given is not body or bool(of_item)
            if x.history:
                self._measure(x)
            elif body.get(protocol.field):
                x.note = NOT_UNDERSTOOD

    def _measure(self, x: Exchange) -> None:
        """Find the thread of a history; `due` says that it must be compacted."""
        protocol = x.route.protocol
        x.learned = self._models.learned(x.tenant, x.model)
        betas = x.headers.getlist("anthropic-beta")
        window = self._models.window(x.model, x.learned, betas)
        x.sizes, meter = (x.model, window, None), self._models.meter(x.model)
        read_marks = partial(self._work.marks, x.model, protocol.name) if x.large else None
        x.trail = trail_of(x.history, protocol.name, meter, x.body.trail, read_marks)
        x.body.trail = x.trail
        x.tokens = x.sent = x.trail.tokens
        if meter.counts_lists:
            x.tokens = x.sent = meter.whole(x.history)
        if x.compacts:
            most = max(LEAST_NOTES, int(x.tokens * NOTES_SHARE))
            x.sizes = (x.model, window, most)
        x.engine = engine = self._models.engine(*x.sizes)
        x.fixed = self._models.beside(protocol, x.given, meter)
        x.room = self._models.room(x.given, window, x.fixed)
        x.beside = x.fixed if window is None or x.room is None else window - x.room.budget
        x.hint = hint_of(x.headers, x.given)
        if x.named:
            x.match = self.places.named(x.tenant, x.named, x.trail)
        else:
            x.match = self.places.find(x.tenant, x.trail, x.hint)
        self._restore(x)
        history = HistoryContext(engine, x.scope, budget_of(engine.policy, x.room))
        count = len(x.history) + len(x.dropped.messages)
        quiet = history.is_quiet(Size(x.tokens + x.dropped.tokens, count), None)
        x.due = bool(x.match.head or x.compacts or not quiet)
        x.body.quiet = not x.due
        if not x.room and all(clause.fraction for clause in engine.policy.trigger):
            x.note = NO_WINDOW

    def _restore(self, x: Exchange) -> None:
        """Find what the client has cleared, and what the former thread has compacted."""
        assert x.trail is not None
        source, head = x.scope, x.match.head
        if x.match.left:
            source = scope_of(x.tenant, x.match.left)
            head = self._archive.pointer(source) or ""
        marks = x.trail.marks
        if not x.compacts and not x.state:
            marks, x.dropped = self._originals.slid(x.scope, marks)
        x.plain, x.short, x.marks = self._originals.restored(source, head, x.trail, marks)
        if x.marks is not marks:  # calls that are known again are sent with their results
            pairs = zip(marks, x.marks, x.history, x.plain, strict=True)
            x.history = [whole if was.name != now.name else came for now, was, came, whole in pairs]
        if not x.route.counts:
            self._remember(x)
        if x.match.left:
            fitting = fold(self._archive.chain(source), read_messages(x.plain)).chain
            if fitting:
                x.left, x.match = (source, fitting[-1].id), replace(x.match, head="copied")

    def _remember(self, x: Exchange) -> None:
        """Remember what the client has sent, and has dropped."""
        marks = x.dropped.put_back(x.marks, x.dropped.marks)
        plain = x.dropped.put_back(x.plain, x.dropped.messages)
        self._originals.remember(x.scope, marks, plain, x.dropped.own)

    # Fit

    async def fit(self, x: Exchange) -> None:
        """Compact a history for which that is due, and write what is sent. Raises Refusal.

        On an event loop one compaction computes at a time, and none while it waits for its model.
        """
        x.fitting = True
        with self._refusing(x):
            if x.left is not None:
                await asyncio.to_thread(self._originals.copy, x.left[0], x.scope, x.left[1])
            if x.due:
                await self._compact(x)
            await self.in_turn(self._write, x)
        x.fitting = False

    async def _compact(self, x: Exchange, smaller: Window | None = None) -> None:
        """Put the thread's compactions in force, and compact what does not fit."""
        assert x.engine is not None
        assert x.trail is not None
        room = smaller or budget_of(x.engine.policy, x.room)
        now = smaller is None and x.compacts
        # A client that gives up and sends its request again waits for the compaction under way.
        gone, goes_on = x.dropped.messages, x.match.goes_on
        plain, short = (x.dropped.put_back(one, gone) for one in (x.plain, x.short))
        async with self._locks.get_or_make(x.scope, asyncio.Lock):
            made = await self._work.compact(x.sizes, x.scope, room, plain, short, now, goes_on)
        result = made.result
        over = room is not None and result.tokens_after > room.budget
        if result.record is not None:
            self.health.note_success()
        elif result.failed == "archive" and not over:  # else the error below is noted
            self.health.note_failure()
            x.note = x.note or f"nothing was compacted: {result.reason}"
        if over and result.failed == "archive":
            raise ArchiveError(f"{result.reason}; send the request again")
        shown = self._shown(x, made)
        read = x.dropped.put_back(x.trail.messages, gone)
        came = x.dropped.put_back(x.history, gone)
        result.messages[:] = [read[one] if isinstance(one, int) else one for one in shown]
        view = [came[one] if isinstance(one, int) else one for one in shown]
        same = len(view) == len(x.history) and all(map(is_, view, x.history))
        x.view, x.result = None if same else view, result
        x.head = made.head
        x.spare = None if room is None else room.budget - x.sent
        x.compactions += result.record is not None
        if x.head and (x.named or x.head != x.match.head):
            await self.in_turn(self._noted, x)
        self._forget_covered(x, made)
        # What may leave has left, and is known for it when the client comes back.
        if (over or result.outcome == "stuck") and self._settings.on_stuck == "refuse":
            beside = f" (instructions, tools and room for the answer take {x.beside:,})"
            said = f"{result.reason}{beside if x.beside else ''}"
            raise Refusal(400, said, TOO_LONG)

    def _shown(self, x: Exchange, made: Compacted) -> list[Any]:
        """Return what is sent of a view: of what the client has dropped no more than it sends.

        Before anything is covered, that is nothing: who sends little is to pay for little.
        """
        start, count = x.dropped.start, len(x.dropped.messages)
        again = [one for one in made.view if isinstance(one, int) and 0 <= one - start < count]
        tokens = sum(x.dropped.marks[one - start].tokens for one in again)
        x.sent = made.result.tokens_after
        if not again or (made.head and tokens <= x.tokens):
            return made.view
        x.sent -= tokens
        left_out = {*again}
        return [one for one in made.view if not (isinstance(one, int) and one in left_out)]

    def _forget_covered(self, x: Exchange, made: Compacted) -> None:
        """Forget what the client has dropped, as far as records cover it."""
        start, there = x.dropped.start, {one for one in made.view if isinstance(one, int)}
        rows = zip(x.dropped.marks, x.dropped.messages, strict=True)
        left = [row for at, row in enumerate(rows, start) if at in there]
        if len(left) < len(x.dropped.messages):
            marks, messages = [row[0] for row in left], [row[1] for row in left]
            x.dropped = replace(x.dropped, marks=marks, messages=messages)
            self._remember(x)

    # Keep

    def _noted(self, x: Exchange) -> None:
        """Note what a new record covers; its client may have gone, and sends the same again.

        The process that has made it may have ended before it said so.
        """
        marks = x.dropped.put_back(x.marks, x.dropped.marks)
        plain = x.dropped.put_back(x.plain, x.dropped.messages)
        self._originals.cover(x.scope, x.head, marks, plain)
        self.settle(x)
        self.places.write()
        add_tenant(self._archive, x.tenant)

    def settle(self, x: Exchange) -> bool:
        """Note how far the thread has come; False if that need not be written."""
        if x.trail is None or (x.named and not x.head):
            return False
        if (x.match.tail, x.match.head) == (x.trail.answered[-TAIL:], x.head):
            return False
        if x.named:
            self.places.keep_named(x.tenant, x.match, x.trail, x.head)
        else:
            self.places.keep(x.tenant, x.match, x.trail, x.head, x.hint)
        return True

    def see_usage(self, x: Exchange, reported: int) -> None:
        """Learn from the input tokens that an upstream reports for an answered request."""
        sent = x.sent + x.recalled + x.fixed
        if LEAST <= reported < CUT * sent and x.trail is not None and x.engine is not None:
            entries = read_messages(x.result.messages if x.result else x.trail.messages)
            texts = (one.text for one in entries if one.role != "assistant")
            sent = x.fixed + sum(map(x.engine.meter.text, texts))  # which no upstream leaves out
        x.learned.see_usage(sent, reported, x.model)

    def keeps(self, x: Exchange) -> bool:
        """Return whether a later request may name the response."""
        stored = x.given.get("store") is not False and not x.route.counts
        return self._holds and stored and x.route.protocol is RESPONSES

    def keep_response(self, x: Exchange, response: str, output: list[Any]) -> None:
        """Keep a response that a later request may name."""
        self._keep(x, response, [*x.route.protocol.history(x.given), *output])

    def keep_pending(self, x: Exchange, response: str) -> None:
        """Keep a response that its upstream makes in the background, without its output."""
        self._keep(x, response, x.route.protocol.history(x.given), pending=True)

    def _keep(
        self, x: Exchange, response: str, new: Sequence[Any], *, pending: bool = False
    ) -> None:
        held = replace(x.held, thread=x.match.thread)
        with self._logging("a response could not be kept"):
            self._held.keep(x.tenant, held, response, new, pending=pending)

    def complete_response(self, tenant: str, response: str, output: list[Any]) -> None:
        """Keep the output of a response that was made in the background."""
        with self._logging("a response could not be kept"):
            self._held.complete(tenant, response, output)

    def delete_response(self, tenant: str, response: str) -> None:
        """Drop what is held of a response that its upstream holds no more."""
        with self._logging("a deleted response could not be dropped"):
            self._held.delete(tenant, response)

    @contextmanager
    def _logging(self, what: str) -> Iterator[None]:
        """Log a failure of the archive: the answer of the upstream stands all the same."""
        try:
            yield
        except ArchiveError as error:
            self.health.note_failure()
            logger.warning("%s: %s", what, error)

    # Write

    def _write(self, x: Exchange) -> None:
        """Write the bytes to send, or the endpoint's own answer."""
        if x.trail is None or x.engine is None:
            return
        protocol, view, body = x.route.protocol, x.view, x.given
        if x.compacts and x.result is not None:
            name = f"cmp_{secrets.token_hex(12)}"
            self._held.keep(x.tenant, Held(x.match.thread), name, view or x.plain)
            x.answer = answer_of(x.route.name, x.model, name, x.result.cost, stream=x.streamed)
            return
        if view is not None:
            x.recalled = 0
            if self._settings.recall != "off" and x.head:
                search = partial(self._work.search, x.model)
                view, x.recalled = self._recall.shown(
                    x.scope, x.head, x.plain, view, x.engine.meter, x.spare, search
                )
            alternates = x.result is not None and x.result.alternates
            forms = self._models.forms(x.model, x.learned, alternates)
            view, body, x.betas = formed(protocol.name, view, body, forms)
        if view is not None or x.filled:
            whole = {**body, protocol.field: x.history if view is None else view}
            x.content = written(whole, odd=x.body.odd)

    async def again(self, x: Exchange, refusal: RefusedByUpstream) -> bool:
        """Write a refused request in a form that the upstream may take; False for none."""
        if x.trail is None:
            return False
        if is_overflow(refusal, x.given):
            try:
                smaller = await self._shrink(x, refusal)
            except (Refusal, ConspectusError) as error:
                logger.warning("a refused request could not be made smaller: %s", error)
                return False
        else:
            thinking, alternate = x.given.get("thinking"), self._models.alternate_roles
            known = x.learned.forms
            form = form_of(str(refusal), known, thinking, alternate) if x.view is not None else ""
            smaller = bool(form)
            known |= {form} if form else set()
        if smaller:
            await self.in_turn(self._write, x)
        return smaller

    async def _shrink(self, x: Exchange, error: Exception) -> bool:
        """Make a refused request smaller; False if that is impossible."""
        sent = x.sent + x.recalled
        x.refused = x.refused.and_again(sent, x.beside, error)
        if x.refused.tries > TRIES:
            return False
        # That a proxy takes no more bytes says nothing of the model.
        of_bytes = getattr(error, "status_code", None) == 413 and "token" not in str(error).lower()
        if not of_bytes and (x.refused.named or x.room is None):
            most = x.refused.having_tried(x.refused.budget, sent).most
            x.learned.refused = most + x.beside
        await self._compact(x, Window(x.refused.budget + x.beside, x.beside))
        x.note = f"the upstream refused {sent + x.beside:,} tokens, so fewer were sent again"
        if x.learned.refused:
            x.note += f"; the window of this model counts as {x.learned.refused:,} from now on"
        return x.sent < sent
