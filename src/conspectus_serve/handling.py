"""A request with a history: as it came, as it was read, and as it is sent.

Each step of its handling makes one value, which never changes. `Handling` collects these values.
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
from conspectus.model.overflow import RefusedRequests
from conspectus_serve.alignment import DroppedMessages
from conspectus_serve.fingerprints import Fingerprint, FingerprintedHistory
from conspectus_serve.headers import RawHeaders, own_headers
from conspectus_serve.held import HeldHistory
from conspectus_serve.models import EngineKey, Learned
from conspectus_serve.protocols import Route
from conspectus_serve.threads import ThreadMatch
from conspectus_serve.withdrawn import Withdrawal

NOT_UNDERSTOOD = "a message was not understood; the request is sent on as it came"


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request with a history, as it came from the client."""

    tenant: str
    route: Route
    raw: bytes
    headers: Headers


@dataclass(frozen=True, slots=True)
class MeasuredHistory:
    """The size of a history, and the room that its model has for it.

    Attributes:
        tokens: tokens of the history as the client sent it.
        engine_key: the name of the engine that compacts for this model.
        engine: this engine.
        learned: what the upstream has shown of the model.
        room: the part of the window that instructions and tools leave; None if unknown.
        fixed_tokens: tokens of instructions and tools.
        reserved_tokens: tokens of the window that the history cannot use.
    """

    tokens: int
    engine_key: EngineKey
    engine: Engine
    learned: Learned
    room: Window | None
    fixed_tokens: int
    reserved_tokens: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """A history with its thread, its originals and its size.

    Attributes:
        fingerprinted: the history as the client sent it, with fingerprints.
        sent: the messages to send if nothing is compacted: the client's, with calls that the client
            has left out if their results are in the history.
        match: the thread of the history.
        scope: the name of the history in the archive.
        is_named: whether the client, an item or a response names the thread.
        hint: the client's name of its session.
        copied_from: a thread that the history has left, and the record that is to be copied from
            it; None if nothing is copied.
        originals: the history with the originals of all messages that the client has cleared.
        shortened: the history as sent, with only those originals that the record in force covers.
        fingerprints: the fingerprints of `originals`.
        dropped: messages that the client no longer sends and that no record covers.
        withdrawal: cleared and dropped messages that are to be archived; None if there are none.
        measured: the size of the history.
        is_due: whether the history does not fit, or a compaction is in force.
    """

    fingerprinted: FingerprintedHistory
    sent: Sequence[Any]
    match: ThreadMatch
    scope: Scope
    is_named: bool
    hint: str
    copied_from: tuple[Scope, str] | None
    originals: list[Any]
    shortened: Sequence[Any]
    fingerprints: list[Fingerprint]
    dropped: DroppedMessages
    withdrawal: Withdrawal | None
    measured: MeasuredHistory
    is_due: bool


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request as it was read.

    Attributes:
        fields: the fields of the body for the upstream, without those that the endpoint resolves.
        model: the name of the model, cut to a length that can be stored and logged.
        is_streamed: whether the client wants a stream.
        has_odd_numbers: whether the body has numbers that Python would write in another way.
        asks_for_compaction: whether the client asks for a compaction, which is then the answer.
        thread: the thread that the client, an item or a response names; empty if none does.
        state: which server stores the history, if the client leaves it to a server.
        held: the history up to the named response.
        pending_response: the named response, if its output is not there yet.
        history: the whole history.
        is_rewritten: whether the upstream always gets another body than the client's.
        note: a note for the client.
        conversation: the history with its thread; None if the history is not read.
    """

    fields: dict[str, Any]
    model: str
    is_streamed: bool
    has_odd_numbers: bool
    asks_for_compaction: bool
    thread: str = ""
    state: str = ""
    held: HeldHistory = field(default_factory=HeldHistory)
    pending_response: str = ""
    history: Sequence[Any] = ()
    is_rewritten: bool = False
    note: str = ""
    conversation: Conversation | None = None

    @property
    def needs_fitting(self) -> bool:
        """Whether the body for the upstream may differ from the client's."""
        return self.is_rewritten or (self.conversation is not None and self.conversation.is_due)


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """What is sent to the upstream, or the endpoint's own answer.

    Attributes:
        content: the body for the upstream.
        tokens: tokens of the history as it is sent, without recalled originals.
        note: a note for the client.
        is_understood: whether the messages were understood; if not, they are sent unchanged.
        view: the messages of a compacted history; None if it is sent as it came.
        result: the result of the compaction, with the messages of the view as they were read.
        head_id: the id of the record in force; empty if there is none.
        dropped: messages that the client no longer sends and that no record covers.
        free_tokens: tokens of the window that the view leaves; None if unknown.
        stuck_reason: why nothing is sent: nothing makes the history fit. Empty if it is sent.
        compactions: the number of compactions that were made for this request.
        refusals: requests that the upstream has refused as too long.
        recalled_tokens: tokens of recalled originals in the request.
        own_answer: the endpoint's own answer; empty if the upstream answers.
        betas: further values for Anthropic's beta header.
    """

    content: bytes
    tokens: int = 0
    note: str = ""
    is_understood: bool = True
    view: list[Any] | None = None
    result: CompactionResult | None = None
    head_id: str = ""
    dropped: DroppedMessages = field(default_factory=DroppedMessages)
    free_tokens: int | None = None
    stuck_reason: str = ""
    compactions: int = 0
    refusals: RefusedRequests = field(default_factory=RefusedRequests)
    recalled_tokens: int = 0
    own_answer: bytes = b""
    betas: Sequence[str] = ()


@dataclass(slots=True)
class Handling:
    """A request with a history, while it is answered.

    Attributes:
        request: the request as it came.
        read: the request as it was read; None until then.
        fitted: what is sent to the upstream; None until then.
        is_fitting: whether the request is being fitted at this moment.
        was_answered: whether the upstream has accepted and answered the request.
        retries: the number of further requests to the upstream.
    """

    request: ClientRequest
    read: ReadRequest | None = None
    fitted: FittedRequest | None = None
    is_fitting: bool = False
    was_answered: bool = False
    retries: int = 0

    @property
    def conversation(self) -> Conversation | None:
        """The history, if it is read and understood."""
        if self.read is None or (self.fitted is not None and not self.fitted.is_understood):
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
        """Tokens of the history as the client sent it."""
        conversation = self.read.conversation if self.read is not None else None
        return conversation.measured.tokens if conversation is not None else 0

    @property
    def sent_tokens(self) -> int:
        """Tokens of the history as it is sent, with recalled originals."""
        if self.fitted is None:
            return self.tokens
        return self.fitted.tokens + self.fitted.recalled_tokens

    @property
    def is_compacted(self) -> bool:
        return self.fitted is not None and self.fitted.view is not None

    @property
    def compactions(self) -> int:
        return self.fitted.compactions if self.fitted is not None else 0

    @property
    def note(self) -> str:
        if self.fitted is not None:
            return self.fitted.note
        return self.read.note if self.read is not None else ""

    def own_headers(self) -> RawHeaders:
        """Write the endpoint's own headers."""
        state = self.read.state if self.read is not None else ""
        values: dict[str, object] = {}
        conversation = self.conversation
        if conversation is not None:
            scope = conversation.scope
            fitted = self.fitted
            result = fitted.result if fitted is not None else None
            values = {
                "thread": scope.thread,
                "session": None if scope.session == "main" else scope.session,
                "compacted": self.is_compacted,
                "messages_evicted": result.dropped + result.evicted if result else 0,
                "messages_clipped": result.clipped if result else 0,
                "tokens_before": self.tokens,
                "tokens_after": self.sent_tokens,
                "record": fitted.head_id if fitted is not None else "",
                "recalled_tokens": (fitted.recalled_tokens or None) if fitted else None,
            }
        return own_headers(**values, state=state, note=self.note)
