"""Serve an archive to clients of the Model Context Protocol: `conspectus mcp`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli import options
from conspectus.cli.options import ArchiveOption
from conspectus.errors import InputError, install_command
from conspectus_mcp.grants import Client, Grant, read_grants

if TYPE_CHECKING:
    from conspectus_mcp.opening import Opening

PATH = "/mcp"
"""Path of the server over HTTP."""


def mcp(
    archive: ArchiveOption = None,
    tenant: Annotated[
        list[str] | None,
        typer.Option(help="The client may read all threads of this tenant. Repeat for several."),
    ] = None,
    thread: Annotated[
        list[str] | None,
        typer.Option(help="The client may read this thread, of --tenant or `local`. Repeat it."),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(help="The client may read the sessions of this folder that hooks archived."),
    ] = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve streamable HTTP. Default: stdio.")
    ] = None,
    grants: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For --http: which token reads what (YAML).")
    ] = None,
    plugin: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a plugin for Claude Code here, and end."),
    ] = None,
) -> None:
    """Let any agent search and read an archive, over the Model Context Protocol. It only reads.

    On stdio the options say what the client may read; nothing is granted without them. Over HTTP
    each client brings a token, and the file of --grants says what it may read.
    """
    if plugin is not None:
        from conspectus_mcp.plugin import write_plugin

        for path in write_plugin(plugin, archive):
            typer.echo(str(path))
        return
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the server needs the extra `mcp`; install it with {install_command('mcp')}"
        ) from error
    from conspectus_mcp.opening import Opening

    tenants = list(tenant or ())
    if project is not None:
        from conspectus_mcp.hook import tenant_of

        tenants.append(tenant_of(project))
    if http is None:
        if grants is not None:
            raise InputError("--grants goes with --http; on stdio give --tenant or --thread")
        grant = Grant.of(tenants, thread or ())
        opening = Opening(options.archive_of(archive))
        from conspectus_mcp.server import build_server

        try:
            build_server(opening, grant=grant).run("stdio")
        finally:
            opening.close()
        return
    if tenants or thread:
        raise InputError("over HTTP a token says what a client reads; give --grants FILE alone")
    if grants is None:
        raise InputError("--http needs --grants FILE, which says which token reads what")
    clients = read_grants(grants)
    _http(Opening(options.archive_of(archive)), clients, *_address(http))


def _http(opening: Opening, clients: tuple[Client, ...], host: str, port: int) -> None:
    import uvicorn

    from conspectus_mcp.server import build_server

    server = build_server(opening, clients=clients)
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, host=host
    )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(f"--http {host}:{port} cannot be listened at: {error.strerror}") from error
    shown = f"[{host}]" if ":" in host else host
    print(f"http://{shown}:{listening.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        opening.close()


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise InputError(f"--http {text!r} is no address; write HOST:PORT such as 127.0.0.1:8931")
    return host, int(port)
