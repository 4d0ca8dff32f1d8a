"""The plan of the session, in order, and the recording of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo_recorder import closing, middle, opening
from demo_recorder.session import Gone, Session
from demo_recorder.workspace import Workspace

SYSTEM = (
    "You are a coding agent in the repository of a Python library. You read before you edit, you "
    "run the tests after every change, and you give reasons for what you decide. Tools: "
    "list_files, search, read_file, edit_file, run_tests, run_python."
)

TASKS: tuple[Callable[[Session], None], ...] = (
    opening.overview,
    opening.merge_requests_asked,
    opening.merge_requests_done,
    opening.quiet_summaries,
    middle.rename,
    middle.date_hunt,
    middle.caught_errors,
    middle.raised_cap,
    middle.half_width,
    closing.error_messages,
    closing.limits_page,
    closing.pure_core,
    closing.moved_deadline,
    closing.last_look,
)


def record(tasks: int | None = None) -> list[dict[str, Any]]:
    """Run the session and give its messages.

    Args:
        tasks: how many tasks of the plan to run; None for all.
    """
    with Workspace() as workspace:
        session = Session(workspace)
        session.system(SYSTEM)
        for task in TASKS[:tasks]:
            try:
                task(session)
            except Gone as reason:
                session.say(
                    f"I stop here: the source has no longer {reason}. What is done so far stays; "
                    "the rest of this task is pending."
                )
        return session.finish()


def write(messages: list[dict[str, Any]], path: Path) -> None:
    """Write a transcript, one field a line, so that changes to it can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(messages, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
