"""Clients that break off, at five moments of a request to `conspectus serve`."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from serve_process import Endpoint, endpoint, request

from conspectus.archive import Archive
from conspectus_lab.testing.fault_server import FaultServer, Reply, Request, faults

SENDING = "while it sends its request"
SUMMARISING = "while its history is summarised"
WAITING = "while the provider is silent"
WHOLE = "in the middle of an answer"
STREAMED = "in the middle of a stream"
MOMENTS = (SENDING, SUMMARISING, WAITING, WHOLE, STREAMED)

WINDOW, TURNS = 4_000, 14
SUMMARY = "## Goal\n- The user wants what was asked to be looked at, turn by turn [{}]"
PATIENCE = 20.0
"""Seconds in which a connection is given up, at most."""

NOTICED = 0.7
"""Seconds in which the endpoint sees that a client has gone."""

CONFIG = """
summarization:
  enabled: true
  model_name: openai:small
  trigger: {type: fraction, value: 0.85}
"""


@dataclass(frozen=True)
class Left:
    """The remains of a client that broke off.

    Attributes:
        moment: when it broke off.
        protocol: of its request.
        connections: to the provider, still open.
        threads: in the archive, after its next try; one at most is right.
        again: calls for summaries beyond those of a client that stays.
        next: status of the next try.
        wrong: promises that do not hold.
    """

    moment: str
    protocol: str
    connections: int
    threads: int
    again: int
    next: int
    wrong: tuple[str, ...]


class Provider:
    """A provider that keeps one client waiting at the moment in question."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.there, self.go = threading.Event(), threading.Event()
        self.summaries = 0

    def summarise(self, request: Request) -> Reply:
        """Answer as the summariser."""
        self.summaries += 1
        self._wait(SUMMARISING)
        shown = re.search(r'<message id="([^"]+)"', request.text)
        return SUMMARY.format(shown[1] if shown else "")

    def answer(self, request: Request) -> Reply:
        """Answer the client."""
        self._wait(WAITING)
        if self.moment in (WHOLE, STREAMED) and not self.go.is_set():
            return faults.slow(6.0, "One word after the other. " * 12)
        return "This is an answer."

    def _wait(self, moment: str) -> None:
        if self.moment == moment and not self.go.is_set():
            self.there.set()
            self.go.wait(60)


@contextmanager
def stage(folder: Path, moment: str) -> Iterator[tuple[FaultServer, Provider, Endpoint]]:
    """Start the provider, and an endpoint whose summaries a model writes."""
    config = folder / "leaving.yaml"
    config.write_text(CONFIG)
    provider = Provider(moment)
    with FaultServer(provider.answer) as server, FaultServer(provider.summarise) as small:
        known = {"OPENAI_BASE_URL": small.openai_url, "OPENAI_API_KEY": "operator"}
        where = str(folder / "leaving.db")
        secret = folder / "leaving.secret"
        with endpoint(server.anthropic_url, where, secret, WINDOW, config, known) as serving:
            yield server, provider, serving


def left_behind(folder: Path, moment: str, protocol: str, path: str) -> Left:
    """Break off at a moment, look at the remains, and send the same again."""
    key, other = (f"{name} {moment} {protocol}" for name in ("key", "nay"))

    def ask(key: str) -> bytes:
        return json.dumps(request(protocol, key, TURNS, moment == STREAMED)).encode()

    with stage(folder, moment) as (server, provider, serving):
        break_off(serving, provider, path, ask(key), key)
        time.sleep(NOTICED)
        provider.go.set()
        connections = closed(server)
        again = post(serving, path, ask(key), key)
        paid = provider.summaries
        post(serving, path, ask(other), other)
        calls = paid - (provider.summaries - paid)  # more than a client pays for that stays
    with Archive.open(folder / "leaving.db") as archive:
        threads = len(archive.threads(serving.tenant(key)))
    wrong = []
    if connections:
        wrong.append(f"{connections} connections to the provider stay open")
    if threads != 1:
        wrong.append(f"the archive has {threads} threads")
    if calls:
        wrong.append(f"{calls} calls for summaries are paid for again")
    if again.status_code != 200:
        wrong.append(f"the next try got {again.status_code}: {again.text[:200]}")
    return Left(moment, protocol, connections, threads, calls, again.status_code, tuple(wrong))


def post(serving: Endpoint, path: str, body: bytes, key: str) -> httpx.Response:
    """Send a request as a client that stays."""
    named = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return httpx.post(serving.url + path, content=body, headers=named, timeout=60)


def break_off(serving: Endpoint, provider: Provider, path: str, raw: bytes, key: str) -> None:
    """Send a request up to the moment, and close the connection."""
    address = urlsplit(serving.url)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        if provider.moment == SENDING:
            line.sendall(head.encode() + raw[: len(raw) // 2])
            return
        line.sendall(head.encode() + raw)
        if provider.moment in (WHOLE, STREAMED):
            got = b""
            while b"\r\n\r\n" not in got:
                got += line.recv(4_000)
            return
        if not provider.there.wait(60):
            raise SystemExit(f"the provider was not asked: {provider.moment}")


def closed(server: FaultServer) -> int:
    """Count the connections that are not given up."""
    until = time.monotonic() + PATIENCE
    while server.open_connections and time.monotonic() < until:
        time.sleep(0.05)
    return server.open_connections
