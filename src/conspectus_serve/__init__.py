"""Serve an HTTP endpoint in front of any upstream of OpenAI's or Anthropic's protocol.

Requests are passed on. If a history does not fit the window of its model, the upstream gets notes
and the newest messages instead. The engine knows nothing of this package.
"""

from typing import TYPE_CHECKING, Any

from conspectus.errors import install_command

if TYPE_CHECKING:
    from conspectus_serve.app import make_app
    from conspectus_serve.settings import ServeSettings, load_settings

__all__ = ["ServeSettings", "load_settings", "make_app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'conspectus_serve' has no attribute {name!r}")
    # The command must be importable without the extra, so that it can name the extra it needs.
    try:
        from conspectus_serve import app, settings
    except ModuleNotFoundError as error:
        need = f"the endpoint needs the extra `serve` ({error.name} is missing)"
        raise ImportError(f"{need}; install it with {install_command('serve')}") from error
    return getattr(app if name == "make_app" else settings, name)
