"""Faults of providers behind `conspectus serve`, and clients that break off.

    make faults-serve      or: python benchmarks/serve_faults.py [--only WORD] [--json]

A server on loopback speaks OpenAI's Chat Completions and Responses and Anthropic's Messages, and
fails in every way it can. The same request goes there directly and through the endpoint, whole and
streamed, once with a history that fits and once with one that is compacted: status, headers and
every byte of the body must be the same, a body that breaks off must break off there too. After each
fault the client asks again, and must be in the same thread, under the same notes.

Then clients break off at five moments: no connection to the provider may stay open, the archive may
hold no second thread, and nothing that was summarised may be paid for again. Ends with 1 if any of
this does not hold.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import printed
from command_line import Options, Progress, ended
from rich.console import Console
from serve_breaking_off import MOMENTS, Left, left_behind
from serve_process import PROTOCOLS, Endpoint, endpoint, request

from conspectus_lab.testing.fault_server import FaultServer, Reply, Request, faults

WINDOW = 4_000
SILENCE = 2
"""Seconds that the provider may be silent."""

HANGS = "hangs"
GOOD = "This is an answer."

FAULTS: dict[str, Reply] = {
    "none": GOOD,
    "context_length": faults.context_length(100, 200),
    "too_long": faults.too_long(),
    "too_large": faults.too_large(),
    "bad_request": faults.bad_request("no such parameter"),
    "not_found": faults.not_found("the model"),
    "unauthorized": faults.unauthorized(),
    "no_credit": faults.no_credit(),
    "rate_limited": faults.rate_limited(7),
    "request_timeout": faults.request_timeout(),
    "server_error": faults.server_error(),
    "unavailable": faults.unavailable(3),
    "blocked": faults.blocked(),
    "slow": faults.slow(0.2),
    "cut_before_headers": faults.cut_before_headers(),
    "cut_in_the_middle": faults.cut_in_the_middle(),
    "ends_early": faults.ends_early(),
    "error_in_the_stream": faults.error_in_the_stream(),
    "invalid_json": faults.invalid_json(),
    "empty_choices": faults.empty_choices(),
    "content_filter": faults.content_filter("What there was"),
    "refusal": faults.refusal("I do not do this."),
    "length": faults.length(),
    "lying_usage": faults.lying_usage(0, 0),
}
"""All that the server can do, by the names of `faults`."""

OURS = {"cut_before_headers": "502", HANGS: "504"}
"""Where nothing comes that could be passed on: the endpoint's own errors."""

UNLIKE = frozenset(("date", "server", "connection", "keep-alive", "transfer-encoding"))
"""Headers of one connection, which say nothing of the answer."""


@dataclass(frozen=True)
class Received:
    """An answer as a client got it.

    Attributes:
        status: of the answer; 0 where none came.
        headers: that say something of the answer.
        body: as far as it came.
        whole: it came to its end.
        ours: headers of the endpoint.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    whole: bool = False
    ours: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        if not self.status:
            return "nothing"
        return str(self.status) if self.whole else f"{self.status}, cut"

    def same_as(self, other: Received) -> bool:
        """Say whether another client got the same."""
        parts = (self.status, self.headers, self.body, self.whole)
        return parts == (other.status, other.headers, other.body, other.whole)

    def said(self, name: str) -> str:
        """Give a header of the endpoint; empty for none."""
        return dict(self.ours).get(f"x-conspectus-{name}", "")


def post(url: str, body: Any, key: str, seconds: float = 60.0) -> Received:
    """Send a request, and take the answer until it ends or breaks off."""
    status, whole, got = 0, False, b""
    head: list[tuple[str, str]] = []
    named = {"authorization": f"Bearer {key}", "accept-encoding": "identity"}
    try:
        with httpx.stream("POST", url, json=body, headers=named, timeout=seconds) as answer:
            status, head = answer.status_code, list(answer.headers.items())
            for piece in answer.iter_raw():
                got += piece
            whole = True
    except httpx.TransportError:
        pass
    told = sorted(one for one in head if one[0] not in UNLIKE)
    ours = tuple(one for one in told if one[0].startswith("x-conspectus-"))
    return Received(status, tuple(one for one in told if one not in ours), got, whole, ours)


@dataclass(frozen=True)
class Scene:
    """One fault as a client meets it.

    Attributes:
        fault: its name.
        protocol, stream: in which the client speaks.
        turns: of the history before the question.
        direct, through: answers without and with the endpoint.
        wrong: promises that do not hold.
    """

    fault: str
    protocol: str
    stream: bool
    turns: int
    direct: Received
    through: Received
    wrong: tuple[str, ...]


def play(
    server: FaultServer, serving: Endpoint, fault: str, protocol: str, stream: bool, turns: int
) -> Scene:
    """Play a fault, directly and through the endpoint, and the request after it."""
    path, who = PROTOCOLS[protocol][0], f"{fault} {protocol} {stream} {turns}"
    body, key = request(protocol, who, turns, stream), f"key of {who}"
    with faulty(fault) as reply:
        server.restart(reply)
        through = post(serving.url + path, body, key)
        tries = len(server.requests)
        server.restart(reply)
        for _ in range(tries):  # answers are numbered
            direct = post(server.anthropic_url + path, body, key, 1.0 if fault == HANGS else 60.0)
    server.restart(lambda request: GOOD)
    after = post(serving.url + path, body, key)
    wrong = []
    if status := OURS.get(fault):
        if (str(through), through.said("error")) != (status, "1"):
            wrong.append(f"{through} came, and not the endpoint's own {status}")
    elif not through.same_as(direct):
        wrong.append(f"{through} came through, and {direct} directly")
    if not OURS.get(fault):
        compacted = fault in OVERFLOW and turns > 0
        if (through.said("compacted") == "true") != (turns > FITS or compacted):
            wrong.append(f"compacted: {through.said('compacted')}")
        same = all(through.said(name) == after.said(name) for name in ("thread", "record"))
        if not same and not compacted:
            wrong.append("the next try is in another thread, or under other notes")
    if (after.status, after.whole) != (200, True) or after.said("error"):
        wrong.append(f"the next try got {after}")
    return Scene(fault, protocol, stream, turns, direct, through, tuple(wrong))


FITS, LONG = 1, 14
"""Turns of a history that fits its window, and of one that does not."""

OVERFLOW = ("context_length", "too_long", "too_large")
"""Faults after which the endpoint sends less; here the provider refuses that too."""


@contextmanager
def faulty(fault: str) -> Iterator[Any]:
    """Make a script of one fault alone."""
    if fault != HANGS:
        yield lambda request: FAULTS[fault]
        return
    ended = threading.Event()

    def hang(request: Request) -> Reply:
        ended.wait(60)
        return GOOD

    try:
        yield hang
    finally:
        ended.set()


@contextmanager
def stage(folder: Path) -> Iterator[tuple[FaultServer, Endpoint]]:
    """Start the provider, and the endpoint before it."""
    config = folder / "serve.yaml"
    config.write_text(f"serve: {{timeout: {SILENCE}}}\n")
    with (
        FaultServer([], count=lambda body: 100) as server,
        endpoint(
            server.anthropic_url, str(folder / "a.db"), folder / "secret", WINDOW, config
        ) as serving,
    ):
        yield server, serving


def cell(scenes: Sequence[Scene]) -> str:
    """Write the direct answer, and after an arrow another one through the endpoint."""
    texts = dict.fromkeys(
        str(one.direct)
        if one.through.same_as(one.direct)
        else f"{one.direct} -> {one.through}{'*' if one.through.said('error') else ''}"
        for one in scenes
    )
    return "; ".join(texts)


def show(scenes: Sequence[Scene], left: Sequence[Left], screen: Console) -> None:
    """Print the two tables."""
    if scenes:
        table = printed.table(
            "What a client gets: the same directly and through the endpoint, "
            "or directly -> through it",
            ["fault", *(f"{p}{s}" for p in PROTOCOLS for s in ("", ", streamed"))],
        )
        for name in dict.fromkeys(one.fault for one in scenes):
            rows = [one for one in scenes if one.fault == name]
            cells = [
                cell([one for one in rows if (one.protocol, one.stream) == (p, s)])
                for p in PROTOCOLS
                for s in (False, True)
            ]
            table.add_row(name, *cells)
        screen.print(table)
        same = sum(one.through.same_as(one.direct) for one in scenes)
        screen.print(f"{len(scenes)} answers, {same} of them the same to the last byte")
        if same < len(scenes):
            screen.print("* an error of the endpoint's own: nothing came that could be passed on")
    if left:
        names = ("moment", "protocol", "connections left", "threads", "paid for again", "next try")
        table = printed.table("A client breaks off", names, 2)
        for one in left:
            numbers = (one.connections, one.threads, one.again, one.next)
            table.add_row(one.moment, one.protocol, *map(str, numbers))
        screen.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = Options(description="Faults of providers behind the endpoint.")
    parser.add_argument("--only", default="", help="faults or moments with this word in them")
    parser.add_argument("--json", action="store_true", help="print the figures as data")
    given = parser.parse_args(arguments)
    every = [*FAULTS, HANGS, *MOMENTS]
    chosen = parser.holding("ONLY= or --only", given.only, every)
    jobs = [
        (fault, protocol, stream, turns)
        for fault in (*FAULTS, HANGS)
        if fault in chosen
        for protocol in PROTOCOLS
        for stream in (False, True)
        for turns in (FITS, LONG)
    ]
    progress = Progress("faults", len(jobs))
    scenes: list[Scene] = []
    with tempfile.TemporaryDirectory() as folder:
        if jobs:
            with stage(Path(folder)) as (server, serving):
                for job in jobs:
                    scenes.append(play(server, serving, *job))
                    progress.step(job[0])
        left = [
            left_behind(Path(folder), moment, protocol, PROTOCOLS[protocol][0])
            for moment in MOMENTS
            if moment in chosen
            for protocol in PROTOCOLS
        ]
    complaints = [
        f"{one.fault}, {one.protocol}{', streamed' * one.stream}, {one.turns} turns: {what}"
        for one in scenes
        for what in one.wrong
    ]
    complaints += [f"{one.moment}, {one.protocol}: {what}" for one in left for what in one.wrong]
    return printed.end(
        given.json,
        lambda: {"faults": [told(one) for one in scenes], "left": [vars(one) for one in left]},
        lambda: show(scenes, left, printed.screen()),
        not printed.complain(complaints),
    )


def told(scene: Scene) -> dict[str, Any]:
    """Convert a scene to data."""
    data = {name: getattr(scene, name) for name in ("fault", "protocol", "stream", "turns")}
    same = scene.through.same_as(scene.direct)
    more = {"direct": str(scene.direct), "through": str(scene.through), "same": same}
    return {**data, **more, "wrong": list(scene.wrong)}


if __name__ == "__main__":
    ended(main)
