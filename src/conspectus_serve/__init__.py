"""An HTTP endpoint in front of any upstream that speaks OpenAI's or Anthropic's protocol.

It stands on the engine, which knows nothing of it: requests go through, and those whose history
does not fit the model's window go through with notes and a tail in its place.
"""

from conspectus_serve.app import make_app
from conspectus_serve.settings import ServeSettings, load_settings

__all__ = ["ServeSettings", "load_settings", "make_app"]
