"""Serve the pages of operation: `/healthz`, `/metrics`, and `/conspectus/` for people."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
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
from conspectus_serve.operation import Operation
from conspectus_serve.requests import Refusal
from conspectus_serve.secret import LOCAL
from conspectus_serve.tenants import Tenants

if TYPE_CHECKING:
    from jinja2 import Template

HEALTH, METRICS, PAGE = "/healthz", "/metrics", "/conspectus/"

POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
"""The page needs no script and loads nothing."""

THREADS, ORIGINALS, LONGEST, FOUND = 200, 300, 4_000, 3_000
"""At most so many threads and originals on a page, characters of one, tokens of a search."""


class Pages:
    """Answer requests for the endpoint's own pages.

    Args:
        archive: of the threads.
        operation: has the figures.
        entrance: says who may see them.
        tenants: of whom something is archived.
    """

    def __init__(
        self, archive: Archive, operation: Operation, entrance: Entrance, tenants: Tenants
    ) -> None:
        self._archive, self._operation = archive, operation
        self._entrance, self._tenants = entrance, tenants

    def at(self, request: Request) -> Coroutine[Any, Any, Response] | None:
        """Return the answer to a request; None if it is for the upstream."""
        path = request.scope["path"]
        if request.method not in ("GET", "HEAD"):
            return None
        if path == HEALTH:
            return asyncio.to_thread(self._health)
        if path == METRICS or path.rstrip("/") == PAGE.rstrip("/"):
            return self._seen(request, path)
        return None

    def _health(self) -> Response:
        try:
            self._archive.notes(LOCAL, "health", ["health"])
        except ArchiveError:
            return PlainTextResponse("the archive is not there\n", 503)
        return PlainTextResponse("ok\n")

    async def _seen(self, request: Request, path: str) -> Response:
        try:
            self._entrance.check_page(request)
        except Refusal as error:
            ask = {"www-authenticate": 'Basic realm="Conspectus"'} if error.status == 401 else {}
            return PlainTextResponse(f"{error}\n", error.status, ask)
        if path == METRICS:
            kind = "text/plain; version=0.0.4"
            return PlainTextResponse(self._operation.text(), media_type=kind)
        given = request.query_params
        tenant, thread = given.get("tenant") or "", given.get("thread") or ""
        asked = (tenant, thread, given.get("session") or "main", given.get("q") or "")
        try:
            text = await asyncio.to_thread(self._page, *asked)
        except ArchiveError as error:
            return PlainTextResponse(f"the archive cannot be read: {error}\n", 503)
        headers = {
            "content-security-policy": POLICY,
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }
        return HTMLResponse(text, headers=headers)

    def _page(self, tenant: str, thread: str, session: str, query: str) -> str:
        tenants = self._tenants.names()
        tenant = tenant or tenants[0]
        scope = Scope(tenant, thread, session)
        shown: dict[str, Any] = {"tenants": tenants, "tenant": tenant, "thread": thread, "q": query}
        if not thread:
            scopes = self._archive.scopes(tenant)
            rows = [self._row(one) for one in scopes[:THREADS]]
            return self._template.render(**shown, rows=rows, more=len(scopes) - len(rows))
        chain = self._archive.chain(scope)
        head = next((one for one in reversed(chain) if one.summary), None)
        originals = self._archive.export(scope, chain)
        return self._template.render(
            **shown,
            session=session,
            chain=chain,
            summary=head.summary if head else "",
            count=len(originals),
            originals=[_original(row) for row in originals[-ORIGINALS:]],
            found=self._found(scope, query) if query else "",
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

    def _found(self, scope: Scope, query: str) -> str:
        archive, count = self._archive, TokenMeter(model="gpt-4o").text
        try:
            flow = answer_flow(
                archive, scope, archive.chain(scope), query=query, tokens=FOUND, count=count
            )
            return run(flow)
        except InputError as error:
            return str(error)

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
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    return {"role": str(row["role"]), "cite": str(row["cite"]), "text": cut}
