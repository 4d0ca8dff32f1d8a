"""Keep what is known of each model: its engine, its window, and the forms that it asks for."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.config.building import declared_window, settings_of
from conspectus.core.items import Window
from conspectus.core.policy import EMBEDDED, names_embedded
from conspectus.engine.settings import Engine, Settings, predicate
from conspectus.errors import PolicyError
from conspectus.messages.alternation import (
    AlternateRoles,
    alternates,
    alternating,
    refuses_roles,
)
from conspectus.messages.blocks import without_cache_marks
from conspectus.messages.requests import REFUSED, without_stale_thoughts
from conspectus.model.chat_model import chat_model_named
from conspectus.model.windows import profile_of, reserved_for_answer
from conspectus.tokens import TokenMeter
from conspectus_serve.protocols import Protocol, printable
from conspectus_serve.settings import ServeSettings
from conspectus_serve.trails import Odd

logger = logging.getLogger("conspectus.serve")

Sizes = tuple[str, int | None, int | None]
"""What an engine is made for: a model, its window, and the most tokens of notes."""

KNOWN = 32  # models whose engine is remembered: clients choose the names of models
SCHEMAS = 512  # sets of tools whose size is remembered
LEARNED = 1_024  # models, by tenant, of which something is remembered that their upstream has said
FREE = 0.05  # share of a window that stays free, also for the answer: sizes are estimates
MILLION = 1_000_000  # the window that Anthropic's beta `context-1m` gives a model
MILLION_BETA = "context-1m"  # beginning of its name

FIELDS = (
    "loaded_context_length max_model_len context_length context_window max_context_length"
    " max_input_tokens inputTokenLimit n_ctx max_context_window_tokens"
).split()
"""Fields of a model with its window: LM Studio, vLLM, OpenRouter, Groq, Mistral, Anthropic and
LiteLLM, Gemini, llama.cpp, GitHub Copilot. The first one counts."""

CUT, SAME, GROWN, LEAST = 0.7, 0.03, 1.1, 1_000
"""An upstream cuts requests silently if it reports less than this share of two requests, about the
same number of tokens for both, although the second is so much larger. A window has at least so many
tokens; upstreams that report fewer count something else."""

CUTS = (
    "the upstream counts no more than %s tokens of requests that are larger, which is taken as the "
    "window of the model %s from now on; --window or serve.windows overrules that"
)


NO_WINDOW = (
    "its window is not known, so nothing is compacted before the upstream refuses; give --window, "
    "or serve.windows in the file of --config"
)


@dataclass(slots=True)
class Learned:
    """What an upstream has shown of a model to one tenant."""

    listed: int | None = None  # its window, by the list of models
    refused: int | None = None  # its window, by what was refused
    cut: int | None = None  # its window, by what was counted of larger requests
    counted: int = 0  # most tokens of a request that were reported as they were estimated
    asked: bool = False  # for that list
    report: tuple[int, int] = (0, 0)  # the last request's tokens, by the estimate and as reported
    forms: set[str] = field(default_factory=set)  # without which requests were refused

    def see_usage(self, sent: int, reported: int, model: str = "") -> None:
        """Notice an upstream that cuts requests silently, by the tokens of them that it reports.

        `sent` is the least that it must count: some leave out thoughts, pictures, or what is in
        their cache. A larger report shows that it does not cut there.
        """
        (before, reported_before), self.report = self.report, (sent, reported)
        if reported > GROWN * (self.cut or reported):
            self.cut = None
        if reported >= CUT * sent:
            self.counted = max(self.counted, reported)
            return
        same = abs(reported - reported_before) <= SAME * reported
        most, grown = max(reported, reported_before), sent >= GROWN * before > 0
        cut = same and grown and reported_before < CUT * before and reported >= LEAST
        if cut and most >= (1 - SAME) * self.counted and self.cut != most:
            self.cut = most
            logger.warning(CUTS, f"{most:,}", printable(model))


class Models:
    """Know models by their names. Raises ConfigError for a function that cannot be loaded."""

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive
    ) -> None:
        self._settings, self._config, self._archive = settings, config, archive
        self.engine, self.meter = lru_cache(KNOWN)(self._engine), lru_cache(KNOWN)(self._meter)
        self._set_window = lru_cache(KNOWN)(self._window_that_is_set)
        self._schemas = BoundedCache[tuple[str, str], int](SCHEMAS)
        self._learned = BoundedCache[tuple[str, str], Learned](LEARNED)
        arguments = settings_of(config)
        self._counter = arguments["token_counter"] if config.token_counter else None
        # That of the endpoint's own section goes before that of `summarization:`.
        own = settings.alternate_roles
        self.alternate_roles: AlternateRoles = config.alternate_roles if own == "auto" else own
        self._pin = predicate(arguments["pin"])
        names = {field.name for field in fields(Settings)}
        self._file_settings = Settings(
            **{name: value for name, value in arguments.items() if name in names}
        )
        if config.model_name and not names_embedded(config.model_name):
            # Its library takes seconds to load, which no request shall wait for.
            chat_model_named(config.model_name)

    def learned(self, tenant: str, model: str) -> Learned:
        """Return what is to be remembered of a model."""
        joined = alternates(self.alternate_roles, model)
        forms = {"roles"} if joined else set[str]()
        return self._learned.get_or_make((tenant, model), lambda: Learned(forms=forms))

    def forms(self, model: str, learned: Learned, history_alternates: bool) -> set[str]:
        """Return the forms of a compacted request: what was learned, and what a history shows."""
        if history_alternates and alternates(self.alternate_roles, model) is None:
            return {*learned.forms, "roles"}
        return learned.forms

    def window(self, model: str, learned: Learned, betas: Sequence[str] = ()) -> int | None:
        """Return the input limit of a model, in tokens; None if unknown.

        What the operator has set counts first, then what the upstream's list says, then the profile
        of the model's name; one of a client's `betas` widens the latter two, and what the upstream
        has counted limits them. What it has refused counts against all of them.
        """
        known = self._set_window(model)
        if known is None:
            known = learned.listed or profile_of(model)
            known = max(known or 0, MILLION) if MILLION_BETA in ",".join(betas) else known
            known = min(filter(None, (known, learned.cut)), default=None)
        return min(filter(None, (known, learned.refused)), default=None)

    def beside(self, protocol: Protocol, body: Mapping[str, Any], meter: TokenMeter) -> int:
        """Return the tokens of what stands beside the history: instructions and tools."""
        size = 0
        for text in filter(None, map(body.get, protocol.beside)):
            size += meter.message(without_cache_marks({"role": "system", "content": text}))
        for schemas in filter(None, map(body.get, protocol.schemas)):
            text = json.dumps(schemas, separators=(",", ":"))
            key = (f"{meter.family}", hashlib.sha256(text.encode()).hexdigest())
            if (known := self._schemas.get(key)) is None:
                try:
                    known = meter.tools(schemas)
                except PolicyError:  # the upstream decides whether it is a tool
                    known = meter.text(text)
                self._schemas.put(key, known)
            size += known
        return size

    def room(self, body: Mapping[str, Any], window: int | None, beside: int) -> Window | None:
        """Return the window that is left for a history and its answer; None if it is unknown.

        Shares of the settings are of this: beside many tools, one of the whole would mean that
        nothing is compacted before the window is full.
        """
        if window is None:
            return None
        if (left := window - beside) <= 0:
            return Window(window, beside)
        free = min(int(window * FREE), left // 2)
        answer = reserved_for_answer((body,), left)
        return Window(left, max(self._config.reserved_tokens, answer, free))

    def _window_that_is_set(self, model: str) -> int | None:
        known = self._settings.window_of(model) or self._config.window
        return known or declared_window(self._config.source.models.get(model, {}))

    def _meter(self, model: str) -> TokenMeter:
        return TokenMeter(self._counter, model=model or None)

    def _engine(self, model: str, window: int | None, max_notes: int | None = None) -> Engine:
        """Return the engine that compacts histories for a model.

        Where a client asks for a compaction, all leaves that may, for at most `max_notes` tokens.
        """
        config = self._config
        settings = replace(
            self._file_settings,
            summarizer=config.model_name or EMBEDDED,
            fallbacks=config.fallback_models,
            skills=None,
            archive=self._archive,
            pin=lambda message: isinstance(message, Odd) or bool(self._pin and self._pin(message)),
            background=False,
            summary_request="smallest",
        )
        if max_notes is not None:
            most = config.max_summary_tokens or max_notes
            settings = replace(settings, keep=("messages", 1), max_summary_tokens=most)
        engine = Engine.build(settings, settings.policy(), self.meter(model))
        # Messages are joined where the request is written.
        engine = Engine.build(settings, settings.policy(), self.meter(model))
        return replace(engine, alternate=False)


def window_in(listed: Any, model: str) -> int | None:
    """Return the window of a model in a list of models.

    Example:
        >>> window_in({"data": [{"id": "m", "max_model_len": 8192}]}, "m")
        8192
    """
    listed = listed.get("data", listed.get("models")) if isinstance(listed, Mapping) else listed
    rows = [one for one in listed or () if isinstance(one, Mapping)]
    keys, names = ("id", "name", "key"), (model, f"models/{model}")
    named = [one for one in rows if any(one.get(key) in names for key in keys)]
    limits = map(_limits, named or (rows if len(rows) == 1 else []))
    return next((limit for found in limits for limit in found), None)


def _limits(entry: Mapping[str, Any]) -> Iterator[int]:
    """Yield the windows that an entry names, also in its parts, such as `meta`."""
    for value in map(entry.get, FIELDS):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            yield value
    for part in entry.values():
        if isinstance(part, Mapping):
            yield from _limits(part)


SWITCH = "drop_block"
BETA = "thinking-binding-controls-2026-08-01"
"""The provider's own switch for thoughts behind another beginning, and the beta header that it
needs (its page on preserved thinking)."""


def form_of(refusal: str, forms: Collection[str], thinking: Any, alternate: str) -> str:
    """Return the form that a refusal of a compacted request asks for; empty for none.

    `forms` has those that are in use, `thinking` is the request's, `alternate` the setting.
    """
    if alternate != "off" and refuses_roles(refusal):
        return "" if "roles" in forms else "roles"
    if not REFUSED.search(refusal) or "thoughtless" in forms:
        return ""
    off = isinstance(thinking, Mapping) and thinking.get("type") == "disabled"
    return "thoughtless" if SWITCH not in refusal or off or "switch" in forms else "switch"


def formed(
    protocol: str, view: list[Any], body: dict[str, Any], forms: Collection[str]
) -> tuple[list[Any], dict[str, Any], Sequence[str]]:
    """Give a compacted request the form that its upstream takes: view, body, further betas."""
    view = without_stale_thoughts(view, all_of_them="thoughtless" in forms)
    if "roles" in forms:
        view = alternating(view)
    if "switch" not in forms or protocol != "messages":
        return view, body, ()
    thinking = body.get("thinking")
    thinking = thinking if isinstance(thinking, Mapping) else {"type": "adaptive"}
    binding = {"block_binding": {"prefix_mismatch_behavior": SWITCH}}
    return view, {**body, "thinking": {**thinking, **binding}}, (BETA,)
