"""Whose requests are whose, what waits for what, and what an operator sees."""

import base64
import json
import logging
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from conspectus.archive import Archive
from conspectus.cli.app import app
from conspectus.config import SummarizationConfig
from conspectus.errors import ConfigError
from conspectus_serve import load_settings
from mcp_support import PROGRAM
from serve_support import (
    EVENTS,
    SECRET,
    UpstreamRequest,
    chat_reply,
    conspectus_header,
    error_reply,
    message_reply,
    post,
    proxied_upstream,
    talk,
)

TOKEN = "a-token-of-the-operator"
BODY = {"model": "m", "messages": talk()}


def jwt(**claims: Any) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256"}, claims))
    coded = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts]
    return f"Bearer {coded[0]}.{coded[1]}.c2ln"


def test_a_refreshed_token_is_the_same_person_on_loopback(tmp_path):
    items = {"model": "m", "input": talk()}
    with proxied_upstream(lambda request: chat_reply(), tmp_path, tenants=None) as (_, endpoint):
        first = post(endpoint, "/v1/chat/completions", BODY, authorization="Bearer a")
        again = post(endpoint, "/v1/chat/completions", BODY, authorization="Bearer b")
        compacted = post(endpoint, "/v1/responses/compact", items, authorization="Bearer a").json()
        next_request = {
            "model": "m",
            "input": [*compacted["output"], {"role": "user", "content": "Go on."}],
        }
        used = post(endpoint, "/v1/responses", next_request, authorization="Bearer b")
    assert conspectus_header(first, "thread") == conspectus_header(again, "thread")
    assert conspectus_header(first, "record") == conspectus_header(again, "record")
    assert used.status_code == 200
    with Archive.open(tmp_path / "a.db") as archive:
        assert conspectus_header(first, "thread") in archive.threads("local")


def test_a_header_or_claim_names_the_tenant(tmp_path):
    by_header = [{"x-user": who, "authorization": f"Bearer {n}"}
                 for n, who in enumerate(("ann", "ann", "bob"))]  # fmt: skip
    by_claim = [
        {"authorization": jwt(sub=who, exp=n)} for n, who in enumerate(("ann", "ann", "bob"))
    ]
    for setting, requests in (("header:x-user", by_header), ("claim:sub", by_claim)):
        folder = tmp_path / setting[:5]
        folder.mkdir()
        with proxied_upstream(lambda a: chat_reply(), folder, tenants=setting, token=TOKEN) as (
            _,
            endpoint,
        ):
            names = []
            for headers in requests:
                all_headers = {**headers, "x-conspectus-token": TOKEN}
                answer = post(endpoint, "/v1/chat/completions", BODY, **all_headers)
                names.append(conspectus_header(answer, "thread"))
        assert names[0] == names[1] != names[2]
        with Archive.open(folder / "a.db") as archive:
            assert names[2] in archive.threads("by-name:bob")
        listed = CliRunner().invoke(app, ["archive", "list", "--archive", str(folder / "a.db")])
        assert "by-name:ann, by-name:bob" in " ".join((listed.stdout + listed.stderr).split())


def test_a_small_request_never_waits_for_summaries(tmp_path, monkeypatch):
    waiting = threading.Semaphore(0)
    going = threading.Event()
    put = Archive.put

    def slow(self: Any, *args: Any, **options: Any) -> Any:
        waiting.release()
        going.wait(300)
        return put(self, *args, **options)

    monkeypatch.setattr(Archive, "put", slow)
    with (
        proxied_upstream(lambda request: chat_reply(), tmp_path) as (_, endpoint),
        ThreadPoolExecutor(20) as pool,
    ):
        jobs = [
            pool.submit(post, endpoint, "/v1/chat/completions", BODY, authorization=f"Bearer {n}")
            for n in range(20)
        ]
        try:
            assert waiting.acquire(timeout=300)  # the others wait for their turn
            begun = time.monotonic()
            small = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            assert post(endpoint, "/v1/chat/completions", small).status_code == 200
            assert time.monotonic() - begun < 5
        finally:
            going.set()
        assert all(conspectus_header(job.result(), "compacted") == "true" for job in jobs)


@pytest.mark.slow
def test_the_process_that_summarises_may_end_in_the_middle(tmp_path, monkeypatch, capfd):
    with (
        proxied_upstream(lambda request: chat_reply(), tmp_path, worker_process=True) as (
            _,
            endpoint,
        ),
        ThreadPoolExecutor() as pool,
    ):
        for tries, status in (2, 200), (1, 503):
            monkeypatch.setattr("conspectus_serve.work.ATTEMPTS_PER_CALL", tries)
            [process] = active_children()
            os.kill(process.pid, signal.SIGSTOP)
            job = pool.submit(post, endpoint, "/v1/messages", BODY, x_conspectus_thread=f"{tries}")
            time.sleep(0.5)
            process.kill()
            assert job.result().status_code == status
            assert conspectus_header(job.result(), "compacted") == (
                "true" if status == 200 else None
            )
        (tmp_path / "a.db").unlink()
        (tmp_path / "a.db").mkdir()  # which cannot be opened
        assert post(endpoint, "/v1/messages", BODY).status_code == 503
    assert not active_children()
    log = capfd.readouterr().err
    assert "cannot open the archive: " in log
    assert "Traceback" not in log
    assert "tokenizer" not in log  # this process has said so, to its own log
    (tmp_path / "a.db").rmdir()
    # A caller's function ends it; else it would live on without what answers.
    config = SummarizationConfig(enabled=True, trigger=[{"fraction": 0.8}], pin="sys:exit")
    with proxied_upstream(
        lambda request: chat_reply(), tmp_path, worker_process=True, config=config
    ) as (
        _,
        endpoint,
    ):
        assert post(endpoint, "/v1/messages", BODY).status_code == 503


@pytest.mark.slow
def test_an_interruption_while_the_other_process_is_loaded_shows_no_traceback(tmp_path):
    line = [*PROGRAM, "serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9"]
    heed_interrupts = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    with subprocess.Popen(
        [*line, "--archive", str(tmp_path / "a.db")],
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    ) as running:
        assert running.stderr is not None
        running.stderr.readline()
        time.sleep(0.3)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        log = running.stderr.read()
    assert b"Traceback" not in log
    assert running.returncode == 130


@pytest.mark.parametrize("ending", ["well", "refused"])
@pytest.mark.parametrize(
    ("path", "sign"),
    [
        ("/v1/chat/completions", b": waiting\n\n"),
        ("/v1/messages", b'event: ping\ndata: {"type": "ping"}\n\n'),
        ("/v1/responses", b": waiting\n\n"),
    ],
)
def test_a_client_that_waits_for_a_stream_gets_signs_of_life(
    tmp_path, monkeypatch, path, sign, ending
):
    put = Archive.put

    def slow(self: Any, *args: Any, **options: Any) -> Any:
        time.sleep(0.5)
        return put(self, *args, **options)

    monkeypatch.setattr(Archive, "put", slow)

    def answer(request: UpstreamRequest) -> Any:
        return (200, EVENTS, [b"data: all\n\n"]) if ending == "well" else error_reply("No.", 403)

    field = "input" if "responses" in path else "messages"
    body = {"model": "m", field: talk(), "stream": True}
    with proxied_upstream(answer, tmp_path, keep_alive=0.1) as (_, endpoint):
        response = post(endpoint, path, body)
    assert response.status_code == 200
    assert response.headers["content-type"] == EVENTS
    assert response.content.startswith(sign)
    behind_signs = response.content.replace(sign, b"")
    assert behind_signs == b"data: all\n\n" if ending == "well" else b"No." in behind_signs


URL = {"upstream": "http://h"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "'upstream' is missing; add 'upstream: ...' (the provider, such as"),
        ({**URL, "listne": "x"}, "did you mean 'listen'"),
        ({**URL, "window": "many"}, "line 2: serve.window: should be a whole number in digits"),
        ({**URL, "hosts": "me"}, "should be a valid list"),
        ({**URL, "recall": "maybe"}, "should be 'auto', 'on' or 'off'"),
        ({**URL, "token": "short"}, "should have at least 16 characters"),
        ({**URL, "tenants": "all"}, "write one, key, header:NAME or claim:NAME"),
        ({**URL, "tenants": "claim:sub"}, "set a token"),
        ({**URL, "listen": "0.0.0.0:80"}, "set a token"),
        ({"upstream": "ftp://h"}, "write an address such as"),
        ({**URL, "proxy": "socks5://127.0.0.1:9"}, "write a proxy's address such as http://"),
        ({**URL, "recall": False, "listen": "127.0.0.1:80"}, ""),
        ({**URL, "listen": "0.0.0.0:80", "token": "0123456789abcdef"}, ""),
    ],
)
def test_a_wrong_setting_is_told_in_plain_words(tmp_path, settings, problem):
    file = tmp_path / "serve.yaml"
    file.write_text(f"serve:\n  {json.dumps(settings)}")
    if not problem:
        assert load_settings(file)[0].recall in ("auto", "off")
        section = {"trigger": {"type": "messages", "value": 9}, "archive": "memory:"}
        both = {"serve": {**settings, "archive": None}, "summarization": section}
        file.write_text(json.dumps(both))
        assert load_settings(file)[0].archive == "memory:"
        return
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    assert problem in str(caught.value)
    for raw in ("Field required", "Value error", "Input should", "pydantic"):
        assert raw not in str(caught.value)


@pytest.mark.parametrize("section", [{}, {"model_name": "embedded"}, {"enabled": False}])
def test_a_section_switches_nothing_off_unless_it_says_so(tmp_path, section):
    file = tmp_path / "serve.yaml"
    off = "enabled" in section
    file.write_text(json.dumps({"serve": URL, "summarization": section}))
    config = load_settings(file)[1]
    assert (config.enabled, config.trigger) == (not off, [{"fraction": 0.85}])
    with proxied_upstream(lambda request: chat_reply(), tmp_path, config=config) as (_, endpoint):
        answer = post(endpoint, "/v1/messages", BODY)
        assert ("enabled is false" in str(conspectus_header(answer, "note"))) is off
        assert conspectus_header(answer, "compacted") == (None if off else "true")


def test_a_wrong_option_is_not_the_files_mistake(tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text("serve:\n  upstream: http://h\n  listen: 127.0.0.1:80\n  window: many")
    with pytest.raises(ConfigError) as caught:
        load_settings(file, {"listen": "here"})
    option, setting = caught.value.problems
    assert option.startswith("--listen: write host:port")
    assert "line 4: serve.window: " in setting


def test_containers_are_let_in_by_one_setting(tmp_path):
    headers = {"host": "host.docker.internal:8377"}
    for allowed, status in ((False, 421), (True, 200)):
        with proxied_upstream(lambda request: chat_reply(), tmp_path, containers=allowed) as (
            _,
            endpoint,
        ):
            small = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
            answer = post(endpoint, "/v1/chat/completions", small, **headers)
            assert answer.status_code == status
    settings = {"upstream": "http://h", "listen": "172.17.0.1:8377"}
    assert load_settings(given={**settings, "containers": True})[0].host == "172.17.0.1"
    for changes in ({}, {"containers": True, "listen": "0.0.0.0:8377"}):
        with pytest.raises(ConfigError, match="set a token"):
            load_settings(given={**settings, **changes})


def test_a_port_in_use_is_told_before_the_banner(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = ["serve", "--upstream", "http://h", "--listen", f"127.0.0.1:{port}"]
        ended = CliRunner().invoke(app, [*line, "--archive", str(tmp_path / "a.db")])
    assert ended.exit_code == 6
    assert "another program listens there" in ended.stderr
    assert "->" not in ended.stderr


UNKNOWN = "models not known before the first request; --window sets it"
FILE = """
serve: {windows: {"gpt-5*": 272000}}
models: [{name: own, use: "m:M", model: own, max_input_tokens: 32000}]
"""


@pytest.mark.parametrize(
    ("text", "options", "windows"),
    [
        ("", [], f"all {UNKNOWN}"),
        ("", ["--window", "8k"], "all models 8,000"),
        (FILE, [], f"own 32,000, gpt-5* 272,000, other {UNKNOWN}"),
        (FILE, ["--window", "8k"], "gpt-5* 272,000, other models 8,000"),
    ],
    ids=["unknown", "one", "by name", "by name and one"],
)
def test_the_banner_says_which_windows_are_known(
    tmp_path, monkeypatch, caplog, text, options, windows
):
    caplog.set_level(logging.INFO, "conspectus.serve")
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)  # else it would not end
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    (tmp_path / "serve.yaml").write_text(text)
    line = ["serve", "--upstream", "http://h", "--listen", "127.0.0.1:0", *options]
    line += ["--config", str(tmp_path / "serve.yaml"), "--archive", str(tmp_path / "a.db")]
    ended = CliRunner().invoke(app, line)
    assert ended.exit_code == 0, ended.stderr
    assert f"Windows in tokens: {windows}\n" in ended.stderr
    assert "/v1/ -> http://h/v1/\n" in ended.stderr


def test_a_request_is_always_one_line_of_the_log(tmp_path, caplog):
    caplog.set_level(logging.INFO, "conspectus.serve")
    evil = "gpt\nERROR all is lost" + "x" * 2_000_000
    with proxied_upstream(lambda request: chat_reply(), tmp_path) as (_, endpoint):
        post(endpoint, "/v1/chat/completions", BODY, user_agent="codex/1.2 (linux)")
        post(endpoint, "/v1/chat/completions", {**BODY, "model": evil})
    lines = [
        record.getMessage() for record in caplog.records if "status=200" in record.getMessage()
    ]
    assert "codex/1.2 /v1/chat/completions model=m " in lines[0]
    assert " compacted status=200 " in lines[0]
    assert int(lines[0].partition("tokens=")[2].split()[0]) > 20_000
    assert all(len(line) < 500 and "\n" not in line for line in lines)


def test_health_and_figures_are_there(tmp_path):
    with proxied_upstream(lambda request: chat_reply(), tmp_path) as (upstream, endpoint):
        thread = conspectus_header(post(endpoint, "/v1/chat/completions", BODY), "thread")
        assert httpx.get(endpoint.url + "/healthz").text == "ok\n"
        metrics = httpx.get(endpoint.url + "/metrics").text
        query = {"tenant": SECRET.tenant("k"), "thread": thread, "q": "module_3"}
        page = httpx.get(endpoint.url + "/conspectus/", params=query).text
        assert page.count("<details>") > 50
        assert "module_3 is fine" in page.partition('id="found"')[2].partition("</pre>")[0]
        for item_kind in 0, 1:
            with sqlite3.connect(tmp_path / "a.db") as database:
                database.execute(f"UPDATE item SET body = x'00' WHERE kind = {item_kind}")
            database.close()
            page = httpx.get(endpoint.url + "/conspectus/", params=query).text
            assert "restore the archive from a backup" in page.rpartition("<details>")[2]
    samples = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    counter = 'conspectus_serve_requests_total{kind="chat/completions",outcome="compacted"}'
    assert float(samples[counter]) == 1
    assert float(samples["conspectus_serve_compactions_total"]) == 1
    assert float(samples["conspectus_serve_tokens_in_total"]) > 20_000
    assert len(upstream.requests) == 1


def test_the_page_needs_this_machine_or_the_token(tmp_path):
    page = "/conspectus/"
    with proxied_upstream(lambda request: chat_reply(), tmp_path, token=TOKEN) as (_, endpoint):
        assert httpx.get(endpoint.url + page).status_code == 401
        assert httpx.get(endpoint.url + "/metrics").status_code == 401
        assert httpx.get(endpoint.url + page, auth=("", "wrong")).status_code == 401
        assert httpx.get(endpoint.url + page, auth=("", TOKEN)).status_code == 200
        by_proxy = {"x-forwarded-for": "203.0.113.9"}
        passed_on = httpx.get(endpoint.url + page, auth=("", TOKEN), headers=by_proxy)
        assert passed_on.status_code == 403  # who has the token may be another tenant
    with proxied_upstream(lambda request: chat_reply(), tmp_path) as (_, endpoint):
        assert httpx.get(endpoint.url + page, headers={"host": "evil.example"}).status_code == 421
        from_there = {"origin": "http://evil.example"}
        assert httpx.get(endpoint.url + page, headers=from_there).status_code == 403


@pytest.mark.slow
def test_a_person_sees_what_was_compacted_and_searches_the_archive(tmp_path):
    history = talk()
    history[4]["content"] += " The relay of Oslo answers on port 48213. <script>alert(1)</script>"
    with proxied_upstream(lambda request: chat_reply(), tmp_path, tenants=None) as (_, endpoint):
        post(endpoint, "/v1/chat/completions", {"model": "m", "messages": history})
        with browser(tmp_path / "profile") as driver:
            driver.get(endpoint.url + "/conspectus/")
            assert "Threads of local" in driver.page_source
            driver.find_element("css selector", "td a").click()
            assert "module_" in driver.find_element("id", "notes").text
            field = driver.find_element("name", "q")
            field.send_keys("port of the relay of Oslo")
            field.submit()
            assert "48213" in driver.find_element("id", "found").text
            errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
            assert [error for error in errors if "favicon" not in error["message"]] == []
    with Archive.open(tmp_path / "a.db") as archive:
        assert len(archive.threads("local")) == 1
    listed = CliRunner().invoke(app, ["archive", "list", "--archive", str(tmp_path / "a.db")])
    assert "t-" in listed.stdout


BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    'different conversation. Set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def thoughtful(calls: int) -> list[dict[str, Any]]:
    """A turn of many calls, each with a thought before it."""
    messages: list[dict[str, Any]] = [*talk(3)[:-1], {"role": "user", "content": "Do it."}]
    for n in range(calls):
        thought = {"type": "thinking", "thinking": "Hm. " * 30, "signature": f"s{n}"}
        use = {"type": "tool_use", "id": f"toolu_a1b2c3d4{n}", "name": "Read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "line; " * 100}
        messages.append({"role": "assistant", "content": [thought, use]})
        reminders = [{"type": "text", "text": "<system-reminder>Go on.</system-reminder>"}] * (
            n % 2
        )
        messages.append({"role": "user", "content": [result, *reminders]})
    return messages


@pytest.mark.parametrize(("knows_switch", "tries"), [(True, 2), (False, 3)])
def test_thoughts_behind_new_notes_are_dropped_as_the_provider_allows(
    tmp_path, knows_switch, tries
):
    def answer(request: UpstreamRequest) -> Any:
        thinking = request.body.get("thinking") or {}
        switched = "block_binding" in thinking and "thinking-binding" in request.headers.get(
            "anthropic-beta", ""
        )
        thoughts = b'"thinking":"Hm' in request.raw
        return (
            error_reply(BOUND) if thoughts and not (switched and knows_switch) else message_reply()
        )

    body = {"model": "m", "max_tokens": 9, "messages": thoughtful(30)}
    with proxied_upstream(answer, tmp_path, recall="off") as (upstream, endpoint):
        for _ in range(2):
            response = post(endpoint, "/v1/messages", body, anthropic_beta="one")
            assert (response.status_code, conspectus_header(response, "compacted")) == (200, "true")
        first = upstream.posts[0]
        last = upstream.posts[-1]
    assert b'"thinking":"Hm' in first.raw  # the newest turn's thoughts stay with their calls
    assert len(upstream.posts) == tries + 1
    if knows_switch:
        assert last.headers["anthropic-beta"].startswith("one,")
        assert b'"thinking":"Hm' in last.raw


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def browser_paths() -> tuple[str, str] | None:
    """The browser and its driver, if both are on this machine."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A browser with an empty profile; skips where there is none."""
    paths = browser_paths()
    if paths is None:
        pytest.skip("NO BROWSER IS INSTALLED; on Debian: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(paths[1]))
    try:
        yield driver
    finally:
        driver.quit()


if __name__ == "__main__":  # for scripts: whether there is a browser
    sys.exit(0 if browser_paths() else 1)
