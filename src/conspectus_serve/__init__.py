"""Serve an HTTP endpoint in front of any upstream of OpenAI's or Anthropic's protocol.

Requests go through; a history that does not fit the model's window is replaced by notes and a
tail. The engine knows nothing of this package.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conspectus_serve.app import make_app
    from conspectus_serve.settings import ServeSettings, load_settings

__all__ = ["ServeSettings", "load_settings", "make_app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'conspectus_serve' has no attribute {name!r}")
    # The command is found here without the extra, so that it can say which one it needs.
    from conspectus_serve import app, settings

    return getattr(app if name == "make_app" else settings, name)
