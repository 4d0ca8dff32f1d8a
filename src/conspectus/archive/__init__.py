"""The archive: originals and records in a store."""

from typing import TYPE_CHECKING

from conspectus._imports import lazily, places_of

if TYPE_CHECKING:
    from conspectus.archive.address import check_address, without_password
    from conspectus.archive.sqlite import default_archive_path
    from conspectus.archive.store import Archive
    from conspectus.archive.values import Archived as Archived
    from conspectus.archive.values import Scope as Scope

__all__ = [
    "Archive",
    "Archived",
    "Scope",
    "check_address",
    "default_archive_path",
    "without_password",
]

_MODULES = {
    "conspectus.archive.address": "check_address without_password",
    "conspectus.archive.values": "Archived Scope",
    "conspectus.archive.sqlite": "default_archive_path",
    "conspectus.archive.store": "Archive",
}
__getattr__ = lazily(__name__, places_of(_MODULES))
