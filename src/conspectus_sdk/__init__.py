"""Keep the conversations of other SDKs inside the windows of their models.

`Fitter` fits the messages of one request. `openai_agents` and `litellm_proxy` use the hooks of
those SDKs, and each needs the extra of its name. `conspectus` imports nothing of this package.
"""

from conspectus_sdk.fitting import Fitter

__all__ = ["Fitter"]
