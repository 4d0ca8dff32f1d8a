"""`conspectus mcp`: what a client finds in an archive, what it must not, and who may read."""

import asyncio
import hashlib
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conspectus.cli.app import app
from conspectus.errors import InputError
from conspectus_mcp.grants import digest, read_grants
from mcp_support import (
    FRAME,
    archive_texts,
    call_tool,
    connected,
    grant_file,
    http_server,
    in_process_client,
    over_http,
    over_stdio,
    run,
    tool_error,
)
from postgres_support import postgres_schema

TRANSPORTS = ("stdio", "http")
PORT = "The staging database listens on port 5433."


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """An archive with two threads of ann and one of bob."""
    path = str(tmp_path / "a.db")
    archive_texts(
        path, [PORT, "Never push to main.", *(f"Look at m_{n}.py." for n in range(20))], "t1"
    )
    archive_texts(path, ["The zebra is in the second thread."], "t2")
    archive_texts(path, ["The giraffe is bob's."], "t1", tenant="bob")
    return path


def rows_of(path: str) -> list[Any]:
    """All that a file holds, less the search index, which follows from the rest."""
    with sqlite3.connect(path) as db:
        listed = db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'")
        tables = [name for (name,) in listed]
        return sorted(
            repr(row) for table in tables for row in db.execute(f'SELECT * FROM "{table}"')
        )


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_searches_and_reads(transport, archive, tmp_path):
    rows_before = rows_of(archive)

    async def main() -> None:
        async with connected(transport, archive, tmp_path, {"ann": ["t1"]}) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == {"list_threads", "search", "read"}
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            assert all(tool.description for tool in tools)

            answer = await call_tool(client, "search", query="staging port", limit=1)
            assert answer == f"{FRAME}[u0 user] {PORT}\n</recalled>"
            assert f"[u0 user] {PORT}\n" in await call_tool(client, "search", query="staging port")
            assert (await call_tool(client, "search", query="xylophone")).startswith(
                "Nothing was found"
            )
            many = await call_tool(client, "search", query="look", limit=3)
            assert many.count("\n[") == 3

            assert await call_tool(client, "read", id="[u0]") == answer
            part = await call_tool(client, "read", id="u0", until="u1")
            assert [line.split()[0] for line in part.splitlines()[2:5]] == ["[u0", "[a0", "[u1"]

    run(main())
    assert rows_of(archive) == rows_before


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_sees_nothing_beyond_its_grant(transport, archive, tmp_path):
    async def main() -> None:
        async with connected(transport, archive, tmp_path, {"ann": None, "bob": None}) as client:
            handles = dict(
                re.findall(r'\[(\w{16})\] ("\w+" of \w+)', await call_tool(client, "list_threads"))
            )
            assert sorted(handles.values()) == ['"t1" of ann', '"t1" of bob', '"t2" of ann']
            assert "giraffe" in await call_tool(client, "search", query="giraffe")
            assert "several" in await tool_error(client, "read", id="u0")
            assert "several" in await tool_error(client, "read", id="u0", thread="t1")
        [not_granted] = [handle for handle, name in handles.items() if name == '"t2" of ann']
        [of_another_tenant] = [handle for handle, name in handles.items() if name == '"t1" of bob']
        async with connected(transport, archive, tmp_path, {"ann": ["t1"]}) as client:
            assert (await call_tool(client, "list_threads")).count("\n[") == 1
            assert "No more" in await call_tool(client, "list_threads", start=9)
            for word in ("zebra", "giraffe"):
                assert (await call_tool(client, "search", query=word)).startswith(
                    "Nothing was found"
                )
            errors = set()
            for name in (not_granted, of_another_tenant, "t2", "bob", "nothing"):
                error = await tool_error(client, "search", query="the", thread=name)
                errors.add(error.replace(name, "X"))
                assert "no thread" in await tool_error(client, "read", id="u0", thread=name)
            assert len(errors) == 1  # what there is elsewhere is told by no error
            assert "no archived message" in await tool_error(
                client, "read", id="u0", session="other"
            )

    run(main())


@pytest.mark.slow
def test_over_http_a_token_says_what_is_seen(archive, tmp_path):
    import httpx2

    tokens = {"ann": "a" * 20, "bob": "b" * 20}
    grants = grant_file(tmp_path, {name: (token, {name: None}) for name, token in tokens.items()})

    async def search_with(url: str, token: str) -> str:
        async with over_http(url, token) as client:
            answers = [await call_tool(client, "search", query="zebra giraffe") for _ in range(5)]
            assert len(set(answers)) == 1
            return answers[0]

    async def main(url: str) -> None:
        anns, bobs = await asyncio.gather(*(search_with(url, token) for token in tokens.values()))
        assert "zebra" in anns
        assert "giraffe" not in anns
        assert "giraffe" in bobs
        assert "zebra" not in bobs
        ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=headers) as http:
            for sent in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}):
                assert (await http.post(url, json=ping, headers=sent)).status_code == 401
            right = {"Authorization": f"Bearer {tokens['ann']}"}
            elsewhere = {**right, "Host": "evil.example"}
            assert (await http.post(url, json=ping, headers=elsewhere)).status_code == 421
            page = {**right, "Origin": "https://evil.example"}
            assert (await http.post(url, json=ping, headers=page)).status_code == 403

    with http_server(archive, grants) as url:
        run(main(url))


@pytest.mark.slow
def test_a_missing_archive_is_reported_and_not_made(tmp_path):
    path = tmp_path / "later.db"

    async def main() -> None:
        async with over_stdio(str(path), "--tenant", "ann") as client:
            for name, arguments in (("search", {"query": "x"}), ("read", {"id": "u0"})):
                assert "no archive at" in await tool_error(client, name, **arguments)
            assert not path.exists()
            archive_texts(str(path), [PORT], "t1")
            assert PORT in await call_tool(client, "search", query="staging")

    run(main())


def test_a_damaged_thread_is_told_beside_what_is_found(archive):
    with sqlite3.connect(archive) as database:
        scope = "(SELECT scope FROM item WHERE kind = 1 LIMIT 1)"
        database.execute(f"UPDATE item SET body = x'00' WHERE kind = 1 AND scope = {scope}")
    database.close()

    async def main() -> None:
        async with in_process_client(archive, {"ann": None}) as client:
            listed = await call_tool(client, "list_threads")
            damaged = re.findall(r'\[(\w{16})\] "t1"', listed)[0]
            for thread in ("", damaged):
                answer = await call_tool(client, "search", query="the", thread=thread)
                assert "missing or damaged" in answer
                assert ("zebra" in answer) == (not thread)
            assert "missing or damaged" in await tool_error(client, "read", id="u0", thread=damaged)

    run(main())


def test_it_reads_postgresql():
    with postgres_schema() as address:
        archive_texts(address, [PORT], "t1")

        async def main() -> None:
            async with in_process_client(address, {"ann": None}) as client:
                assert PORT in await call_tool(client, "search", query="staging")

        run(main())


WRONG = {
    "nothing is granted": [],
    "--thread goes with one --tenant": ["--tenant", "a", "--tenant", "b", "--thread", "t"],
    "go together and alone": ["--tenant", "a", "--grants", "x"],
    "on stdio give --tenant": ["--http", "127.0.0.1:0"],
    "which token reads what": ["--http", "127.0.0.1:0", "--tenant", "a", "--grants", "x"],
    "cannot be read": ["--http", "127.0.0.1:0", "--grants", "nowhere.yaml"],
    "malformed": ["--tenant", "a", "--archive", "postgresql://a:se@cret@host/x"],
}


@pytest.mark.parametrize("problem", WRONG)
def test_options_that_mean_nothing_are_refused_before_anything_is_served(problem):
    finished = CliRunner().invoke(app, ["mcp", *WRONG[problem]])
    assert finished.exit_code == 2
    assert problem in finished.stderr
    assert "cret" not in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert finished.stdout == ""


SECRET = "s3cret-token-of-ann-0001"


def grants_written(folder: Path, text: str) -> Path:
    path = folder / "grants.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_token_a_variable_and_a_digest_name_a_client(tmp_path, monkeypatch):
    monkeypatch.setenv("BOBS_TOKEN", "token-of-bob-000001")
    eves = hashlib.sha256(b"token-of-eve-000001").hexdigest()
    text = f"""
clients:
  ann: {{token: {SECRET}, tenants: [ann, team]}}
  bob: {{token: $BOBS_TOKEN, threads: {{team: [plans, 会话]}}}}
  eve: {{token_sha256: {eves}, tenants: [eve], threads: {{eve: [one], ann: []}}}}
"""
    assert read_grants(grants_written(tmp_path, text)) == {
        digest(SECRET): {"ann": None, "team": None},
        digest("token-of-bob-000001"): {"team": frozenset({"plans", "会话"})},
        eves: {"eve": None},  # a whole tenant is more than one thread of it
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: name clients"),
        ("clients: {}", "line 1: name clients"),
        ("clients: [", "line 1: YAML cannot read"),
        ("client: {}", "name clients"),
        ("clients: {ann: {tenants: [ann]}}", "clients.ann: .*one of token"),
        (f"clients: {{ann: {{token: {SECRET}}}}}", "grants nothing"),
        (f"clients: {{ann: {{token: {SECRET}, threads: {{a: []}}}}}}", "grants nothing"),
        (f"clients: {{ann: {{token: {SECRET}, tenant: [a]}}}}", "clients.ann.tenant"),
        (f"clients: {{ann: {{token: {SECRET}, tenants: ann}}}}", "clients.ann.tenants"),
        (f"clients: {{ann: {{token: {SECRET}, tenants: [7]}}}}", "clients.ann.tenants.0"),
        ("clients: {ann: {token: s3cret, tenants: [a]}}", "clients.ann.token: .*at least 16"),
        ("clients: {ann: {token_sha256: s3cret, tenants: [a]}}", "clients.ann.token_sha256"),
        (f"clients: {{ann: {SECRET}}}", "clients.ann: should be a mapping"),
        (f"clients: [{SECRET}]", "should be a mapping"),
        (f"clients: {{ann: {{token: [{SECRET}], tenants: [a]}}}}", "clients.ann.token"),
        ("clients: {ann: {token: $NOT_SET_HERE, tenants: [a]}}", "NOT_SET_HERE"),
        (f"clients: {{a: &a {{token: {SECRET}, tenants: [a]}}, b: *a}}", "a token of its own"),
    ],
)
def test_a_file_that_means_nothing_is_refused_and_shows_no_token(text, problem, tmp_path):
    with pytest.raises(InputError, match=problem) as failed:
        read_grants(grants_written(tmp_path, text))
    assert "s3cret" not in str(failed.value)
