"""Read a request: its fields, its whole history, and the thread and size of the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.datastructures import Headers

from conspectus.archive import Scope
from conspectus.core.items import Size
from conspectus.core.planner import window_or_trigger
from conspectus.engine.folding import fold
from conspectus.engine.history import HistoryContext
from conspectus.engine.truncated import LEAST_OVERLAP
from conspectus.messages import read_messages
from conspectus_serve.alignment import AlignedHistory, DroppedMessages
from conspectus_serve.bodies import Bodies, ParsedBody
from conspectus_serve.fingerprints import (
    Fingerprint,
    FingerprintedHistory,
    fingerprint_history,
)
from conspectus_serve.handling import (
    NOT_UNDERSTOOD,
    ClientRequest,
    Conversation,
    MeasuredHistory,
    ReadRequest,
)
from conspectus_serve.held import HeldHistory, without_trigger
from conspectus_serve.models import NO_WINDOW, EngineKey
from conspectus_serve.originals import RestoredHistory
from conspectus_serve.protocols import RESPONSES, HttpError
from conspectus_serve.resources import MessageNotUnderstood, Resources
from conspectus_serve.threads import ThreadMatch, hint_of, scope_of

THREAD_HEADER = "x-conspectus-thread"
LARGE_BODY = 50_000
"""Bytes from which a request is read apart, so that small ones need not wait for it."""

LONGEST_NAME = 200
"""Characters of a thread's name in a header, or of a model's name."""

LEAST_SUMMARY_TOKENS = 1_024
"""Tokens that a summary may always have if a client asks for a compaction."""

SUMMARY_SHARE = 0.25
"""Share of a longer history's tokens that its summary may have."""


class RequestReader:
    """Reads requests; large ones in worker threads."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._archive = resources.archive
        self._models = resources.models
        self._work = resources.work
        self._threads = resources.threads
        self._originals = resources.originals
        self._held = resources.held
        self._holds_histories = resources.holds_histories
        self._bodies = Bodies()

    def is_soon_read(self, request: ClientRequest) -> bool:
        """Tell whether a request adds little to one for which nothing was due."""
        field = request.route.protocol.field
        earlier = self._bodies.remembered(request.tenant, request.raw, field)
        if earlier is None or not earlier.was_quiet:
            return False
        new_bytes = len(request.raw) - len(earlier.history.prefix)
        return new_bytes + earlier.history.start < LARGE_BODY

    def read(self, request: ClientRequest) -> ReadRequest:
        """Read a request, measure it, and find its thread.

        Raises:
            HttpError: the request or the archive cannot be read.
        """
        return self._read(request, is_large=False)

    def read_large(self, request: ClientRequest) -> ReadRequest:
        """Read a request with many messages, in the process that writes summaries."""
        return self._read(request, is_large=True)

    def _read(self, request: ClientRequest, *, is_large: bool) -> ReadRequest:
        header_thread = _named_thread(request.headers)
        field = request.route.protocol.field
        body = self._bodies.read(request.tenant, request.raw, field)
        read = self._read_fields(request, body, header_thread)
        try:
            with self._resources.explaining_errors():
                read = self._with_whole_history(request, read)
            if read.history:
                with self._resources.explaining_errors():
                    conversation = self._find_conversation(request, read, body, is_large)
                note = NO_WINDOW if _compacts_after_refusals_only(conversation) else read.note
                read = replace(read, conversation=conversation, note=note)
            elif read.state != "upstream" and body.fields.get(field):
                read = replace(read, note=NOT_UNDERSTOOD)
        except MessageNotUnderstood as error:
            error.check_may_go_on(read)
            read = replace(read, conversation=None, note=NOT_UNDERSTOOD)
        fingerprinted = read.conversation.fingerprinted if read.conversation else None
        was_quiet = read.conversation is not None and not read.conversation.is_due
        self._bodies.remember(request.tenant, field, body, fingerprinted, was_quiet=was_quiet)
        return read

    def _read_fields(self, request: ClientRequest, body: ParsedBody, thread: str) -> ReadRequest:
        """Return the request with the fields of its body, without its history."""
        fields = body.fields
        asks_for_compaction = False
        if self._resources.compacts_on_request:
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

    def _with_whole_history(self, request: ClientRequest, read: ReadRequest) -> ReadRequest:
        """Return the request with its whole history, including stored messages."""
        protocol = request.route.protocol
        sent = protocol.history(read.fields)
        if protocol is not RESPONSES:
            is_elsewhere = bool(read.fields.get("conversation"))
            return replace(read, state="upstream") if is_elsewhere else replace(read, history=sent)
        if read.fields.get("conversation") or any(map(_is_reference, sent)):
            return replace(read, state="upstream")
        parent = read.fields.get("previous_response_id")
        if isinstance(parent, str) and parent:
            held = self._find_held(request.tenant, parent)
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

    def _find_held(self, tenant: str, response: str) -> HeldHistory | None:
        if not self._holds_histories:
            return None
        return self._held.find(tenant, response)

    def _find_conversation(
        self, request: ClientRequest, read: ReadRequest, body: ParsedBody, is_large: bool
    ) -> Conversation:
        """Find the thread of a history, and cleared and dropped messages; remember both."""
        protocol = request.route.protocol.name
        fingerprinted = fingerprint_history(
            read.history,
            protocol,
            self._models.meter(read.model),
            previous=body.continued.fingerprinted if body.continued else None,
            read=partial(self._work.fingerprints, read.model, protocol) if is_large else None,
        )
        measured = self._measure(request, read, fingerprinted)
        hint = hint_of(request.headers, read.fields)
        match = self._find_thread(request, read, fingerprinted, hint)
        scope = scope_of(request.tenant, match.thread)
        aligned = self._align(read, scope, fingerprinted)
        if read.thread and aligned.continues:
            match = replace(match, continues=True)
        # If the history has left a thread, the originals are there until its compactions are
        # copied.
        source = scope
        head_id = match.head_id
        if match.left_thread:
            source = scope_of(request.tenant, match.left_thread)
            head_id = self._archive.head_id(source) or ""
        restored = self._originals.restore(source, head_id, fingerprinted, aligned.fingerprints)
        withdrawal = None
        if not request.route.counts:
            withdrawal = self._originals.withdrawal(scope, match.head_id, restored, aligned)
        copied_from = None
        if match.left_thread:
            copied_from = self._record_to_copy(source, restored)
        conversation = Conversation(
            fingerprinted=fingerprinted,
            sent=_with_results_known_again(read.history, aligned.fingerprints, restored),
            match=match,
            scope=scope,
            is_named=bool(read.thread),
            hint=hint,
            copied_from=copied_from,
            originals=restored.messages,
            shortened=restored.shortened,
            fingerprints=restored.fingerprints,
            dropped=aligned.dropped,
            withdrawal=withdrawal,
            measured=measured,
            is_due=(
                bool(match.head_id)
                or copied_from is not None
                or read.asks_for_compaction
                or not _is_quiet(read.history, measured, scope, aligned.dropped)
            ),
        )
        if not request.route.counts:
            missing = aligned.suspected if aligned.suspected.messages else aligned.dropped
            self._originals.remember(
                scope, conversation.fingerprints, conversation.originals, missing
            )
        return conversation

    def _find_thread(
        self,
        request: ClientRequest,
        read: ReadRequest,
        fingerprinted: FingerprintedHistory,
        hint: str,
    ) -> ThreadMatch:
        if read.thread:
            return self._threads.find_named(request.tenant, read.thread, fingerprinted)
        return self._threads.find(request.tenant, fingerprinted, hint)

    def _align(
        self, read: ReadRequest, scope: Scope, fingerprinted: FingerprintedHistory
    ) -> AlignedHistory:
        """Align a history with the remembered one of its thread, unless a server has stored it."""
        fingerprints = fingerprinted.fingerprints
        if read.asks_for_compaction or read.state:
            return AlignedHistory(fingerprints)
        # A client that names its thread says that the history continues it.
        least_shared = 1 if read.thread else LEAST_OVERLAP
        return self._originals.join(scope, fingerprints, least_shared=least_shared)

    def _record_to_copy(self, source: Scope, restored: RestoredHistory) -> tuple[Scope, str] | None:
        """Return the newest record that fits the history, of a thread that the history has left."""
        entries = read_messages(restored.messages)
        chain = fold(self._archive.chain(source), entries).chain
        return (source, chain[-1].id) if chain else None

    def _measure(
        self, request: ClientRequest, read: ReadRequest, fingerprinted: FingerprintedHistory
    ) -> MeasuredHistory:
        """Measure a history, and the room in the window of its model."""
        learned = self._models.learned(request.tenant, read.model)
        betas = request.headers.getlist("anthropic-beta")
        window = self._models.window(read.model, learned, betas)
        meter = self._models.meter(read.model)
        tokens = meter.count_list(read.history) if meter.counts_lists else fingerprinted.tokens
        max_notes = max(LEAST_SUMMARY_TOKENS, int(tokens * SUMMARY_SHARE))
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


def _named_thread(headers: Headers) -> str:
    """Return the thread that a client names; empty if it names none. Raises HttpError."""
    thread = headers.get(THREAD_HEADER, "")
    if THREAD_HEADER in headers and not 0 < len(thread) <= LONGEST_NAME:
        raise HttpError(400, f"{THREAD_HEADER} is a name of up to {LONGEST_NAME} characters")
    return thread


def _is_reference(item: Any) -> bool:
    """Tell whether an item only refers to one that its server stores."""
    return isinstance(item, dict) and item.get("type") == "item_reference"


def _is_quiet(
    history: Sequence[Any], measured: MeasuredHistory, scope: Scope, dropped: DroppedMessages
) -> bool:
    """Tell whether nothing is due for a history with its dropped messages."""
    room = window_or_trigger(measured.engine.policy, measured.room)
    size = Size(measured.tokens + dropped.tokens, len(history) + len(dropped.messages))
    return HistoryContext(measured.engine, scope, room).is_quiet(size, None)


def _with_results_known_again(
    history: Sequence[Any], fingerprints: Sequence[Fingerprint], restored: RestoredHistory
) -> Sequence[Any]:
    """Return a history in which whole calls replace the parts that a client has kept of them.

    Their results are in the history, and would be sent without their calls.
    """
    if restored.fingerprints is fingerprints:
        return history
    return [
        original if whole.name != sent.name else message
        for message, original, whole, sent in zip(
            history, restored.messages, restored.fingerprints, fingerprints, strict=True
        )
    ]


def _compacts_after_refusals_only(conversation: Conversation) -> bool:
    """Tell whether nothing is compacted before a refusal, because no window is known."""
    triggers = conversation.measured.engine.policy.trigger
    return conversation.measured.room is None and all(trigger.fraction for trigger in triggers)
