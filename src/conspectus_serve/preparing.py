"""Turn the bytes of a request into the bytes to send, or into the endpoint's own answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conspectus.errors import ArchiveError, ConspectusError, InputError
from conspectus_serve.asked import EditRequest, asked_of
from conspectus_serve.clearing import cleared
from conspectus_serve.compacted import block_of, compacted, iteration_of
from conspectus_serve.fitting import RequestFitter, TooLarge, Turn
from conspectus_serve.headers import Raw, said
from conspectus_serve.items import MARK, BadItem, Items
from conspectus_serve.protocols import RESPONSES, Protocol
from conspectus_serve.recall_tool import Lookups, tool_in
from conspectus_serve.recalling import RequestRecall
from conspectus_serve.turns import Turns

logger = logging.getLogger("conspectus")

LONGEST_NAME = 200
"""Maximum characters of a thread's name in a header."""

UNREAD = "a message was not understood; the request is sent on as it came"


class Refusal(Exception):
    """A request that the endpoint refuses."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request as it came; `thread` is the name in its header."""

    tenant: str
    path: str
    protocol: Protocol
    raw: bytes
    thread: str | None


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be sent.

    Attributes:
        body: for the upstream, with the history as it came.
        content: the bytes to send, if there is no `answer`.
        turn: its history; None if it is sent as it came.
        note: for the client.
        state: which server holds the history, if the client leaves it to one.
        edits: cleared results, as Anthropic reports them.
        recalled: tokens that were recalled for it.
        sent: the body in `content`, if that is not the client's own.
        lookups: carries out calls of the endpoint's own tool; None without the tool.
        lead: a block before the answer.
        iterations: usage before the answer, in Anthropic's form.
        clear: Anthropic's edit that clears tool results.
        parent: id of the response before it; empty for none.
        before: the history up to that.
        new: the messages since.
        kept: a later request may name the response.
        answer: the endpoint's own answer.
        streamed: the client asks for events.
    """

    body: dict[str, Any]
    content: bytes
    turn: Turn | None = None
    note: str = ""
    state: str = ""
    edits: Sequence[dict[str, Any]] = ()
    recalled: int = 0
    sent: Mapping[str, Any] = field(default_factory=dict)
    lookups: Lookups | None = None
    lead: Mapping[str, Any] | None = None
    iterations: Sequence[Mapping[str, Any]] = ()
    clear: Mapping[str, Any] | None = None
    parent: str = ""
    before: Sequence[Any] = ()
    new: Sequence[Any] = ()
    kept: bool = False
    answer: bytes | None = None
    streamed: bool = False

    @property
    def rewritten(self) -> bool:
        """Return whether its answer is made of several, or has a block before it."""
        return self.lookups is not None or self.lead is not None

    @property
    def read_on_the_way(self) -> bool:
        """Return whether its answer is read, and so must not be compressed."""
        return self.kept or self.rewritten or bool(self.edits)

    @property
    def headers(self) -> Raw:
        """Return the endpoint's own headers."""
        turn = self.turn
        edits = json.dumps(self.edits) if self.edits else ""
        own = said(state=self.state, applied_edits=edits, note=self.note)
        if turn is None:
            return own
        return [
            *said(
                thread=turn.found.thread,
                compacted=turn.view is not None,
                messages_archived=turn.left_out,
                tokens_before=turn.tokens,
                tokens_after=turn.sent,
                record=turn.head,
                recalled_tokens=self.recalled or None,
            ),
            *own,
        ]


class RequestPreparer:
    """Prepare requests; each step is a flow for a worker thread.

    Args:
        fitting, turns, items, recalling: the parts that it uses.
        serves: compact here on request; otherwise the upstream is asked.
        holds: keep histories that clients leave to the server. They are kept as they were sent, so
            not if secrets must be redacted.
    """

    def __init__(
        self,
        fitting: RequestFitter,
        turns: Turns,
        items: Items,
        recalling: RequestRecall,
        *,
        serves: bool,
        holds: bool,
    ) -> None:
        self._fitting, self._turns, self._items = fitting, turns, items
        self._recalling = recalling
        self._serves, self._holds = serves, holds

    async def prepared_flow(self, arrived: IncomingRequest) -> PreparedRequest:
        """Prepare a request.

        Raises:
            Refusal: the endpoint refuses it.
        """
        body = parsed(arrived.raw)
        if arrived.thread is not None and not 0 < len(arrived.thread) <= LONGEST_NAME:
            raise Refusal(400, f"x-conspectus-thread is a name of up to {LONGEST_NAME} characters")
        try:
            return await self._prepared(arrived, body)
        except TooLarge as error:
            raise Refusal(400, str(error), "context_length_exceeded") from None
        except ArchiveError as error:
            raise Refusal(503, f"the archive is not there just now: {error}") from None
        except BadItem as error:
            raise Refusal(400, str(error), "invalid_compaction_item") from None
        except RecursionError:
            raise Refusal(400, "the request is nested too deeply; send less of it") from None

    async def _prepared(self, arrived: IncomingRequest, given: dict[str, Any]) -> PreparedRequest:
        asked = EditRequest(given)
        if self._serves:
            try:
                asked = asked_of(arrived.path, given)
            except InputError as error:
                raise Refusal(400, str(error)) from None
        body, tenant = asked.body, arrived.tenant
        new = arrived.protocol.history(body) or []
        plain = PreparedRequest(body, arrived.raw, streamed=given.get("stream") is True)
        if body.get("conversation"):
            return replace(plain, state="upstream")
        parent, before, thread = body.get("previous_response_id"), list[Any](), arrived.thread
        if isinstance(parent, str) and parent and arrived.protocol is RESPONSES:
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
        flow = self._fitting.fit_flow(
            tenant, arrived.protocol, body, history, thread or of_item, asked
        )
        try:
            turn = await flow
        except (ArchiveError, TooLarge, RecursionError):
            raise
        except (ConspectusError, ValueError, TypeError, KeyError, AttributeError) as error:
            if before or of_item or asked.alone:
                raise Refusal(400, f"a message is not understood: {error}") from None
            # The upstream decides how a message must look.
            logger.info("sent on as it came: %s", type(error).__name__)
            return replace(plain, note=UNREAD)
        if turn.fresh:  # its client may have gone, and sends the same request again
            await self.settled_flow(turn)
        keeps = self._holds and arrived.protocol is RESPONSES and body.get("store") is not False
        made = replace(plain, turn=turn, new=new, clear=asked.clear, kept=keeps)
        if asked.alone and turn.fresh:
            return replace(made, content=b"", answer=self._alone(arrived.path, made, turn))
        if asked.compact is not None and turn.fresh and turn.view is not None:
            lead = block_of(self._item(turn, turn.view), turn.notes)
            made = replace(made, lead=lead, iterations=[iteration_of(turn.cost)])
        if body is given and not of_item and turn.view is None:
            return made
        return await self._filled(made, turn)

    async def _filled(self, prepared: PreparedRequest, turn: Turn) -> PreparedRequest:
        """Build the request for a history that is not sent as it came."""
        view = turn.history if turn.view is None else turn.view
        shown = await self._recalling.shown_flow(turn, view)
        view, turn = shown.view, replace(turn, sent=turn.sent + shown.tokens)
        edits: list[dict[str, Any]] = []
        if prepared.clear is not None:
            view, edits = cleared(view, prepared.clear, turn.sent)
        body = {**prepared.body, turn.protocol.field: list(view)}
        lookups = self._recalling.lookups(turn, body, shown.tokens, held=self._holds)
        if lookups is not None:
            body["tools"] = [*(body.get("tools") or ()), tool_in(turn.protocol)]
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
        )

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

    def _alone(self, path: str, prepared: PreparedRequest, turn: Turn) -> bytes:
        content = self._item(turn, turn.plain if turn.view is None else turn.view)
        asked, stream = prepared.body, prepared.streamed
        if prepared.parent:
            asked = {**asked, "previous_response_id": prepared.parent}
        return compacted(path, asked, content, turn.notes, turn.cost, stream)

    def _item(self, turn: Turn, view: Sequence[Any]) -> str:
        """Sign an item that stands for the history so far."""
        return self._items.written(turn.tenant, turn.found.thread, view)


def parsed(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
        Refusal: it holds none.
    """
    try:
        body = json.loads(raw.decode("utf-8"))
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply; send less of it") from None
    except ValueError as error:
        known = isinstance(error, json.JSONDecodeError)
        why = str(error).partition(":")[0] if known else type(error).__name__
        raise Refusal(400, f"the body is no JSON in UTF-8 ({why}); check it") from None
    if not isinstance(body, dict):
        raise Refusal(400, "the body is no JSON object; send {...}")
    return body
