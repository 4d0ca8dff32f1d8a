"""Find archived originals again by id, by range or by query."""

from conspectus.recall.flow import recall_flow
from conspectus.recall.layout import Hit, RecallResult

__all__ = ["Hit", "RecallResult", "recall_flow"]
