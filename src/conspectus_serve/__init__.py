"""An HTTP endpoint in front of any upstream that speaks OpenAI's or Anthropic's protocol.

It stands on the engine, which knows nothing of it: requests go through, and those whose history
does not fit the model's window go through with notes and a tail in its place.
"""

from typing import TYPE_CHECKING

from conspectus._lazy import lazily, places_of

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
