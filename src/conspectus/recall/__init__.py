"""Find archived originals again by id, by range or by query."""

from typing import TYPE_CHECKING

from conspectus._imports import lazily, places_of

if TYPE_CHECKING:
    from conspectus.recall.flow import recall_flow
    from conspectus.recall.layout import Hit, RecallResult

__all__ = ["Hit", "RecallResult", "recall_flow"]

_MODULES = {
    "conspectus.recall.flow": "recall_flow",
    "conspectus.recall.layout": "Hit RecallResult",
}
__getattr__ = lazily(__name__, places_of(_MODULES))
