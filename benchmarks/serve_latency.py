"""Measure the latency that the endpoint adds to a request, and its load of conversations.

    make bench-serve      or: python benchmarks/serve_latency.py [--postgres ADDRESS]

The same requests, which need no compaction, go to one upstream directly, through the endpoint,
through LiteLLM's proxy, which compacts nothing, and through Headroom's, which compresses. Each is a
process of its own, and each request goes through all of them before the next one, in changing
order, so that other work on the machine affects all alike. The added time is that of a request less
that of the same one directly. With an address of PostgreSQL, 200 conversations at once go through
two instances on one archive; a schema is made and dropped. Ends with 1 if a conversation fails,
meets another, or sends a request over the window.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import printed
from client_programs import (
    GPT,
    Place,
    Unavailable,
    cache,
    from_pypi,
    litellm_had,
    litellm_proxy,
    ran,
)
from serve_process import endpoint, free_port, process

LENGTHS = (100, 2_000)
REQUESTS, TALK = 300, 10
"""Requests of each length, and of each conversation."""

DIRECTLY, OURS = "directly", "conspectus serve"
MASTER = f"sk-{secrets.token_hex(24)}"
"""The key of all requests; LiteLLM's proxy refuses to start with a weak one."""

CONVERSATIONS, TURNS = 200, 12
WINDOW = 8_000
TEXT = "It reads what it was given, checks it, and gives back what it has found. " * 3

screen = printed.screen(100)

Times = dict[str, list[float]]

PROVIDER = """
import json
import sys

import uvicorn

ANSWER = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Fine."}}]}
BODY = json.dumps(ANSWER).encode()


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": BODY})


uvicorn.run(app, port=int(sys.argv[1]), log_level="error", timeout_keep_alive=75)
"""


@contextmanager
def provider() -> Iterator[str]:
    port = free_port()
    with process([sys.executable, "-c", PROVIDER, str(port)], port) as url:
        yield url


def talk(length: int) -> list[dict[str, str]]:
    """Make a history that ends with a question."""
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"Message {n}. {TEXT}"}
        for n in range(length - 1 + length % 2)
    ]


def asked(client: httpx.Client, url: str, body: bytes) -> tuple[float, httpx.Response]:
    """Time one request in milliseconds, and return its answer too."""
    started = time.perf_counter()
    answer = client.post(f"{url}/v1/chat/completions", content=body)
    took = (time.perf_counter() - started) * 1_000
    if answer.status_code != 200 or answer.json()["choices"][0]["message"]["content"] != "Fine.":
        raise SystemExit(f"{url}: {answer.status_code} {answer.text[:200]}")
    if answer.headers.get("x-conspectus-compacted", "false") != "false":
        raise SystemExit("a request was not to be compacted, and was")
    return took, answer


@contextmanager
def headroom(program: Path, upstream: str, home: Path) -> Iterator[str]:
    """Start Headroom's proxy with its defaults, but without a rate limit and a cache of answers."""
    port = free_port()
    line = [str(program), "proxy", "--port", str(port), "--openai-api-url", upstream]
    line += ["--no-rate-limit", "--no-cache"]
    with process(line, port, {"HOME": str(home), "HF_HUB_OFFLINE": "1"}) as url:
        yield url


def headroom_had(folder: Path) -> tuple[Path, str]:
    inside = from_pypi(folder, "headroom-ai[proxy]")
    asked = "import importlib.metadata as m; print(m.version('headroom-ai'))"
    return inside / "bin" / "headroom", ran([str(inside / "bin" / "python"), "-c", asked]).strip()


@contextmanager
def proxies(folder: Path, upstream: str, peers: bool) -> Iterator[dict[str, str]]:
    """Start all proxies, by name; the upstream itself is the first."""
    with ExitStack() as stack:
        serving = endpoint(upstream, str(folder / "a.db"), folder / "secret", 10**9)
        urls = {DIRECTLY: upstream, OURS: stack.enter_context(serving).url}
        if peers:
            try:
                program, version = litellm_had(cache() / "litellm")
                place = Place(upstream, folder, folder, [], folder / "litellm.log")
                made = litellm_proxy(program, place, MASTER)
                urls[f"LiteLLM {version}"] = stack.enter_context(made)
            except Unavailable as error:
                screen.print(f"LiteLLM's proxy cannot be had or started here: {error}")
            try:
                program, version = headroom_had(cache() / "headroom")
                urls[f"Headroom {version}"] = stack.enter_context(
                    headroom(program, upstream, folder)
                )
            except (Unavailable, SystemExit) as error:
                screen.print(f"Headroom cannot be had or started here: {error}")
        yield urls


def measured(client: httpx.Client, urls: Mapping[str, str], length: int, requests: int) -> Times:
    """Time each request in milliseconds, by the proxy that it went through."""
    times: Times = {name: [] for name in urls}
    order = list(urls)
    for number in range(-(-requests // TALK)):
        messages = [{"role": "user", "content": f"Talk {number}."}, *talk(length)[1:]]
        for turn in range(-1, TALK):
            body = json.dumps({"model": GPT, "messages": messages}).encode()
            order.append(order.pop(0))
            for name in order:
                took, _ = asked(client, urls[name], body)
                if turn >= 0:  # the first request of a talk has nothing to reuse
                    times[name].append(took)
            messages += [
                {"role": "assistant", "content": f"Answer {turn}. {TEXT}"},
                {"role": "user", "content": f"Question {turn}. {TEXT}"},
            ]
    return times


def added(times: Times) -> dict[str, tuple[float, float]]:
    """Compute median and 99th percentile of the added time, by proxy."""
    found = {}
    for name, took in times.items():
        if name != DIRECTLY:
            more = [one - plain for one, plain in zip(took, times[DIRECTLY], strict=True)]
            found[name] = statistics.median(more), statistics.quantiles(more, n=100)[98]
    return found


def latency(folder: Path, requests: int, peers: bool) -> None:
    """Print the first table: each request continues the conversation, as an agent does."""
    title = f"Added to one request that needs nothing, {requests} of each, in ms"
    columns = ("through", "messages", "median", "99 %", "median / ours", "99 % / ours")
    table = printed.table(title, columns)
    with (
        provider() as upstream,
        proxies(folder, upstream, peers) as urls,
        httpx.Client(timeout=120, headers={"authorization": f"Bearer {MASTER}"}) as client,
    ):
        for length in LENGTHS:
            found = added(measured(client, urls, length, requests))
            for name, times in found.items():
                ratios = (one / ours for one, ours in zip(times, found[OURS], strict=True))
                numbers = [*(f"{one:.1f}" for one in times), *(f"{one:.1f}" for one in ratios)]
                table.add_row(name, f"{length:,}", *numbers)
    screen.print(table)


async def conversations(urls: list[str], count: int, turns: int) -> tuple[list[float], list[str]]:
    """Time each request of conversations at once in milliseconds, and list failures."""
    times: list[float] = []
    wrong: list[str] = []
    threads: dict[int, set[str]] = {}
    key = {"authorization": "Bearer one-key-for-all"}

    async def converse(client: httpx.AsyncClient, number: int) -> None:
        messages: list[Any] = []
        for turn in range(turns):
            text = f"Question {turn} of {number}. {TEXT * 4}" if turn else f"Hello. {TEXT}"
            messages.append({"role": "user", "content": text})
            started = time.perf_counter()
            url = f"{urls[turn % len(urls)]}/v1/chat/completions"
            body = {"model": "m", "messages": messages}
            try:
                answer = await client.post(url, json=body, headers=key)
            except httpx.TransportError as error:
                wrong.append(f"{number}, {turn}: {type(error).__name__} {error}")
                return
            times.append((time.perf_counter() - started) * 1_000)
            if answer.status_code != 200:
                wrong.append(f"{number}, {turn}: {answer.status_code} {answer.text[:200]}")
                return
            if int(answer.headers["x-conspectus-tokens-after"]) > WINDOW:
                wrong.append(f"{number}, {turn}: over the window")
            if turn == turns - 1:
                threads.setdefault(number, set()).add(answer.headers["x-conspectus-thread"])
            said = f"Answer {turn} of {number}. {TEXT * 4}"
            messages.append({"role": "assistant", "content": said})

    limits = httpx.Limits(max_connections=count)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:
        await asyncio.gather(*(converse(client, number) for number in range(count)))
    kept = [name for names in threads.values() for name in names]
    if len(set(kept)) != len(kept):
        wrong.append(f"{len(kept) - len(set(kept))} conversations ended in another one's thread")
    return times, wrong


def at_once(folder: Path, address: str, count: int, turns: int) -> list[str]:
    """Print the second table: conversations through two instances on one archive."""
    import psycopg

    schema = f"conspectus_serve_{uuid.uuid4().hex[:12]}"
    archive = f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{schema}"
    with psycopg.connect(address, autocommit=True) as connection, ExitStack() as stack:
        connection.execute(f"CREATE SCHEMA {schema}")
        stack.callback(connection.execute, f"DROP SCHEMA {schema} CASCADE")
        upstream = stack.enter_context(provider())
        urls = [
            stack.enter_context(endpoint(upstream, archive, folder / "secret", WINDOW)).url
            for _ in range(2)
        ]
        started = time.perf_counter()
        times, wrong = asyncio.run(conversations(urls, count, turns))
        took = time.perf_counter() - started
    columns = ("requests", "seconds", "requests a second", "median, ms", "99 %, ms", "wrong")
    title = f"{count} conversations at once, two instances on PostgreSQL"
    table = printed.table(title, columns, left=0)
    end = statistics.quantiles(times, n=100)[98]
    table.add_row(
        f"{len(times):,}", f"{took:.1f}", f"{len(times) / took:.1f}",
        f"{statistics.median(times):,.0f}", f"{end:,.0f}", str(len(wrong)),
    )  # fmt: skip
    screen.print(table)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--postgres", default=os.environ.get("CONSPECTUS_TEST_POSTGRES"))
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--alone", action="store_true", help="without the other proxies")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        latency(Path(folder), given.requests, not given.alone)
        if not given.postgres:
            screen.print("No --postgres: conversations at once are left out.")
            return 0
        wrong = at_once(Path(folder), given.postgres, given.conversations, given.turns)
    return int(printed.complain(wrong[:20], "WRONG"))


if __name__ == "__main__":
    sys.exit(main())
