"""What `conspectus serve` adds to a request, beside LiteLLM's proxy, and what many clients wait.

Times are real ones, of a request less that of the same one sent to the provider directly; each goes
all ways in turn, so that other work on the machine affects all. Every server is a process of its
own, and so is the crowd. LiteLLM is installed once, into the user's cache.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from tables import HERE, Row, child, number

PATH = "/v1/chat/completions"
KEY = "sk-0123456789abcdef0123456789abcdef"  # LiteLLM refuses to start with a weak one
HEAD = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
TEXT = "It reads what it was given, checks it, and gives back what it has found. " * 3
TURNS = 10  # requests of a conversation of which the first is not counted
# in a crowd; histories that are summarised; their window
CLIENTS = 100
LARGE = 20
WINDOW = 80_000
LITELLM = """
model_list:
  - {{model_name: m, litellm_params: {{model: openai/m, api_base: "{}/v1", api_key: none}}}}
general_settings: {{master_key: {}}}
"""


async def provider(scope: Any, receive: Any, send: Any) -> None:
    """Answer anything as a provider does, at once."""
    while (await receive()).get("more_body"):
        pass
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "."}}
    body = json.dumps({"id": "c", "object": "chat.completion", "created": 0, "model": "m",
                       "choices": [said]}).encode()  # fmt: skip
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


_session: Any = None  # of the process that passes on


async def passing_on(scope: Any, receive: Any, send: Any) -> None:
    """Pass a request on and its answer back, with the endpoint's libraries and nothing else."""
    global _session
    _session = _session or aiohttp.ClientSession()
    body = b""
    more = True
    while more:
        piece = await receive()
        body = body + piece.get("body", b"")
        more = piece.get("more_body")
    upstream = os.environ["UPSTREAM"] + scope["path"]
    head = {"content-type": "application/json"}
    async with _session.post(upstream, data=body, headers=head) as answer:
        kept = [one for one in answer.raw_headers if one[0].lower().startswith(b"content-")]
        start = {"type": "http.response.start", "status": answer.status, "headers": kept}
        await send(start)
        await send({"type": "http.response.body", "body": await answer.read()})


@contextmanager
def server(*line: str, **around: str) -> Iterator[str]:
    """Start a server of which the last argument is the port; return its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [one.format(port=port) for one in line]
    quiet = subprocess.DEVNULL
    until = time.monotonic() + 120
    with subprocess.Popen(
        words, stdout=quiet, stderr=quiet, cwd=HERE, env={**os.environ, **around}
    ) as made:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if made.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f"{words[0]} does not start") from None
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            made.terminate()


def _uvicorn(app: str, **around: str) -> Any:
    about = "log_level='error', timeout_keep_alive=75, lifespan='off'"
    code = f"import speed_serve, uvicorn; uvicorn.run(speed_serve.{app}, port={{port}}, {about})"
    return server(sys.executable, "-c", code, **around)


def _provider() -> Any:
    return _uvicorn("provider")


def _ours(upstream: str, folder: str, window: int = 10**9) -> Any:
    where = ("--archive", f"{folder}/{window}.db", "--window", str(window))
    line = (sys.executable, "-m", "conspectus.cli", "serve", "--upstream", upstream, *where)
    return server(*line, "--listen", "127.0.0.1:{port}")


def _litellm(upstream: str, folder: str) -> Any:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "conspectus/litellm"
    if not (cache / "bin/litellm").exists():
        subprocess.run([sys.executable, "-m", "venv", cache], check=True)
        install = [cache / "bin/pip", "install", "--quiet", "litellm[proxy]"]
        subprocess.run(install, check=True)
    config = Path(folder) / "litellm.yaml"
    config.write_text(LITELLM.format(upstream, KEY), encoding="utf-8")
    line = (str(cache / "bin/litellm"), "--config", str(config), "--host", "127.0.0.1")
    return server(*line, "--port", "{port}", HOME=folder, LITELLM_LOCAL_MODEL_COST_MAP="True")


def talk(length: int, name: object, words: str = TEXT) -> list[dict[str, str]]:
    """Return a history of an odd number of messages, which no other one begins like."""
    roles = [("user", "assistant")[at % 2] for at in range(length - 1 + length % 2)]
    return [{"role": role, "content": f"{name}, {at}: {words}"} for at, role in enumerate(roles)]


def _sent(client: http.client.HTTPConnection, history: Any) -> tuple[float, str | None]:
    """Send a history; return the milliseconds to the end of the answer, and if it was compacted."""
    body = json.dumps({"model": "m", "messages": history}).encode()
    began = time.perf_counter()
    client.request("POST", PATH, body, HEAD)
    answer = client.getresponse()
    said = answer.read()
    took = 1000 * (time.perf_counter() - began)
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {said[:300]!r}")
    return took, answer.headers.get("x-conspectus-compacted")


def _added(ways: Mapping[str, str], length: int, talks: int) -> dict[str, list[float]]:
    """Return the milliseconds that each way adds to requests with nothing due."""
    clients = {name: http.client.HTTPConnection(url[7:]) for name, url in ways.items()}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for n in range(talks):
        history = talk(length, f"{n} {random.random()}")
        for turn in range(TURNS + 1):
            order.append(order.pop(0))
            for name in order:
                took, _ = _sent(clients[name], history)
                taken[name] += [took] if turn else []
            history += talk(3, f"{n} {turn}")[1:]
    direct = taken.pop("")
    return {name: [a - b for a, b in zip(it, direct, strict=True)] for name, it in taken.items()}


def _high(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def latency(quick: bool) -> Iterator[Row]:
    """Time requests with nothing due, each of which continues its conversation."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        upstream = stack.enter_context(_provider())
        bare = stack.enter_context(_uvicorn("passing_on", UPSTREAM=upstream))
        ways = {"": upstream, "bare": bare, "ours": stack.enter_context(_ours(upstream, folder))}
        try:
            ways["LiteLLM"] = stack.enter_context(_litellm(upstream, folder))
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            print(f"LiteLLM's proxy cannot be had or started here: {error}", file=sys.stderr)
        for length in (10, 100, 2_000):
            added = _added(ways, length, 4 if quick else 20 if length < 1_000 else 10)
            for what, of in (("median", statistics.median), ("99th percentile", _high)):
                name = f"endpoint: added at {length:,} messages, {what}"
                mine = of(added["ours"])
                if "LiteLLM" not in added:
                    yield Row(name, mine, None, "ms")
                    continue
                theirs = of(added["LiteLLM"])
                bare = of(added["bare"])
                detail = f"{number(mine)} ms, theirs {number(theirs)} ms; uvicorn and aiohttp "
                detail += f"alone {number(bare)} ms ({number(bare / theirs)} x)"
                yield Row(f"{name}, LiteLLM's proxy = 1", mine / theirs, 0.1, detail=detail)


async def crowd(address: str, seconds: float) -> list[float]:
    """Return the milliseconds of small requests of many clients at once, each with pauses."""
    host, _, port = address.removeprefix("http://").partition(":")
    taken: list[float] = []
    until = time.monotonic() + seconds
    lines = (f"POST {PATH} HTTP/1.1", f"host: {host}", *(f"{k}: {v}" for k, v in HEAD.items()))
    start = "\r\n".join([*lines, "content-length: "])

    async def converse(n: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        history = talk(1, f"{n} {random.random()}")
        while time.monotonic() < until:
            await asyncio.sleep(random.expovariate(1))
            body = json.dumps({"model": "m", "messages": history})
            began = time.perf_counter()
            writer.write(f"{start}{len(body)}\r\n\r\n{body}".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(size))
            taken.append(1000 * (time.perf_counter() - began))
            history = [*history, *talk(3, f"{n} {random.random()}")[1:]][-10:]
        writer.close()

    await asyncio.gather(*map(converse, range(CLIENTS)))
    return taken


CROWD = """import asyncio, json, sys, uvloop
from speed_serve import crowd
print(json.dumps(uvloop.run(crowd(sys.argv[1], float(sys.argv[2])))))
"""


def waiting(quick: bool) -> Iterator[Row]:
    """Time small requests of a crowd, alone and while long histories are summarised."""
    draw = random.Random(1)
    seconds = "3" if quick else "10"
    words = " ".join(f"{draw.choice(TEXT.split())}{n % 97}" for n in range(150))
    histories = [talk(400, f"{n} {random.random()}", words) for n in range(LARGE)]
    with (
        tempfile.TemporaryDirectory() as folder,
        _provider() as upstream,
        _ours(upstream, folder, WINDOW) as ours,
        ThreadPoolExecutor(LARGE + 1) as pool,
    ):
        child(CROWD, ours, "1")
        idle = child(CROWD, ours, seconds)
        busy = pool.submit(child, CROWD, ours, "6")
        time.sleep(1.5)  # until the crowd has come
        clients = [http.client.HTTPConnection(ours[7:]) for _ in histories]
        sent = list(pool.map(_sent, clients, histories))
        times = busy.result()
    alone = _high(idle)
    together = _high(times)
    detail = f"{number(together)} ms, alone {number(alone)} ms; medians "
    detail += f"{number(statistics.median(times))} and {number(statistics.median(idle))} ms"
    name = f"endpoint: {CLIENTS} clients while {LARGE} summaries are written, 99th percentile"
    yield Row(f"{name}, alone = 1", together / alone, 2, detail=detail)
    yield Row("endpoint: of these summaries not written", LARGE - sum(c == "true" for _, c in sent),
              0, "")  # fmt: skip


def rows(quick: bool) -> Iterator[Row]:
    """Measure both."""
    yield from latency(quick)
    yield from waiting(quick)
