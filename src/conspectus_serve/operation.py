"""Show what the endpoint does: a line of the log for each request, and figures for Prometheus."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

logger = logging.getLogger("conspectus.serve")

BOUNDS = (0.05, 0.25, 1.0, 5.0, 30.0, 120.0)
"""Upper bounds of the histogram of seconds."""

LONGEST = 80
"""Maximum characters of a client's text in the log."""


@dataclass(slots=True)
class Handled:
    """What is known of one request.

    Attributes:
        client: its user agent.
        kind: the name of its route; `other` for one without a history.
        model, tenant, thread: of the request; empty if unknown.
        tokens, sent: of its history as it came and as it was sent.
        compacted: notes stand for a part of it.
        fresh: they were written for this request.
        retries: further requests to the upstream, as it refused the first.
        status: of the answer.
    """

    client: str = ""
    kind: str = "other"
    model: str = ""
    tenant: str = ""
    thread: str = ""
    tokens: int = 0
    sent: int = 0
    compacted: bool = False
    fresh: bool = False
    retries: int = 0
    status: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def outcome(self) -> str:
        if self.status >= 400 or not self.status:
            return "failed"
        return "compacted" if self.compacted else "passed"


class Operation:
    """Count requests, and log them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._totals: Counter[str] = Counter()
        self._seconds: Counter[float] = Counter()
        self._took = 0.0
        self.in_flight = 0

    def done(self, request: Handled) -> None:
        """Log and count a request that has ended."""
        took = time.monotonic() - request.begun
        logger.info(
            "%s %s model=%s tenant=%s thread=%s tokens=%d sent=%d %s status=%d %.2fs",
            shown(request.client) or "-", request.kind, shown(request.model) or "-",
            request.tenant or "-", shown(request.thread) or "-", request.tokens, request.sent,
            request.outcome, request.status, took,
        )  # fmt: skip
        with self._lock:
            self._requests[request.kind, request.outcome] += 1
            self._totals["tokens_in"] += request.tokens
            self._totals["tokens_sent"] += request.sent
            self._totals["compactions"] += request.fresh
            self._totals["retries"] += request.retries
            self._took += took
            for bound in BOUNDS:
                self._seconds[bound] += took <= bound

    def text(self) -> str:
        """Write all figures in Prometheus' text format."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# TYPE conspectus_serve_requests_total counter"
        for (kind, outcome), count in sorted(self._requests.items()):
            yield f'conspectus_serve_requests_total{{kind="{kind}",outcome="{outcome}"}} {count}'
        for name in ("tokens_in", "tokens_sent", "compactions", "retries"):
            yield f"# TYPE conspectus_serve_{name}_total counter"
            yield f"conspectus_serve_{name}_total {self._totals[name]}"
        yield "# TYPE conspectus_serve_in_flight gauge"
        yield f"conspectus_serve_in_flight {self.in_flight}"
        yield "# TYPE conspectus_serve_seconds histogram"
        count = sum(self._requests.values())
        for bound in BOUNDS:
            yield f'conspectus_serve_seconds_bucket{{le="{bound}"}} {self._seconds[bound]}'
        yield f'conspectus_serve_seconds_bucket{{le="+Inf"}} {count}'
        yield f"conspectus_serve_seconds_sum {self._took:.3f}"
        yield f"conspectus_serve_seconds_count {count}"


def shown(text: str) -> str:
    """Return a client's text as it may stand in one line of the log.

    Example:
        >>> shown("gpt" + chr(10) + "ERROR all is lost")
        'gpt?ERROR all is lost'
    """
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in short)
