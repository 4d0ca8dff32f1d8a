"""A TCP proxy on loopback before a PostgreSQL server, which can stall."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit


class Proxy:
    """A proxy of bytes in both directions, except while it stalls.

    Args:
        target: address of the server.

    Attributes:
        address: of the same database through the proxy.
    """

    def __init__(self, target: str) -> None:
        from psycopg.conninfo import conninfo_to_dict

        known = conninfo_to_dict(target)
        self._host, self._port = str(known.get("host", "")), int(known.get("port") or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        parts = urlsplit(target)
        user = parts.netloc.rpartition("@")[0]
        kept = [(k, v) for k, v in parse_qsl(parts.query) if k not in ("host", "port")]
        query = urlencode(kept, quote_via=quote)  # libpq reads no + as a blank
        netloc = f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"
        self.address = urlunsplit(parts._replace(netloc=netloc, query=query))
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []

    def stall(self) -> None:
        """Pass nothing on; connections stay open."""
        self._flows.clear()

    def go_on(self) -> None:
        """Pass on the bytes that have gathered, and new ones."""
        self._flows.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._flows.set()
        for one in [self._listener, *self._sockets]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._server()
                self._sockets += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _server(self) -> socket.socket:
        if self._host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{self._host}/.s.PGSQL.{self._port}")
            return server
        return socket.create_connection((self._host or "127.0.0.1", self._port))

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._flows.wait()
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
