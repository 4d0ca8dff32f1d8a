"""The archive: originals and records in a store."""

from conspectus.archive.address import check_address, without_password
from conspectus.archive.sqlite import default_archive_path
from conspectus.archive.store import Archive
from conspectus.archive.values import Archived, Scope

__all__ = [
    "Archive",
    "Archived",
    "Scope",
    "check_address",
    "default_archive_path",
    "without_password",
]
