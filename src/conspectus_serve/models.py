"""Keep the window and the engine of each model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from conspectus._newest import Newest
from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.config.building import (
    counter_of,
    declared_window,
    pin_of,
    redact_of,
    sizes_of,
    summarizer_of,
)
from conspectus.config.windows import profile_of
from conspectus.core.items import Window
from conspectus.core.policy import EMBEDDED, Policy, names_embedded
from conspectus.engine.engine import Engine
from conspectus.engine.settings import EngineSettings
from conspectus.errors import PolicyError
from conspectus.langchain.requests import reserved_for_answer
from conspectus.messages.blocks import without_cache_marks
from conspectus.tokens import TokenMeter
from conspectus_serve.protocols import Protocol
from conspectus_serve.settings import ServeSettings

KNOWN = 32
"""Models whose engine is remembered: clients choose the names of models."""

SCHEMAS = 512
"""Sets of tools whose size is remembered."""

MILLION = 1_000_000
"""The window that Anthropic's beta `context-1m` gives a model."""

LEARNED = 1_024
"""Models, by tenant, whose limit a provider has named."""


class Models:
    """Return engines and windows by the name of the model.

    Raises:
        ConfigError: a function or a counter of the configuration cannot be loaded.
    """

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive
    ) -> None:
        self._settings, self._config, self._archive = settings, config, archive
        self._engines = Newest[tuple[str, int | None], Engine](KNOWN)
        self._schemas = Newest[tuple[str, str], int](SCHEMAS)
        self._learned = Newest[tuple[str, str], int](LEARNED)
        self._listed = Newest[tuple[str, str], int](LEARNED)
        self._forms = Newest[tuple[str, str, str], bool](LEARNED)
        self._counter = None if config.token_counter is None else counter_of(config)
        self._pin, self._redact = pin_of(config), redact_of(config)
        if config.model_name and not names_embedded(config.model_name):
            # Its library takes seconds to load, which no request shall wait for.
            summarizer_of(config, config.model_name)

    def window(self, tenant: str, model: str, *, million: bool = False) -> int | None:
        """Return the input limit of a model, in tokens; None if unknown.

        What the operator has set counts first, then what the upstream's list says, then the profile
        of the model's name. A client's `million` widens the latter two. What the upstream has
        refused counts against all of them.
        """
        known = self._settings.window_of(model) or self._config.window
        known = known or declared_window(self._config.source.models.get(model, {}))
        if known is None:
            known = self._listed.get((tenant, model)) or _profile(model)
            known = max(known or 0, MILLION) if million else known
        learned = self._learned.get((tenant, model))
        return min(known, learned) if known and learned else known or learned

    def listed(self, tenant: str, model: str, limit: int) -> None:
        """Remember a window that the upstream's list of models names."""
        self._listed.put((tenant, model), limit)

    def has_form(self, tenant: str, model: str, form: str) -> bool:
        """Return whether the upstream has refused requests of a model without this form."""
        return self._forms.get((tenant, model, form)) is not None

    def learn_form(self, tenant: str, model: str, form: str) -> None:
        """Remember a form that the upstream asks for."""
        self._forms.put((tenant, model, form), True)

    def learn(self, tenant: str, model: str, limit: int) -> None:
        """Remember a limit that a provider named when it refused a request."""
        self._learned.put((tenant, model), limit)

    def engine(self, model: str, window: int | None) -> Engine:
        """Return the engine that compacts histories for a model."""
        return self._engines.get_or_make((model, window), lambda: self._made(model, window))

    def room(
        self, protocol: Protocol, body: Mapping[str, Any], engine: Engine, window: int | None
    ) -> Window | None:
        """Return the window of a request, with the tokens that stand beside the history."""
        if window is None:
            return None
        beside = self._beside(protocol, body, engine.meter)
        own = self._config.reserved_tokens
        return Window(window, beside + max(own, reserved_for_answer((body,), window)))

    def _beside(self, protocol: Protocol, body: Mapping[str, Any], meter: TokenMeter) -> int:
        texts = [body[field] for field in protocol.beside if body.get(field)]
        total = sum(
            meter.message(without_cache_marks({"role": "system", "content": text}))
            for text in texts
        )
        for field in protocol.schemas:
            if schemas := body.get(field):
                total += self._schema(schemas, meter)
        return total

    def _schema(self, schemas: Any, meter: TokenMeter) -> int:
        text = json.dumps(schemas, separators=(",", ":"))
        key = (f"{meter.family}", hashlib.sha256(text.encode()).hexdigest())
        found = self._schemas.get(key)
        if found is None:
            try:
                found = meter.tools(schemas)
            except PolicyError:  # the upstream decides whether it is a tool
                found = meter.text(text)
            self._schemas.put(key, found)
        return found

    def _made(self, model: str, window: int | None) -> Engine:
        config = self._config
        # A share of an unknown window is never reached; the upstream's refusal is.
        sizes = sizes_of(config, window)
        policy = Policy.build(
            **sizes,
            max_summary_tokens=config.max_summary_tokens,
            stale_results=config.stale_results,
        )
        meter = TokenMeter(self._counter, model=model or None)
        named = (config.model_name or EMBEDDED, *config.fallback_models)
        first, *others = (
            summarizer_of(config, EMBEDDED if names_embedded(one) else one) for one in named
        )
        return EngineSettings(
            summarizer=first,
            archive=self._archive,
            trim_tokens_to_summarize=config.trim_tokens_to_summarize,
            fallbacks=others,
            on_failure=config.on_failure,
            pin=self._pin,
            summarizer_timeout=config.summarizer_timeout,
            redact=self._redact,
            notes=config.notes,
        ).engine(policy, meter)


@lru_cache(maxsize=256)
def _profile(model: str) -> int | None:
    return profile_of("", model) if model else None
