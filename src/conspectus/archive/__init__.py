"""The archive: originals kept in any LangGraph store, and found again."""

from conspectus.archive.address import check_address, without_password
from conspectus.archive.backend import default_archive_path
from conspectus.archive.recall import Hit, RecallResult, recall_flow
from conspectus.archive.scope import Scope
from conspectus.archive.store import Archive
from conspectus.archive.values import Archived

__all__ = [
    "Archive",
    "Archived",
    "Hit",
    "RecallResult",
    "Scope",
    "check_address",
    "default_archive_path",
    "recall_flow",
    "without_password",
]
