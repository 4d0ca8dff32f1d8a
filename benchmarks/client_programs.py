"""The clients of `serve_clients.py`: installing, starting, and pointing them."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from serve_process import free_port, process

LOOPS = Path(__file__).with_name("client_loops.py")
KEY = "sk-a-key-of-the-client"
GPT, CLAUDE = "gpt-5", "claude-sonnet-4-5"
SECONDS = 1_800
"""Of one command of a client, at most."""


class Unavailable(Exception):
    """A client that cannot be had or started: its command and last words."""


@dataclass(frozen=True)
class Place:
    """The place of a client's work.

    Attributes:
        url: of the endpoint, without `/v1`.
        folder: its working directory.
        home: its own, empty at first.
        questions: its user's words.
        log: file of its words.
    """

    url: str
    folder: Path
    home: Path
    questions: list[str]
    log: Path


@dataclass(frozen=True)
class Client:
    """A client.

    Attributes:
        name: as its makers write it.
        speaks: the protocol.
        model: that it asks for.
        window, piece: tokens of the model's window, and of what it reads at once.
        had: installs it where it is not there; gives its program and its version.
        session: goes through the session.
    """

    name: str
    speaks: str
    model: str
    window: int
    piece: int
    had: Callable[[Path], tuple[Path, str]]
    session: Callable[[Path, Place], None]

    @property
    def folder(self) -> str:
        """Name its folder in the cache."""
        return self.name.lower().replace("'", "").replace(" ", "-")


def cache() -> Path:
    """Give the folder in which clients are installed."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "conspectus" / "clients"


def ran(line: list[str], good: tuple[int, ...] = (0,), **more: object) -> str:
    """Run a command, and give its output.

    Args:
        line: the command.
        good: exit codes that are no error.
        more: for `subprocess.run`.

    Raises:
        Unavailable: it cannot be started, does not end, or ends with an error.
    """
    try:
        done = subprocess.run(
            line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more
        )  # type: ignore[call-overload]
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"`{' '.join(line)}`: {error}") from None
    if done.returncode not in good:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        said = " / ".join(last) or "no words"
        raise Unavailable(f"`{' '.join(line)}` ended with {done.returncode}: {said}")
    return str(done.stdout)


def spoken(place: Place, line: list[str], **env: str) -> None:
    """Run a command of a client in its place, with a clean environment.

    Raises:
        Unavailable: as for `ran`.
    """
    clean = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    given = {**clean, "HOME": str(place.home), "TMPDIR": str(place.home), **env}
    said = ran(line, cwd=place.folder, env=given, timeout=SECONDS)
    with place.log.open("a") as log:
        log.write(said)


# Packages of Python


def of_this_python(package: str) -> Callable[[Path], tuple[Path, str]]:
    """Find a package of the environment in which the benchmark runs."""
    return lambda folder: (Path(sys.executable), version(package))


def from_pypi(folder: Path, package: str) -> Path:
    """Install a package into an environment of its own."""
    if not (folder / ".ready").exists():
        ran([sys.executable, "-m", "venv", str(folder)])
        ran([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", package])
        (folder / ".ready").touch()
    return folder


def loop(name: str, model: str) -> Callable[[Path, Place], None]:
    """Make a session of one of the loops."""

    def session(program: Path, place: Place) -> None:
        line = [str(program), str(LOOPS), name, place.url, KEY, model, *place.questions]
        spoken(place, line)

    return session


# Codex


def codex_had(folder: Path) -> tuple[Path, str]:
    program = folder / "node_modules" / ".bin" / "codex"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        ran(["npm", "install", "--prefix", str(folder), "--silent", "@openai/codex"])
    return program, ran([str(program), "--version"]).split()[-1]


CODEX = """
model = "{model}"
model_provider = "conspectus"
model_context_window = 100000000
check_for_update_on_startup = false

[model_providers.conspectus]
name = "Conspectus"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"

[analytics]
enabled = false
"""


def codex_session(program: Path, place: Place) -> None:
    home = place.home / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(CODEX.format(model=GPT, url=place.url))
    free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    for number, question in enumerate(place.questions):
        again = ["resume", "--last"] if number else []
        spoken(place, [str(program), "exec", *again, *free, question], OPENAI_API_KEY=KEY)


# Claude Code


def claude_had(folder: Path) -> tuple[Path, str]:
    inside = from_pypi(folder, "claude-agent-sdk")
    found = list(inside.glob("lib/python*/site-packages/claude_agent_sdk/_bundled/claude"))
    if not found:
        raise Unavailable("the wheel of claude-agent-sdk for this platform brings no `claude`")
    return found[0], ran([str(found[0]), "--version"]).split()[0]


def claude_session(program: Path, place: Place) -> None:
    for number, question in enumerate(place.questions):
        again = ["--continue"] if number else []
        spoken(
            place,
            [str(program), *again, "--model", CLAUDE, "--allowedTools", "Read", "-p", question],
            ANTHROPIC_BASE_URL=place.url,
            ANTHROPIC_API_KEY=KEY,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )


# LiteLLM's proxy


def litellm_had(folder: Path) -> tuple[Path, str]:
    inside = from_pypi(folder, "litellm[proxy]")
    asked = "import importlib.metadata as m; print(m.version('litellm'))"
    return inside / "bin" / "litellm", ran([str(inside / "bin" / "python"), "-c", asked]).strip()


LITELLM = """
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: {url}/v1, api_key: {key}}}
general_settings: {{master_key: {master}}}
"""


@contextmanager
def litellm_proxy(program: Path, place: Place, master: str) -> Iterator[str]:
    """Start the proxy before the endpoint."""
    config = place.home / "litellm.yaml"
    config.write_text(LITELLM.format(model=GPT, url=place.url, key=KEY, master=master))
    port = free_port()
    line = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    known = {"HOME": str(place.home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    try:
        with process(line, port, known, place.log) as url:
            yield url
    except SystemExit as error:
        said = place.log.read_text().strip().splitlines()[-1:]
        raise Unavailable(f"`{' '.join(line)}`: {error}: {' '.join(said)}") from None


def litellm_session(program: Path, place: Place) -> None:
    master = f"sk-{secrets.token_hex(24)}"  # the proxy refuses to start with a weak one
    with litellm_proxy(program, place, master) as url:
        line = [sys.executable, str(LOOPS), "openai", url, master, GPT]
        spoken(place, [*line, *place.questions])


CLIENTS = (
    Client("openai", "Chat", GPT, 8_000, 600, of_this_python("openai"), loop("openai", GPT)),
    Client(
        "anthropic", "Messages", CLAUDE, 8_000, 600, of_this_python("anthropic"),
        loop("anthropic", CLAUDE),
    ),
    Client(
        "openai-agents", "Responses", GPT, 8_000, 600, of_this_python("openai-agents"),
        loop("openai-agents", GPT),
    ),
    Client("Codex", "Responses", GPT, 32_000, 2_000, codex_had, codex_session),
    Client("Claude Code", "Messages", CLAUDE, 100_000, 8_000, claude_had, claude_session),
    Client("LiteLLM's proxy", "Chat", GPT, 8_000, 600, litellm_had, litellm_session),
)  # fmt: skip
