"""Keep of an exchange what later requests need."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.messages import read_messages
from conspectus_serve.continuation import TAIL_LENGTH
from conspectus_serve.entrance import add_tenant
from conspectus_serve.exchange import ClientRequest, Conversation, ReadRequest, Sending
from conspectus_serve.held import Held
from conspectus_serve.joining import Dropped
from conspectus_serve.models import LEAST_WINDOW, SILENT_CUT_SHARE
from conspectus_serve.protocols import RESPONSES
from conspectus_serve.resources import Resources


class ExchangeKeeper:
    """Keep originals, the progress of threads, responses, and what is learned of models.

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
        """Archive what the client has cleared or dropped.

        A failure is logged, and the thread's next request tries it again.
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
        self._threads.write()
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
            self._threads.note_named(request.tenant, match.thread, fingerprinted, head)
        else:
            hint = conversation.hint
            self._threads.note(request.tenant, match.thread, fingerprinted, head, hint)
        return True

    def learn_from_usage(
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

    def may_be_continued(self, request: ClientRequest, read: ReadRequest) -> bool:
        """Return whether a later request may go on from the response by its id."""
        is_stored = read.fields.get("store") is not False and not request.route.counts
        return self._holds_histories and is_stored and request.route.protocol is RESPONSES

    def keep_response(
        self, request: ClientRequest, read: ReadRequest, response: str, output: list[Any]
    ) -> None:
        """Keep a response that a later request may name."""
        new_messages = [*request.route.protocol.history(read.fields), *output]
        with self._resources.logging_failure("a response could not be kept"):
            self._held.keep(request.tenant, _held_in_thread(read), response, new_messages)

    def keep_pending(self, request: ClientRequest, read: ReadRequest, response: str) -> None:
        """Keep a response that its upstream makes in the background, without its output."""
        new_messages = request.route.protocol.history(read.fields)
        with self._resources.logging_failure("a response could not be kept"):
            self._held.keep(
                request.tenant, _held_in_thread(read), response, new_messages, pending=True
            )

    def complete_response(self, tenant: str, response: str, output: list[Any]) -> None:
        """Keep the output of a response that was made in the background."""
        with self._resources.logging_failure("a response could not be kept"):
            self._held.complete(tenant, response, output)

    def delete_response(self, tenant: str, response: str) -> None:
        """Drop what is held of a response that its upstream holds no more."""
        with self._resources.logging_failure("a deleted response could not be dropped"):
            self._held.delete(tenant, response)


def _held_in_thread(read: ReadRequest) -> Held:
    """Return the history that is held of a request, with the thread that the request has."""
    thread = read.conversation.match.thread if read.conversation is not None else ""
    return replace(read.held, thread=thread)
