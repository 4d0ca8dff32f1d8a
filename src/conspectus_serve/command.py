"""Run the endpoint until it is interrupted: `conspectus serve`."""

from __future__ import annotations

import errno
import logging
import os
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from conspectus.errors import InputError, install_command

CANNOT_LISTEN = 6
"""Exit status where the port is taken, or the address is not of this machine."""


def serve(
    upstream: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The provider, such as https://api.openai.com."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML with sections serve: and summarization:."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where to listen.", show_default="127.0.0.1:8377"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="CONSPECTUS_SERVE_TOKEN",
            help="What clients must send as x-conspectus-token; needed where others can reach it.",
        ),
    ] = None,
    tenants: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Whose a request is: one, key, header:NAME or claim:NAME.",
            show_default="one on loopback, else key",
        ),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(help="Where originals go: a file, sqlite:///FILE or postgresql://..."),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The secret that names tenants; made where missing."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="Input limit of models that the file does not name, in tokens."),
    ] = None,
    recall_tool: Annotated[
        bool | None,
        typer.Option(
            "--recall-tool/--no-recall-tool",
            help="Let models look up what has left their view while they answer.",
            show_default="off",
        ),
    ] = None,
    tenant_of: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="Print the tenant of the client's key in this environment variable, and end.",
        ),
    ] = None,
) -> None:
    """Keep the histories of any client inside its model's window, on their way to a provider.

    Clients need no change but the address: OpenAI's chat completions and Responses, Anthropic's
    messages. Keys go through and are kept nowhere.
    """
    try:
        import uvicorn

        from conspectus_serve.app import make_app
    except ModuleNotFoundError as error:
        raise InputError(
            f"the endpoint needs the extra `serve` ({error.name} is missing); install it with "
            f"{install_command('serve')}"
        ) from error
    from conspectus_serve.settings import load_settings
    from conspectus_serve.tenants import LOCAL, secret_beside

    given = {
        "upstream": upstream,
        "listen": listen,
        "token": token,
        "tenants": tenants,
        "archive": archive,
        "secret_file": secret_file,
        "window": window,
        "recall_tool": recall_tool,
    }
    settings, summarization = load_settings(config, given)
    if tenant_of is not None:
        key = os.environ.get(tenant_of)
        if not key:
            raise InputError(f"--tenant-of {tenant_of}: no such variable; export it with the key")
        one = settings.by == "one"
        named = LOCAL if one else secret_beside(settings.where, settings.secret_file).tenant(key)
        typer.echo(named)
        return
    with _listening(settings.host, settings.port) as listening:
        app = make_app(settings, summarization)
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("conspectus.serve").setLevel(logging.INFO)
        port = listening.getsockname()[1]
        address = f"http://{settings.listen.rpartition(':')[0]}:{port}"
        typer.echo(f"{address} -> {settings.upstream}", err=True)
        if not settings.token:
            typer.echo(f"What is compacted: {address}/conspectus/", err=True)
        _run(uvicorn, app, listening)


def _listening(host: str, port: int) -> socket.socket:
    """Open the port before anything is said.

    Raises:
        typer.Exit: it cannot be opened; with a status of its own.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        cure = "end that program, or choose another with --listen"
        if error.errno != errno.EADDRINUSE:
            cure = "choose another address with --listen"
        why = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror
        typer.echo(f"cannot listen on {host}:{port}: {why}; {cure}", err=True)
        raise typer.Exit(CANNOT_LISTEN) from None


def _run(uvicorn: Any, app: Any, listening: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=75,  # longer than clients keep an unused connection
    )
    uvicorn.Server(config).run(sockets=[listening])
