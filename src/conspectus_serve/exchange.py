"""One exchange: a request with a history, all that is found out about it, and what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers

from conspectus.archive import Scope
from conspectus.core.items import Window
from conspectus.engine.result import CompactionResult
from conspectus.engine.settings import Engine
from conspectus.langchain.overflow import Refused
from conspectus_serve.bodies import Body
from conspectus_serve.held import Held
from conspectus_serve.models import Learned, Sizes
from conspectus_serve.protocols import Route
from conspectus_serve.threads import Dropped, Match, scope_of
from conspectus_serve.trails import Mark, Trail
from conspectus_serve.upstream import Raw, own_headers


@dataclass(slots=True)
class Exchange:
    """A request with a history while it is answered, and what is sent in its place."""

    tenant: str
    route: Route
    raw: bytes
    headers: Headers
    body: Body = field(default_factory=lambda: Body({}))
    given: dict[str, Any] = field(default_factory=dict)  # the rest of it, for the upstream
    compacts: bool = False  # a compaction is all of the answer
    model: str = ""  # its name, at most so much of it as is kept and logged
    streamed: bool = False
    note: str = ""  # for the client
    large: bool = False  # it is read in a worker thread
    # the history
    history: Sequence[Any] = ()  # whole
    held: Held = field(default_factory=Held)  # the part up to the response that the client names
    pending: str = ""  # the response that the client names, if its output is not there yet
    state: str = ""  # which server holds the history, if the client leaves it to one
    named: str = ""  # the thread that the client, an item or a response names
    hint: str = ""  # the client's name of its session
    trail: Trail | None = None  # None for a history that is not read
    match: Match = field(default_factory=lambda: Match(""))
    left: tuple[Scope, str] | None = None  # the thread that it leaves, with the record to copy
    # the history as it is archived, whole where the client has cleared
    plain: list[Any] = field(default_factory=list)
    short: Sequence[Any] = ()  # the same, whole only where the record in force needs it
    marks: list[Mark] = field(default_factory=list)  # of the messages of `plain`
    # what the client has dropped at its beginning, and no record covers
    dropped: Dropped = field(default_factory=Dropped)
    # its size
    sizes: Sizes = ("", None, None)  # for which its engine is made
    engine: Engine | None = None
    learned: Learned = field(default_factory=Learned)  # of its model
    room: Window | None = None  # what instructions and tools leave of the window
    fixed: int = 0  # tokens of these
    beside: int = 0  # tokens of the window that the history cannot have
    tokens: int = 0  # of the history as it came
    due: bool = False  # it does not fit, or a compaction is in force
    fitting: bool = False  # just now
    refused: Refused = field(default_factory=Refused)
    # what is sent
    result: CompactionResult | None = None  # of the engine
    view: list[Any] | None = None  # the messages sent in its place; None if it is sent as it came
    sent: int = 0  # tokens of what is sent, beside the recalled ones
    answered: bool = False  # the upstream has taken what was sent, and answered
    recalled: int = 0
    spare: int | None = None  # free tokens of the window
    head: str = ""  # id of the record in force
    compactions: int = 0  # that were made for this request
    retries: int = 0  # further requests to the upstream
    content: bytes = b""
    answer: bytes = b""  # the endpoint's own; empty if the upstream answers
    filled: bool = False  # the body for the upstream is not the client's own in any case
    betas: Sequence[str] = ()  # more of Anthropic's beta headers

    @property
    def scope(self) -> Scope:
        return scope_of(self.tenant, self.match.thread)

    def own_headers(self) -> Raw:
        """Write the endpoint's own headers."""
        about = dict[str, object]()
        if self.trail is not None:
            left = self.result.dropped + self.result.evicted if self.result else 0
            session = None if self.scope.session == "main" else self.scope.session
            about |= {"thread": self.scope.thread, "session": session}
            about |= {"compacted": self.view is not None, "messages_archived": left}
            about |= {"tokens_before": self.tokens, "tokens_after": self.sent + self.recalled}
            about |= {"record": self.head, "recalled_tokens": self.recalled or None}
        return own_headers(**about, state=self.state, note=self.note)
