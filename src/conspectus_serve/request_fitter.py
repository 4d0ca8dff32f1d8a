"""Fit a request that was read: make the bytes to send, or the endpoint's own answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.core.items import Window
from conspectus.core.planner import window_or_trigger
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.model.overflow import FURTHER_TRIES
from conspectus.model.provider_errors import is_overflow
from conspectus_serve.alignment import DroppedMessages
from conspectus_serve.awaiting import OneComputation
from conspectus_serve.handling import (
    NOT_UNDERSTOOD,
    ClientRequest,
    Conversation,
    FittedRequest,
    ReadRequest,
)
from conspectus_serve.held import HeldHistory, compaction_answer
from conspectus_serve.locks import ScopeLocks
from conspectus_serve.models import form_asked_for, in_forms
from conspectus_serve.numbers import to_json
from conspectus_serve.protocols import TOO_LONG, HttpError
from conspectus_serve.recall import RecallForRequests
from conspectus_serve.request_keeper import RequestKeeper
from conspectus_serve.resources import MessageNotUnderstood, Resources
from conspectus_serve.sent_view import dropped_and_uncovered, view_to_send
from conspectus_serve.upstream_answer import RefusedByUpstream
from conspectus_serve.work import CompactionJob

logger = logging.getLogger("conspectus.serve")


class RequestFitter:
    """Makes requests fit, and writes the bytes to send."""

    def __init__(
        self, resources: Resources, keeper: RequestKeeper, one_computation: OneComputation
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

    def unchanged(self, request: ClientRequest, read: ReadRequest) -> FittedRequest:
        """Return a request to be sent unchanged."""
        conversation = read.conversation
        return FittedRequest(
            content=request.raw,
            tokens=conversation.measured.tokens if conversation is not None else 0,
            dropped=conversation.dropped if conversation is not None else DroppedMessages(),
            note=read.note,
        )

    async def fit(self, request: ClientRequest, read: ReadRequest) -> FittedRequest:
        """Compact the history if that is due, and write the bytes to send.

        On an event loop, one compaction computes at a time; others may, while it waits for its
        model.

        Raises:
            HttpError: the archive fails, or a request that must be rewritten is not understood.
        """
        fitted = self.unchanged(request, read)
        conversation = read.conversation
        if conversation is None:
            return fitted
        try:
            with self._resources.explaining_errors():
                if conversation.copied_from is not None:
                    source, head_id = conversation.copied_from
                    await asyncio.to_thread(
                        self._originals.copy, source, conversation.scope, head_id
                    )
                if conversation.is_due:
                    room = window_or_trigger(
                        conversation.measured.engine.policy, conversation.measured.room
                    )
                    fitted = await self._compact(
                        request, conversation, fitted, room, is_forced=read.asks_for_compaction
                    )
                if fitted.stuck_reason:
                    return fitted
                return await self._one_computation.run(
                    self._write, request, read, conversation, fitted
                )
        except MessageNotUnderstood as error:
            error.check_may_go_on(read)
            unchanged = self.unchanged(request, read)
            return replace(unchanged, note=NOT_UNDERSTOOD, is_understood=False)

    async def _compact(
        self,
        request: ClientRequest,
        conversation: Conversation,
        fitted: FittedRequest,
        room: Window | None,
        *,
        is_forced: bool = False,
    ) -> FittedRequest:
        """Put the thread's compactions in force, and compact a history that does not fit the room.

        The bytes of the result are not written yet.
        """
        dropped = fitted.dropped
        # If a client gives up and sends its request again, it waits for the running compaction.
        async with self._locks.lock_of(conversation.scope):
            job = CompactionJob(
                engine_key=conversation.measured.engine_key,
                scope=conversation.scope,
                room=room,
                originals=dropped.put_back(conversation.originals, dropped.messages),
                shortened=dropped.put_back(conversation.shortened, dropped.messages),
                is_forced=is_forced,
                continues=conversation.match.continues,
            )
            compacted = await self._work.compact(job)
        result = compacted.result
        exceeds_room = room is not None and result.tokens_after > room.budget
        note = fitted.note
        if exceeds_room and result.failed == "archive":
            raise ArchiveError(f"{result.reason}; send the request again")
        if result.record is not None:
            self._health.note_success()
        elif result.failed == "archive":
            self._health.note_failure()
            note = note or f"nothing was compacted: {result.reason}"

        if compacted.head_id and (
            conversation.is_named or compacted.head_id != conversation.match.head_id
        ):
            await self._one_computation.run(
                self._keeper.note_compaction, request, conversation, dropped, compacted.head_id
            )
        still_dropped = dropped_and_uncovered(dropped, compacted)
        if len(still_dropped.messages) < len(dropped.messages):
            self._originals.remember(
                conversation.scope,
                conversation.fingerprints,
                conversation.originals,
                still_dropped,
            )
        # A stuck compaction has evicted what it could; the client's next request uses that.
        is_stuck = exceeds_room or result.outcome == "stuck"
        refuses = is_stuck and self._settings.on_stuck == "refuse"
        view = view_to_send(conversation, dropped, compacted)
        return replace(
            fitted,
            tokens=view.tokens,
            note=note,
            view=view.messages,
            result=replace(result, messages=view.messages_as_read),
            head_id=compacted.head_id,
            dropped=still_dropped,
            free_tokens=None if room is None else room.budget - view.tokens,
            stuck_reason=_stuck_reason(result.reason, conversation) if refuses else "",
            compactions=fitted.compactions + (result.record is not None),
        )

    async def after_refusal(
        self,
        request: ClientRequest,
        read: ReadRequest,
        fitted: FittedRequest,
        refusal: RefusedByUpstream,
    ) -> FittedRequest | None:
        """Return a refused request as the upstream may accept it: smaller, or in another form.

        None if there is no such form.
        """
        conversation = read.conversation
        if conversation is None or not fitted.is_understood:
            return None
        if is_overflow(refusal, read.fields):
            try:
                smaller = await self._shrink(request, conversation, fitted, refusal)
            except (HttpError, ConspectusError) as error:
                logger.warning("a refused request could not be made smaller: %s", error)
                return None
            if smaller is None:
                return None
            return await self._one_computation.run(
                self._write, request, read, conversation, smaller
            )
        if fitted.view is None:
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
        return await self._one_computation.run(self._write, request, read, conversation, fitted)

    async def _shrink(
        self,
        request: ClientRequest,
        conversation: Conversation,
        fitted: FittedRequest,
        refusal: RefusedByUpstream,
    ) -> FittedRequest | None:
        """Make a request smaller that was refused as too long; None if it cannot be smaller.

        The bytes of the result are not written yet.

        Raises:
            HttpError: nothing makes it fit.
            ArchiveError: the archive cannot be read or written.
        """
        reserved = conversation.measured.reserved_tokens
        learned = conversation.measured.learned
        sent_tokens = fitted.tokens + fitted.recalled_tokens
        refusals = fitted.refusals.after_refusal(sent_tokens, reserved, refusal)
        if refusals.tries > FURTHER_TRIES:
            return None
        # A proxy's limit in bytes says nothing about the model.
        is_of_bytes = refusal.status_code == 413 and "token" not in str(refusal).lower()
        if not is_of_bytes and (refusals.has_named_limit or conversation.measured.room is None):
            largest_history = refusals.with_learned_limit(refusals.budget, sent_tokens).learned
            learned.refused = largest_history + reserved
        smaller = await self._compact(
            request,
            conversation,
            replace(fitted, refusals=refusals),
            Window(refusals.budget + reserved, reserved),
        )
        if smaller.stuck_reason:
            raise HttpError(400, smaller.stuck_reason, TOO_LONG)
        if smaller.tokens >= sent_tokens:
            return None
        note = f"the upstream refused {sent_tokens + reserved:,} tokens, so fewer were sent again"
        if learned.refused:
            note += f"; the window of this model counts as {learned.refused:,} from now on"
        return replace(smaller, note=note)

    # Write

    def _write(
        self,
        request: ClientRequest,
        read: ReadRequest,
        conversation: Conversation,
        fitted: FittedRequest,
    ) -> FittedRequest:
        """Write the bytes to send, or the endpoint's own answer."""
        if read.asks_for_compaction and fitted.result is not None:
            return self._answer_with_item(request, read, conversation, fitted)
        protocol = request.route.protocol
        fields = read.fields
        view = fitted.view
        if view is None and not read.is_rewritten:
            return fitted
        messages: Sequence[Any] = conversation.sent
        if view is not None:
            messages, recalled_tokens = self._add_recalled(read.model, conversation, fitted)
            may_need_joining = fitted.result is not None and fitted.result.may_need_joining
            forms = self._models.forms(read.model, conversation.measured.learned, may_need_joining)
            messages, fields, betas = in_forms(protocol.name, messages, fields, forms)
            fitted = replace(fitted, recalled_tokens=recalled_tokens, betas=betas)
        body = {**fields, protocol.field: messages}
        return replace(fitted, content=to_json(body, has_odd_numbers=read.has_odd_numbers))

    def _answer_with_item(
        self,
        request: ClientRequest,
        read: ReadRequest,
        conversation: Conversation,
        fitted: FittedRequest,
    ) -> FittedRequest:
        """Answer with one compaction item, and store the history that it replaces."""
        assert fitted.result is not None
        name = f"cmp_{secrets.token_hex(12)}"
        messages = fitted.view or conversation.originals
        self._held.keep(request.tenant, HeldHistory(conversation.match.thread), name, messages)
        answer = compaction_answer(
            request.route.name, read.model, name, fitted.result.cost, stream=read.is_streamed
        )
        return replace(fitted, own_answer=answer)

    def _add_recalled(
        self, model: str, conversation: Conversation, fitted: FittedRequest
    ) -> tuple[list[Any], int]:
        """Return a view with originals that the user's newest message needs, and their tokens."""
        assert fitted.view is not None
        if self._settings.recall == "off" or not fitted.head_id:
            return fitted.view, 0
        return self._recall.add_to(
            fitted.view,
            conversation.scope,
            fitted.head_id,
            history=conversation.originals,
            meter=conversation.measured.engine.meter,
            free_tokens=fitted.free_tokens,
            search=partial(self._work.search, model),
        )


def _stuck_reason(reason: str, conversation: Conversation) -> str:
    reserved = conversation.measured.reserved_tokens
    if not reserved:
        return reason
    return f"{reason} (instructions, tools and room for the answer take {reserved:,})"
