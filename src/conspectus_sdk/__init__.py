"""Keep the loops of other SDKs inside their models' windows, and lose nothing.

`Fitter` fits the messages of one request: OpenAI's chat messages, items of Responses,
Anthropic's messages. `openai_agents` and `litellm_proxy` use the hooks of those SDKs; each
needs its extra. The engine, `conspectus`, imports nothing of this package.

Example:
    >>> from conspectus_sdk import Fitter
    >>> fitter = Fitter(archive="memory:", window=8_000)
    >>> messages = [{"role": "user", "content": "hi"}]
    >>> fitter.fit(messages, model="gpt-4o", thread_id="t").messages == messages
    True
"""

from conspectus_sdk.fitting import Fitter

__all__ = ["Fitter"]
