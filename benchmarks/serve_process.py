"""`conspectus serve` as a process of its own, and requests to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection, create_server
from typing import Any

from conspectus_serve.secret import secret_beside

SECONDS = 300
"""In which a process must answer: some import for a minute on a busy machine."""


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that answers.

    Attributes:
        url: its address, without `/v1`.
        archive: place of its originals.
        secret: the file that names its tenants.
    """

    url: str
    archive: str
    secret: Path

    def tenant(self, key: str) -> str:
        """Give the tenant of a client's key."""
        return secret_beside(self.archive, self.secret).tenant(key)


def free_port() -> int:
    """Find a port that nobody listens on."""
    with create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def process(
    line: list[str], port: int, env: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[str]:
    """Start a server in a process of its own, and wait until it answers.

    Args:
        line: the command.
        port: of the server.
        env: more variables of its environment.
        log: file of its words. Default: nowhere.
    """
    with (
        Path(log or os.devnull).open("w") as said,
        subprocess.Popen(line, stdout=said, stderr=said, env={**os.environ, **(env or {})}) as made,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                try:
                    create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if made.poll() is not None:
                        raise SystemExit(f"{line[0]} ended with {made.returncode}") from None
                    time.sleep(0.05)
            else:
                raise SystemExit(f"{line[0]} does not answer")
            yield url
        finally:
            made.terminate()
            made.wait(20)


@contextmanager
def endpoint(
    upstream: str,
    archive: str,
    secret: Path,
    window: int | None = None,
    config: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Endpoint]:
    """Start the command itself, as a user does."""
    port = free_port()
    line = [sys.executable, "-m", "conspectus.cli", "serve", "--upstream", upstream]
    line += ["--listen", f"127.0.0.1:{port}", "--archive", archive, "--secret-file", str(secret)]
    line += ["--tenants", "key"]
    line += [] if window is None else ["--window", str(window)]
    line += [] if config is None else ["--config", str(config)]
    with process(line, port, env) as url:
        yield Endpoint(url, archive, secret)


PROTOCOLS = {
    "Chat": ("/v1/chat/completions", "messages"),
    "Responses": ("/v1/responses", "input"),
    "Messages": ("/v1/messages", "messages"),
}
"""The path of each protocol, and the field of a request that holds the history."""

TEXT = "It reads what it was given, checks it, and gives back what it has found. " * 6


def request(protocol: str, who: str, turns: int, stream: bool) -> dict[str, Any]:
    """Make a request with some turns of somebody before the question."""
    said = [
        {"role": role, "content": f"{role} {turn} of {who}: {TEXT}"}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    said.append({"role": "user", "content": f"What does {who} ask?"})
    body = {"model": "m", PROTOCOLS[protocol][1]: said, "stream": stream}
    return body | ({"max_tokens": 100} if protocol == "Messages" else {})
