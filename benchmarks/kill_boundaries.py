"""Count the boundaries at which a worker can be killed.

Before and after each step of a compaction, each step of the driver, each write of the
checkpointer, each answer of a model, and each writing statement that a database is sent. At the
chosen one the process sends itself a real SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conspectus import bridge
from conspectus.archive import Archive
from conspectus.compactor import calls, compaction, preparing, swapping
from conspectus.compactor.anchors import Anchor
from conspectus.compactor.compaction import Compaction

EFFECT, STEP, STATEMENT = "effect", "step", "statement"
CHECKPOINT, MODEL = "checkpoint", "model"
KINDS = (EFFECT, STEP, STATEMENT, CHECKPOINT, MODEL)

FLOWS: tuple[tuple[Any, str], ...] = (
    (Compaction, "_tell"),
    (Compaction, "_found"),
    (compaction, "answer_flow"),
    (compaction, "approved_flow"),
    (Anchor, "commit_flow"),
    (preparing, "find_mark_flow"),
    (preparing, "save_mark_flow"),
    (preparing, "_claimed"),
    (swapping, "find_mark_flow"),
    (swapping, "save_mark_flow"),
    (calls, "chosen_flow"),
    (calls, "settled_flow"),
)
"""Steps of a compaction in order, and those of a draft that is prepared in the background."""

WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "COMMIT", "BEGIN")


class Boundaries:
    """Count boundaries, and die at one of them.

    Args:
        die_at: number of the boundary, from 1; 0 for never.
        epitaph: file in which the kind of that boundary is written just before.
    """

    def __init__(self, die_at: int, epitaph: Path) -> None:
        self.kinds: list[str] = []
        self.on = True
        self._die_at, self._epitaph, self._lock = die_at, epitaph, threading.Lock()

    def passes(self, kind: str) -> None:
        """Pass one boundary."""
        if not self.on:
            return
        with self._lock:
            self.kinds.append(kind)
            if len(self.kinds) == self._die_at:
                self._epitaph.write_text(kind)
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Put a boundary on each side of a function."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            self.passes(kind)
            answer = call(*args, **kwargs)
            self.passes(kind)
            return answer

        return watched

    def around_async(self, kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Put a boundary on each side of a coroutine function."""

        async def watched(*args: Any, **kwargs: Any) -> Any:
            self.passes(kind)
            answer = await call(*args, **kwargs)
            self.passes(kind)
            return answer

        return watched

    def around_flow(self, kind: str, flow: Callable[..., Any]) -> Callable[..., Any]:
        """Put a boundary on each side of a flow."""

        async def watched(*args: Any, **kwargs: Any) -> Any:
            self.passes(kind)
            answer = await flow(*args, **kwargs)
            self.passes(kind)
            return answer

        return watched

    def statement(self, sql: object) -> None:
        """Pass a boundary if a database is about to run a writing statement."""
        text = sql.decode() if isinstance(sql, bytes) else str(sql)
        if text.lstrip().upper().startswith(WRITING):
            self.passes(STATEMENT)

    def watch_flow(self) -> None:
        """Watch every flow of this process, which has no other use."""
        do, ado = bridge._do, bridge._ado
        for owner, name in FLOWS:
            setattr(owner, name, self.around_flow(EFFECT, getattr(owner, name)))
        for name in ("put", "missing", "save_draft"):
            setattr(Archive, name, self.around(EFFECT, getattr(Archive, name)))
        setattr(compaction, "checked", self.around(EFFECT, compaction.checked))  # noqa: B010
        bridge._do = self.around(STEP, do)
        bridge._ado = self.around_async(STEP, ado)

    def watch_saver(self, saver: Any) -> None:
        """Watch the writes of a checkpointer."""
        for name in ("put", "put_writes"):
            setattr(saver, name, self.around(CHECKPOINT, getattr(saver, name)))
            later = f"a{name}"
            setattr(saver, later, self.around_async(CHECKPOINT, getattr(saver, later)))
