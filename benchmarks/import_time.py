"""What it takes to import the package and its parts.

    make bench-import      or: python benchmarks/import_time.py --json

Each line runs in a fresh interpreter; of five runs the one with the least processor time counts.
LangChain's own `langchain.agents` stands beside it. The exit code is 1 if `import conspectus` takes
more than 0.6 s, or if `Compactor` with dicts loads LangChain's agents.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

ALLOWED = 0.6
RUNS = 5

LINES = {
    "import conspectus": "import conspectus",
    "from conspectus import Policy, InputError": "from conspectus import Policy, InputError",
    "from conspectus import Compactor": "from conspectus import Compactor",
    "Compactor with dicts, SQLite": (
        "import tempfile; from conspectus import Compactor; from pathlib import Path\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    c = Compactor(window=8000, archive=str(Path(folder) / 'a.db'))\n"
        "    c.compact([{'role': 'user', 'content': 'hi'}], thread_id='t')\n"
        "import sys; assert 'langchain.agents' not in sys.modules, 'LangChain agents are loaded'"
    ),
    "from conspectus import SummarizationMiddleware": (
        "from conspectus import SummarizationMiddleware"
    ),
    "from langchain.agents import create_agent (a peer)": (
        "from langchain.agents import create_agent"
    ),
}


def seconds(code: str, runs: int = RUNS) -> float:
    """Processor seconds that some lines take in a fresh interpreter, the fastest of some runs.

    Raises:
        subprocess.CalledProcessError: the lines fail.
    """
    timed = f"import time\nbegan = time.process_time()\n{code}\nprint(time.process_time() - began)"
    found = [
        float(
            subprocess.run(
                [sys.executable, "-c", timed], check=True, capture_output=True, text=True
            ).stdout
        )
        for _ in range(runs)
    ]
    return min(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it as a command; gives the exit code."""
    parser = argparse.ArgumentParser(description="What an import takes.")
    parser.add_argument("--json", action="store_true", help="print the numbers as data")
    given = parser.parse_args(arguments)
    found = {name: round(seconds(code), 3) for name, code in LINES.items()}
    holds = found["import conspectus"] <= ALLOWED
    if given.json:
        print(json.dumps({"seconds": found, "allowed": ALLOWED, "holds": holds}, indent=1))
    else:
        table = Table("line", "CPU seconds", title="Imports")
        for name, taken in found.items():
            table.add_row(name, f"{taken:.2f}")
        Console(width=None if sys.stdout.isatty() else 100).print(table)
        word = "holds" if holds else "BROKEN"
        print(f"`import conspectus` may take {ALLOWED} s: {word}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
