"""Check who may send a request, how large it is, and whose it is."""

from __future__ import annotations

import hmac
import re
from urllib.parse import urlsplit

from starlette.requests import Request

from conspectus_serve.preparing import Refusal
from conspectus_serve.secret import Secret
from conspectus_serve.settings import ServeSettings, is_loopback

CREDENTIALS = ("authorization", "x-api-key", "api-key")
"""Headers with a client's key: OpenAI's, Anthropic's, Azure's."""

_DOTS = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\?#]|%2f|%5c)|\\", re.IGNORECASE)
"""Dot segments: the upstream would resolve the path to another than the one checked."""


class Entrance:
    """Check requests before anything is done with them."""

    def __init__(self, settings: ServeSettings, secret: Secret) -> None:
        self._token, self._hosts = settings.token, frozenset(map(str.lower, settings.hosts))
        self._most, self._secret = settings.max_body_bytes, secret

    def check(self, request: Request) -> None:
        """Refuse a request that may not pass.

        Raises:
            Refusal: the token is missing, another site's page sent it, or its path leads elsewhere.
        """
        if self._token is None:
            self._check_site(request)
        else:
            given = request.headers.get("x-conspectus-token", "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise Refusal(401, "send the token of this endpoint as x-conspectus-token")
        target = request.scope.get("raw_path", b"").decode("latin-1")
        if not target.startswith("/") or target.startswith("//") or _DOTS.search(target):
            raise Refusal(400, "this path has steps that lead elsewhere; write it plainly")

    def _check_site(self, request: Request) -> None:
        """Keep web pages out: a browser on this machine reaches loopback for any site.

        A page can point its own name at 127.0.0.1 (DNS rebinding), but not choose `Host` or
        `Origin`. The transport section of the Model Context Protocol asks for the same check. Only
        pages have an origin that is `null`, http or https.
        """
        names = request.headers.getlist("host")
        if len(names) != 1 or not self._is_here(f"//{names[0]}"):
            raise Refusal(
                421,
                "this endpoint is asked for by a name that is not of this machine; use 127.0.0.1 "
                "or localhost, add the name to serve.hosts, or set a token",
            )
        for origin in request.headers.getlist("origin"):
            web = origin == "null" or origin.lower().startswith(("http:", "https:"))
            if web and not self._is_here(origin):
                raise Refusal(
                    403,
                    "a page of another site may not use this endpoint; add its host to "
                    "serve.hosts, or set a token",
                )

    def _is_here(self, address: str) -> bool:
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:
            return False
        return is_loopback(host) or host in self._hosts

    async def body(self, request: Request) -> bytes:
        """Read the body of a request.

        Raises:
            Refusal: it is compressed or too large.
        """
        coding = request.headers.get("content-encoding", "identity").lower()
        if coding not in ("", "identity"):
            raise Refusal(415, f"a body in {coding[:20]!r} is not read here; send it as it is")
        pieces, size = [], 0
        async for piece in request.stream():
            size += len(piece)
            if size > self._most:
                message = f"the request is larger than {self._most:,} bytes; send less at once"
                raise Refusal(413, message)
            pieces.append(piece)
        return b"".join(pieces)

    def tenant(self, request: Request) -> str:
        """Name the tenant of a request by its keys."""
        found = (one for name in CREDENTIALS for one in request.headers.getlist(name))
        return self._secret.tenant(*found)
