"""The compliance suite of Open Responses against `conspectus serve`.

    make open-responses      or: python benchmarks/serve_open_responses.py [--suite PATH-OR-URL]

The suite is cloned into a cache, and runs under Bun, which comes from npm. It asks the fault server
directly, and the same server through the endpoint. Ends with 1 if a test of a compaction fails
through the endpoint, or any test that passes directly.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from client_programs import GPT, KEY, Unavailable, cache, ran
from command_line import Options, ended
from rich import box
from rich.console import Console
from rich.table import Table
from serve_process import endpoint

from conspectus_lab.testing.fault_server import Answer, FaultServer, Request, ToolCall

SUITE = "https://github.com/openresponses/openresponses"
PACKAGES = ("bun@1.4.5", "zod@4.6.7")
WINDOW, SECONDS = 8_000, 300

Results = Mapping[str, Mapping[str, Any]]


def answered(request: Request) -> Answer | str:
    """Answer the suite's requests as the model."""
    if request.body.get("tools"):
        call = ToolCall("get_weather", {"location": "San Francisco, CA"})
        return Answer("", (call,))
    return "Hello there, friend."


def suite_from(source: str, folder: Path) -> tuple[Path, str]:
    """Return the suite's folder, made if it is missing, and its commit.

    Raises:
        Unavailable: the suite or its runner cannot be installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / ".bin" / "bun").exists():
        ran(["npm", "install", "--prefix", str(folder), "--silent", *PACKAGES])
    suite = folder / "suite"
    if not (suite / ".git").exists():
        ran(["git", "clone", "--quiet", source, str(suite)])
    return suite, ran(["git", "-C", str(suite), "log", "-1", "--format=%h of %cs"]).strip()


def results(suite: Path, url: str) -> Results:
    """Run the suite at an address, and return its results by test.

    Raises:
        Unavailable: it does not run.
    """
    bun = suite.parent / "node_modules" / ".bin" / "bun"
    line = [str(bun), "run", "bin/compliance-test.ts", "--base-url", f"{url}/v1"]
    line += ["--api-key", KEY, "--model", GPT, "--json"]
    said = ran(line, cwd=suite, timeout=SECONDS, good=(0, 1))
    try:
        return {one["id"]: one for one in json.loads(said)["results"]}
    except (ValueError, KeyError, TypeError):
        raise Unavailable(f"`{' '.join(line)}` gives no results: {said[:200]}") from None


def complaints(direct: Results, through: Results) -> list[str]:
    """List broken promises."""
    found = []
    for name, one in through.items():
        needed = name.startswith("compact-") or direct.get(name, {}).get("status") == "passed"
        if needed and one["status"] != "passed":
            errors = "; ".join(map(str, one.get("errors") or ())) or "no words"
            found.append(f"{name}: {one['status']}: {errors[:300]}")
    names = [name for name in through if name.startswith("compact-")]
    return found if names else [*found, "the suite has no test of a compaction"]


def table(direct: Results, through: Results, commit: str) -> Table:
    """Make the table of the tests with both results."""
    made = Table(
        title=f"Open Responses, suite {commit}", title_justify="left", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for column in ("test", "provider directly", "through the endpoint"):
        made.add_column(column)
    for name in sorted(through):
        made.add_row(name, *(one.get(name, {}).get("status", "-") for one in (direct, through)))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it as a command; gives the exit code."""
    parser = Options(description="The compliance suite of Open Responses.")
    parser.add_argument("--suite", default=SUITE, help="where git finds it, the first time")
    given = parser.parse_args(arguments)
    try:
        suite, commit = suite_from(given.suite, cache() / "open-responses")
        with (
            tempfile.TemporaryDirectory() as name,
            FaultServer(answered) as server,
            endpoint(
                server.anthropic_url, f"{name}/archive.db", Path(name) / "secret", WINDOW
            ) as serving,
        ):
            direct, through = results(suite, server.anthropic_url), results(suite, serving.url)
    except Unavailable as error:
        print(f"The suite cannot be had or started here: {error}", file=sys.stderr)
        return 1
    Console(width=100).print(table(direct, through, commit))
    wrong = complaints(direct, through)
    for line in wrong:
        print(f"BROKEN PROMISE: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    ended(main)
