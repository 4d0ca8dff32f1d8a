"""Show what the endpoint does: a line of the log for each request, figures, and a page."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.bridge import run
from conspectus.engine.history import LOCAL
from conspectus.errors import ArchiveError, InputError
from conspectus.recall.for_agents import answer_flow
from conspectus.tokens import TokenMeter
from conspectus_serve.entrance import Entrance, tenants_in
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.protocols import Refusal, printable

if TYPE_CHECKING:
    from jinja2 import Template

    from conspectus_serve.app import Reply
    from conspectus_serve.exchange import Exchange

logger = logging.getLogger("conspectus.serve")

HEALTH, READY, METRICS, PAGE = "/healthz", "/readyz", "/metrics", "/conspectus"
LEFT = "client_left"  # the reason of a request whose client has gone before its answer ended
REFUSED = "upstream_status"  # the reason where the upstream itself has answered with an error

BOUNDS = (0.05, 0.25, 1.0, 5.0, 30.0, 120.0)  # of the histogram of seconds

TOTALS = ("tokens_in", "tokens_sent", "compactions", "retries")

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'",  # the page needs no script and loads nothing
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

THREADS, ORIGINALS, LETTERS, FOUND = 200, 300, 4_000, 3_000
"""At most so many threads and originals on a page, characters of one, tokens of a search."""


class Operation:
    """Count and log requests, and answer those for the endpoint's own pages."""

    def __init__(self, archive: Archive, entrance: Entrance, health: ArchiveHealth) -> None:
        self._archive, self._entrance, self._health = archive, entrance, health
        self._figures = CollectorRegistry()
        own: Any = {"namespace": "conspectus_serve", "registry": self._figures}
        self._requests = Counter("requests", "Requests", ("kind", "outcome"), **own)
        self._failures = Counter("failures", "Requests that failed", ("reason",), **own)
        self._totals = [Counter(name, name.replace("_", " "), **own) for name in TOTALS]
        self._seconds = Histogram("seconds", "Seconds of requests", buckets=BOUNDS, **own)
        self.in_flight = Gauge("in_flight", "Requests under way", **own)
        self._archive_up = Gauge("archive_up", "Whether the archive takes what is written", **own)
        archive_failures = Gauge("archive_failures", "Failures of the archive", **own)
        archive_failures.set_function(lambda: health.failures)

    def done(self, request: Request, x: Exchange | None, reply: Reply, took: float) -> None:
        """Log and count a request that has ended, with what is known of its history."""
        compacted = x is not None and x.view is not None
        reason = reply.reason or (REFUSED if reply.status >= 400 else "")
        outcome = "compacted" if compacted else "passed"
        if reason:
            outcome = "left" if reason == LEFT else "failed"
            self._failures.labels(reason).inc()
        kind, about = "other", "model=- tenant=- thread=- tokens=0 sent=0"
        if x is not None:
            kind, sent = x.route.name, x.sent + x.recalled if x.answered else 0
            model, thread = printable(x.model), printable(x.match.thread)
            about = f"model={model} tenant={x.tenant} thread={thread} tokens={x.tokens} sent={sent}"
            amounts = (x.tokens, sent, x.compactions, x.retries)
            for total, amount in zip(self._totals, amounts, strict=True):
                total.inc(amount)
        client = printable(request.headers.get("user-agent", "").partition(" ")[0])
        said = f"{client} {printable(request.scope['path'])} {about} {outcome}"
        if reason:
            said += f" reason={reason}"
        note = f"; {reply.note}" if reply.note else ""
        logger.info("%s status=%d %.2fs%s", said, reply.status, took, note)
        self._requests.labels(kind, outcome).inc()
        self._seconds.observe(took)

    def is_ours(self, request: Request) -> bool:
        """Return whether a request is for one of the endpoint's own pages."""
        paths = (HEALTH, READY, METRICS, PAGE, f"{PAGE}/")
        return request.method in ("GET", "HEAD") and request.scope["path"] in paths

    def page(self, request: Request) -> Response:
        """Answer a request for a page; this reads the archive."""
        path, given = request.scope["path"], request.query_params
        try:
            if path in (HEALTH, READY):
                return self._health_page(path)
            self._entrance.check_page(request)
            if path == METRICS:
                self._archive_up.set(not self._health.problem())
                figures = generate_latest(self._figures)
                return PlainTextResponse(figures, media_type="text/plain; version=0.0.4")
            names = ("tenant", "thread", "session", "q")
            return HTMLResponse(self._page(*(given.get(one, "") for one in names)), 200, HEADERS)
        except ArchiveError as error:
            return PlainTextResponse(f"the archive cannot be read: {error}\n", 503)
        except Refusal as error:
            ask = {"www-authenticate": 'Basic realm="Conspectus"'} if error.status == 401 else {}
            return PlainTextResponse(f"{error}\n", error.status, ask)

    def _health_page(self, path: str) -> Response:
        """Say whether the archive is there; anybody may ask, so nothing more is said of it."""
        problem = self._health.problem() if path == HEALTH else self._health.problem_of_writing()
        if not problem:
            return PlainTextResponse("ok\n")
        logger.warning("%s: %s", path, problem)
        return PlainTextResponse("the archive is not there, or takes nothing\n", 503)

    def _page(self, tenant: str, thread: str, session: str, query: str) -> str:
        archive, tenants = self._archive, tenants_in(self._archive) or [LOCAL]
        about: dict[str, Any] = {"tenants": tenants, "tenant": tenant or tenants[0], "q": query}
        about |= {"thread": thread, "session": session or "main"}
        if not thread:
            scopes = archive.scopes(about["tenant"])
            rows = [self._row(one) for one in scopes[:THREADS]]
            return self._template.render(**about, rows=rows, more=len(scopes) - len(rows))
        scope = Scope(about["tenant"], thread, about["session"])
        chain = archive.in_force(scope)
        rows, found = archive.export(scope, chain), ""
        if query:
            count = TokenMeter(model="gpt-4o").text
            flow = answer_flow(archive, scope, chain, query=query, tokens=FOUND, count=count)
            try:
                found = run(flow)
            except InputError as error:
                found = str(error)
        return self._template.render(
            **about,
            chain=chain,
            summary=next((one.summary for one in reversed(chain) if one.summary), ""),
            count=len(rows),
            originals=rows[-ORIGINALS:],
            most=LETTERS,
            found=found,
        )

    def _row(self, scope: Scope) -> dict[str, Any]:
        chain = self._archive.chain(scope)
        saved = sum(max(0, one.tokens_before - one.tokens_after) for one in chain)
        row = {"scope": scope, "messages": len(manifest(chain)), "saved": saved}
        return {**row, "compactions": len(chain), "bytes": self._archive.size(scope)}

    @cached_property
    def _template(self) -> Template:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("conspectus_serve", "")
        made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        return made.get_template("page.html")
