"""Turn the bytes of a request into the bytes to send, or into the endpoint's own answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from conspectus.errors import ArchiveError, ConspectusError, InputError
from conspectus.messages.thoughts import REFUSED
from conspectus_serve.asked import EditRequest, asked_of
from conspectus_serve.clearing import cleared
from conspectus_serve.compacted import block_of, compacted, iteration_of
from conspectus_serve.fitting import RequestFitter, TooLarge, Turn
from conspectus_serve.forms import (
    ALTERNATE,
    BETA,
    SWITCH,
    alternating,
    with_switch,
    without_thoughts,
)
from conspectus_serve.items import MARK, BadItem, Items
from conspectus_serve.models import Models
from conspectus_serve.operation import shown
from conspectus_serve.protocols import RESPONSES
from conspectus_serve.recall_tool import tool_in
from conspectus_serve.recalling import RequestRecall
from conspectus_serve.requests import (
    LONGEST_NAME,
    IncomingRequest,
    PreparedRequest,
    Refusal,
    parsed,
)
from conspectus_serve.threads import hint_of
from conspectus_serve.turns import Turns

logger = logging.getLogger("conspectus")

MILLION_BETA = "context-1m"
"""Beginning of the beta by which Anthropic gives a model its window of a million tokens."""

UNREADABLE = (ConspectusError, ValueError, TypeError, KeyError, AttributeError)
"""Errors of messages that are not understood."""

MODELS = 100
"""Models of which the log says that their window is not known."""

NO_WINDOW = (
    "its window is not known, so nothing is compacted before the upstream refuses; give --window, "
    "or serve.windows in the file of --config"
)
UNREAD = "a message was not understood; the request is sent on as it came"


class RequestPreparer:
    """Prepare requests; each step is a flow for a worker thread.

    Args:
        fitting, turns, items, recalling, models: the parts that it uses.
        serves: compact here on request; otherwise the upstream is asked.
        holds: keep histories that clients leave to the server. They are kept as they were sent, so
            not if secrets must be redacted.
        alternate: join messages of the user in compacted requests: `on`, `off`, or `auto`, where an
            upstream asks for it.
    """

    def __init__(
        self,
        fitting: RequestFitter,
        turns: Turns,
        items: Items,
        recalling: RequestRecall,
        models: Models,
        *,
        serves: bool,
        holds: bool,
        alternate: str = "auto",
    ) -> None:
        self._fitting, self._turns, self._items = fitting, turns, items
        self._recalling, self._models, self._alternate = recalling, models, alternate
        self._serves, self._holds = serves, holds
        self._warned = set[str]()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn errors of the engine into refusals."""
        try:
            yield
        except TooLarge as error:
            raise Refusal(400, str(error), "context_length_exceeded") from None
        except ArchiveError as error:
            raise Refusal(503, f"the archive is not there just now: {error}") from None
        except BadItem as error:
            raise Refusal(400, str(error), "invalid_compaction_item") from None
        except RecursionError:
            raise Refusal(400, "the request is nested too deeply; send less of it") from None

    async def begun_flow(self, arrived: IncomingRequest) -> PreparedRequest:
        """Read a request, measure it, and find its thread.

        Raises:
            Refusal: the endpoint refuses it.
        """
        body = parsed(arrived.raw)
        if arrived.thread is not None and not 0 < len(arrived.thread) <= LONGEST_NAME:
            raise Refusal(400, f"x-conspectus-thread is a name of up to {LONGEST_NAME} characters")
        with self._refusing():
            return await self._begun(arrived, body)

    async def _begun(self, arrived: IncomingRequest, given: dict[str, Any]) -> PreparedRequest:
        route, asked = arrived.route, EditRequest(given)
        if self._serves:
            try:
                asked = asked_of(route.name, given)
            except InputError as error:
                raise Refusal(400, str(error)) from None
        if route.counts:
            asked = replace(asked, alone=False)
        body, tenant, protocol = asked.body, arrived.tenant, route.protocol
        new = protocol.history(body) or []
        streamed = given.get("stream") is True and not route.counts
        plain = PreparedRequest(arrived, body, arrived.raw, streamed=streamed)
        if body.get("conversation"):
            return replace(plain, state="upstream")
        parent, before, thread = body.get("previous_response_id"), list[Any](), arrived.thread
        if isinstance(parent, str) and parent and protocol is RESPONSES:
            held = None
            if self._holds:
                held = await self._turns.history_flow(tenant, parent)
            if held is None:
                return replace(plain, state="upstream")
            before, thread = list(held.items), held.thread
            body = {key: value for key, value in body.items() if key != "previous_response_id"}
            plain = replace(plain, body=body, state="held", parent=parent, before=before)
        history, of_item = [*before, *new], None
        if before or MARK.encode() in arrived.raw:
            history, of_item = self._items.expanded(tenant, history)
        if not history:
            return plain
        named = given.get("model") if isinstance(given.get("model"), str) else route.model
        try:
            turn = await self._fitting.measured_flow(
                tenant,
                protocol,
                {**body, "model": str(named)[:LONGEST_NAME]},
                history,
                thread or of_item,
                asked,
                hint_of(arrived.headers, body),
                MILLION_BETA in arrived.headers.get("anthropic-beta", ""),
            )
        except (ArchiveError, RecursionError):
            raise
        except UNREADABLE as error:
            return self._unread(plain, asked, bool(of_item), error)
        keeps = self._holds and protocol is RESPONSES and body.get("store") is not False
        keeps = keeps and not route.counts
        filled = body is not given or bool(of_item)
        note = "" if turn.room or turn.engine.policy.trigger else self._without_window(turn.model)
        plain = replace(plain, turn=turn, new=new, note=note)
        return replace(plain, clear=asked.clear, kept=keeps, filled=filled)

    def _without_window(self, model: str) -> str:
        """Say, once a model in the log, why nothing is compacted."""
        if model not in self._warned and len(self._warned) < MODELS:
            self._warned.add(model)
            logger.warning("model %s: %s", shown(model) or "-", NO_WINDOW)
        return NO_WINDOW

    def _unread(
        self, plain: PreparedRequest, asked: EditRequest, of_item: bool, error: Exception
    ) -> PreparedRequest:
        """Send on a request with a message that is not understood: the upstream decides."""
        if plain.before or of_item or asked.alone:
            raise Refusal(400, f"a message is not understood: {error}") from None
        logger.info("sent on as it came: %s", type(error).__name__)
        return replace(plain, note=UNREAD)

    async def compacted_flow(self, prepared: PreparedRequest) -> PreparedRequest:
        """Compact the history of a request for which that is due.

        Raises:
            Refusal: nothing makes it fit, or the archive fails.
        """
        turn = prepared.turn
        assert turn is not None
        with self._refusing():
            try:
                turn = await self._fitting.compacted_flow(turn)
            except (ArchiveError, TooLarge, RecursionError):
                raise
            except UNREADABLE as error:
                asked = turn.asked or EditRequest({})
                return self._unread(replace(prepared, turn=None), asked, prepared.filled, error)
            if turn.fresh:  # its client may have gone, and sends the same request again
                await self.settled_flow(turn)
        return replace(prepared, turn=turn)

    async def finished_flow(self, prepared: PreparedRequest) -> PreparedRequest:
        """Write the bytes to send, or the endpoint's own answer."""
        turn = prepared.turn
        if turn is None:
            return prepared
        asked, name = turn.asked or EditRequest({}), prepared.arrived.route.name
        if asked.alone and turn.fresh:
            return replace(prepared, content=b"", answer=self._alone(name, prepared, turn))
        if asked.compact is not None and turn.fresh and turn.view is not None:
            lead = block_of(self._item(turn, turn.view), turn.notes)
            prepared = replace(prepared, lead=lead, iterations=[iteration_of(turn.cost)])
        if not prepared.filled and turn.view is None:
            return prepared
        with self._refusing():
            return await self._filled(prepared, turn)

    async def _filled(self, prepared: PreparedRequest, turn: Turn) -> PreparedRequest:
        """Build the request for a history that is not sent as it came."""
        view = turn.history if turn.view is None else turn.view
        shown = await self._recalling.shown_flow(turn, view)
        view, turn = shown.view, replace(turn, sent=turn.sent + shown.tokens)
        edits: list[dict[str, Any]] = []
        if prepared.clear is not None:
            view, edits = cleared(view, prepared.clear, turn.sent)
        body, betas = prepared.body, list[bytes]()
        if turn.view is not None:
            view = without_thoughts(view, all_of_them=self._has(turn, "thoughtless"))
            if self._alternate == "on" or (self._alternate == "auto" and self._has(turn, "roles")):
                view = alternating(view)
            if self._has(turn, "switch") and turn.protocol.name == "messages":
                body, betas = with_switch(body), [BETA]
        body = {**body, turn.protocol.field: list(view)}
        counts = prepared.arrived.route.counts
        lookups = None
        if not counts:
            lookups = self._recalling.lookups(turn, body, shown.tokens, held=self._holds)
        if lookups is not None:
            body["tools"] = [*(body.get("tools") or ()), tool_in(turn.protocol)]
        if prepared.streamed and (lookups is not None or prepared.lead is not None):
            gone = ("stream", "stream_options")  # it is made of whole answers
            body = {key: value for key, value in body.items() if key not in gone}
        try:
            content = json.dumps(body, separators=(",", ":")).encode()
        except RecursionError:
            raise Refusal(400, "the body is nested too deeply; send less of it") from None
        return replace(
            prepared,
            turn=turn,
            content=content,
            edits=edits,
            recalled=shown.tokens,
            sent=body,
            lookups=lookups,
            betas=betas,
        )

    def _has(self, turn: Turn, form: str) -> bool:
        return self._models.has_form(turn.tenant, turn.model, form)

    def form_of(self, prepared: PreparedRequest, refusal: str) -> str:
        """Return the form that a refusal of a compacted request asks for; empty for none.

        What the client has sent itself is the client's to mend.
        """
        turn = prepared.turn
        if turn is None or turn.view is None:
            return ""
        tried = partial(self._has, turn)
        if ALTERNATE.search(refusal) and self._alternate == "auto" and not tried("roles"):
            return "roles"
        if not REFUSED.search(refusal) or tried("thoughtless"):
            return ""
        thinking = prepared.body.get("thinking")
        off = isinstance(thinking, Mapping) and thinking.get("type") == "disabled"
        return "switch" if SWITCH in refusal and not off and not tried("switch") else "thoughtless"

    async def formed_flow(self, prepared: PreparedRequest, form: str) -> PreparedRequest:
        """Write a refused request in the form that the upstream asks for, and remember it."""
        turn = prepared.turn
        assert turn is not None
        self._models.learn_form(turn.tenant, turn.model, form)
        sent = turn.sent - prepared.recalled
        return await self._filled(prepared, replace(turn, sent=sent))

    async def settled_flow(self, turn: Turn) -> None:
        """Keep the thread's progress; a failure does not stop the answer."""
        try:
            await self._fitting.settle_flow(turn)
        except ArchiveError as error:
            logger.warning("how far a thread has come could not be kept: %s", error)

    async def again_flow(
        self, prepared: PreparedRequest, error: Exception
    ) -> PreparedRequest | None:
        """Make a refused request smaller; return None if that is impossible."""
        assert prepared.turn is not None
        try:
            turn = await self._fitting.again_flow(prepared.turn, error)
        except ConspectusError as failed:
            logger.warning("a refused request could not be made smaller: %s", failed)
            return None
        if turn is None:
            return None
        if turn.fresh:
            await self.settled_flow(turn)
        return await self._filled(prepared, turn)

    async def answered_flow(
        self, prepared: PreparedRequest, response: str, output: list[Any]
    ) -> None:
        """Keep a response that a later request may name."""
        assert prepared.turn is not None
        scope, new = prepared.turn.scope, [*prepared.new, *output]
        try:
            await self._turns.keep_flow(scope, response, prepared.parent, prepared.before, new)
        except ArchiveError as error:
            logger.warning("a response could not be kept: %s", error)

    def _alone(self, name: str, prepared: PreparedRequest, turn: Turn) -> bytes:
        content = self._item(turn, turn.plain if turn.view is None else turn.view)
        asked, stream = prepared.body, prepared.streamed
        if prepared.parent:
            asked = {**asked, "previous_response_id": prepared.parent}
        return compacted(name, asked, content, turn.notes, turn.cost, stream)

    def _item(self, turn: Turn, view: Sequence[Any]) -> str:
        """Sign an item that stands for the history so far."""
        return self._items.written(turn.tenant, turn.found.thread, view)
