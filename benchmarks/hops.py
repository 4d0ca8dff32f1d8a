"""Count the files and functions of ours that one compaction, and one step, run through.

Works by `sys.setprofile`: every call of a Python function of the package is seen once.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from threads import agent, objects

import conspectus

PACKAGE = str(Path(conspectus.__file__).parent)


def counted(call: Callable[[], object]) -> tuple[int, int]:
    """Return the number of our files, and of our functions, that a call runs through."""
    functions = set[tuple[str, str]]()

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(PACKAGE)
        if event == "call" and ours and not code.co_name.startswith("<"):
            functions.add((code.co_filename, code.co_qualname))

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in functions}), len(functions)


def main() -> None:
    """Print both counts as JSON."""
    from langgraph.runtime import Runtime

    logging.disable(logging.CRITICAL)
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a coding agent.", "id": "s"},
        *agent(81),
        {"role": "user", "content": "And now run the tests.", "id": "last"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        compactor = conspectus.Compactor(window=8_000, archive=f"{folder}/a.db")
        compactor.compact(history[:2], thread_id="other")
        results = []
        compaction = counted(lambda: results.append(compactor.compact(history, thread_id="t")))
        assert results[0].outcome == "compacted", results[0].reason
        middleware = conspectus.SummarizationMiddleware(
            None, trigger=("tokens", 10**9), archive=f"{folder}/b.db"
        )
        state = {"messages": objects(history)}
        step = counted(lambda: middleware.before_model(state, Runtime()))
    print(json.dumps({"compaction": compaction, "step": step}))


if __name__ == "__main__":
    main()
