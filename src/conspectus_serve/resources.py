"""What all requests share: the archive, and what is known of models and threads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.errors import ArchiveError, ConspectusError
from conspectus_serve.handling import ReadRequest
from conspectus_serve.health import ArchiveHealth
from conspectus_serve.held import HeldHistories
from conspectus_serve.models import Models
from conspectus_serve.originals import OriginalMessages
from conspectus_serve.protocols import HttpError
from conspectus_serve.settings import ServeSettings
from conspectus_serve.threads import ThreadIndex
from conspectus_serve.work import UNREADABLE, LocalWork, Work

logger = logging.getLogger("conspectus.serve")


class MessageNotUnderstood(Exception):
    """A message of a request cannot be read. The text says why."""

    def check_may_go_on(self, read: ReadRequest) -> None:
        """Raise `HttpError` if the request cannot be sent on unchanged."""
        if read.is_rewritten or read.asks_for_compaction:
            raise HttpError(400, f"a message is not understood: {self}") from None


@dataclass(frozen=True, slots=True)
class Resources:
    """What is needed to read, fit and store requests."""

    archive: Archive
    settings: ServeSettings
    health: ArchiveHealth
    models: Models
    work: Work
    threads: ThreadIndex
    originals: OriginalMessages
    held: HeldHistories
    holds_histories: bool  # histories are stored with their secrets, so not with a redactor

    @classmethod
    def of(
        cls,
        archive: Archive,
        settings: ServeSettings,
        config: SummarizationConfig,
        work: Work | None = None,
    ) -> Resources:
        """Make the resources of an endpoint; without `work`, it computes in this process.

        Raises:
            ConfigError: a function of the configuration cannot be loaded.
        """
        health = ArchiveHealth(archive)
        models = Models(settings, config, archive)
        return cls(
            archive=archive,
            settings=settings,
            health=health,
            models=models,
            work=work or LocalWork(archive, models),
            threads=ThreadIndex(archive, health),
            originals=OriginalMessages(archive),
            held=HeldHistories(archive),
            holds_histories=not config.redact,
        )

    @property
    def compacts_on_request(self) -> bool:
        """Whether the endpoint answers a client that asks for a compaction."""
        return self.holds_histories and self.settings.compaction == "here"

    @contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """Turn errors of the engine into an `HttpError`, or into `MessageNotUnderstood`."""
        try:
            yield
        except ArchiveError as error:
            self.health.note_failure()
            reason = f"the archive is not there just now: {error}"
            raise HttpError(503, reason, reason="archive") from None
        except RecursionError:
            raise HttpError(400, "the request is nested too deeply; send less of it") from None
        except UNREADABLE as error:
            raise MessageNotUnderstood(str(error)) from None

    @contextmanager
    def logging_failure(self, what_failed: str) -> Iterator[None]:
        """Log a failure to store something. It does not change the answer."""
        try:
            yield
        except (ConspectusError, HttpError) as error:  # `HttpError` if a worker process has ended
            if isinstance(error, ArchiveError):
                self.health.note_failure()
            logger.warning("%s: %s", what_failed, error)
