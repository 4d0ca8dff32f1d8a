"""The archive takes no more: what clients, probes and figures are told, and how it comes back."""

import logging
import re
import resource
import shutil
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from conspectus.archive import Archive
from postgres_support import postgres_schema
from serve_support import (
    Serving,
    chat_reply,
    conspectus_header,
    error_reply,
    post,
    proxied_upstream,
    serving,
    talk,
)

PATH = "/v1/chat/completions"


def long_request(tag: str) -> dict[str, Any]:
    """A request that must be compacted, of a conversation of its own."""
    history = talk()
    return {"model": "m", "messages": [{"role": "user", "content": f"This is {tag}."}, *history]}


def status(endpoint: Serving, path: str) -> int:
    return httpx.get(endpoint.url + path, timeout=60).status_code


def figures(endpoint: Serving) -> dict[str, float]:
    text = httpx.get(endpoint.url + "/metrics", timeout=60).text
    rows = re.findall(r"^conspectus_serve_(\S+) (\S+)$", text, re.MULTILINE)
    return {name: float(number) for name, number in rows}


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """No file of this process grows: SQLite can write no more than where a disk is full."""
    limit_before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    largest = max(file.stat().st_size for file in folder.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limit_before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit_before)
        signal.signal(signal.SIGXFSZ, handler)


@contextmanager
def no_folder(folder: Path) -> Iterator[None]:
    shutil.rmtree(folder)
    yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    writer = sqlite3.connect(folder / "a.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        writer.close()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """As on a file system that was mounted anew, to be read: each statement that writes fails."""
    execute = sqlite3.Connection.execute

    class ReadOnly(sqlite3.Connection):
        def execute(self, sql: str, *args: Any) -> Any:
            if sql.startswith("BEGIN"):
                raise sqlite3.OperationalError("attempt to write a readonly database")
            return execute(self, sql, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conspectus.archive.sqlite._Connection.execute", ReadOnly.execute)
        yield


FAULTS = {"full": full_disk, "gone": no_folder, "locked": locked, "read-only": read_only}


@pytest.mark.parametrize("fault", FAULTS)
def test_health_is_not_ok_while_the_archive_takes_nothing(tmp_path, monkeypatch, fault):
    monkeypatch.setattr("conspectus.archive.sqlite.BUSY_SECONDS", 0.2)
    monkeypatch.setattr("conspectus_serve.health.PROBES_APART", 0.0)
    folder = tmp_path / "archive"
    folder.mkdir()
    with proxied_upstream(lambda asked: chat_reply(), folder) as (upstream, endpoint):
        first = post(endpoint, PATH, long_request("the first"))
        assert (first.status_code, conspectus_header(first, "compacted")) == (200, "true")
        assert (status(endpoint, "/healthz"), status(endpoint, "/readyz")) == (200, 200)
        with FAULTS[fault](folder):
            assert status(endpoint, "/readyz") == 503
            statuses = [
                post(endpoint, PATH, long_request(f"number {n}")).status_code for n in range(3)
            ]
            health = status(endpoint, "/healthz")
            metrics = figures(endpoint)
        assert statuses == [503] * 3
        assert health == 503
        assert metrics['failures_total{reason="archive"}'] == 3
        assert metrics["archive_up"] == 0
        assert metrics["archive_failures"] >= 3
        # What did not reach the provider was not sent.
        assert len(upstream.posts) == 1
        assert metrics["tokens_sent_total"] == int(conspectus_header(first, "tokens-after") or 0)
        if fault != "gone":  # then the program must be started again
            assert (status(endpoint, "/healthz"), status(endpoint, "/readyz")) == (200, 200)
            second = post(endpoint, PATH, long_request("number 0"))
            assert (second.status_code, conspectus_header(second, "compacted")) == (200, "true")
            assert figures(endpoint)["archive_up"] == 1


def test_a_compaction_that_is_kept_makes_health_ok_again(tmp_path, monkeypatch):
    monkeypatch.setattr("conspectus_serve.health.PROBES_APART", 600.0)
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (_, endpoint):
        post(endpoint, PATH, long_request("the first"))
        with full_disk(tmp_path):
            assert post(endpoint, PATH, long_request("another")).status_code == 503
            assert status(endpoint, "/healthz") == 503
        assert post(endpoint, PATH, long_request("another")).status_code == 200
        assert status(endpoint, "/healthz") == 200


def test_a_readiness_probe_leaves_nothing_behind(tmp_path):
    with proxied_upstream(lambda asked: chat_reply(), tmp_path) as (_, endpoint):
        assert status(endpoint, "/readyz") == 200
    with sqlite3.connect(tmp_path / "a.db") as database:
        assert database.execute("SELECT count(*) FROM item").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM scope").fetchone() == (0,)
    database.close()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_that_is_read_only_or_down_is_not_ready(monkeypatch):
    monkeypatch.setattr("conspectus_serve.health.PROBES_APART", 0.0)
    with postgres_schema() as address, Archive.open(address):
        options = "%20-cdefault_transaction_read_only%3Don"
        upstream = "http://127.0.0.1:9"
        with serving(upstream, address + options, secret_file="unused") as endpoint:
            assert status(endpoint, "/healthz") == 200
            assert status(endpoint, "/readyz") == 503
            assert post(endpoint, PATH, long_request("one")).status_code == 503
            assert status(endpoint, "/healthz") == 503
        with serving(upstream, address, secret_file="unused") as endpoint:
            assert status(endpoint, "/readyz") == 200


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_left_during_a_summary_is_logged_as_left(
    tmp_path, monkeypatch, caplog, stream
):
    caplog.set_level(logging.INFO, "conspectus.serve")
    has_begun = threading.Event()
    may_go_on = threading.Event()
    put = Archive.put

    def slow(self: Any, *args: Any, **options: Any) -> Any:
        has_begun.set()
        may_go_on.wait(60)
        return put(self, *args, **options)

    monkeypatch.setattr(Archive, "put", slow)
    body = httpx.Request("POST", "http://h", json={**long_request("one"), "stream": stream}).content
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with proxied_upstream(lambda asked: chat_reply(), tmp_path, keep_alive=0.1) as (
        upstream,
        endpoint,
    ):
        with socket.create_connection(("127.0.0.1", urlsplit(endpoint.url).port or 0)) as line:
            line.sendall(head % (PATH.encode(), len(body)) + body)
            assert has_begun.wait(60)
            assert not stream or b": waiting" in line.recv(10_000) + line.recv(10_000)
        deadline = time.monotonic() + 60
        while " left " not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
        may_go_on.set()
        metrics = figures(endpoint)
        [line_of_log] = [text for text in caplog.messages if PATH in text]
    assert f" thread={line_of_log.partition('thread=')[2].split()[0]} " in line_of_log
    assert " sent=0 left reason=client_left " in line_of_log
    assert metrics['failures_total{reason="client_left"}'] == 1
    assert metrics['requests_total{kind="chat/completions",outcome="left"}'] == 1
    assert metrics["tokens_sent_total"] == 0
    assert upstream.posts == []


def test_failures_are_counted_by_reason(tmp_path):
    with proxied_upstream(lambda asked: error_reply("no", 403), tmp_path) as (_, endpoint):
        post(endpoint, PATH, b"no json")
        post(endpoint, PATH, {"model": "m", "messages": talk(1)})
        post(endpoint, PATH, {"model": "m", "messages": talk(1)}, origin="file://")
        post(endpoint, PATH, {"model": "m", "messages": talk(), "tools": [{"n": "x " * 9_000}]})
        metrics = figures(endpoint)
    reasons = ("request", "upstream_status", "entrance", "too_long")
    assert [metrics[f'failures_total{{reason="{reason}"}}'] for reason in reasons] == [1, 1, 1, 1]
    with serving("http://127.0.0.1:9", tmp_path / "b.db") as endpoint:
        post(endpoint, PATH, {"model": "m", "messages": talk(1)})
        assert figures(endpoint)['failures_total{reason="upstream"}'] == 1
