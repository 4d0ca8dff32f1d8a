"""Faults of providers over HTTP, and their effect on us and three others.

    make faults        or: python benchmarks/http_faults.py [--only WORD] [--jobs N] [--json]

A server on loopback speaks OpenAI's and Anthropic's protocols; real clients talk to it. In each run
an agent has 18 turns with a tool. In the middle third the provider fails: on every call for a
summary, or on the first call for an answer of each turn. A turn that fails is tried once more.
Seconds between tries are added up and not waited. Ends with 1 if a promise of ours does not hold,
with 2 if an option makes no sense.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import printed
import tenacity.nap
from command_line import Options, Progress, at_least, deaf, end_children, ended, stopped, tell
from http_fault_systems import ROOM, SYSTEMS, Clients, Conspectus, System, ask, mark
from langchain_core.messages import HumanMessage
from rich.console import Console
from rich.table import Table

import conspectus.compactor.compaction
from conspectus.bridge import io
from conspectus_lab.testing.fault_server import (
    Answer,
    Broken,
    FaultServer,
    Reply,
    Request,
    ToolCall,
    Usage,
    faults,
)

TURNS = 18
FAULTY = range(TURNS // 3, 2 * TURNS // 3)
PROTOCOLS = ("openai", "anthropic")
TURN = re.compile(r"Turn (\d+): fetch")
MARK = "zebra"
"""A word in all that a failing summariser says."""

GOOD = (
    "## Goal\n- The user wants pages to be fetched, turn by turn, and looked at with care [turn-0]"
)
BAD = f"## Goal\n- {MARK}: the user wants pages to be fetched, and looked at [turn-0]"
SMALL = 1_000
"""Tokens that a summariser takes while its window is said to be small."""

LESS = ROOM // 2
"""Tokens of messages that the answering model takes while it takes less than it says."""

Fault = Reply | Callable[[Request], Reply | None]
"""A reply, or a function that gives one to some requests."""


@dataclass(frozen=True)
class Case:
    """One thing that goes wrong.

    Attributes:
        name: of the fault.
        sums: replies to the summariser's calls.
        answers: replies to the calls for answers; None where that is nothing that a system for
            histories could do anything about, and where nothing comes of it.
        streaming: the clients stream, without which it does not happen.
        raises: an answer fails by it, and nobody but the caller can try again.
        silent: protocols in which an answer does not fail by it after all.
        window: the answering model takes only LESS tokens of messages meanwhile.
    """

    name: str
    sums: Fault
    answers: Fault | None
    streaming: bool = False
    raises: bool = True
    window: bool = False
    silent: tuple[str, ...] = ()


def over(limit: int, fault: Callable[[int, int], Reply]) -> Callable[[Request], Reply | None]:
    """Make a fault for requests of more than this number of tokens."""
    return lambda request: fault(limit, request.tokens) if request.tokens > limit else None


def _lying(request: Request, tokens: int) -> Reply | None:
    """Give the due reply, with a report that nobody has counted."""
    due = answer_to(request) if request.model == "answers" else Answer(GOOD)
    return Answer(due.text, due.calls, usage=Usage(tokens, 1))


CASES = (
    Case("none", GOOD, lambda request: None, raises=False),
    Case("context length", over(SMALL, faults.context_length), None, raises=False, window=True),
    Case("too large (413)", over(SMALL, lambda *_: faults.too_large()), None, False, False, True),
    Case("unauthorized (401)", faults.unauthorized(), faults.unauthorized()),
    Case("no credit (429)", faults.no_credit(), faults.no_credit()),
    Case("request timeout (408)", faults.request_timeout(), faults.request_timeout()),
    Case("rate limit (429, 7 s)", faults.rate_limited(7), faults.rate_limited(7)),
    Case("server error (500)", faults.server_error(), faults.server_error()),
    Case("overloaded (503, 529)", faults.unavailable(), faults.unavailable()),
    Case("filtered (400)", faults.blocked(), faults.blocked()),
    Case("slow bytes", faults.slow(0.2, GOOD), faults.slow(0.2), raises=False),
    Case("cut before headers", faults.cut_before_headers(), faults.cut_before_headers()),
    Case("cut in the middle", faults.cut_in_the_middle(BAD), faults.cut_in_the_middle()),
    Case("stream ends early", faults.ends_early(BAD), faults.ends_early(), True, raises=False),
    Case(
        "error in the stream", faults.error_in_the_stream(BAD), faults.error_in_the_stream(), True
    ),
    Case("invalid JSON", faults.invalid_json(BAD), faults.invalid_json()),
    Case("empty choices", faults.empty_choices(), faults.empty_choices(), silent=("anthropic",)),
    Case("content filter", faults.content_filter(BAD), faults.content_filter(), raises=False),
    Case("refusal", faults.refusal(f"I will not, {MARK}."), faults.refusal("No."), raises=False),
    Case("length", faults.length(BAD), faults.length(), raises=False),
    Case("usage says 0", lambda r: _lying(r, 0), lambda r: _lying(r, 0), raises=False),
    Case("usage says 10⁹", lambda r: _lying(r, 10**9), lambda r: _lying(r, 10**9), raises=False),
)


@dataclass
class Trial:
    """The effect of one fault on one system.

    Attributes:
        failed: steps that raised.
        lost: messages that have left what the model is shown, that no summariser whose answer was
            good has read whole, and that are in no file or archive of the agent.
        bad: summaries in force that are what a failing summariser said, or nothing.
        torn: requests with torn calls of tools.
        over: requests to the answering model that were larger than its window.
        paid: requests to the summariser.
        waited: seconds between tries.
    """

    failed: int = 0
    lost: int = 0
    bad: int = 0
    torn: int = 0
    over: int = 0
    paid: int = 0
    waited: float = 0.0

    def __str__(self) -> str:
        shown = ("failed", "lost", "bad", "torn", "over")
        return ", ".join(f"{n} {name}" for name in shown if (n := getattr(self, name))) or "-"


def _words(reply: Reply) -> str:
    """Give the words that arrive whole."""
    if isinstance(reply, Broken):
        return reply.answer.text if reply.how == "slow" else ""
    return reply.text if isinstance(reply, Answer) else reply if isinstance(reply, str) else ""


def answer_to(request: Request) -> Answer:
    """Answer as the model: fetch, and report the finding."""
    turns = TURN.findall(request.text)
    turn = int(turns[-1]) if turns else 0
    last = request.messages[-1]
    results = last["content"] if isinstance(last["content"], list) else []
    fetched = last["role"] == "tool" or any(b.get("type") == "tool_result" for b in results)
    if not turns or fetched:
        return Answer(f"It is fetched; its mark is {mark(turn, 'done')}.")
    return Answer("", (ToolCall("fetch", {"turn": turn}, f"call-{turn}"),))


@dataclass
class Scene:
    """One agent, one case."""

    case: Case
    on: str
    system: System
    server: FaultServer
    overhead: int
    trial: Trial = field(default_factory=Trial)

    def run(self) -> Trial:
        """Play all turns."""
        self._now = self._fail_next = False
        self._read: list[str] = []
        self._view = ""
        bad: set[str] = set()
        self.server.restart(self._reply)
        with _no_waiting(self.trial):
            for turn in range(TURNS):
                self._now = self._fail_next = turn in FAULTY
                message: HumanMessage | None = ask(turn)
                for _ in range(2):
                    try:
                        self.system.step(message)
                        break
                    except Exception:
                        self.trial.failed += 1
                        message = None
                words = self.system.summary()
                if words is not None and (MARK in words or not words.strip()):
                    bad.add(words)
        self.trial.bad = len(bad)
        self.trial.torn = len(self.server.torn)
        self.trial.lost = self._lost()
        return self.trial

    def _reply(self, request: Request) -> Reply:
        fault = self.case.sums if request.model == "sums" else self.case.answers
        applies = self._now and request.model == self.on
        if request.model == "sums":
            self.trial.paid += 1
            reply = self._faulty(fault, request) if applies else None
            if reply is None or _words(reply) == GOOD:
                self._read.append(request.text)
            return reply or GOOD
        small = applies and self.case.window
        window = self.overhead + (LESS if small else ROOM)
        if request.tokens > window:
            self.trial.over += 1
            if small and self.case.name.startswith("too large"):
                return faults.too_large()
            return faults.context_length(window, request.tokens)
        if applies and self._fail_next:
            self._fail_next = False
            reply = self._faulty(fault, request)
            if reply is not None:
                return reply
        self._view = request.text
        return answer_to(request)

    @staticmethod
    def _faulty(fault: Fault | None, request: Request) -> Reply | None:
        return fault(request) if callable(fault) else fault

    def _lost(self) -> int:
        """Count the messages of all turns that are nowhere."""
        places = [self._view, *self._read, self.system.kept()]
        said = [(mark(n, w), mark(n, f"{w}end")) for n in range(TURNS) for w in ("said", "page")]
        gone = [pair for pair in said if not all(any(m in p for p in places) for m in pair)]
        # What was never fetched, because its turn failed, cannot be lost.
        ever = "\n".join(request.text for request in self.server.requests)
        return sum(all(one in ever for one in pair) for pair in gone)


@contextlib.contextmanager
def _no_waiting(trial: Trial) -> Iterator[None]:
    """Note the seconds between tries instead of waiting."""

    def note(seconds: float) -> None:
        trial.waited += seconds

    module, before = conspectus.compactor.compaction, conspectus.compactor.compaction.pause
    module.pause = lambda seconds: io(lambda: note(seconds))  # type: ignore[assignment]
    clock, tenacity.nap.time = tenacity.nap.time, types.SimpleNamespace(sleep=note)
    try:
        yield
    finally:
        module.pause, tenacity.nap.time = before, clock


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings and logs of wanted faults."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


_servers: dict[str, FaultServer] = {}
_overheads: dict[tuple[str, str], int] = {}


def the_server() -> FaultServer:
    """Give the process's one server."""
    if not _servers:
        server = FaultServer([])
        server.__enter__()
        _servers["one"] = server
    return _servers["one"]


def overhead_of(kind: type[System], protocol: str) -> int:
    """Count the tokens beside the messages, by the server's count."""
    if (kind.name, protocol) not in _overheads:
        server = the_server()
        server.restart(["hello"])
        with tempfile.TemporaryDirectory() as folder:
            agent = kind(Clients(server, protocol, False, 100_000), Path(folder))
            agent.step(HumanMessage("hi"))
        _overheads[kind.name, protocol] = server.requests[0].tokens
    return _overheads[kind.name, protocol]


def trial(case: Case, on: str, protocol: str, kind: type[System]) -> Trial:
    """Try one system under one fault."""
    with tempfile.TemporaryDirectory() as folder, _quiet():
        overhead, server = overhead_of(kind, protocol), the_server()
        clients = Clients(server, protocol, case.streaming, overhead + ROOM)
        return Scene(case, on, kind(clients, Path(folder)), server, overhead).run()


def wrong(case: Case, on: str, found: Trial, protocol: str = "openai") -> list[str]:
    """List our promises that do not hold."""
    said = [f"{n} {name}" for name in ("lost", "bad", "torn") if (n := getattr(found, name))]
    raises = on == "answers" and case.raises and protocol not in case.silent
    expected = len(FAULTY) if raises else 0
    if found.failed != expected:
        said.append(f"{found.failed} steps failed, not {expected}")
    allowed = int(on == "answers" and case.window)
    if found.over > allowed:
        said.append(f"{found.over} over the window, not {allowed}")
    return said


def one(job: tuple[int, str, str]) -> list[Trial]:
    """Try all systems under one fault."""
    number, on, protocol = job
    return [trial(CASES[number], on, protocol, kind) for kind in SYSTEMS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    parser = Options(description="Faults of providers over HTTP.")
    parser.add_argument("--only", default="", help="cases with this word in their names")
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print the figures as data")
    given = parser.parse_args(arguments)
    chosen = parser.holding("ONLY= or --only", given.only, CASES, lambda case: case.name)
    jobs = [
        (number, on, protocol)
        for on in ("sums", "answers")
        for number, case in enumerate(CASES)
        for protocol in PROTOCOLS
        if case in chosen
        and (on == "sums" or case.answers is not None or case.window)
        and not (on == "answers" and case.name == "none")
    ]
    tell(f"{len(jobs)} scenes for {len(SYSTEMS)} systems; all of them take some minutes.")
    results, whole = _played(jobs, given.jobs)
    if not results:
        return stopped("no scene had come to its end")
    data = [
        {"case": CASES[n].name, "on": on, "protocol": protocol}
        | {kind.name: asdict(t) for kind, t in zip(SYSTEMS, trials, strict=True)}
        for (n, on, protocol), trials in results.items()
    ]
    bad = printed.complain(
        f"{CASES[n].name}, {on}, {protocol}: {what}"
        for (n, on, protocol), trials in results.items()
        for what in wrong(CASES[n], on, trials[SYSTEMS.index(Conspectus)], protocol)
    )
    code = printed.end(given.json, lambda: data, lambda: show(results, printed.screen()), not bad)
    return code if whole else stopped()


def _played(
    jobs: Sequence[tuple[int, str, str]], processes: int
) -> tuple[dict[tuple[int, str, str], list[Trial]], bool]:
    """Play all jobs, or those until Ctrl-C; say whether it is all of them."""
    results: dict[tuple[int, str, str], list[Trial]] = {}
    progress = Progress("faults", len(jobs))
    # Processes that are stopped tidy nothing up, so all their files lie in one place.
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, initializer=_begin, initargs=(folder,)) as pool,
    ):
        try:
            for job, found in zip(jobs, pool.map(one, jobs), strict=True):
                results[job] = found
                progress.step(CASES[job[0]].name)
        except KeyboardInterrupt:
            end_children()
            pool.shutdown(cancel_futures=True)
            return results, False
    return results, True


def _begin(folder: str) -> None:
    deaf()
    tempfile.tempdir = folder


def show(results: dict[tuple[int, str, str], list[Trial]], screen: Console) -> None:
    """Print the tables, one for each call that fails, and the sums."""
    titles = {"sums": "The summariser's calls fail", "answers": "The calls for answers fail"}
    for on, title in titles.items():
        columns = ("fault", "protocol", *(kind.name for kind in SYSTEMS))
        table = printed.table(title, columns, len(columns))
        for number, case in enumerate(CASES):
            rows = {p: results.get((number, on, p)) for p in PROTOCOLS}
            texts = {p: [str(t) for t in trials] for p, trials in rows.items() if trials}
            if len(texts) == 2 and texts["openai"] == texts["anthropic"]:
                texts = {"both": texts["openai"]}
            for protocol, cells in texts.items():
                table.add_row(case.name, protocol, *cells)
        if table.row_count:
            screen.print(table)
        if table.row_count and on == "sums":
            screen.print(price(results))
    for place, kind in enumerate(SYSTEMS):
        total = [trials[place] for trials in results.values()]
        sums = ", ".join(
            f"{sum(getattr(t, name) for t in total)} {name}"
            for name in ("failed", "lost", "bad", "torn", "over")
        )
        paid = sum(t.paid for t in total)
        waited = sum(t.waited for t in total)
        screen.print(f"{kind.name}: {sums}; {paid} calls for summaries, {waited:,.0f} s waited")


def price(results: dict[tuple[int, str, str], list[Trial]]) -> Table:
    """Make the table of calls for summaries and seconds waited."""
    table = printed.table(
        "The same: calls for summaries, and seconds waited",
        ("fault", *(kind.name for kind in SYSTEMS)),
    )
    for number, case in enumerate(CASES):
        rows = [found for p in PROTOCOLS if (found := results.get((number, "sums", p)))]
        if rows:
            table.add_row(case.name, *(_price(trials) for trials in zip(*rows, strict=True)))
    return table


def _price(trials: Sequence[Trial]) -> str:
    """Write the price of one system, in both protocols together."""
    paid, waited = sum(t.paid for t in trials), sum(t.waited for t in trials)
    return f"{paid}, {waited:,.0f} s" if waited else str(paid)


if __name__ == "__main__":
    ended(main)
