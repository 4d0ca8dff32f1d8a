"""Options, progress and Ctrl-C of the commands of docs/reliability.md.

A bad option ends a command with 2 and one sentence on stderr. Progress goes to stderr too, so that
a table can be sent to a file. Ctrl-C ends with 130.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

BAD_OPTION = 2
STOPPED = 130

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What stops a command: Ctrl-C, and those who limit its time."""

EVERY = 15.0
"""Seconds between two lines of progress."""

GRACE = 2.0
"""Seconds in which a command that is stopped may tidy up."""

CONNECT = 5
"""Seconds in which a database must answer."""

Named = TypeVar("Named")
Number = TypeVar("Number", int, float)


class Options(argparse.ArgumentParser):
    """Options of a command; an error is one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        self.exit(BAD_OPTION, f"{message}\n")

    def holding(
        self, option: str, text: str, things: Iterable[Named], name: Callable[[Named], str] = str
    ) -> list[Named]:
        """Choose the things whose names have a text in them; there must be one."""
        every = list(things)
        found = [one for one in every if text in name(one)]
        if not found:
            names = "; ".join(dict.fromkeys(name(one) for one in every))
            self.error(f"{option}: {text!r} is in no name; there are: {names}")
        return found

    def of_these(self, option: str, texts: Sequence[str], names: Sequence[str]) -> list[str]:
        """Read names, in one text or several, with semicolons between them."""
        wanted = [one.strip() for text in texts for one in text.split(";") if one.strip()]
        wrong = [one for one in wanted if one not in names]
        if wrong or not wanted:
            said = f"there is no {', '.join(map(repr, wrong))}" if wrong else "nothing is named"
            self.error(f"{option}: {said}; there are: {'; '.join(names)}")
        return wanted

    def reaches(self, address: str | None) -> None:
        """Check that a database answers at an address, where one is given."""
        if not address:
            return
        import psycopg

        try:
            psycopg.connect(address, connect_timeout=CONNECT).close()
        except psycopg.Error as error:
            why = " ".join(str(error).split()) or type(error).__name__
            self.error(
                f"no database answers at the address given with POSTGRES= or --postgres ({why}); "
                "give one such as postgresql://user@host/database, or leave it out"
            )


def at_least(
    least: Number, kind: type[Number] = int, *, above: bool = False
) -> Callable[[str], Number]:
    """Make a type for `add_argument`: a number of at least, or above, this one."""

    def read(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = None
        fits = number is not None and (number > least if above else number >= least)
        if number is None or not fits or number == float("inf"):
            what = "a whole number" if kind is int else "a number"
            which = f"above {least}" if above else f"of {least} or more"
            raise argparse.ArgumentTypeError(f"give {what} {which}, not {text!r}")
        return number

    return read


def whole(text: str) -> int:
    """Read any whole number, as a type for `add_argument`."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"give a whole number, not {text!r}") from None


class Progress:
    """Lines of progress on stderr, now and then.

    Args:
        name: of the work.
        total: number of steps.
        every: seconds between two lines; 0 for one each time.
    """

    def __init__(self, name: str, total: int, every: float = EVERY) -> None:
        self.name, self.total, self.every = name, total, every
        self.done = 0
        self.began = self.told = time.monotonic()

    def step(self, what: str = "", count: int = 1) -> None:
        """Count more steps as done."""
        self.done = min(self.done + count, self.total)
        now = time.monotonic()
        if now - self.told >= self.every:
            self.told = now
            tell(
                f"{self.name}: {self.done:,} of {self.total:,}, {now - self.began:.0f} s"
                + (f"; {what}" if what else "")
            )


def tell(sentence: str) -> None:
    """Say a sentence that is no figure, on stderr."""
    print(sentence, file=sys.stderr, flush=True)


class PartFailed(Exception):
    """A failed part of a command: one sentence, and the whole error."""

    def __init__(self, sentence: str, whole: str = "") -> None:
        super().__init__(sentence)
        self.whole = whole


def in_one_line(error: BaseException) -> str:
    """Write an error in one line, in the words of a traceback's end."""
    if isinstance(error, PartFailed):
        return str(error)
    return " ".join("".join(traceback.format_exception_only(error)).split())


def told(part: str, error: Exception, todo: str) -> None:
    """Say in a sentence that a part failed; its traceback goes to a file.

    Args:
        part: which.
        error: why.
        todo: advice.
    """
    whole = error.whole if isinstance(error, PartFailed) else ""
    with tempfile.NamedTemporaryFile(
        "w", prefix="conspectus_", suffix=".txt", delete=False
    ) as file:
        file.write(whole or "".join(traceback.format_exception(error)))
    tell(f"{part}: {in_one_line(error)}; {todo}; the whole error is in {file.name}.")


def stopped(what: str = "the table holds what was done until then") -> int:
    """Say that somebody stopped it; gives the exit code."""
    tell(f"Stopped; {what}.")
    return STOPPED


def ended(main: Callable[[], int], left: Callable[[], str] = lambda: "") -> NoReturn:
    """Run a command and end; Ctrl-C or SIGTERM ends its processes with it.

    Args:
        main: the command; gives the exit code.
        left: names remains where there was no time to tidy up.
    """

    def give_up() -> None:
        end_children()
        said = left()
        tell(f"Stopped{'; ' + said if said else ''}.")
        sys.stdout.flush()
        os._exit(STOPPED)

    def stop(number: int, frame: Any) -> NoReturn:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        timer = threading.Timer(GRACE, give_up)
        timer.daemon = True
        timer.start()
        raise KeyboardInterrupt

    for one in SIGNALS:
        signal.signal(one, stop)
    try:
        code = main()
    except KeyboardInterrupt:
        tell("Stopped before the end.")
        code = STOPPED
    end_children()
    sys.stdout.flush()
    if code == STOPPED:
        os._exit(code)
    sys.exit(code)


def end_children() -> None:
    """End the processes that a pool of this one has started."""
    for child in multiprocessing.active_children():
        child.terminate()


def _quietly(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Say no traceback for Ctrl-C before a command has begun."""
    if issubclass(kind, KeyboardInterrupt):
        tell("Stopped.")
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _quietly


def deaf() -> None:
    """Leave Ctrl-C to the process that started this one, and will end it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
