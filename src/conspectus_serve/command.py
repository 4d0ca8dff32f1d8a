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

SWITCH = 0.0005
"""Seconds after which a thread that computes lets another one go on; Python's own 0.005 add up, as
a request that passes changes threads several times."""

TOKEN = "What clients must send as x-conspectus-token; needed where others can reach it."
CANNOT_LISTEN = 6  # exit status where the port is taken, or the address is not of this machine


def serve(
    upstream: Annotated[
        str | None, Option(metavar="URL", help="The provider, such as https://api.openai.com.")
    ] = None,
    config: Annotated[
        Path | None, Option(metavar="FILE", help="YAML with sections serve: and summarization:.")
    ] = None,
    listen: Annotated[
        str | None,
        Option(metavar="HOST:PORT", help="Where to listen. Default: 127.0.0.1:8377."),
    ] = None,
    token: Annotated[str | None, Option(envvar="CONSPECTUS_SERVE_TOKEN", help=TOKEN)] = None,
    archive: ArchiveOption = None,
    secret_file: Annotated[
        Path | None, Option(metavar="FILE", help="The secret that names tenants; made if missing.")
    ] = None,
    window: Annotated[
        int | None, tokens("Input limit of models that the file does not name.")
    ] = None,
) -> None:
    """Keep the histories of any client inside its model's window, on their way to a provider.

    Clients need no change but the address: OpenAI's chat completions and Responses, Anthropic's
    messages. Keys go through and are kept nowhere.
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
        said = need + install_command("serve") if error.name else str(error)
        raise InputError(said) from error
    from conspectus_serve.app import SWITCHED_OFF
    from conspectus_serve.http import Http
    from conspectus_serve.protocols import target_of
    from conspectus_serve.settings import load_settings
    from conspectus_serve.work import LOG

    settings, summarization = load_settings(config, options)
    with _listening(settings.host, settings.port) as listening:
        app = make_app(settings, summarization, beside=True)
        logging.basicConfig(level=logging.WARNING, format=LOG)
        logging.getLogger("conspectus.serve").setLevel(logging.INFO)
        host, port = settings.listen.rpartition(":")[0], listening.getsockname()[1]
        theirs = urljoin(settings.upstream, target_of(settings.upstream, "/v1/"))
        typer.echo(f"http://{host}:{port}/v1/ -> {theirs}", err=True)
        windows = f"Windows in tokens: {_windows(settings, summarization)}"
        typer.echo(windows if summarization.enabled else f"Note: {SWITCHED_OFF}", err=True)
        if not settings.token:
            typer.echo(f"What is compacted: http://{host}:{port}/conspectus/", err=True)
        about = uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            http=Http,
            ws="none",
            timeout_keep_alive=75,  # longer than clients keep an unused connection
        )
        # Of a WebSocket that is refused uvicorn says that a library is missing.
        logging.getLogger("uvicorn.error").addFilter(
            lambda one: "WebSocket" not in one.getMessage()
        )
        sys.setswitchinterval(SWITCH)
        gc.collect()
        gc.freeze()  # what is loaded for good need not be looked through again and again
        uvicorn.Server(about).run(sockets=[listening])


def check_section(file: Path) -> tuple[SummarizationConfig, str]:
    """Check a file's section for `config check`; return by what it compacts, and its windows.

    What its options can add may be missing.
    """
    from conspectus_serve.settings import SECTION, SHORTEST_TOKEN, load_settings

    section, _ = read_section(file, SECTION)
    added = {"upstream": "http://upstream", "token": "-" * SHORTEST_TOKEN}
    there = section if isinstance(section, dict) else {}
    given = {key: one for key, one in added.items() if key not in there}
    settings, config = load_settings(file, given)
    return config, _windows(settings, config)


def _windows(settings: ServeSettings, config: SummarizationConfig) -> str:
    """Name the windows that are set, and say how to set the others."""
    from conspectus.config.building import declared_window

    limits = dict[str, int | None](settings.windows)
    if (others := settings.window or config.window) is None:
        declared = {name: declared_window(entry) for name, entry in config.source.models.items()}
        limits = declared | limits
    known = [f"{name} {limit:,}" for name, limit in limits.items() if limit]
    rest = f"{others:,}" if others else "not known before the first request; --window sets it"
    return ", ".join([*known, f"{'other' if known else 'all'} models {rest}"])


def _listening(host: str, port: int) -> socket.socket:
    """Open the port before anything is said, or end with a status of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2_048)
        # asyncio sets this only on sockets that it has made: an answer would wait 40 ms for an ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        cure = "if another program listens there, end it; else choose another with --listen"
        typer.echo(f"conspectus: error: cannot listen on {host}:{port} ({error}); {cure}", err=True)
        raise typer.Exit(CANNOT_LISTEN) from None
