"""Measure retention: `conspectus eval`."""

from __future__ import annotations

from functools import wraps
from typing import Any

from conspectus_lab.commands.replay import replay


@wraps(replay, assigned=["__annotations__"])
def evaluate(**options: Any) -> None:
    """Measure how much of what is needed later survives compaction: `replay --retention`.

    PATH is a transcript in any form that compact reads, or a folder, which is searched through;
    NAME.exam.json beside NAME.json holds questions about its end.
    """
    named = options["policy"] or ([] if options["config"] else ["conspectus", "langchain"])
    replay(**{**options, "policy": named, "retention": True})
