"""A deep agent with two subagents: scripted models, real tools, its own folder.

What each model answers follows from the messages that it sees and nothing else, and so do their
ids, which recall shows: so a run that was killed and goes on answers as one that was not. Every
request is measured as it was sent, with its system prompt and tools, and looked at for torn pairs.
"""

from __future__ import annotations
