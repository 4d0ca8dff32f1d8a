"""What a model sees after a whole session in a window: the notes of the recorded session, printed.

    make views      or: python benchmarks/views.py --window 16000

The session is played step by step to `Compactor(window=...)` with the embedded summariser, and
compacted once more at its end. `--write` puts the notes into docs/views.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conspectus import CompactionResult, Compactor

ROOT = Path(__file__).resolve().parents[1]
SESSION = ROOT / "examples" / "data" / "demo-transcript.json"
PAGE = ROOT / "docs" / "views.md"
WINDOW = 16_000
BEGIN, END = "<!-- after -->\n```text\n", "```\n<!-- end -->"


def played(window: int = WINDOW) -> CompactionResult:
    """The session, step by step, and the compaction at its end."""
    compactor = Compactor(window=window, archive="memory:")
    view: list[Any] = []
    step: list[Any] = []
    for message in [*json.loads(SESSION.read_text(encoding="utf-8")), None]:
        if step and (message is None or message["role"] != "tool"):
            view = list(compactor.compact([*view, *step], thread_id="views").messages)
            step = []
        step.append(message)
    return compactor.compact(view, thread_id="views", force=True)


def notes(window: int = WINDOW) -> str:
    """The summary message at the end of the session."""
    body: str = played(window).summary
    return body.replace("```", "'''") + "\n"


def with_notes(page: str, text: str) -> str:
    """The page with these notes in the place of those in it."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name} has no place for the notes")
    return before + begin + text + end + after


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it as a command; gives the exit code."""
    parser = argparse.ArgumentParser(description="The notes of the recorded session.")
    parser.add_argument("--window", type=int, default=WINDOW, help="tokens")
    parser.add_argument("--write", action="store_true", help=f"put them into {PAGE.name}")
    given = parser.parse_args(arguments)
    text = notes(given.window)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_notes(page, text), encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
