"""Long computations: read new messages, archive, compact, search archived messages.

They run in this process or in a second one, so that small requests need not wait for the
interpreter. The second process has no data that could be lost: if it ends, another one continues.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from operator import is_
from typing import Any, Protocol

from conspectus.archive import Archive, Scope
from conspectus.bridge import StepTimeout, await_in_daemon, call_within, run
from conspectus.config import SummarizationConfig
from conspectus.core.items import Window
from conspectus.engine.branches import load_view
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import HistoryContext
from conspectus.engine.result import CompactionResult
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.messages import read_messages
from conspectus_serve.fingerprints import Fingerprint, fingerprints_of
from conspectus_serve.models import EngineKey, Models
from conspectus_serve.protocols import HttpError
from conspectus_serve.recall import search_originals
from conspectus_serve.settings import ServeSettings

logger = logging.getLogger("conspectus.serve")

WORKER_THREADS = 128
"""Threads for calls of archives, which may hang."""

NICENESS = 10
"""The second process gives way if processors are busy."""

LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"

OPENING_SECONDS = 30.0
"""The second process has this time to open the archive."""

ATTEMPTS_PER_CALL = 2
"""For one call, if the process ends meanwhile."""

UNREADABLE = (ConspectusError, ValueError, TypeError, KeyError, AttributeError)
"""Errors of messages that are not understood."""


@dataclass(frozen=True, slots=True)
class CompactedView:
    """The result of a compaction."""

    result: CompactionResult  # without its messages
    view: list[Any]  # new messages, and indexes of messages of the history
    head_id: str  # id of the record in force; empty for none


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What one compaction needs to know.

    Attributes:
        engine_key: the key of the engine.
        scope: the history's thread.
        room: the part of the window for the history; None if unknown.
        originals: the history with all originals.
        shortened: the history as its client has cleared it.
        is_forced: compact although it may fit.
        continues: the history continues the thread's compactions, wherever it begins.
    """

    engine_key: EngineKey
    scope: Scope
    room: Window | None
    originals: Sequence[Any]
    shortened: Sequence[Any]
    is_forced: bool
    continues: bool


class Work(Protocol):
    """The long computations, in whichever process."""

    def fingerprints(self, model: str, protocol: str, messages: Sequence[Any]) -> list[Fingerprint]:
        """Read the fingerprints of messages; see `fingerprints_of`."""

    def search(self, model: str, *args: Any) -> str:
        """Return the originals that a user's words need; see `search_originals`."""

    def archive_originals(
        self, engine_key: EngineKey, scope: Scope, history: Sequence[Any], indexes: Sequence[int]
    ) -> list[str]:
        """Archive messages of a history, without their secrets; return their keys.

        Raises:
            ConspectusError: a secret cannot be removed, or the archive did not confirm the
                originals.
        """

    async def compact(self, job: CompactionJob) -> CompactedView:
        """Put a thread's compactions in force, and compact a history that does not fit.

        The history as its client has cleared it is used if it fits; else the whole history. If that
        cannot be made to fit, the cleared one may still.
        """


class LocalWork:
    """Does the work in this process."""

    def __init__(self, archive: Archive, models: Models) -> None:
        self._archive = archive
        self._models = models

    def fingerprints(self, model: str, protocol: str, messages: Sequence[Any]) -> list[Fingerprint]:
        """Read the fingerprints of messages; see `fingerprints_of`."""
        return fingerprints_of(messages, protocol, self._models.meter(model))

    def search(self, model: str, *args: Any) -> str:
        """Return the originals that a user's words need; see `search_originals`."""
        return search_originals(self._archive, self._models.meter(model), *args)

    def archive_originals(
        self, engine_key: EngineKey, scope: Scope, history: Sequence[Any], indexes: Sequence[int]
    ) -> list[str]:
        """Archive messages of a history; see `Work.archive_originals`."""
        engine = self._models.engine(*engine_key)
        entries = read_messages(history, scope)
        originals = [entries[index] for index in indexes]
        if engine.redaction is not None:
            originals = run(engine.redaction.redact_together(originals)).parts
        run(HistoryContext(engine, scope).store.store_originals(originals))
        return [original.key for original in originals]

    async def compact(self, job: CompactionJob) -> CompactedView:
        """Compact a history that does not fit; see `Work.compact`."""
        engine = self._models.engine(*job.engine_key)
        context = HistoryContext(engine, job.scope, job.room, is_continuation=job.continues)
        histories = [job.originals]
        if not all(map(is_, job.originals, job.shortened)):
            histories = [job.originals, job.shortened]
            if not job.is_forced:
                view = await load_view(context, read_messages(job.shortened))
                if context.is_quiet(view.size, view.head):
                    histories = [job.shortened]
        for history in histories:
            result = await compact_messages(context, history, force=job.is_forced)
            exceeds_room = job.room is not None and result.tokens_after > job.room.budget
            if not exceeds_room and result.outcome != "stuck":
                break
        indexes = {id(message): index for index, message in enumerate(history)}
        view_by_index = [indexes.get(id(message), message) for message in result.messages]
        return CompactedView(replace(result, messages=[]), view_by_index, result.head_id)


@dataclass(frozen=True, slots=True, eq=False)
class _WorkerConnection:
    """The connection to a process, and the calls that it has not answered yet, by number."""

    connection: Connection
    unanswered: dict[int, Future[Any]] = field(default_factory=dict)


class WorkerProcess:
    """Does the work in another process, which gives way if processors are busy.

    Methods that are no coroutines are for worker threads. They raise `HttpError` if that process
    ends again and again.
    """

    def __init__(self, settings: ServeSettings, config: SummarizationConfig) -> None:
        self._settings = settings
        self._config = config
        self._call_numbers = count()
        self._lock = threading.Lock()
        self._link: _WorkerConnection | None = self._start()

    def fingerprints(self, model: str, protocol: str, messages: Sequence[Any]) -> list[Fingerprint]:
        """Read the fingerprints of messages; see `Work.fingerprints`."""
        found: list[Fingerprint] = self._call("fingerprints", model, protocol, messages)
        return found

    def search(self, model: str, *args: Any) -> str:
        """Return the originals that a user's words need; see `Work.search`."""
        return str(self._call("search", model, *args))

    def archive_originals(
        self, engine_key: EngineKey, scope: Scope, history: Sequence[Any], indexes: Sequence[int]
    ) -> list[str]:
        """Archive messages of a history; see `Work.archive_originals`."""
        keys: list[str] = self._call("archive_originals", engine_key, scope, history, indexes)
        return keys

    async def compact(self, job: CompactionJob) -> CompactedView:
        """Compact a history that does not fit; see `Work.compact`."""
        compacted: CompactedView = await await_in_daemon(partial(self._call, "compact", job))
        return compacted

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()

    def _start(self) -> _WorkerConnection:
        context = get_context("spawn")  # a fork would share threads and connections
        connection, their_connection = context.Pipe()
        args = (their_connection, self._settings, self._config)
        self._process = context.Process(target=_serve_calls, args=args, daemon=True)
        with _ignoring_interrupts():
            self._process.start()
        their_connection.close()
        link = _WorkerConnection(connection)
        threading.Thread(target=self._receive_answers, args=(link,), daemon=True).start()
        return link

    def _call(self, name: str, *args: Any) -> Any:
        number = next(self._call_numbers)
        message = pickle.dumps((number, name, args))  # it may fail, so the call is added later
        for _ in range(ATTEMPTS_PER_CALL):
            answer: Future[Any] = Future()
            with self._lock:
                link = self._link or self._start()
                self._link = link
                link.unanswered[number] = answer
                with suppress(OSError):  # the process has ended; the receiving thread notices that
                    link.connection.send_bytes(message)
            with suppress(EOFError):
                return answer.result()
            logger.warning("the process that summarises has ended, and is started again")
        reason = "the process that summarises has ended; send the request again"
        raise HttpError(503, reason, reason="summariser")

    def _receive_answers(self, link: _WorkerConnection) -> None:
        with suppress(Exception):  # at its end, or if the message is no answer
            while True:
                number, error, value = link.connection.recv()
                answer = link.unanswered.pop(number)
                if error is None:
                    answer.set_result(value)
                else:
                    answer.set_exception(error)
        with self._lock:
            if self._link is link:
                self._link = None
        for answer in link.unanswered.values():
            answer.set_exception(EOFError())


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach; it would end them while they load."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # its start would let interruptions through
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _serve_calls(
    connection: Connection, settings: ServeSettings, config: SummarizationConfig
) -> None:
    """Answer the calls of the first process, until that one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    logging.getLogger("conspectus").addFilter(_is_not_logged_yet)
    try:
        archive = call_within(partial(Archive.open, settings.archive_address), OPENING_SECONDS)
    except (ArchiveError, StepTimeout) as error:
        logger.error("the process that summarises cannot open the archive: %s", error)
        return
    work = LocalWork(archive, Models(settings, config, archive))
    executor = ThreadPoolExecutor(WORKER_THREADS)
    loop = asyncio.new_event_loop()
    loop.set_default_executor(executor)
    threading.Thread(target=_run_or_end_process, args=(loop.run_forever,), daemon=True).start()
    send_lock = threading.Lock()

    def send_answer(number: int, done: Future[Any]) -> None:
        with send_lock:
            try:
                connection.send((number, None, done.result()))
            except BaseException as error:  # an error of the call; or its answer cannot be sent
                connection.send((number, _sendable(error), None))

    def receive_calls() -> None:
        while True:
            number, name, args = connection.recv()
            method = getattr(work, name)
            if name == "compact":
                done = asyncio.run_coroutine_threadsafe(method(*args), loop)
            else:
                done = executor.submit(method, *args)
            done.add_done_callback(partial(send_answer, number))

    _run_or_end_process(receive_calls)


def _is_not_logged_yet(record: logging.LogRecord) -> bool:
    """Tell whether the first process, which reads all requests, has not logged it."""
    return getattr(record, "conspectus", {}).get("event") != "tokenizer_unknown"


def _run_or_end_process(work: Callable[[], None]) -> None:
    """Run work that never ends; if it does, end this process.

    The first process repeats unfinished calls.
    """
    try:
        work()
    finally:
        os._exit(0)


def _sendable(error: BaseException) -> Exception:
    """Return an error that can be sent to the first process.

    An internal error is logged without its text, which may have a user's words.
    """
    for error_type in (ArchiveError, RecursionError, *UNREADABLE):
        if isinstance(error, error_type):
            return error_type(str(error))
    logger.error("an error inside: %s", type(error).__name__)
    logger.debug("where", exc_info=error)
    return RuntimeError(type(error).__name__)
