"""Show what the endpoint does: a line of the log for each request, figures, and a page."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from conspectus.archive import Archive, Scope
from conspectus.archive.values import manifest
from conspectus.bridge import run
from conspectus.errors import ArchiveError, InputError
from conspectus.recall.for_agents import answer_flow
from conspectus.tokens import TokenMeter
from conspectus_serve.entrance import Entrance
from conspectus_serve.protocols import Refusal, printable
from conspectus_serve.tenants import LOCAL, tenants_in

if TYPE_CHECKING:
    from jinja2 import Template

    from conspectus_serve.fitting import Exchange

logger = logging.getLogger("conspectus.serve")

HEALTH, METRICS, PAGE = "/healthz", "/metrics", "/conspectus"

BOUNDS = (0.05, 0.25, 1.0, 5.0, 30.0, 120.0, math.inf)  # of the histogram of seconds

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

    def __init__(self, archive: Archive, entrance: Entrance) -> None:
        self._archive, self._entrance = archive, entrance
        self._requests, self._totals = Counter[tuple[str, str]](), Counter[str]()
        self._seconds, self._took, self.in_flight = Counter[float](), 0.0, 0

    def done(self, request: Request, x: Exchange | None, status: int, took: float) -> None:
        """Log and count a request that has ended, with what is known of its history."""
        compacted = x is not None and x.view is not None
        outcome = "failed" if status >= 400 or not status else "passed"
        outcome = "compacted" if compacted and outcome == "passed" else outcome
        kind, about = "other", "model=- tenant=- thread=- tokens=0 sent=0"
        if x is not None:
            kind, sent = x.route.name, x.sent + x.recalled
            model, thread = printable(x.model), printable(x.match.thread)
            about = f"model={model} tenant={x.tenant} thread={thread} tokens={x.tokens} sent={sent}"
            amounts = (x.tokens, sent, x.compactions, x.retries)
            self._totals.update(dict(zip(TOTALS, amounts, strict=True)))
        client = printable(request.headers.get("user-agent", "").partition(" ")[0])
        logger.info("%s %s %s %s status=%d %.2fs", client, kind, about, outcome, status, took)
        self._requests[kind, outcome] += 1
        self._took += took
        self._seconds.update(bound for bound in BOUNDS if took <= bound)

    def figures(self) -> Iterator[str]:
        """Write all figures in Prometheus' text format, line by line."""
        name = "conspectus_serve"
        yield f"# TYPE {name}_requests_total counter"
        for (kind, outcome), count in sorted(self._requests.items()):
            yield f'{name}_requests_total{{kind="{kind}",outcome="{outcome}"}} {count}'
        for total in TOTALS:
            yield f"# TYPE {name}_{total}_total counter"
            yield f"{name}_{total}_total {self._totals[total]}"
        yield f"# TYPE {name}_in_flight gauge"
        yield f"{name}_in_flight {self.in_flight}"
        yield f"# TYPE {name}_seconds histogram"
        for bound in BOUNDS:
            le = "+Inf" if bound == math.inf else bound
            yield f'{name}_seconds_bucket{{le="{le}"}} {self._seconds[bound]}'
        yield f"{name}_seconds_sum {self._took:.3f}"
        yield f"{name}_seconds_count {self._seconds[math.inf]}"

    def is_ours(self, request: Request) -> bool:
        """Return whether a request is for one of the endpoint's own pages."""
        paths = (HEALTH, METRICS, PAGE, f"{PAGE}/")
        return request.method in ("GET", "HEAD") and request.scope["path"] in paths

    def page(self, request: Request) -> Response:
        """Answer a request for a page; this reads the archive."""
        path, given = request.scope["path"], request.query_params
        try:
            if path == HEALTH:
                self._archive.notes(LOCAL, "health", ["health"])
                return PlainTextResponse("ok\n")
            self._entrance.check_page(request)
            if path == METRICS:
                text = "".join(f"{line}\n" for line in self.figures())
                return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
            names = ("tenant", "thread", "session", "q")
            return HTMLResponse(self._page(*(given.get(one, "") for one in names)), 200, HEADERS)
        except ArchiveError as error:
            why = "is not there" if path == HEALTH else f"cannot be read: {error}"
            return PlainTextResponse(f"the archive {why}\n", 503)
        except Refusal as error:
            ask = {"www-authenticate": 'Basic realm="Conspectus"'} if error.status == 401 else {}
            return PlainTextResponse(f"{error}\n", error.status, ask)

    def _page(self, tenant: str, thread: str, session: str, query: str) -> str:
        archive, tenants = self._archive, tenants_in(self._archive) or [LOCAL]
        tenant = tenant or tenants[0]
        about: dict[str, Any] = {"tenants": tenants, "tenant": tenant, "thread": thread, "q": query}
        if not thread:
            scopes = archive.scopes(tenant)
            rows = [self._row(one) for one in scopes[:THREADS]]
            return self._template.render(**about, rows=rows, more=len(scopes) - len(rows))
        scope = Scope(tenant, thread, session or "main")
        chain = archive.chain(scope)
        rows = archive.export(scope, chain)
        found = ""
        if query:
            count = TokenMeter(model="gpt-4o").text
            flow = answer_flow(archive, scope, chain, query=query, tokens=FOUND, count=count)
            try:
                found = run(flow)
            except InputError as error:
                found = str(error)
        return self._template.render(
            **about,
            session=scope.session,
            chain=chain,
            summary=next((one.summary for one in reversed(chain) if one.summary), ""),
            count=len(rows),
            originals=[_original(row) for row in rows[-ORIGINALS:]],
            found=found,
        )

    def _row(self, scope: Scope) -> dict[str, Any]:
        chain = self._archive.chain(scope)
        return {
            "scope": scope,
            "messages": len(manifest(chain)),
            "compactions": len(chain),
            "bytes": self._archive.size(scope),
            "saved": sum(max(0, one.tokens_before - one.tokens_after) for one in chain),
        }

    @cached_property
    def _template(self) -> Template:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("conspectus_serve", "")
        made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        return made.get_template("page.html")


def _original(row: dict[str, Any]) -> dict[str, str]:
    message = row["message"]
    content = message.get("content", message) if isinstance(message, dict) else message
    text = content if isinstance(content, str) else str(content)
    cut = text if len(text) <= LETTERS else f"{text[:LETTERS]} …"
    return {"role": str(row["role"]), "cite": str(row["cite"]), "text": cut}
