"""Sandbox: tools for the files of the thread, and a shell where it is switched on."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.tools import BaseTool, tool

from lead_agent.files import Files
from lead_agent.settings import SandboxSettings
from lead_agent.shell import run_command
from lead_agent.thread_data import ThreadFolders, current_thread


class SandboxMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives the agent `read_file`, `write_file`, `list_files`, and `shell` if that is allowed.

    Args:
        folders: of the threads; a tool sees the one of the thread that it runs in.
        settings: whether there is a shell, and the limits.
    """

    def __init__(self, folders: ThreadFolders, settings: SandboxSettings) -> None:
        super().__init__()
        self.tools = tools_of(folders, settings)


def tools_of(folders: ThreadFolders, settings: SandboxSettings) -> list[BaseTool]:
    """The tools; what they refuse is an answer to the model, and no error of the run."""

    def files() -> Files:
        return Files(folders.of(current_thread()))

    @tool
    def read_file(path: str, start_line: int = 1) -> str:
        """Read a text file, such as workspace/notes.txt, from a line on."""
        lines = files().read(path).splitlines(keepends=True)
        text = "".join(lines[max(0, start_line - 1) :])
        if len(text) <= settings.output:
            return text or "[nothing there]"
        shown = text[: settings.output]
        after = max(1, start_line) + shown.count("\n")
        return f"{shown}\n[cut after {settings.output:,} characters; start_line={after} reads on]"

    @tool
    def write_file(path: str, content: str) -> str:
        """Write a text file below workspace/ or outputs/, in place of what was there."""
        return f"Wrote {files().write(path, content):,} bytes to {path}."

    @tool
    def list_files(path: str = ".") -> str:
        """List a folder, such as workspace."""
        text = "\n".join(files().listed(path)) or "[empty]"
        return text if len(text) <= settings.output else f"{text[: settings.output]}\n[cut]"

    @tool
    def shell(command: str) -> str:
        """Run a command in the thread's folder, where workspace, uploads and outputs are."""
        folder = folders.of(current_thread())
        return run_command(command, folder, seconds=settings.seconds, output=settings.output)

    found: list[BaseTool] = [read_file, write_file, list_files]
    if settings.shell:
        found.append(shell)
    for one in found:
        one.handle_tool_error = True
    return found
