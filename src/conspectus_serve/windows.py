"""Ask an upstream for the windows of its models."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from conspectus._newest import Newest
from conspectus_serve.headers import Raw
from conspectus_serve.models import LEARNED, Models
from conspectus_serve.relay import Upstream, UpstreamFailed

FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
    "n_ctx",
    "max_context_window_tokens",
)
"""Fields of a model with its window: LM Studio, vLLM, OpenRouter, Groq, Mistral, Anthropic and
LiteLLM, Gemini, llama.cpp, GitHub Copilot. The first one counts."""

NEEDED = 2_000
"""Tokens of a history from which the window matters."""

PATIENCE, AGAIN = 3.0, 3_600.0
"""Seconds that an upstream has for its list, and after which it is asked again."""

LARGEST = 4_000_000
"""Maximum bytes of a list."""


class Windows:
    """Ask for the windows of models that nobody has named, once for each of a tenant's models."""

    def __init__(self, upstream: Upstream, models: Models) -> None:
        self._upstream, self._models = upstream, models
        self._asked = Newest[tuple[str, str], float](LEARNED)

    async def ask(self, tenant: str, model: str, headers: Raw) -> bool:
        """Ask with the client's own key; return whether a window was learned."""
        now = time.monotonic()
        if not model or now - (self._asked.get((tenant, model)) or -AGAIN) < AGAIN:
            return False
        self._asked.put((tenant, model), now)
        kept = [
            one for one in headers if one[0].lower() not in (b"content-type", b"accept-encoding")
        ]
        kept.append((b"accept-encoding", b"identity"))
        try:
            answer = await self._upstream.send("GET", "/v1/models", kept, timeout=PATIENCE)
        except UpstreamFailed:
            return False
        whole = b""
        try:
            async for piece in answer.pieces():
                whole += piece
                if len(whole) > LARGEST:
                    return False
            limit = window_in(json.loads(whole), model) if answer.status == 200 else None
        except (UpstreamFailed, ValueError, RecursionError):
            return False
        finally:
            await answer.close()
        if limit is not None:
            self._models.listed(tenant, model, limit)
        return limit is not None


def window_in(said: Any, model: str) -> int | None:
    """Return the window of a model in a list of models.

    Example:
        >>> window_in({"data": [{"id": "m", "max_model_len": 8192}]}, "m")
        8192
    """
    rows = [one for one in _rows(said) if isinstance(one, Mapping)]
    named = [
        one
        for one in rows
        if model in {str(one.get(key)).removeprefix("models/") for key in ("id", "name", "key")}
    ]
    for row in named or (rows if len(rows) == 1 else []):
        for holder in (row, row.get("meta"), row.get("top_provider"), row.get("capabilities")):
            for found in _limits(holder):
                return found
    return None


def _rows(said: Any) -> list[Any]:
    rows = said.get("data", said.get("models")) if isinstance(said, Mapping) else said
    return rows if isinstance(rows, list) else []


def _limits(holder: Any) -> Iterator[int]:
    if not isinstance(holder, Mapping):
        return
    for field in FIELDS:
        value = holder.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            yield value
    yield from _limits(holder.get("limits"))
