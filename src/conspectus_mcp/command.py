"""Serve an archive to clients of the Model Context Protocol: `conspectus mcp`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from conspectus.archive import check_address
from conspectus.cli import options
from conspectus.cli.options import ArchiveOption
from conspectus.errors import InputError, install_command
from conspectus_mcp.grants import ONLY_CLIENT, read_grants
from conspectus_mcp.hook import tenant_of, write_plugin

TENANT_HELP = "The client may read all threads of this tenant. You can repeat the option."
THREAD_HELP = (
    "The client may read this thread of --tenant, or of `local`. You can repeat the option."
)
PROJECT_HELP = "The client may read the sessions of this folder, which the hooks have archived."
HTTP_HELP = "The address for streamable HTTP. Default: standard input and output."
GRANTS_HELP = "With --http: a YAML file that says which token may read what."
PLUGIN_HELP = "Write a plugin for Claude Code to this folder; start no server."


def mcp(
    archive: ArchiveOption = None,
    tenant: Annotated[list[str] | None, typer.Option(help=TENANT_HELP)] = None,
    thread: Annotated[list[str] | None, typer.Option(help=THREAD_HELP)] = None,
    project: Annotated[Path | None, typer.Option(help=PROJECT_HELP)] = None,
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT", help=HTTP_HELP)] = None,
    grants: Annotated[Path | None, typer.Option(metavar="FILE", help=GRANTS_HELP)] = None,
    plugin: Annotated[Path | None, typer.Option(metavar="DIR", help=PLUGIN_HELP)] = None,
) -> None:
    """Let any agent search and read an archive, over the Model Context Protocol.

    The server only reads. On standard input and output, the options say what the client may read;
    without them it may read nothing. Over HTTP each client sends a token, and the file of --grants
    says what this client may read.
    """
    if plugin is not None:
        typer.echo("\n".join(map(str, write_plugin(plugin, archive))))
        return
    try:
        from conspectus_mcp.server import build_server
    except ImportError as error:
        raise InputError(f"the server needs the extra `mcp`: {install_command('mcp')}") from error
    tenants = list(tenant or ())
    if project is not None:
        tenants.append(tenant_of(project))
    address = options.archive_of(archive)
    check_address(address)
    if bool(http) != bool(grants) or (grants and (tenants or thread)):
        raise InputError(
            "--http HOST:PORT and --grants FILE, which says which token reads what, go together "
            "and alone; on stdio give --tenant, --thread or --project"
        )
    if http is not None and grants is not None:
        _serve_http(build_server(address, read_grants(grants)), http)
        return
    if not tenants and not thread:
        raise InputError(
            "nothing is granted; name what the client may read: --tenant NAME for all threads of a "
            "tenant, or --thread NAME for one of them, each as often as needed"
        )
    if thread and len(set(tenants)) > 1:
        raise InputError("--thread goes with one --tenant; name the tenant of these threads")
    threads = frozenset(thread) if thread else None
    grant = dict.fromkeys(tenants or ["local"], threads)
    build_server(address, {ONLY_CLIENT: grant}).run("stdio")


def _serve_http(server: Any, http: str) -> None:
    """Serve streamable HTTP at `/mcp` of an address such as `127.0.0.1:8931`."""
    import uvicorn

    name, _, port = http.rpartition(":")
    host = name.removeprefix("[").removesuffix("]")
    if not (host and port.isdecimal() and int(port) < 65536):
        raise InputError(f"--http {http!r} is no address; write HOST:PORT such as 127.0.0.1:8931")
    app = server.streamable_http_app(
        streamable_http_path="/mcp", stateless_http=True, json_response=True, host=host
    )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, int(port)), family=family)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # no wait for an ACK
    except OSError as error:
        raise InputError(f"--http {http}: {error.strerror}; give another host or port") from error
    print(f"http://{name}:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn_config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(uvicorn_config).run(sockets=[listening])
