"""Serve an HTTP endpoint in front of any upstream of OpenAI's or Anthropic's protocol.

Requests go through; a history that does not fit the model's window is replaced by notes and a
tail. The engine knows nothing of this package.
"""

from typing import TYPE_CHECKING

from conspectus._imports import lazily, places_of

if TYPE_CHECKING:
    from conspectus_serve.app import make_app
    from conspectus_serve.settings import ServeSettings, load_settings

__all__ = ["ServeSettings", "load_settings", "make_app"]

# The command is found here without the extra, so that it can say which one it needs.
_MODULES = {
    "conspectus_serve.app": "make_app",
    "conspectus_serve.settings": "ServeSettings load_settings",
}
__getattr__ = lazily(__name__, places_of(_MODULES))
