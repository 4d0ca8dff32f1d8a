"""`Compactor`: the whole engine for anybody with a list of messages."""

from conspectus.compactor.api import Compactor
from conspectus.compactor.result import CompactionResult

__all__ = ["CompactionResult", "Compactor"]
