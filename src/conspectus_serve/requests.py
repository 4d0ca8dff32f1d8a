"""Describe a request as it came, and as it can be sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conspectus_serve.fitting import Turn
from conspectus_serve.headers import Raw, said
from conspectus_serve.protocols import Route
from conspectus_serve.recall_tool import Lookups

LONGEST_NAME = 200
"""Maximum characters of a thread's name in a header, and of a model's name."""


class Refusal(Exception):
    """A request that the endpoint refuses."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request as it came; `thread` is the name in its header."""

    tenant: str
    route: Route
    raw: bytes
    thread: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be sent.

    Attributes:
        arrived: the request as it came.
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
        filled: the bytes to send are not the client's own, even if nothing has left.
        betas: more of Anthropic's beta headers.
    """

    arrived: IncomingRequest
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
    filled: bool = False
    betas: Sequence[bytes] = ()

    @property
    def model(self) -> str:
        """Return the model's name, at most so much of it as is kept and logged."""
        return self.turn.model if self.turn is not None else ""

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
