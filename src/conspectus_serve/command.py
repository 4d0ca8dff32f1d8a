"""Run the endpoint until it is interrupted: `conspectus serve`."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

import typer
from typer import Option

from conspectus.cli.options import ArchiveOption, tokens
from conspectus.config.reading import read_section
from conspectus.errors import InputError, install_command

if TYPE_CHECKING:
    from conspectus.config.schema import SummarizationConfig
    from conspectus_serve.settings import ServeSettings

SWITCH_SECONDS = 0.0005
"""After this time a computing thread lets another one run. Python's own 0.005 seconds add up,
because a passing request changes threads several times."""

BACKLOG = 2_048
"""Connections that wait to be accepted."""

UNUSED_SECONDS = 75
"""An unused connection is kept for this time, which is longer than clients keep theirs."""

TOKEN_HELP = (
    "The secret that clients must send as x-conspectus-token, at least 16 characters. It is "
    "required if other machines can reach the address of --listen."
)
UPSTREAM_HELP = "The address of the provider, such as https://api.openai.com."
CONFIG_HELP = "A YAML file with sections `serve:` and `summarization:`."
LISTEN_HELP = "The address to listen on. Default: 127.0.0.1:8377."
SECRET_HELP = (
    "The file with the secret from which names of tenants are made. It is created if it is missing."
)
WINDOW_HELP = "The input limit, in tokens, of models that the file of --config does not name."
CANNOT_LISTEN = 6
"""Exit code if the port is taken, or the address is not one of this machine."""


def serve(
    upstream: Annotated[str | None, Option(metavar="URL", help=UPSTREAM_HELP)] = None,
    config: Annotated[Path | None, Option(metavar="FILE", help=CONFIG_HELP)] = None,
    listen: Annotated[str | None, Option(metavar="HOST:PORT", help=LISTEN_HELP)] = None,
    token: Annotated[str | None, Option(envvar="CONSPECTUS_SERVE_TOKEN", help=TOKEN_HELP)] = None,
    archive: ArchiveOption = None,
    secret_file: Annotated[Path | None, Option(metavar="FILE", help=SECRET_HELP)] = None,
    window: Annotated[int | None, tokens(WINDOW_HELP)] = None,
) -> None:
    """Compact the requests of any client on their way to a provider, so that they fit the window.

    In the client, change only the base URL. It may use OpenAI's chat completions or Responses, or
    Anthropic's messages. API keys are passed on to the provider, and are not stored.
    """
    options = {
        "upstream": upstream,
        "listen": listen,
        "token": token,
        "archive": archive,
        "secret_file": secret_file,
        "window": window,
    }
    try:
        import uvicorn

        from conspectus_serve import make_app
    except ImportError as error:
        need = f"the endpoint needs the extra `serve` ({error.name} is missing); install it with "
        reason = need + install_command("serve") if error.name else str(error)
        raise InputError(reason) from error
    from conspectus_serve.app import SWITCHED_OFF
    from conspectus_serve.http import Http
    from conspectus_serve.protocols import target_of
    from conspectus_serve.settings import load_settings
    from conspectus_serve.work import LOG_FORMAT

    settings, summarization = load_settings(config, options)
    with _open_port(settings.host, settings.port) as listening:
        app = make_app(settings, summarization, worker_process=True)
        logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
        logging.getLogger("conspectus.serve").setLevel(logging.INFO)
        host = settings.listen.rpartition(":")[0]
        port = listening.getsockname()[1]
        upstream_address = urljoin(settings.upstream, target_of(settings.upstream, "/v1/"))
        typer.echo(f"http://{host}:{port}/v1/ -> {upstream_address}", err=True)
        if summarization.enabled:
            windows = _windows_line(settings, summarization)
            typer.echo(f"Windows in tokens: {windows}", err=True)
        else:
            typer.echo(f"Note: {SWITCHED_OFF}", err=True)
        if not settings.token:
            typer.echo(f"What is compacted: http://{host}:{port}/conspectus/", err=True)
        uvicorn_config = uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            http=Http,
            ws="none",
            timeout_keep_alive=UNUSED_SECONDS,
        )
        # For a refused WebSocket, uvicorn would log that a library is missing.
        logging.getLogger("uvicorn.error").addFilter(
            lambda record: "WebSocket" not in record.getMessage()
        )
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()
        gc.freeze()  # loaded modules stay, so they need not be collected again
        uvicorn.Server(uvicorn_config).run(sockets=[listening])


def check_section(file: Path) -> tuple[SummarizationConfig, str]:
    """Check a file's section for `config check`; return its summarization, and a line on windows.

    Settings that are options of the command may be missing.

    Raises:
        ConfigError: the section is invalid.
    """
    from conspectus_serve.settings import SECTION, SHORTEST_TOKEN, load_settings

    section, _ = read_section(file, SECTION)
    keys = section.keys() if isinstance(section, dict) else set[str]()
    stand_ins = {"upstream": "http://upstream", "token": "-" * SHORTEST_TOKEN}
    missing = {key: value for key, value in stand_ins.items() if key not in keys}
    settings, config = load_settings(file, missing)
    return config, _windows_line(settings, config)


def _windows_line(settings: ServeSettings, config: SummarizationConfig) -> str:
    """Return a line with the windows that are set, and how to set the others."""
    from conspectus.config.building import declared_window

    windows: dict[str, int | None] = dict(settings.windows)
    default = settings.window or config.window
    if default is None:
        models = config.source.models
        declared = {name: declared_window(entry) for name, entry in models.items()}
        windows = declared | windows
    named = [f"{name} {window:,}" for name, window in windows.items() if window]
    default_text = (
        f"{default:,}" if default else "not known before the first request; --window sets it"
    )
    return ", ".join([*named, f"{'other' if named else 'all'} models {default_text}"])


def _open_port(host: str, port: int) -> socket.socket:
    """Open the port before anything is printed; exit with `CANNOT_LISTEN` if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # asyncio sets this only on sockets of its own. Without it, an answer waits 40 ms for an
        # ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        problem = f"cannot listen on {host}:{port} ({error})"
        remedy = "if another program listens there, end it; else choose another with --listen"
        typer.echo(f"conspectus: error: {problem}; {remedy}", err=True)
        raise typer.Exit(CANNOT_LISTEN) from None
