"""One exchange: a request with a history, what was read of it, and what is sent in its place.

Each step of an exchange is a value that is made once. `Exchange` says which of them there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers

from conspectus.archive import Scope
from conspectus.core.items import Window
from conspectus.engine.engine import Engine
from conspectus.engine.result import CompactionResult
from conspectus.langchain.overflow import RefusedRequests
from conspectus_serve.fingerprints import Fingerprint, FingerprintedHistory
from conspectus_serve.headers import RawHeaders, own_headers
from conspectus_serve.held import Held
from conspectus_serve.joining import Dropped
from conspectus_serve.models import EngineKey, Learned
from conspectus_serve.protocols import Route
from conspectus_serve.threads import ThreadMatch
from conspectus_serve.withdrawn import Withdrawal

NOT_UNDERSTOOD = "a message was not understood; the request is sent on as it came"


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request with a history, as it came."""

    tenant: str
    route: Route
    raw: bytes
    headers: Headers


@dataclass(frozen=True, slots=True)
class MeasuredHistory:
    """The size of a history, and what its model takes."""

    tokens: int  # of the history as it came
    engine_key: EngineKey
    engine: Engine
    learned: Learned  # of its model
    room: Window | None  # what instructions and tools leave of the window; None if unknown
    fixed_tokens: int  # of instructions and tools
    reserved_tokens: int  # of the window, that the history cannot have


@dataclass(frozen=True, slots=True)
class Conversation:
    """A history with its thread, its originals and its size."""

    fingerprinted: FingerprintedHistory  # the history as the client sent it
    sent: Sequence[Any]
    """The client's messages; whole where calls are known again that belong to known results."""

    # Its thread.
    match: ThreadMatch
    scope: Scope
    is_named: bool  # by the client, an item or a response
    hint: str  # the client's name of its session
    copied_from: tuple[Scope, str] | None  # a thread that it has left, and the record to copy

    # The history as it is archived.
    originals: list[Any]  # whole where the client has cleared
    shortened: Sequence[Any]  # whole only where the record in force needs it
    fingerprints: list[Fingerprint]  # of `originals`
    dropped: Dropped
    withdrawal: Withdrawal | None  # what is to be archived, as the client has cleared or dropped it

    measured: MeasuredHistory
    is_due: bool  # it does not fit, or a compaction is in force


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a request asks for."""

    fields: dict[str, Any]  # of its body for the upstream, without what the endpoint resolves
    model: str  # its name, cut where it is too long to be kept and logged
    is_streamed: bool
    has_odd_numbers: bool
    asks_for_compaction: bool  # which is all of the answer
    thread: str = ""  # that the client, an item or a response names
    state: str = ""  # which server holds the history, if the client leaves it to one
    held: Held = field(default_factory=Held)  # the history up to the response that is named
    pending_response: str = ""  # the response that is named, if its output is not there yet
    history: Sequence[Any] = ()  # whole
    is_rewritten: bool = False  # the upstream gets another body than the client's in any case
    note: str = ""  # for the client
    conversation: Conversation | None = None  # None for a history that is not read

    @property
    def needs_fitting(self) -> bool:
        """Whether the body for the upstream may differ from the client's."""
        return self.is_rewritten or (self.conversation is not None and self.conversation.is_due)


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent to the upstream, or the endpoint's own answer."""

    content: bytes
    tokens: int = 0  # of the history, without what was recalled
    note: str = ""  # for the client
    is_understood: bool = True  # else the request is sent as it came

    # The compaction in force, if the history is sent compacted.
    view: list[Any] | None = None  # the messages that are sent; None for the history as it came
    result: CompactionResult | None = None  # its messages are those of the view, as they were read
    head: str = ""  # id of the record in force
    dropped: Dropped = field(default_factory=Dropped)  # as far as no record covers it
    free_tokens: int | None = None  # of the window; None if unknown
    stuck_reason: str = ""  # why it is not sent: nothing makes it fit
    compactions: int = 0  # that were made for this request
    refusals: RefusedRequests = field(
        default_factory=RefusedRequests
    )  # of the upstream, as too long

    # As it was written.
    recalled_tokens: int = 0
    own_answer: bytes = b""  # empty if the upstream answers
    betas: Sequence[str] = ()  # more of Anthropic's beta headers


@dataclass(slots=True)
class Exchange:
    """A request with a history while it is answered."""

    request: ClientRequest
    read: ReadRequest | None = None
    sending: Sending | None = None
    is_fitting: bool = False  # just now
    was_answered: bool = False  # the upstream has taken what was sent, and answered
    retries: int = 0  # further requests to the upstream

    @property
    def conversation(self) -> Conversation | None:
        """The history, if it is read and understood."""
        if self.read is None or (self.sending is not None and not self.sending.is_understood):
            return None
        return self.read.conversation

    @property
    def model(self) -> str:
        return self.read.model if self.read is not None else ""

    @property
    def thread(self) -> str:
        conversation = self.read.conversation if self.read is not None else None
        return conversation.match.thread if conversation is not None else ""

    @property
    def tokens(self) -> int:
        """Tokens of the history as it came."""
        conversation = self.read.conversation if self.read is not None else None
        return conversation.measured.tokens if conversation is not None else 0

    @property
    def sent_tokens(self) -> int:
        """Tokens of the history as it is sent, with what was recalled."""
        if self.sending is None:
            return self.tokens
        return self.sending.tokens + self.sending.recalled_tokens

    @property
    def is_compacted(self) -> bool:
        return self.sending is not None and self.sending.view is not None

    @property
    def compactions(self) -> int:
        return self.sending.compactions if self.sending is not None else 0

    @property
    def note(self) -> str:
        if self.sending is not None:
            return self.sending.note
        return self.read.note if self.read is not None else ""

    def own_headers(self) -> RawHeaders:
        """Write the endpoint's own headers."""
        state = self.read.state if self.read is not None else ""
        values: dict[str, object] = {}
        conversation = self.conversation
        if conversation is not None:
            scope = conversation.scope
            sending = self.sending
            result = sending.result if sending is not None else None
            values = {
                "thread": scope.thread,
                "session": None if scope.session == "main" else scope.session,
                "compacted": self.is_compacted,
                "messages_archived": result.dropped + result.evicted if result else 0,
                "tokens_before": self.tokens,
                "tokens_after": self.sent_tokens,
                "record": sending.head if sending is not None else "",
                "recalled_tokens": (sending.recalled_tokens or None) if sending else None,
            }
        return own_headers(**values, state=state, note=self.note)
