"""Turn a request that was read into the bytes to send, or into the endpoint's own answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.core.items import Window
from conspectus.core.plan import window_or_trigger
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.langchain.overflow import TRIES
from conspectus.model.provider_errors import is_overflow
from conspectus_serve.awaiting import OneComputation
from conspectus_serve.exchange import (
    NOT_UNDERSTOOD,
    ClientRequest,
    Conversation,
    ReadRequest,
    Sending,
)
from conspectus_serve.held import Held, compaction_answer
from conspectus_serve.joining import Dropped
from conspectus_serve.keeping import ExchangeKeeper
from conspectus_serve.locks import ScopeLocks
from conspectus_serve.models import form_asked_for, in_forms
from conspectus_serve.numbers import to_json
from conspectus_serve.protocols import TOO_LONG, Refusal
from conspectus_serve.recall import RecallForRequests
from conspectus_serve.resources import MessageNotUnderstood, Resources
from conspectus_serve.sent_view import not_covered, view_to_send
from conspectus_serve.upstream_answer import RefusedByUpstream

logger = logging.getLogger("conspectus.serve")


class RequestFitter:
    """Make requests fit, and write what is sent."""

    def __init__(
        self, resources: Resources, keeper: ExchangeKeeper, one_computation: OneComputation
    ) -> None:
        self._resources = resources
        self._settings = resources.settings
        self._health = resources.health
        self._models = resources.models
        self._work = resources.work
        self._originals = resources.originals
        self._held = resources.held
        self._keeper = keeper
        self._one_computation = one_computation
        self._recall = RecallForRequests(resources.settings.recall_tokens)
        self._locks = ScopeLocks(asyncio.Lock)

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
            with self._resources.explaining_errors():
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
                return await self._one_computation.run(
                    self._written, request, read, conversation, sending
                )
        except MessageNotUnderstood as error:
            error.check_may_go_on(read)
            unchanged = self.unchanged(request, read)
            return replace(unchanged, note=NOT_UNDERSTOOD, is_understood=False)

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
        async with self._locks.lock_of(conversation.scope):
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
            self._health.note_success()
        elif result.failed == "archive":
            self._health.note_failure()
            note = note or f"nothing was compacted: {result.reason}"

        if compacted.head and (conversation.is_named or compacted.head != conversation.match.head):
            await self._one_computation.run(
                self._keeper.note_compaction, request, conversation, dropped, compacted.head
            )
        still_dropped = not_covered(dropped, compacted)
        if len(still_dropped.messages) < len(dropped.messages):
            self._originals.remember(
                conversation.scope,
                conversation.fingerprints,
                conversation.originals,
                still_dropped,
            )
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

    async def after_refusal(
        self,
        request: ClientRequest,
        read: ReadRequest,
        sending: Sending,
        refusal: RefusedByUpstream,
    ) -> Sending | None:
        """Return a refused request as the upstream may take it: smaller, or in another form.

        None if there is no such form.
        """
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
            return await self._one_computation.run(
                self._written, request, read, conversation, smaller
            )
        if sending.view is None:
            return None
        learned = conversation.measured.learned
        form = form_asked_for(
            str(refusal),
            learned.forms,
            read.fields.get("thinking"),
            self._models.alternate_roles,
        )
        if not form:
            return None
        learned.forms.add(form)
        return await self._one_computation.run(self._written, request, read, conversation, sending)

    async def _shrink(
        self,
        request: ClientRequest,
        conversation: Conversation,
        sending: Sending,
        refusal: RefusedByUpstream,
    ) -> Sending | None:
        """Make a request smaller that was refused as too long; None if it cannot be smaller.

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


def _stuck_reason(reason: str, conversation: Conversation) -> str:
    reserved = conversation.measured.reserved_tokens
    if not reserved:
        return reason
    return f"{reason} (instructions, tools and room for the answer take {reserved:,})"
