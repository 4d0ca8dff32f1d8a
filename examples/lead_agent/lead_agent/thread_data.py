"""Thread data: a folder for each thread, made before the run."""

from __future__ import annotations

import hashlib
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langgraph.config import get_config

from lead_agent.errors import LeadAgentError

PARTS = ("workspace", "uploads", "outputs")
READABLE = 24
"""Characters of a thread's id that its folder's name shows, at most."""


def folder_name(thread: str) -> str:
    """The name of a thread's folder: a few plain characters of the id, then a hash of it.

    Whatever the id is, the name is one plain component, and no two ids share one, also where
    capitals count for nothing.

    Example:
        >>> folder_name("../../etc")
        'etc-74ccf3c5b4c19a8167f9a3d1dd63e0e4'
    """
    digest = hashlib.sha256(thread.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", thread[: 4 * READABLE]).strip("-")[:READABLE]
    return f"{readable}-{digest}" if readable else digest


@dataclass(frozen=True, slots=True)
class ThreadFolders:
    """The folders of all threads.

    Attributes:
        base: in which they are.
    """

    base: Path

    def of(self, thread: str) -> Path:
        """The folder of a thread, with `workspace`, `uploads` and `outputs` in it.

        Raises:
            LeadAgentError: something else stands in its place.
        """
        folder = self.base / "threads" / folder_name(thread)
        for path in (folder, *(folder / part for part in PARTS)):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise LeadAgentError(f"{path} is a link and no folder; remove it")
        return folder


def current_thread() -> str:
    """The id of the thread that runs."""
    return str(get_config()["configurable"]["thread_id"])


class ThreadDataState(AgentState[Any]):
    """Where the folders of this thread were when the turn began."""

    thread_data: NotRequired[dict[str, str]]


class ThreadDataMiddleware(AgentMiddleware[ThreadDataState, Any, Any]):
    """Makes the folders before each run, and says in the state where they are.

    Nothing else trusts that channel, which callers can write: tools go by the thread's id.
    """

    state_schema = ThreadDataState

    def __init__(self, folders: ThreadFolders) -> None:
        super().__init__()
        self._folders = folders

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Make them."""
        folder = self._folders.of(current_thread())
        return {"thread_data": {part: str(folder / part) for part in PARTS}}
