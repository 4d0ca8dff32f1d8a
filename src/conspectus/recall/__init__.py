"""Find archived originals again by id, by range or by query."""

from conspectus.recall.flow import recall_flow
from conspectus.recall.hits import Hit
from conspectus.recall.packing import RecallResult

__all__ = ["Hit", "RecallResult", "recall_flow"]
