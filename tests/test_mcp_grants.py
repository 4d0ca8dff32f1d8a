"""The file that says which token reads what."""

import hashlib
from pathlib import Path

import pytest

from conspectus.errors import InputError
from conspectus_mcp.grants import Grant, digest, read_grants

SECRET = "s3cret-token-of-ann-0001"


def written(folder: Path, text: str) -> Path:
    path = folder / "grants.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_token_a_variable_and_a_digest_name_a_client(tmp_path, monkeypatch):
    monkeypatch.setenv("BOBS_TOKEN", "token-of-bob-000001")
    eves = hashlib.sha256(b"token-of-eve-000001").hexdigest()
    granted = read_grants(
        written(
            tmp_path,
            f"""
clients:
  ann: {{token: {SECRET}, tenants: [ann, team]}}
  bob: {{token_env: BOBS_TOKEN, threads: {{team: [plans, 会话]}}}}
  eve: {{token_sha256: {eves}, tenants: [eve], threads: {{eve: [one], ann: []}}}}
""",
        )
    )
    assert granted == {
        digest(SECRET): Grant({"ann": None, "team": None}),
        digest("token-of-bob-000001"): Grant({"team": frozenset({"plans", "会话"})}),
        eves: Grant({"eve": None}),  # a whole tenant is more than one thread of it
    }


@pytest.mark.parametrize(
    ("text", "why"),
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
        ("clients: {ann: {token_env: NOT_SET_HERE, tenants: [a]}}", "NOT_SET_HERE"),
        (
            f"clients: {{a: &a {{token: {SECRET}, tenants: [a]}}, b: *a}}",
            "a token of its own",
        ),
    ],
)
def test_a_file_that_means_nothing_is_refused_and_shows_no_token(text, why, tmp_path):
    with pytest.raises(InputError, match=why) as failed:
        read_grants(written(tmp_path, text))
    assert "s3cret" not in str(failed.value)
