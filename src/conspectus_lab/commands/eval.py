"""Measure retention: `conspectus eval`."""

from __future__ import annotations

from functools import wraps
from typing import Any

from conspectus_lab.commands.replay import replay


@wraps(replay, assigned=["__annotations__"])
def evaluate(**options: Any) -> None:
    """Measure how much of the information that is needed later survives a compaction.

    It is `replay --retention`. PATH is a transcript in any form that compact reads, or a folder
    with transcripts. A file NAME.exam.json next to NAME.json has questions about its end.
    """
    named = options["policy"] or ([] if options["config"] else ["conspectus", "langchain"])
    replay(**{**options, "policy": named, "retention": True})
