"""Record the demo transcript: a scripted agent with real tools, over this project's own source.

    python examples/record_demo.py            record, and write examples/data/demo-transcript.json
    python examples/record_demo.py -o FILE    write it elsewhere
    python examples/record_demo.py --check    check that the file keeps its promises

The agent is code: it reads what its tools answer and decides by that what to do next. It works on
a temporary copy of the lower layers, never on this tree. Recording twice gives the same file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from demo_recorder.checks import measures, problems
from demo_recorder.recording import TASKS, record, write

SHIPPED = Path(__file__).parent / "data" / "demo-transcript.json"


def main() -> int:
    """Record or check; gives the exit code."""
    parser = argparse.ArgumentParser(description="Record the demo transcript, or check it.")
    parser.add_argument("-o", "--output", type=Path, default=SHIPPED, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="check the file, record nothing")
    parser.add_argument(
        "--tasks", type=int, metavar="N", help=f"only the first N of {len(TASKS)} tasks"
    )
    chosen = parser.parse_args()
    if not chosen.check:
        write(record(chosen.tasks), chosen.output)
    if not chosen.output.is_file():
        print(f"{chosen.output.name} is missing; run this without --check to record it")
        return 1
    sizes = measures(json.loads(chosen.output.read_text(encoding="utf-8")))
    print(", ".join(f"{name} {value:,}" for name, value in sizes.items()))
    if chosen.tasks is not None and not chosen.check:
        return 0  # a part of the session cannot keep the promises of the whole
    found = problems(chosen.output)
    for problem in found:
        print(f"broken promise: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
