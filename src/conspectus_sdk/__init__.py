"""Keep the loops of other SDKs inside their models' windows, and lose nothing.

`Fitter` fits the messages of one request. `openai_agents` and `litellm_proxy` use the hooks of
those SDKs; each needs its extra. The engine, `conspectus`, imports nothing of this package.
"""

from conspectus_sdk.fitting import Fitter

__all__ = ["Fitter"]
