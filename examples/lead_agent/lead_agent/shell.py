"""A shell command with limits of time and output. It is no security boundary: see README.md."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

PAUSE = 0.05
"""Seconds after which it is looked whether the command has ended without closing its output."""


def run_command(command: str, folder: Path, *, seconds: float, output: int) -> str:
    """What a command prints, and how it ended.

    It runs in the folder, with nothing of this process's environment but the search path. When it
    ends, and at each limit, everything in its process group is killed.

    Args:
        command: for `/bin/sh`.
        folder: where it begins.
        seconds: after which it is stopped.
        output: characters after which it is stopped; what was printed until then is kept.
    """
    if "\0" in command:
        return "[refused: a command cannot hold NUL]"
    path = os.environ.get("PATH", "/usr/bin:/bin")
    process = subprocess.Popen(
        ["/bin/sh", "-c", command.encode("utf-8", "replace")],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        data, why = _read(process, time.monotonic() + seconds, 4 * output)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
    text = data.decode("utf-8", "replace")
    if why == "time":
        return f"{text[:output]}\n[stopped after {seconds:g} seconds]"
    if why == "output" or len(text) > output:
        return f"{text[:output]}\n[cut after {output:,} characters]"
    return f"{text}\n[exit code {code}]"


def _read(process: subprocess.Popen[bytes], end: float, most: int) -> tuple[bytes, str]:
    """What is printed until the command ends, and which limit it met: time, output, or none."""
    found = bytearray()
    assert process.stdout is not None
    number = process.stdout.fileno()
    os.set_blocking(number, False)
    with selectors.DefaultSelector() as selector:
        selector.register(number, selectors.EVENT_READ)
        while len(found) <= most:
            left = end - time.monotonic()
            if left <= 0:
                return bytes(found), "time"
            ended = process.poll() is not None
            if selector.select(0 if ended else min(left, PAUSE)):
                chunk = os.read(number, 65_536)
                if not chunk:  # all its ends are closed, though it may still run
                    return bytes(found), _waited(process, end)
                found += chunk
            elif ended:
                return bytes(found), ""
    return bytes(found), "output"


def _waited(process: subprocess.Popen[bytes], end: float) -> str:
    try:
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "time"
    return ""
