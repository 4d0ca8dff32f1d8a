"""Run the endpoint until it is interrupted: `conspectus serve`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from conspectus.errors import InputError, install_command


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
    from conspectus_serve.secret import secret_beside
    from conspectus_serve.settings import load_settings

    given = {
        "upstream": upstream,
        "listen": listen,
        "token": token,
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
        typer.echo(secret_beside(settings.where, settings.secret_file).tenant(key))
        return
    app = make_app(settings, summarization)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it names addresses with their queries
    typer.echo(f"http://{settings.listen} -> {settings.upstream}", err=True)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=75,  # longer than clients keep an unused connection
    )
