"""Do what computes for long: read new messages, compact, search what is archived.

It is done in this process, or in one beside it, so that small requests wait for no turn at the
interpreter. The other process has nothing that could be lost: if it ends, another one goes on.
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
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from operator import is_
from typing import Any

from conspectus.archive import Archive, Scope
from conspectus.bridge import StepTimeout, await_in_daemon, call_within
from conspectus.config import SummarizationConfig
from conspectus.core.items import Window
from conspectus.engine.branches import load_view
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import HistoryContext
from conspectus.engine.result import CompactionResult
from conspectus.errors import ArchiveError, ConspectusError
from conspectus.messages import read_messages
from conspectus_serve.models import Models, Sizes
from conspectus_serve.protocols import Refusal
from conspectus_serve.recall import searched
from conspectus_serve.settings import ServeSettings
from conspectus_serve.trails import Mark, marks_of

logger = logging.getLogger("conspectus.serve")

THREADS = 128  # for calls of archives, which may hang
NICE = 10  # the other process gives way where processors are short
LOG = "%(asctime)s %(levelname)s %(message)s"
OPENING = 30.0  # seconds that the other process has to open the archive
TRIES = 2  # of one call, if the process ends meanwhile

UNREADABLE = (ConspectusError, ValueError, TypeError, KeyError, AttributeError)
"""Errors of messages that are not understood."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What came of a compaction."""

    result: CompactionResult  # without its messages
    view: list[Any]  # those, or the places that the caller's own have in the history
    head: str  # id of the record in force; empty for none


class Work:
    """Do the work in this process."""

    def __init__(self, archive: Archive, models: Models) -> None:
        self._archive, self._models = archive, models

    def marks(self, model: str, protocol: str, messages: Sequence[Any]) -> list[Mark]:
        """Read what messages are known by; see `marks_of`."""
        return marks_of(messages, protocol, self._models.meter(model))

    def search(self, model: str, *about: Any) -> str:
        """Return the originals that a user's words need; see `searched`."""
        return searched(self._archive, self._models.meter(model), *about)

    async def compact(
        self,
        sizes: Sizes,
        scope: Scope,
        room: Window | None,
        plain: Sequence[Any],
        short: Sequence[Any],
        now: bool,
        goes_on: bool,
    ) -> Compacted:
        """Put a thread's compactions in force, and compact what does not fit.

        `goes_on` says that the history goes on from them, wherever it begins.

        The history is taken as the client has cleared it, `short`, while that fits; else whole.
        What does not fit whole, although the rest leaves, may fit as it came.
        """
        engine = self._models.engine(*sizes)
        histories = [plain] if all(map(is_, plain, short)) else [plain, short]
        context = HistoryContext(engine, scope, room, goes_on=goes_on)
        if len(histories) > 1 and not now:
            view = await load_view(context, read_messages(short))
            histories = [short] if context.is_quiet(view.size, view.head) else histories
        for history in histories:
            result = await compact_messages(context, history, force=now)
            over = room is not None and result.tokens_after > room.budget
            if not (over or result.outcome == "stuck"):
                break
        places = {id(message): at for at, message in enumerate(history)}
        shown = [places.get(id(message), message) for message in result.messages]
        head = result.record_id or result.head
        return Compacted(replace(result, messages=[]), shown, head)


Link = tuple[Connection, dict[int, Future[Any]]]
"""The way to a process, and the calls that it has not answered yet."""


class Beside(Work):
    """Do the work in another process, which gives way where processors are short.

    Methods that are no coroutines are for worker threads. Raises Refusal where that process ends
    again and again.
    """

    def __init__(self, settings: ServeSettings, config: SummarizationConfig) -> None:
        self._given, self._numbers, self._lock = (settings, config), count(), threading.Lock()
        self._link: Link | None = self._started()

    def marks(self, *args: Any) -> Any:
        return self._answer("marks", *args)

    def search(self, *args: Any) -> Any:
        return self._answer("search", *args)

    async def compact(self, *args: Any) -> Any:
        return await await_in_daemon(partial(self._answer, "compact", *args))

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()

    def _started(self) -> Link:
        context = get_context("spawn")  # a fork would have this one's threads and connections
        ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *self._given), daemon=True)
        with _uninterrupted():
            self._process.start()
        theirs.close()
        link: Link = ours, {}
        threading.Thread(target=self._listen, args=(link,), daemon=True).start()
        return link

    def _answer(self, name: str, *args: Any) -> Any:
        number = next(self._numbers)
        asked = pickle.dumps((number, name, args))  # if that fails, no answer is waited for
        for _ in range(TRIES):
            answer = Future[Any]()
            with self._lock:
                self._link = connection, calls = self._link or self._started()
                calls[number] = answer
                with suppress(OSError):  # it has ended, which the other thread notices
                    connection.send_bytes(asked)
            with suppress(EOFError):
                return answer.result()
            logger.warning("the process that summarises has ended, and is started again")
        why = "the process that summarises has ended; send the request again"
        raise Refusal(503, why, reason="summariser")

    def _listen(self, link: Link) -> None:
        connection, calls = link
        with suppress(Exception):  # at its end, or after what is no answer
            while True:
                number, error, value = connection.recv()
                answer = calls.pop(number)
                if error is None:
                    answer.set_result(value)
                else:
                    answer.set_exception(error)
        with self._lock:
            self._link = None if self._link is link else self._link
        for answer in calls.values():
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


def _serve(connection: Connection, settings: ServeSettings, config: SummarizationConfig) -> None:
    """Do what the process before asks for, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that one ends this one
    getattr(os, "nice", int)(NICE)  # where there is such a thing
    logging.basicConfig(level=logging.WARNING, format=LOG)
    logging.getLogger("conspectus").addFilter(_is_news)
    try:
        archive = call_within(partial(Archive.open, settings.place), OPENING)
    except (ArchiveError, StepTimeout) as error:
        logger.error("the process that summarises cannot open the archive: %s", error)
        return
    work, threads = Work(archive, Models(settings, config, archive)), ThreadPoolExecutor(THREADS)
    loop, sending = asyncio.new_event_loop(), threading.Lock()
    loop.set_default_executor(threads)
    threading.Thread(target=_ending, args=(loop.run_forever,), daemon=True).start()

    def answer(number: int, done: Future[Any]) -> None:
        with sending:
            try:
                connection.send((number, None, done.result()))
            except BaseException as error:  # of the call, or its answer cannot be sent
                connection.send((number, _plain(error), None))

    def read() -> None:
        while True:
            number, name, args = connection.recv()
            call = getattr(work, name)
            if name == "compact":
                done = asyncio.run_coroutine_threadsafe(call(*args), loop)
            else:
                done = threads.submit(call, *args)
            done.add_done_callback(partial(answer, number))

    _ending(read)


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether the process before has not said it already, as it reads all requests."""
    return getattr(record, "conspectus", {}).get("event") != "tokenizer_unknown"


def _ending(work: Callable[[], None]) -> None:
    """End this process when some work ends; what is under way is done again by whoever asks."""
    try:
        work()
    finally:
        os._exit(0)


def _plain(error: BaseException) -> Exception:
    """Return an error that can be sent; one inside is logged, without its text, as in `app`."""
    for kind in (ArchiveError, RecursionError, *UNREADABLE):
        if isinstance(error, kind):
            return kind(str(error))
    logger.error("an error inside: %s", type(error).__name__)
    logger.debug("where", exc_info=error)
    return RuntimeError(type(error).__name__)
