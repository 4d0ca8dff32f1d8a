"""Show what the endpoint does: a line of the log for each request, figures, and a page."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.core.records import Chain
from conspectus.engine.history import LOCAL
from conspectus.errors import ArchiveError, InputError
from conspectus.recall.for_agents import answer_tool_call
from conspectus.tokens import TokenMeter
from conspectus_serve.entrance import Entrance, tenants_in
from conspectus_serve.handling import Handling
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.protocols import HttpError, printable

if TYPE_CHECKING:
    from jinja2 import Template

logger = logging.getLogger("conspectus.serve")

HEALTH_PATH = "/healthz"
READINESS_PATH = "/readyz"
METRICS_PATH = "/metrics"
PAGE_PATH = "/conspectus"
OWN_PATHS = (HEALTH_PATH, READINESS_PATH, METRICS_PATH, PAGE_PATH, f"{PAGE_PATH}/")

CLIENT_LEFT = "client_left"
"""The reason if the client disconnects before the answer ends."""

UPSTREAM_STATUS = "upstream_status"
"""The reason if the upstream answers with an error."""

SECONDS_BOUNDS = (0.05, 0.25, 1.0, 5.0, 30.0, 120.0)
"""Bounds of the histogram of durations."""

PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'",  # the page needs no script and loads nothing
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

MOST_THREADS = 200
"""The most threads on a page."""

MOST_ORIGINALS = 300
"""The most originals on a page."""

MOST_CHARACTERS = 4_000
"""The most characters of an original on a page."""

SEARCH_TOKENS = 3_000
"""Tokens of the answer to a search."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that has ended."""

    request: Request
    handling: Handling | None  # None for a request without a history
    status: int  # 0 if nothing was sent
    reason: str  # why it has failed, in one word; empty if it has not
    note: str
    seconds: float


class Metrics:
    """The figures of the endpoint, for Prometheus."""

    def __init__(self, health: ArchiveHealth) -> None:
        self._registry = CollectorRegistry()
        labels: Any = {"namespace": "conspectus_serve", "registry": self._registry}
        self._requests = Counter("requests", "Requests", ("kind", "outcome"), **labels)
        self._failures = Counter("failures", "Requests that failed", ("reason",), **labels)
        self._tokens_in = Counter("tokens_in", "tokens in", **labels)
        self._tokens_sent = Counter("tokens_sent", "tokens sent", **labels)
        self._compactions = Counter("compactions", "compactions", **labels)
        self._retries = Counter("retries", "retries", **labels)
        self._seconds = Histogram(
            "seconds", "Seconds of requests", buckets=SECONDS_BOUNDS, **labels
        )
        self.in_flight = Gauge("in_flight", "Requests under way", **labels)
        self._health = health
        about_archive = "Whether the archive takes what is written"
        self._archive_up = Gauge("archive_up", about_archive, **labels)
        archive_failures = Gauge("archive_failures", "Failures of the archive", **labels)
        archive_failures.set_function(lambda: health.failures)

    def count(self, ended: Ended, outcome: str, reason: str) -> None:
        """Count a request that has ended."""
        route_name = "other"
        handling = ended.handling
        if handling is not None:
            route_name = handling.request.route.name
            self._tokens_in.inc(handling.tokens)
            self._tokens_sent.inc(_tokens_sent(handling))
            self._compactions.inc(handling.compactions)
            self._retries.inc(handling.retries)
        if reason:
            self._failures.labels(reason).inc()
        self._requests.labels(route_name, outcome).inc()
        self._seconds.observe(ended.seconds)

    def text(self) -> bytes:
        """Return the figures in Prometheus' form; this reads the archive."""
        self._archive_up.set(not self._health.problem())
        return generate_latest(self._registry)


class Operation:
    """Counts and logs requests, and answers those for the endpoint's own pages."""

    def __init__(self, archive: Archive, entrance: Entrance, health: ArchiveHealth) -> None:
        self._archive = archive
        self._entrance = entrance
        self._health = health
        self._metrics = Metrics(health)
        self.in_flight = self._metrics.in_flight

    def note_end(self, ended: Ended) -> None:
        """Log and count a request that has ended."""
        handling = ended.handling
        reason = ended.reason or (UPSTREAM_STATUS if ended.status >= 400 else "")
        outcome = _outcome(handling, reason)
        about = "model=- tenant=- thread=- tokens=0 sent=0"
        if handling is not None:
            model = printable(handling.model)
            tenant = handling.request.tenant
            thread = printable(handling.thread)
            tokens = f"tokens={handling.tokens} sent={_tokens_sent(handling)}"
            about = f"model={model} tenant={tenant} thread={thread} {tokens}"
        user_agent = ended.request.headers.get("user-agent", "")
        client = printable(user_agent.partition(" ")[0])
        line = f"{client} {printable(ended.request.scope['path'])} {about} {outcome}"
        if reason:
            line += f" reason={reason}"
        note = f"; {ended.note}" if ended.note else ""
        logger.info("%s status=%d %.2fs%s", line, ended.status, ended.seconds, note)
        self._metrics.count(ended, outcome, reason)

    def is_own_page(self, request: Request) -> bool:
        """Tell whether a request is for one of the endpoint's own pages."""
        return request.method in ("GET", "HEAD") and request.scope["path"] in OWN_PATHS

    def page(self, request: Request) -> Response:
        """Answer a request for a page; this reads the archive."""
        path = request.scope["path"]
        try:
            if path in (HEALTH_PATH, READINESS_PATH):
                return self._health_page(path)
            self._entrance.check_page(request)
            if path == METRICS_PATH:
                figures = self._metrics.text()
                return PlainTextResponse(figures, media_type="text/plain; version=0.0.4")
            return HTMLResponse(self._html(request.query_params), 200, PAGE_HEADERS)
        except ArchiveError as error:
            return PlainTextResponse(f"the archive cannot be read: {error}\n", 503)
        except HttpError as error:
            headers = {}
            if error.status == 401:
                headers = {"www-authenticate": 'Basic realm="Conspectus"'}
            return PlainTextResponse(f"{error}\n", error.status, headers)

    def _health_page(self, path: str) -> Response:
        """Say whether the archive works, and no more, because anybody may ask."""
        is_live = path == HEALTH_PATH
        problem = self._health.problem() if is_live else self._health.problem_of_writing()
        if not problem:
            return PlainTextResponse("ok\n")
        logger.warning("%s: %s", path, problem)
        return PlainTextResponse("the archive is not there, or takes nothing\n", 503)

    def _html(self, query: Mapping[str, str]) -> str:
        """Write the page of a tenant, or of the thread that a query names."""
        tenants = tenants_in(self._archive) or (LOCAL,)
        tenant = query.get("tenant") or tenants[0]
        thread = query.get("thread", "")
        session = query.get("session") or "main"
        search = query.get("q", "")
        about: dict[str, Any] = {"tenants": tenants, "tenant": tenant, "q": search}
        about |= {"thread": thread, "session": session}
        if not thread:
            scopes = self._archive.scopes(tenant)
            rows = [self._thread_row(scope) for scope in scopes[:MOST_THREADS]]
            return self._template.render(**about, rows=rows, more=len(scopes) - len(rows))
        scope = Scope(tenant, thread, session)
        chain = self._archive.in_force(scope)
        originals = self._archive.export(scope, chain)
        summaries = [record.summary for record in chain if record.summary]
        return self._template.render(
            **about,
            chain=chain,
            summary=summaries[-1] if summaries else "",
            count=len(originals),
            originals=originals[-MOST_ORIGINALS:],
            most_characters=MOST_CHARACTERS,
            found=self._search(scope, chain, search) if search else "",
        )

    def _search(self, scope: Scope, chain: Chain, query: str) -> str:
        """Return originals of a thread that match a query."""
        count = TokenMeter(model="gpt-4o").count_text
        flow = answer_tool_call(
            self._archive, scope, chain, query=query, tokens=SEARCH_TOKENS, count=count
        )
        try:
            return run(flow)
        except InputError as error:
            return str(error)

    def _thread_row(self, scope: Scope) -> dict[str, Any]:
        chain = self._archive.chain(scope)
        saved = sum(max(0, record.tokens_before - record.tokens_after) for record in chain)
        return {
            "scope": scope,
            "messages": len(self._archive.keys_in_reach(scope, chain)),
            "saved": saved,
            "compactions": len(chain),
            "bytes": self._archive.size(scope),
        }

    @cached_property
    def _template(self) -> Template:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("conspectus_serve", "")
        environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        return environment.get_template("page.html")


def _tokens_sent(handling: Handling) -> int:
    """Return the tokens that the upstream has used: none before it has answered."""
    return handling.sent_tokens if handling.was_answered else 0


def _outcome(handling: Handling | None, reason: str) -> str:
    if reason:
        return "left" if reason == CLIENT_LEFT else "failed"
    return "compacted" if handling is not None and handling.is_compacted else "passed"
