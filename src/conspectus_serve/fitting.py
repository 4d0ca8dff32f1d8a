"""Turn the bytes of a request into the bytes to send, or into the endpoint's own answer.

Each public method of `RequestFitter` is a step of an exchange; those that are no coroutines are for
worker threads.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from starlette.datastructures import Headers

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive, Scope
from conspectus.config import SummarizationConfig
from conspectus.core.items import Size, Window
from conspectus.core.plan import window_or_trigger
from conspectus.engine.begun_later import LEAST_SHARED
from conspectus.engine.folding import fold
from conspectus.engine.history import HistoryContext
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.langchain.overflow import TRIES
from conspectus.messages import read_messages
from conspectus.model.provider_errors import is_overflow
from conspectus_serve.bodies import Bodies, ParsedBody
from conspectus_serve.entrance import add_tenant
from conspectus_serve.exchange import (
    ClientRequest,
    Conversation,
    MeasuredHistory,
    ReadRequest,
    Sending,
)
from conspectus_serve.fingerprints import (
    Fingerprint,
    FingerprintedHistory,
    fingerprint_history,
)
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.held import Held, HeldHistories, compaction_answer, without_trigger
from conspectus_serve.models import (
    LEAST_WINDOW,
    NO_WINDOW,
    SILENT_CUT_SHARE,
    EngineKey,
    Models,
    form_asked_for,
    in_forms,
)
from conspectus_serve.numbers import to_json
from conspectus_serve.originals import Dropped, Joined, OriginalMessages, Restored
from conspectus_serve.protocols import RESPONSES, TOO_LONG, Refusal
from conspectus_serve.recall import RecallForRequests
from conspectus_serve.sent_view import not_covered, view_to_send
from conspectus_serve.settings import ServeSettings
from conspectus_serve.threads import TAIL_LENGTH, ThreadIndex, hint_of, scope_of
from conspectus_serve.upstream import RefusedByUpstream
from conspectus_serve.work import UNREADABLE, Work

logger = logging.getLogger("conspectus.serve")

T = TypeVar("T")

THREAD_HEADER = "x-conspectus-thread"
LARGE_BODY = 50_000  # bytes that take longer to read than small requests shall wait
LONGEST_NAME = 200  # characters of a thread's name in a header, and of a model's name
REMEMBERED_LOCKS = 256  # of threads, each of which is compacted once at a time

LEAST_NOTES = 1_024  # tokens that notes may always have, if a client asks for a compaction
NOTES_SHARE = 0.25  # of the history's tokens, that such notes may have of a longer history

NOT_UNDERSTOOD = "a message was not understood; the request is sent on as it came"


class MessageNotUnderstood(Exception):
    """A message of a request cannot be read; the text says why."""


class RequestFitter:
    """Read requests, make them fit, write what is sent, and keep the progress of each thread."""

    def __init__(
        self,
        archive: Archive,
        settings: ServeSettings,
        config: SummarizationConfig,
        work: Work | None = None,
    ) -> None:
        self._archive = archive
        self._settings = settings
        self.health = ArchiveHealth(archive)
        self.threads = ThreadIndex(archive, self.health)
        self._bodies = Bodies()
        self._models = Models(settings, config, archive)
        self._work = work or Work(archive, self._models)
        self._originals = OriginalMessages(archive)
        self._held = HeldHistories(archive)
        # What is held is kept as it was sent, which nobody wants who redacts.
        self._holds_histories = not config.redact
        self.compacts_on_request = self._holds_histories and settings.compaction == "here"
        self._recall = RecallForRequests(settings.recall_tokens)
        self._locks = BoundedCache[Scope, asyncio.Lock](REMEMBERED_LOCKS)
        self._one_computation = asyncio.Semaphore(1)

    async def in_turn(self, call: Callable[..., T], *args: Any) -> T:
        """Make a call that computes for long in a thread, and no other one at the same time.

        Beside many of them the event loop, and small requests with it, would get no turn.
        """
        async with self._one_computation:
            thread = asyncio.ensure_future(asyncio.to_thread(call, *args))
            try:
                return await asyncio.shield(thread)
            finally:  # if its client goes, it computes on all the same
                await asyncio.wait({thread})

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        """Turn errors of the engine into a `Refusal`, or into `MessageNotUnderstood`."""
        try:
            yield
        except ArchiveError as error:
            self.health.note_failure()
            reason = f"the archive is not there just now: {error}"
            raise Refusal(503, reason, reason="archive") from None
        except RecursionError:
            raise Refusal(400, "the request is nested too deeply; send less of it") from None
        except UNREADABLE as error:
            raise MessageNotUnderstood(str(error)) from None

    # Read

    def is_soon_read(self, request: ClientRequest) -> bool:
        """Return whether little is new since a request for which nothing was due."""
        field = request.route.protocol.field
        earlier = self._bodies.remembered(request.tenant, request.raw, field)
        if earlier is None or not earlier.was_quiet:
            return False
        new_bytes = len(request.raw) - len(earlier.history.prefix)
        return new_bytes + earlier.history.start < LARGE_BODY

    def read(self, request: ClientRequest) -> ReadRequest:
        """Read a request, measure it, and find its thread.

        Raises:
            Refusal: it cannot be read, or the archive cannot.
        """
        return self._read(request, is_large=False)

    def read_large(self, request: ClientRequest) -> ReadRequest:
        """Read a request whose messages take long to read: where the summaries are written."""
        return self._read(request, is_large=True)

    def _read(self, request: ClientRequest, *, is_large: bool) -> ReadRequest:
        header_thread = _named_thread(request.headers)
        field = request.route.protocol.field
        body = self._bodies.read(request.tenant, request.raw, field)
        read = self._first_look(request, body, header_thread)
        try:
            with self._explaining_errors():
                read = self._with_history(request, read)
            if read.history:
                with self._explaining_errors():
                    conversation = self._conversation(request, read, body, is_large)
                note = NO_WINDOW if _lacks_a_window(conversation) else read.note
                read = replace(read, conversation=conversation, note=note)
            elif read.state != "upstream" and body.fields.get(field):
                read = replace(read, note=NOT_UNDERSTOOD)
        except MessageNotUnderstood as error:
            _check_may_go_on(read, error)
            read = replace(read, conversation=None, note=NOT_UNDERSTOOD)
        fingerprinted = read.conversation.fingerprinted if read.conversation else None
        was_quiet = read.conversation is not None and not read.conversation.is_due
        self._bodies.remember(request.tenant, field, body, fingerprinted, was_quiet=was_quiet)
        return read

    def _first_look(self, request: ClientRequest, body: ParsedBody, thread: str) -> ReadRequest:
        """Return what a body's fields say, its history apart."""
        fields = body.fields
        asks_for_compaction = False
        if self.compacts_on_request:
            fields, asks_for_compaction = without_trigger(request.route.name, fields)
        return ReadRequest(
            fields=fields,
            model=str(body.fields.get("model") or request.route.model)[:LONGEST_NAME],
            is_streamed=body.fields.get("stream") is True and not request.route.counts,
            has_odd_numbers=body.has_odd_numbers,
            asks_for_compaction=asks_for_compaction,
            thread=thread,
            is_rewritten=fields is not body.fields,
        )

    def _with_history(self, request: ClientRequest, read: ReadRequest) -> ReadRequest:
        """Return a request with its whole history, also of what the client leaves to a server."""
        protocol = request.route.protocol
        sent = protocol.history(read.fields)
        if protocol is not RESPONSES:
            is_elsewhere = bool(read.fields.get("conversation"))
            return replace(read, state="upstream") if is_elsewhere else replace(read, history=sent)
        if read.fields.get("conversation") or any(map(_is_reference, sent)):
            return replace(read, state="upstream")
        parent = read.fields.get("previous_response_id")
        if isinstance(parent, str) and parent:
            held = self._held.find(request.tenant, parent) if self._holds_histories else None
            if held is None:
                is_pending = self._holds_histories and self._held.is_pending(request.tenant, parent)
                return replace(
                    read, state="upstream", pending_response=parent if is_pending else ""
                )
            fields = {k: v for k, v in read.fields.items() if k != "previous_response_id"}
            read = replace(
                read,
                fields=fields,
                state="held",
                held=held,
                thread=held.thread,
                is_rewritten=True,
            )
        history, item_thread = self._held.expand_items(request.tenant, [*read.held.messages, *sent])
        return replace(
            read,
            history=history,
            thread=read.thread or item_thread,
            is_rewritten=read.is_rewritten or bool(item_thread),
        )

    def _conversation(
        self, request: ClientRequest, read: ReadRequest, body: ParsedBody, is_large: bool
    ) -> Conversation:
        """Measure a history, and find its thread and what its client has cleared or dropped."""
        protocol = request.route.protocol.name
        fingerprinted = fingerprint_history(
            read.history,
            protocol,
            self._models.meter(read.model),
            previous=body.continued.fingerprinted if body.continued else None,
            read=partial(self._work.fingerprints, read.model, protocol) if is_large else None,
        )
        measured = self._measured(request, read, fingerprinted)
        hint = hint_of(request.headers, read.fields)
        if read.thread:
            match = self.threads.find_named(request.tenant, read.thread, fingerprinted)
        else:
            match = self.threads.find(request.tenant, fingerprinted, hint)
        scope = scope_of(request.tenant, match.thread)
        joined = Joined(fingerprinted.fingerprints)
        if not read.asks_for_compaction and not read.state:
            # A client that names its thread says that the history goes on from what was there.
            least_shared = 1 if read.thread else LEAST_SHARED
            joined = self._originals.join(
                scope, fingerprinted.fingerprints, least_shared=least_shared
            )
            if read.thread and joined.continues:
                match = replace(match, continues=True)
        # A thread that was left is where the originals are, until its compactions are copied.
        source = scope
        head = match.head
        if match.left_thread:
            source = scope_of(request.tenant, match.left_thread)
            head = self._archive.head(source) or ""
        restored = self._originals.restore(source, head, fingerprinted, joined.fingerprints)
        withdrawal = None
        if not request.route.counts:
            withdrawal = self._originals.withdrawal(scope, match.head, restored, joined)
        copied_from = None
        if match.left_thread:
            chain = fold(self._archive.chain(source), read_messages(restored.messages)).chain
            if chain:
                copied_from = (source, chain[-1].id)
                match = replace(match, head="copied")
        conversation = Conversation(
            fingerprinted=fingerprinted,
            sent=_with_results_known_again(read.history, joined.fingerprints, restored),
            match=match,
            scope=scope,
            is_named=bool(read.thread),
            hint=hint,
            copied_from=copied_from,
            originals=restored.messages,
            shortened=restored.shortened,
            fingerprints=restored.fingerprints,
            dropped=joined.dropped,
            withdrawal=withdrawal,
            measured=measured,
            is_due=(
                bool(match.head)
                or read.asks_for_compaction
                or not _is_quiet(read.history, measured, scope, joined.dropped)
            ),
        )
        if not request.route.counts:
            missing = joined.suspected if joined.suspected.messages else joined.dropped
            self._remember(conversation, missing)
        return conversation

    def _measured(
        self, request: ClientRequest, read: ReadRequest, fingerprinted: FingerprintedHistory
    ) -> MeasuredHistory:
        """Measure a history beside the window of its model."""
        learned = self._models.learned(request.tenant, read.model)
        betas = request.headers.getlist("anthropic-beta")
        window = self._models.window(read.model, learned, betas)
        meter = self._models.meter(read.model)
        tokens = meter.whole(read.history) if meter.counts_lists else fingerprinted.tokens
        max_notes = max(LEAST_NOTES, int(tokens * NOTES_SHARE))
        engine_key = EngineKey(read.model, window, max_notes if read.asks_for_compaction else None)
        fixed_tokens = self._models.fixed_tokens(request.route.protocol, read.fields, meter)
        room = self._models.room(read.fields, window, fixed_tokens)
        reserved_tokens = fixed_tokens
        if window is not None and room is not None:
            reserved_tokens = window - room.budget
        return MeasuredHistory(
            tokens=tokens,
            engine_key=engine_key,
            engine=self._models.engine(*engine_key),
            learned=learned,
            room=room,
            fixed_tokens=fixed_tokens,
            reserved_tokens=reserved_tokens,
        )

    def _remember(self, conversation: Conversation, dropped: Dropped) -> None:
        """Remember what a client has sent, and has dropped."""
        self._originals.remember(
            conversation.scope,
            dropped.put_back(conversation.fingerprints, dropped.fingerprints),
            dropped.put_back(conversation.originals, dropped.messages),
            dropped.substitutes,
        )

    # Fit

    def unchanged(self, request: ClientRequest, read: ReadRequest) -> Sending:
        """Return a request as it is sent if nothing need be done with it."""
        conversation = read.conversation
        return Sending(
            content=request.raw,
            tokens=conversation.measured.tokens if conversation is not None else 0,
            dropped=conversation.dropped if conversation is not None else Dropped(),
            note=read.note,
        )

    async def fit(self, request: ClientRequest, read: ReadRequest) -> Sending:
        """Compact a history for which that is due, and write what is sent.

        On an event loop one compaction computes at a time, and none while it waits for its model.

        Raises:
            Refusal: the archive fails, or a request that must be rewritten is not understood.
        """
        sending = self.unchanged(request, read)
        conversation = read.conversation
        if conversation is None:
            return sending
        try:
            with self._explaining_errors():
                if conversation.copied_from is not None:
                    source, head = conversation.copied_from
                    await asyncio.to_thread(self._originals.copy, source, conversation.scope, head)
                if conversation.is_due:
                    room = window_or_trigger(
                        conversation.measured.engine.policy, conversation.measured.room
                    )
                    sending = await self._compact(
                        request, conversation, sending, room, is_forced=read.asks_for_compaction
                    )
                if sending.stuck_reason:
                    return sending
                return await self.in_turn(self._written, request, read, conversation, sending)
        except MessageNotUnderstood as error:
            _check_may_go_on(read, error)
            rejoined = self.unchanged(request, read)
            return replace(rejoined, note=NOT_UNDERSTOOD, is_understood=False)

    async def _compact(
        self,
        request: ClientRequest,
        conversation: Conversation,
        sending: Sending,
        room: Window | None,
        *,
        is_forced: bool = False,
    ) -> Sending:
        """Put the thread's compactions in force, and compact what does not fit the room.

        What is returned is not written yet.
        """
        dropped = sending.dropped
        # A client that gives up and sends its request again waits for the compaction under way.
        async with self._locks.get_or_make(conversation.scope, asyncio.Lock):
            compacted = await self._work.compact(
                conversation.measured.engine_key,
                conversation.scope,
                room,
                dropped.put_back(conversation.originals, dropped.messages),
                dropped.put_back(conversation.shortened, dropped.messages),
                is_forced,
                conversation.match.continues,
            )
        result = compacted.result
        exceeds_room = room is not None and result.tokens_after > room.budget
        note = sending.note
        if exceeds_room and result.failed == "archive":
            raise ArchiveError(f"{result.reason}; send the request again")
        if result.record is not None:
            self.health.note_success()
        elif result.failed == "archive":
            self.health.note_failure()
            note = note or f"nothing was compacted: {result.reason}"

        if compacted.head and (conversation.is_named or compacted.head != conversation.match.head):
            await self.in_turn(
                self._note_compaction, request, conversation, dropped, compacted.head
            )
        still_dropped = not_covered(dropped, compacted)
        if len(still_dropped.messages) < len(dropped.messages):
            self._remember(conversation, still_dropped)
        # Even where it is stuck, what may leave has left, and is known when the client comes back.
        is_stuck = exceeds_room or result.outcome == "stuck"
        refuses = is_stuck and self._settings.on_stuck == "refuse"
        view = view_to_send(conversation, dropped, compacted)
        return replace(
            sending,
            tokens=view.tokens,
            note=note,
            view=view.messages,
            result=replace(result, messages=view.messages_as_read),
            head=compacted.head,
            dropped=still_dropped,
            free_tokens=None if room is None else room.budget - view.tokens,
            stuck_reason=_stuck_reason(result.reason, conversation) if refuses else "",
            compactions=sending.compactions + (result.record is not None),
        )

    async def again(
        self,
        request: ClientRequest,
        read: ReadRequest,
        sending: Sending,
        refusal: RefusedByUpstream,
    ) -> Sending | None:
        """Return a refused request in a form that the upstream may take; None for none."""
        conversation = read.conversation
        if conversation is None or not sending.is_understood:
            return None
        if is_overflow(refusal, read.fields):
            try:
                smaller = await self._shrink(request, conversation, sending, refusal)
            except (Refusal, ConspectusError) as error:
                logger.warning("a refused request could not be made smaller: %s", error)
                return None
            if smaller is None:
                return None
            return await self.in_turn(self._written, request, read, conversation, smaller)
        if sending.view is None:
            return None
        learned = conversation.measured.learned
        form = form_asked_for(
            str(refusal), learned.forms, read.fields.get("thinking"), self._models.alternate_roles
        )
        if not form:
            return None
        learned.forms.add(form)
        return await self.in_turn(self._written, request, read, conversation, sending)

    async def _shrink(
        self,
        request: ClientRequest,
        conversation: Conversation,
        sending: Sending,
        refusal: RefusedByUpstream,
    ) -> Sending | None:
        """Make a request smaller that was refused as too long; None if that is impossible.

        What is returned is not written yet.

        Raises:
            Refusal: nothing makes it fit.
            ArchiveError: the archive cannot be read or written.
        """
        reserved = conversation.measured.reserved_tokens
        learned = conversation.measured.learned
        sent_tokens = sending.tokens + sending.recalled_tokens
        refusals = sending.refusals.after_refusal(sent_tokens, reserved, refusal)
        if refusals.tries > TRIES:
            return None
        # That a proxy takes no more bytes says nothing of the model.
        is_of_bytes = refusal.status_code == 413 and "token" not in str(refusal).lower()
        if not is_of_bytes and (refusals.named or conversation.measured.room is None):
            largest_history = refusals.with_learned_limit(refusals.budget, sent_tokens).learned
            learned.refused = largest_history + reserved
        smaller = await self._compact(
            request,
            conversation,
            replace(sending, refusals=refusals),
            Window(refusals.budget + reserved, reserved),
        )
        if smaller.stuck_reason:
            raise Refusal(400, smaller.stuck_reason, TOO_LONG)
        if smaller.tokens >= sent_tokens:
            return None
        note = f"the upstream refused {sent_tokens + reserved:,} tokens, so fewer were sent again"
        if learned.refused:
            note += f"; the window of this model counts as {learned.refused:,} from now on"
        return replace(smaller, note=note)

    # Keep

    def keep_withdrawn(self, conversation: Conversation) -> None:
        """Archive what the client has cleared or dropped.

        A failure is logged, and the thread's next request tries it again.
        """
        withdrawal = conversation.withdrawal
        assert withdrawal is not None
        engine_key = conversation.measured.engine_key
        archive_originals = partial(
            self._work.archive_originals, engine_key, withdrawal.scope, withdrawal.history
        )
        with self._logging_failure("what a client has cleared could not be archived"):
            self._originals.keep_withdrawn(withdrawal, archive_originals)

    def _note_compaction(
        self, request: ClientRequest, conversation: Conversation, dropped: Dropped, head: str
    ) -> None:
        """Note what a new record covers; its client may have gone, and sends the same again.

        The process that has made it may have ended before it said so.
        """
        self._originals.note_covered(
            conversation.scope,
            head,
            dropped.put_back(conversation.fingerprints, dropped.fingerprints),
            dropped.put_back(conversation.originals, dropped.messages),
        )
        self.note_progress(request, conversation, head)
        self.threads.write()
        add_tenant(self._archive, request.tenant)

    def note_progress(self, request: ClientRequest, conversation: Conversation, head: str) -> bool:
        """Note how far the thread has come; False if that need not be written.

        `head` is the id of the record in force; empty for none.
        """
        match = conversation.match
        fingerprinted = conversation.fingerprinted
        if conversation.is_named and not head:
            return False
        if head == match.head and match.tail == fingerprinted.answered_names[-TAIL_LENGTH:]:
            return False
        if conversation.is_named:
            self.threads.note_named(request.tenant, match.thread, fingerprinted, head)
        else:
            hint = conversation.hint
            self.threads.note(request.tenant, match.thread, fingerprinted, head, hint)
        return True

    def see_usage(
        self, conversation: Conversation, sending: Sending, model: str, reported: int
    ) -> None:
        """Learn from the input tokens that an upstream reports for an answered request."""
        fixed = conversation.measured.fixed_tokens
        sent = sending.tokens + sending.recalled_tokens + fixed
        if LEAST_WINDOW <= reported < SILENT_CUT_SHARE * sent:
            result = sending.result
            messages = result.messages if result else conversation.fingerprinted.messages
            entries = read_messages(messages)
            texts = [entry.text for entry in entries if entry.role != "assistant"]
            # This much no upstream leaves out.
            sent = fixed + sum(map(conversation.measured.engine.meter.text, texts))
        conversation.measured.learned.see_usage(sent, reported, model)

    def keeps(self, request: ClientRequest, read: ReadRequest) -> bool:
        """Return whether a later request may name the response."""
        is_stored = read.fields.get("store") is not False and not request.route.counts
        return self._holds_histories and is_stored and request.route.protocol is RESPONSES

    def keep_response(
        self, request: ClientRequest, read: ReadRequest, response: str, output: list[Any]
    ) -> None:
        """Keep a response that a later request may name."""
        new_messages = [*request.route.protocol.history(read.fields), *output]
        with self._logging_failure("a response could not be kept"):
            self._held.keep(request.tenant, _held_in_thread(read), response, new_messages)

    def keep_pending(self, request: ClientRequest, read: ReadRequest, response: str) -> None:
        """Keep a response that its upstream makes in the background, without its output."""
        new_messages = request.route.protocol.history(read.fields)
        with self._logging_failure("a response could not be kept"):
            self._held.keep(
                request.tenant, _held_in_thread(read), response, new_messages, pending=True
            )

    def complete_response(self, tenant: str, response: str, output: list[Any]) -> None:
        """Keep the output of a response that was made in the background."""
        with self._logging_failure("a response could not be kept"):
            self._held.complete(tenant, response, output)

    def delete_response(self, tenant: str, response: str) -> None:
        """Drop what is held of a response that its upstream holds no more."""
        with self._logging_failure("a deleted response could not be dropped"):
            self._held.delete(tenant, response)

    @contextmanager
    def _logging_failure(self, what_failed: str) -> Iterator[None]:
        """Log a failure to keep something: the request goes on, and its answer stands."""
        try:
            yield
        except (ConspectusError, Refusal) as error:  # the latter of a worker process that ended
            if isinstance(error, ArchiveError):
                self.health.note_failure()
            logger.warning("%s: %s", what_failed, error)

    # Write

    def _written(
        self,
        request: ClientRequest,
        read: ReadRequest,
        conversation: Conversation,
        sending: Sending,
    ) -> Sending:
        """Write the bytes to send, or the endpoint's own answer."""
        if read.asks_for_compaction and sending.result is not None:
            return self._with_compaction_answer(request, read, conversation, sending)
        protocol = request.route.protocol
        fields = read.fields
        view = sending.view
        if view is None and not read.is_rewritten:
            return sending
        messages: Sequence[Any] = conversation.sent
        if view is not None:
            messages, recalled_tokens = self._with_recalled(read.model, conversation, sending)
            alternates = sending.result is not None and sending.result.alternates
            forms = self._models.forms(read.model, conversation.measured.learned, alternates)
            messages, fields, betas = in_forms(protocol.name, messages, fields, forms)
            sending = replace(sending, recalled_tokens=recalled_tokens, betas=betas)
        body = {**fields, protocol.field: messages}
        return replace(sending, content=to_json(body, has_odd_numbers=read.has_odd_numbers))

    def _with_compaction_answer(
        self,
        request: ClientRequest,
        read: ReadRequest,
        conversation: Conversation,
        sending: Sending,
    ) -> Sending:
        """Answer with one item, and keep what it stands for."""
        assert sending.result is not None
        name = f"cmp_{secrets.token_hex(12)}"
        messages = sending.view or conversation.originals
        self._held.keep(request.tenant, Held(conversation.match.thread), name, messages)
        answer = compaction_answer(
            request.route.name, read.model, name, sending.result.cost, stream=read.is_streamed
        )
        return replace(sending, own_answer=answer)

    def _with_recalled(
        self, model: str, conversation: Conversation, sending: Sending
    ) -> tuple[list[Any], int]:
        """Return a view with originals that the user's newest message needs, and their tokens."""
        assert sending.view is not None
        if self._settings.recall == "off" or not sending.head:
            return sending.view, 0
        return self._recall.add_to(
            sending.view,
            conversation.scope,
            sending.head,
            history=conversation.originals,
            meter=conversation.measured.engine.meter,
            free_tokens=sending.free_tokens,
            search=partial(self._work.search, model),
        )


def _named_thread(headers: Headers) -> str:
    """Return the thread that a client names; empty for none. Raises Refusal."""
    thread = headers.get(THREAD_HEADER, "")
    if THREAD_HEADER in headers and not 0 < len(thread) <= LONGEST_NAME:
        raise Refusal(400, f"{THREAD_HEADER} is a name of up to {LONGEST_NAME} characters")
    return thread


def _is_reference(item: Any) -> bool:
    """Return whether an item only names one that its server holds."""
    return isinstance(item, dict) and item.get("type") == "item_reference"


def _check_may_go_on(read: ReadRequest, error: MessageNotUnderstood) -> None:
    """Refuse a request that is not understood, if it cannot be sent on as it came."""
    if read.is_rewritten or read.asks_for_compaction:
        raise Refusal(400, f"a message is not understood: {error}") from None


def _is_quiet(
    history: Sequence[Any], measured: MeasuredHistory, scope: Scope, dropped: Dropped
) -> bool:
    """Return whether nothing is due for a history, with what its client has dropped."""
    room = window_or_trigger(measured.engine.policy, measured.room)
    size = Size(measured.tokens + dropped.tokens, len(history) + len(dropped.messages))
    return HistoryContext(measured.engine, scope, room).is_quiet(size, None)


def _with_results_known_again(
    history: Sequence[Any], fingerprints: Sequence[Fingerprint], restored: Restored
) -> Sequence[Any]:
    """Return a history with calls in the place of what is left of them.

    Their results are known again, and would be sent without them.
    """
    if restored.fingerprints is fingerprints:
        return history
    return [
        original if whole.name != sent.name else message
        for message, original, whole, sent in zip(
            history, restored.messages, restored.fingerprints, fingerprints, strict=True
        )
    ]


def _lacks_a_window(conversation: Conversation) -> bool:
    """Return whether nothing is compacted before the upstream refuses, as no window is known."""
    triggers = conversation.measured.engine.policy.trigger
    return conversation.measured.room is None and all(trigger.fraction for trigger in triggers)


def _held_in_thread(read: ReadRequest) -> Held:
    """Return the history that is held of a request, with the thread that the request has."""
    thread = read.conversation.match.thread if read.conversation is not None else ""
    return replace(read.held, thread=thread)


def _stuck_reason(reason: str, conversation: Conversation) -> str:
    reserved = conversation.measured.reserved_tokens
    if not reserved:
        return reason
    return f"{reason} (instructions, tools and room for the answer take {reserved:,})"
