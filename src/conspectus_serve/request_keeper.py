"""Store what later requests need to know of a request."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.messages import read_messages
from conspectus_serve.alignment import DroppedMessages
from conspectus_serve.continuation import TAIL_LENGTH
from conspectus_serve.entrance import add_tenant
from conspectus_serve.handling import ClientRequest, Conversation, FittedRequest, ReadRequest
from conspectus_serve.held import HeldHistory
from conspectus_serve.models import LEAST_WINDOW, SILENT_CUT_SHARE
from conspectus_serve.protocols import RESPONSES
from conspectus_serve.resources import Resources


class RequestKeeper:
    """Stores originals, the progress of threads, responses, and what is learned of models.

    Methods that write to the archive are for worker threads.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._archive = resources.archive
        self._work = resources.work
        self._threads = resources.threads
        self._originals = resources.originals
        self._held = resources.held
        self._holds_histories = resources.holds_histories

    def keep_withdrawn(self, conversation: Conversation) -> None:
        """Archive messages that the client has cleared or dropped.

        A failure is logged; the thread's next request tries again.
        """
        withdrawal = conversation.withdrawal
        assert withdrawal is not None
        engine_key = conversation.measured.engine_key
        archive_originals = partial(
            self._work.archive_originals, engine_key, withdrawal.scope, withdrawal.history
        )
        with self._resources.logging_failure("what a client has cleared could not be archived"):
            self._originals.keep_withdrawn(withdrawal, archive_originals)

    def note_compaction(
        self,
        request: ClientRequest,
        conversation: Conversation,
        dropped: DroppedMessages,
        head_id: str,
    ) -> None:
        """Note which messages a new record covers, even if the client has disconnected.

        The process that made the record may have ended before it noted this.
        """
        self._originals.note_covered(
            conversation.scope,
            head_id,
            dropped.put_back(conversation.fingerprints, dropped.fingerprints),
            dropped.put_back(conversation.originals, dropped.messages),
        )
        self.note_progress(request, conversation, head_id)
        self._threads.write()
        add_tenant(self._archive, request.tenant)

    def note_progress(
        self, request: ClientRequest, conversation: Conversation, head_id: str
    ) -> bool:
        """Note the progress of the thread. Return False if that need not be written.

        `head_id` is the id of the record in force; empty if there is none.
        """
        match = conversation.match
        fingerprinted = conversation.fingerprinted
        if conversation.is_named and not head_id:
            return False
        if head_id == match.head_id and match.tail == fingerprinted.answered_names[-TAIL_LENGTH:]:
            return False
        if conversation.is_named:
            self._threads.note_named(request.tenant, match.thread, fingerprinted, head_id)
        else:
            hint = conversation.hint
            self._threads.note(request.tenant, match.thread, fingerprinted, head_id, hint)
        return True

    def learn_from_usage(
        self, conversation: Conversation, fitted: FittedRequest, model: str, reported: int
    ) -> None:
        """Learn from the input tokens that an upstream reports for an answered request."""
        fixed = conversation.measured.fixed_tokens
        sent = fitted.tokens + fitted.recalled_tokens + fixed
        if LEAST_WINDOW <= reported < SILENT_CUT_SHARE * sent:
            result = fitted.result
            messages = result.messages if result else conversation.fingerprinted.messages
            entries = read_messages(messages)
            texts = [entry.text for entry in entries if entry.role != "assistant"]
            # Every upstream counts at least this many tokens.
            sent = fixed + sum(map(conversation.measured.engine.meter.count_text, texts))
        conversation.measured.learned.see_usage(sent, reported, model)

    def may_be_continued(self, request: ClientRequest, read: ReadRequest) -> bool:
        """Tell whether a later request may continue the response by its id."""
        is_stored = read.fields.get("store") is not False and not request.route.counts
        return self._holds_histories and is_stored and request.route.protocol is RESPONSES

    def keep_response(
        self, request: ClientRequest, read: ReadRequest, response: str, output: list[Any]
    ) -> None:
        """Store a response that a later request may name."""
        new_messages = [*request.route.protocol.history(read.fields), *output]
        with self._resources.logging_failure("a response could not be kept"):
            self._held.keep(request.tenant, _held_in_thread(read), response, new_messages)

    def keep_pending(self, request: ClientRequest, read: ReadRequest, response: str) -> None:
        """Store a response, without its output, that the upstream makes in the background."""
        new_messages = request.route.protocol.history(read.fields)
        with self._resources.logging_failure("a response could not be kept"):
            self._held.keep(
                request.tenant, _held_in_thread(read), response, new_messages, pending=True
            )

    def complete_response(self, tenant: str, response: str, output: list[Any]) -> None:
        """Store the output of a response that was made in the background."""
        with self._resources.logging_failure("a response could not be kept"):
            self._held.complete(tenant, response, output)

    def delete_response(self, tenant: str, response: str) -> None:
        """Delete a response that the upstream has deleted."""
        with self._resources.logging_failure("a deleted response could not be dropped"):
            self._held.delete(tenant, response)


def _held_in_thread(read: ReadRequest) -> HeldHistory:
    """Return the stored history of a request, with the thread of the request."""
    thread = read.conversation.match.thread if read.conversation is not None else ""
    return replace(read.held, thread=thread)
