"""`Compactor`: the whole engine for anybody with a list of messages."""

from conspectus.engine.api import Compactor
from conspectus.engine.result import CompactionResult, UndoResult

__all__ = ["CompactionResult", "Compactor", "UndoResult"]
