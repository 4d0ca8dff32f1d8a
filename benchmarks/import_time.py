"""Processor seconds of importing the package and its parts.

    make bench-import      or: python benchmarks/import_time.py --json

Each line runs in a fresh interpreter, with the byte code that an installation has; of five runs the
one with the least processor time counts, less what the interpreter takes by itself. Below stand
what LangChain and LangGraph take alone. The exit code is 1 if a line that needs no LangChain takes
more than 0.6 s, or loads it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import printed

ALLOWED = 0.6
RUNS = 5

DICTS = """
from conspectus import Compactor
compactor = Compactor(window=2000{archive})
said = ["user", "assistant"] * 20
messages = [{{"role": who, "content": f"module_{{n}}. " * 30}} for n, who in enumerate(said)]
assert compactor.compact(messages, thread_id="t").outcome == "compacted"
"""
COMMAND = """
import sys
from conspectus.cli import main
sys.argv[1:] = {words!r}
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""

LINES = {
    "import conspectus": "import conspectus",
    "from conspectus import Policy, InputError": "from conspectus import Policy, InputError",
    "from conspectus import Compactor": "from conspectus import Compactor",
    "a compaction of dicts": DICTS.format(archive=""),
    "the same with a SQLite archive, and a recall": DICTS.format(archive=", archive='new.db'")
    + "assert 'module_3' in compactor.recall('module_3', thread_id='t', tokens=200).text",
}
COMMANDS = (
    "--version",
    "tokens history.json",
    "compact history.json --archive a.db --thread t --window 2000 -o compacted.json",
    "recall --archive a.db --thread t module_3",
    "archive list --archive a.db",
    "archive export --archive a.db -o originals.jsonl",
    "config check config.yaml",
)
WITH_LANGCHAIN = {
    "from conspectus import SummarizationMiddleware": (
        "from conspectus import SummarizationMiddleware"
    ),
    "langchain_core.messages alone": "import langchain_core.messages",
    "langgraph.store.sqlite alone": "import langgraph.store.sqlite",
    "from langchain.agents import create_agent": "from langchain.agents import create_agent",
}
TIMED = """import time
began = time.process_time()
{code}
taken = time.process_time() - began
import sys
heavy = {{"langchain_core", "langchain", "langgraph", "numpy"}} & {{*sys.modules}}
print(f"\\n{{taken}} {{'loads' if heavy else 'free'}}")
"""


def seconds(code: str, folder: Path, runs: int = RUNS) -> tuple[float, bool]:
    """Time some lines in a fresh interpreter, the fastest of some runs.

    Args:
        code: the lines.
        folder: working directory, with the byte code.
        runs: number of runs, after a first one that is not counted.

    Returns:
        Seconds, and whether LangChain or LangGraph was loaded.

    Raises:
        subprocess.CalledProcessError: the lines fail.
    """
    around = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    around["PYTHONPYCACHEPREFIX"] = str(folder / "byte-code")
    found = []
    for _ in range(runs + 1):
        (folder / "new.db").unlink(missing_ok=True)
        shown = subprocess.run(
            [sys.executable, "-c", TIMED.format(code=code)],
            check=True, capture_output=True, text=True, cwd=folder, env=around,
        )  # fmt: skip
        taken, _, heavy = shown.stdout.splitlines()[-1].partition(" ")
        found.append((float(taken), heavy == "loads"))
    return min(found[1:])


def measured() -> dict[str, tuple[float, bool]]:
    """Time each line, and say whether it loads LangChain or LangGraph."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = ["user", "assistant"] * 20
        history = [{"role": who, "content": f"module_{n}. " * 30} for n, who in enumerate(said)]
        (folder / "history.json").write_text(json.dumps(history))
        (folder / "config.yaml").write_text(
            "summarization:\n  trigger: {type: tokens, value: 6000}\n"
        )
        lines = {**LINES, **WITH_LANGCHAIN}
        for words in COMMANDS:
            lines[f"conspectus {words.partition(' --')[0]}"] = COMMAND.format(words=words.split())
        found = {line: seconds(code, folder) for line, code in lines.items()}
    return {
        name: found[name]
        for name in (*(n for n in found if n not in WITH_LANGCHAIN), *WITH_LANGCHAIN)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give the exit code."""
    given, found = printed.options(__doc__).parse_args(arguments), measured()
    broken = [
        name
        for name, (taken, heavy) in found.items()
        if name not in WITH_LANGCHAIN and (heavy or taken > ALLOWED)
    ]

    def show() -> None:
        table = printed.table("Imports", ("line", "CPU seconds", "loads LangChain or LangGraph"))
        for name, (taken, heavy) in found.items():
            table.add_row(name, f"{taken:.2f}", "yes" if heavy else "no")
        printed.screen(100).print(table)
        word = f"BROKEN by {', '.join(broken)}" if broken else "holds"
        print(f"What needs no LangChain loads none and takes {ALLOWED} s at most: {word}")

    rows = {name: round(taken, 3) for name, (taken, _) in found.items()}
    data = {"seconds": rows, "allowed": ALLOWED, "broken": broken}
    return printed.end(given.json, lambda: data, show, not broken)


if __name__ == "__main__":
    sys.exit(main())
