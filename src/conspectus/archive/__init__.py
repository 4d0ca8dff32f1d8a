"""The archive: originals and records in a store."""

from conspectus.archive.address import check_address, without_password
from conspectus.archive.archive import Archive
from conspectus.archive.key_value import KeyValueStore
from conspectus.archive.sqlite import default_archive_path
from conspectus.archive.store import ArchiveStore
from conspectus.archive.values import (
    Archived,
    ItemsByKind,
    Scope,
    StoredItem,
    UncoveredOriginal,
    ValueKind,
)

__all__ = [
    "Archive",
    "ArchiveStore",
    "Archived",
    "ItemsByKind",
    "KeyValueStore",
    "Scope",
    "StoredItem",
    "UncoveredOriginal",
    "ValueKind",
    "check_address",
    "default_archive_path",
    "without_password",
]
