"""The compactor: policy, meter, summariser and archive, for anybody who holds a list of messages."""

from conspectus.compactor.api import Compactor
from conspectus.compactor.result import CompactionResult

__all__ = ["CompactionResult", "Compactor"]
