"""Read an answer on its way: where its stream ends, and what it says of usage."""

from __future__ import annotations

import re

from conspectus._newest import Newest
from conspectus_serve.answers.events import END
from conspectus_serve.models import LEARNED, Models
from conspectus_serve.protocols import CHAT, Protocol

HEAD, TAIL = 8_192, 16_384
"""Bytes at both ends of an answer in which usage is looked for."""

_COUNTS = re.compile(
    rb'"(prompt_tokens|input_tokens|cache_read_input_tokens|cache_creation_input_tokens)": ?(\d+)'
)

CUT, SAME, GROWN, LEAST = 0.7, 0.03, 1.1, 1_000
"""An upstream cuts requests silently if it reports less than this share of two requests, about the
same number of tokens for both, although the second is so much larger. A window has at least so many
tokens; upstreams that report fewer count something else."""


class Passing:
    """Read an answer's pieces as they go by.

    Args:
        protocol: of the answer.
        streamed: it comes as events.
    """

    def __init__(self, protocol: Protocol, streamed: bool) -> None:
        self._protocol, self._streamed = protocol, streamed
        self._head, self._tail, self._ending = b"", b"", False
        self.ended = False

    def see(self, piece: bytes) -> None:
        """Add a piece; `ended` tells whether the stream holds its last event."""
        if len(self._head) < HEAD:
            self._head += piece[: HEAD - len(self._head)]
        seen = self._tail[-64:] + piece
        self._tail = (self._tail + piece)[-TAIL:]
        if not self._streamed:
            return
        if not self._ending and (match := self._protocol.ends.search(seen)) is not None:
            self._ending, seen = True, seen[match.start() + 1 :]
        if self._ending:
            done = b"\n" in seen if self._protocol is CHAT else END.search(seen) is not None
            self.ended = self.ended or done

    def reported(self) -> int | None:
        """Return the input tokens that the upstream reports; None if it reports none."""
        counts: dict[bytes, int] = {}
        for match in _COUNTS.finditer(self._head + b" " + self._tail):
            counts[match[1]] = int(match[2])
        if self._protocol.name != "messages":
            return counts.get(b"prompt_tokens") or counts.get(b"input_tokens")
        return sum(n for name, n in counts.items() if name != b"prompt_tokens") or None


class Reports:
    """Notice upstreams that cut requests silently, by what they report."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._last = Newest[tuple[str, str], tuple[int, int]](LEARNED)

    def add(self, tenant: str, model: str, sent: int, reported: int) -> None:
        """Add a report: tokens of a request by the estimate, and by the upstream."""
        before, reported_before = self._last.get((tenant, model)) or (0, 0)
        self._last.put((tenant, model), (sent, reported))
        cut = reported < CUT * sent and reported_before < CUT * before
        same = abs(reported - reported_before) <= SAME * reported
        if cut and same and reported >= LEAST and sent >= GROWN * before > 0:
            self._models.learn(tenant, model, max(reported, reported_before))
