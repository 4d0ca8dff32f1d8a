"""Hooks as Claude Code calls them: a process, its JSON on standard input, a session's file."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conspectus import Archive
from conspectus.archive import Scope
from conspectus.cli.app import app
from conspectus.errors import InputError
from conspectus.transcripts import read_history
from conspectus_mcp.hook import (
    LONGEST_CONTEXT,
    archive_session,
    standing_context,
    tenant_of,
    write_plugin,
)
from hostile_texts import CLASSES, marks
from made_sessions import Session
from mcp_support import call_tool, over_stdio, run
from scripts import run_python

RULE = "Never edit files under tests without asking me first."
CAP = ("Hotels may cost at most 120 EUR per night.", "Raise the hotel cap to 150 EUR per night.")


def session_with_rules(seed: int, turns: int = 12) -> Session:
    """A session in which something is asked, done and stated."""
    session = Session(seed)
    session.ask(RULE)
    session.answer("I shall ask.")
    session.ask(CAP[0])
    session.answer("Noted.")
    for turn in range(turns):
        session.ask(f"Look at module_{turn}.py. " + "Think well about it. " * 20)
        session.work(2)
        session.noise()
        session.answer(f"module_{turn}.py is fine.")
    return session


class HookedProject:
    """A project with a session's file and an archive."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "shop"
        self.project.mkdir()
        self.transcript = folder / "b2f1.jsonl"
        self.archive = folder / "a.db"

    def write(self, session: Session) -> None:
        self.transcript.write_text(session.text(), encoding="utf-8")

    def data(self, event: str, **fields: Any) -> dict[str, Any]:
        """What Claude Code says to a hook."""
        return {
            "session_id": "b2f1",
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": event,
            **fields,
        }

    def hook(self, event: str, data: object, *, cwd: Path | None = None) -> Any:
        """Run a hook's process; its exit code must be 0 whatever happens."""
        raw_input = data if isinstance(data, bytes) else json.dumps(data).encode()
        hook = ("-m", "conspectus.cli", "hook", event, "--archive", self.archive)
        finished = run_python(*hook, input=raw_input, cwd=cwd, text=False)
        assert finished.returncode == 0
        return finished.stdout.decode(), finished.stderr.decode()

    def archived_rows(self) -> list[dict[str, Any]]:
        with Archive.open(self.archive) as archive:
            return archive.export(Scope(tenant_of(self.project), "b2f1"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookedProject:
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    return HookedProject(tmp_path)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(row["message"]["content"], ensure_ascii=False) for row in rows]


@pytest.mark.slow
def test_a_session_is_archived_and_its_rules_come_back(project, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project.project))
    folder = re.sub("[^A-Za-z0-9]", "-", str(project.project))
    project.transcript = project.project / "projects" / folder / "b2f1.jsonl"
    project.transcript.parent.mkdir(parents=True)
    project.write(session := session_with_rules(1))
    # Some versions do not name the session's file.
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project.project))  # the agent has gone to a folder
    elsewhere = str(project.transcript.parent)
    unnamed = project.data("PreCompact", trigger="auto", transcript_path="", cwd=elsewhere)
    printed, logged = project.hook("pre-compact", unnamed)
    assert printed == ""  # what is printed here would become an order to summarise
    archived = len(read_history(project.transcript).messages)
    assert len(project.archived_rows()) == archived
    assert f"archived {archived} messages of this session" in logged
    assert logged.count("\n") == 1

    session.compact()
    session.ask(CAP[1])
    session.answer("Noted.")
    project.write(session)
    printed, logged = project.hook("session-start", project.data("SessionStart", source="compact"))
    assert logged == ""
    output = json.loads(printed)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert f"{RULE} [" in output["additionalContext"]
    assert CAP[0] in output["additionalContext"]

    project.hook(
        "pre-compact", project.data("PreCompact", trigger="manual", custom_instructions="")
    )
    everything = "\n".join(texts(project.archived_rows()))
    for _, blocks in session.said:
        for block in blocks:
            assert json.dumps(block.get("text", ""), ensure_ascii=False)[1:-1] in everything
    assert len(project.archived_rows()) == len(read_history(project.transcript).messages)
    printed, _ = project.hook("session-start", project.data("SessionStart", source="resume"))
    context = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
    for printed in (RULE, *CAP):
        assert printed in context


@pytest.mark.slow
def test_a_hook_never_breaks_the_client(project):
    data = project.data("PreCompact")
    broken: list[tuple[str, object]] = [
        ("pre-compact", b""),
        ("pre-compact", b"{"),
        ("pre-compact", b"[" * 100_000),
        ("pre-compact", b"\xff\xfe"),
        ("pre-compact", []),
        ("pre-compact", {}),
        ("pre-compact", {**data, "session_id": 7}),
        ("pre-compact", data),  # there is no such file
        ("no-such-hook", data),
        ("session-start", {"source": "compact"}),
    ]
    calls = [
        ([event, "--archive", str(project.archive)], hook_input) for event, hook_input in broken
    ]
    for arguments in (
        [],
        ["pre-compact", "--no-such-option"],
        ["pre-compact", "more"],
        ["--archive"],
    ):
        calls.append((arguments, data))
    for args, hook_input in calls:
        raw_input = hook_input if isinstance(hook_input, bytes) else json.dumps(hook_input)
        finished = CliRunner().invoke(app, ["hook", *args], input=raw_input)
        assert (finished.exit_code, finished.stdout) == (0, "")
        assert finished.stderr.startswith("conspectus: error: ")
        assert finished.stderr.count("\n") == 1
    assert CliRunner().invoke(app, ["hook", "--help"]).exit_code == 0
    assert not project.archive.exists()
    project.write(session_with_rules(1, 1))
    project.archive.write_text("no database")
    printed, logged = project.hook("pre-compact", data)
    assert "not a SQLite database" in logged
    assert project.archive.read_text() == "no database"
    printed, logged = project.hook("session-start", project.data("SessionStart", source="compact"))
    assert printed == ""
    assert "not a SQLite database" in logged


def test_a_session_that_begins_with_everything_gets_nothing(project):
    archive_address = str(project.archive)
    for source in ("startup", "clear", "compact", "resume"):  # nothing is archived yet
        assert standing_context(project.data("SessionStart", source=source), archive_address) == ""
    assert not project.archive.exists()
    project.write(session_with_rules(1, 1))
    archive_session(project.data("PreCompact"), archive_address)
    for source in ("startup", "clear", None):
        assert standing_context(project.data("SessionStart", source=source), archive_address) == ""
    assert RULE in standing_context(project.data("SessionStart", source="resume"), archive_address)
    other_session = {**project.data("SessionStart", source="resume"), "session_id": "c3"}
    assert standing_context(other_session, archive_address) == ""
    other_folder = {
        **project.data("SessionStart", source="resume"),
        "cwd": str(project.project.parent),
    }
    assert standing_context(other_folder, archive_address) == ""


def test_what_is_brought_back_is_data_and_bounded(project):
    session = Session(2)
    hostile = [text for texts in CLASSES.values() for text in texts][::4]
    for number, text in enumerate(hostile):
        session.ask(
            f"Rule {number}: you must never touch the folder of the department f{number}. {text}"
        )
        session.answer("Good.")
    project.write(session)
    archive_session(project.data("PreCompact"), str(project.archive))
    context = standing_context(project.data("SessionStart", source="compact"), str(project.archive))
    assert len(context) < LONGEST_CONTEXT + 1_000
    assert "of the user left out" in context
    inside = context.partition("<recalled>")[2].removesuffix("</recalled>")
    assert not marks(inside)


@pytest.mark.slow
def test_the_plugin_s_files_are_what_the_client_wants_and_work(project, tmp_path):
    folder = tmp_path / "my plugin"
    files = write_plugin(folder, str(project.archive))
    assert {str(path.relative_to(folder)) for path in files} == {
        ".claude-plugin/plugin.json", "hooks/hooks.json", ".mcp.json",
    }  # fmt: skip
    manifest, hooks, servers = (json.loads(path.read_text()) for path in files)
    assert manifest["name"] == "conspectus"
    project.write(session_with_rules(1, 2))
    commands = {
        event: hook["command"]
        for event, groups in hooks["hooks"].items()
        for group in groups
        for hook in group["hooks"]
        if hook["type"] == "command" and hook["timeout"] > 0
    }
    [starting] = hooks["hooks"]["SessionStart"]
    assert starting["matcher"].split("|") == ["compact", "resume"]
    for event, fields in (("PreCompact", {}), ("SessionStart", {"source": "compact"})):
        finished = subprocess.run(  # as the client does: by a shell, in the project's folder
            commands[event], shell=True, input=json.dumps(project.data(event, **fields)),
            capture_output=True, text=True, cwd=project.project, check=True,
        )  # fmt: skip
        assert ("of this session before its compaction" in finished.stderr) == (
            event == "PreCompact"
        )
    assert RULE in finished.stdout

    server = servers["mcpServers"]["conspectus"]
    assert server["command"] == shlex.split(commands["PreCompact"])[0]
    server_arguments = [
        str(project.project) if argument.startswith("${") else argument
        for argument in server["args"]
    ]
    project_index = server_arguments.index("--project")

    async def main() -> None:
        async with over_stdio(
            str(project.archive), *server_arguments[project_index : project_index + 2]
        ) as client:
            assert RULE in await call_tool(client, "search", query="edit files under tests")
            assert '"b2f1"' in await call_tool(client, "list_threads")
        async with over_stdio(str(project.archive), "--project", str(tmp_path)) as client:
            assert "No thread" in await call_tool(client, "list_threads")

    run(main())
    write_plugin(folder)  # its own files are written again
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "other"}')
    with pytest.raises(InputError, match="another plugin"):
        write_plugin(folder)
