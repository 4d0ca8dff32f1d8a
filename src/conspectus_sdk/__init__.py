"""Loops of other SDKs inside their models' windows, with nothing lost.

`Fitter` fits the messages of one request: OpenAI's chat messages, items of Responses, Anthropic's
messages. `openai_agents` and `litellm_proxy` do it where those SDKs let somebody in; each needs its
extra. This package stands on the engine, `conspectus`, which imports nothing of it.

Example:
    >>> from conspectus_sdk import Fitter
    >>> fitter = Fitter(archive="memory:", window=8_000)
    >>> messages = [{"role": "user", "content": "hi"}]
    >>> fitter.fit(messages, model="gpt-4o", thread_id="t").messages == messages
    True
"""

from conspectus_sdk.fitting import Fitter

__all__ = ["Fitter"]
