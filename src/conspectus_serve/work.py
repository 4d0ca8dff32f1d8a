"""Do what computes for long: read new messages, archive, compact, search what is archived.

It is done in this process, or in a second one, so that small requests wait for no turn at the
interpreter. The second process has nothing that could be lost: if it ends, another one goes on.
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
from typing import Any

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
from conspectus_serve.protocols import Refusal
from conspectus_serve.recall import search_originals
from conspectus_serve.settings import ServeSettings

logger = logging.getLogger("conspectus.serve")

WORKER_THREADS = 128  # for calls of archives, which may hang
NICENESS = 10  # the second process gives way where processors are short
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"
OPENING_SECONDS = 30.0  # that the second process has to open the archive
ATTEMPTS = 2  # at one call, if the process ends meanwhile

UNREADABLE = (ConspectusError, ValueError, TypeError, KeyError, AttributeError)
"""Errors of messages that are not understood."""


@dataclass(frozen=True, slots=True)
class CompactedView:
    """What came of a compaction."""

    result: CompactionResult  # without its messages
    view: list[Any]  # new messages, and the indexes of those that stand in the history
    head: str  # id of the record in force; empty for none


class Work:
    """Do the work in this process."""

    def __init__(self, archive: Archive, models: Models) -> None:
        self._archive = archive
        self._models = models

    def fingerprints(self, model: str, protocol: str, messages: Sequence[Any]) -> list[Fingerprint]:
        """Read what messages are recognised by; see `fingerprints_of`."""
        return fingerprints_of(messages, protocol, self._models.meter(model))

    def search(self, model: str, *args: Any) -> str:
        """Return the originals that a user's words need; see `search_originals`."""
        return search_originals(self._archive, self._models.meter(model), *args)

    def archive_originals(
        self, engine_key: EngineKey, scope: Scope, history: Sequence[Any], indexes: Sequence[int]
    ) -> list[str]:
        """Archive messages of a history, without their secrets; return their keys.

        Raises:
            ConspectusError: a secret cannot be taken out, or the archive did not confirm them.
        """
        engine = self._models.engine(*engine_key)
        entries = read_messages(history, scope)
        originals = [entries[index] for index in indexes]
        if engine.redaction is not None:
            originals = run(engine.redaction.together(originals)).parts
        run(HistoryContext(engine, scope).store.store_originals(originals))
        return [original.key for original in originals]

    async def compact(
        self,
        engine_key: EngineKey,
        scope: Scope,
        room: Window | None,
        originals: Sequence[Any],
        shortened: Sequence[Any],
        is_forced: bool,
        continues: bool,
    ) -> CompactedView:
        """Put a thread's compactions in force, and compact what does not fit.

        The history is taken as its client has cleared it while that fits, else whole. What does not
        fit whole, although the rest leaves, may fit as it came.

        Args:
            engine_key: names the engine.
            scope: the history's thread.
            room: what the history may take of the window; None if unknown.
            originals: the history, whole.
            shortened: the same as its client has cleared it.
            is_forced: compact although it may fit.
            continues: the history goes on from the thread's compactions, wherever it begins.
        """
        engine = self._models.engine(*engine_key)
        context = HistoryContext(engine, scope, room, is_continuation=continues)
        histories = [originals]
        if not all(map(is_, originals, shortened)):
            histories = [originals, shortened]
            if not is_forced:
                view = await load_view(context, read_messages(shortened))
                if context.is_quiet(view.size, view.head):
                    histories = [shortened]
        for history in histories:
            result = await compact_messages(context, history, force=is_forced)
            exceeds_room = room is not None and result.tokens_after > room.budget
            if not exceeds_room and result.outcome != "stuck":
                break
        indexes = {id(message): index for index, message in enumerate(history)}
        view_by_index = [indexes.get(id(message), message) for message in result.messages]
        return CompactedView(replace(result, messages=[]), view_by_index, result.head)


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """The way to a process, and the calls that it has not answered yet, by number."""

    connection: Connection
    unanswered: dict[int, Future[Any]] = field(default_factory=dict)


class WorkerProcess(Work):
    """Do the work in another process, which gives way where processors are short.

    Methods that are no coroutines are for worker threads. Raises Refusal where that process ends
    again and again.
    """

    def __init__(self, settings: ServeSettings, config: SummarizationConfig) -> None:
        self._settings = settings
        self._config = config
        self._call_numbers = count()
        self._lock = threading.Lock()
        self._link: _Link | None = self._start()

    def fingerprints(self, *args: Any) -> Any:
        return self._call("fingerprints", *args)

    def search(self, *args: Any) -> Any:
        return self._call("search", *args)

    def archive_originals(self, *args: Any) -> Any:
        return self._call("archive_originals", *args)

    async def compact(self, *args: Any) -> Any:
        return await await_in_daemon(partial(self._call, "compact", *args))

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()

    def _start(self) -> _Link:
        context = get_context("spawn")  # a fork would have this one's threads and connections
        connection, their_connection = context.Pipe()
        args = (their_connection, self._settings, self._config)
        self._process = context.Process(target=_serve_calls, args=args, daemon=True)
        with _uninterrupted():
            self._process.start()
        their_connection.close()
        link = _Link(connection)
        threading.Thread(target=self._receive_answers, args=(link,), daemon=True).start()
        return link

    def _call(self, name: str, *args: Any) -> Any:
        number = next(self._call_numbers)
        message = pickle.dumps((number, name, args))  # if that fails, no answer is waited for
        for _ in range(ATTEMPTS):
            answer: Future[Any] = Future()
            with self._lock:
                link = self._link or self._start()
                self._link = link
                link.unanswered[number] = answer
                with suppress(OSError):  # it has ended, which the receiving thread notices
                    link.connection.send_bytes(message)
            with suppress(EOFError):
                return answer.result()
            logger.warning("the process that summarises has ended, and is started again")
        reason = "the process that summarises has ended; send the request again"
        raise Refusal(503, reason, reason="summariser")

    def _receive_answers(self, link: _Link) -> None:
        with suppress(Exception):  # at its end, or after what is no answer
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
def _uninterrupted() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: it would end them while they are loaded."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # whose start lets interruptions through again
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _serve_calls(
    connection: Connection, settings: ServeSettings, config: SummarizationConfig
) -> None:
    """Do what the first process asks for, until that one ends."""
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
    work = Work(archive, Models(settings, config, archive))
    executor = ThreadPoolExecutor(WORKER_THREADS)
    loop = asyncio.new_event_loop()
    loop.set_default_executor(executor)
    threading.Thread(target=_or_end_process, args=(loop.run_forever,), daemon=True).start()
    send_lock = threading.Lock()

    def send_answer(number: int, done: Future[Any]) -> None:
        with send_lock:
            try:
                connection.send((number, None, done.result()))
            except BaseException as error:  # of the call, or its answer cannot be sent
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

    _or_end_process(receive_calls)


def _is_not_logged_yet(record: logging.LogRecord) -> bool:
    """Return whether the first process has not logged it already, as it reads all requests."""
    return getattr(record, "conspectus", {}).get("event") != "tokenizer_unknown"


def _or_end_process(work: Callable[[], None]) -> None:
    """Do some work for good; where it ends, end this process.

    What is under way is done again by whoever asks for it.
    """
    try:
        work()
    finally:
        os._exit(0)


def _sendable(error: BaseException) -> Exception:
    """Return an error that can be sent to the first process.

    One inside the endpoint is logged, without its text, which may hold a user's words.
    """
    for error_type in (ArchiveError, RecursionError, *UNREADABLE):
        if isinstance(error, error_type):
            return error_type(str(error))
    logger.error("an error inside: %s", type(error).__name__)
    logger.debug("where", exc_info=error)
    return RuntimeError(type(error).__name__)
