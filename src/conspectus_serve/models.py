"""What is known of each model: its engine, its window, and the forms that it requires."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from conspectus._bounded_cache import BoundedCache
from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.config.building import declared_window, settings_of
from conspectus.core.items import Window
from conspectus.core.policy import EMBEDDED, names_embedded
from conspectus.engine.building import predicate
from conspectus.engine.engine import Engine
from conspectus.engine.settings import Settings
from conspectus.errors import PolicyError
from conspectus.messages.alternation import AlternateRoles, alternating, joins_by_setting
from conspectus.messages.blocks import without_cache_marks
from conspectus.messages.refusals import THOUGHTS_REFUSED, refuses_roles
from conspectus.messages.thoughts import without_stale_thoughts
from conspectus.model.answer_limits import reserved_for_answer
from conspectus.model.chat_model import chat_model_named
from conspectus.model.windows import input_limit_in_profile
from conspectus.tokens import TokenMeter
from conspectus_serve.fingerprints import UnknownMessage
from conspectus_serve.protocols import Protocol, printable
from conspectus_serve.settings import ServeSettings

logger = logging.getLogger("conspectus.serve")


class EngineKey(NamedTuple):
    """The key of an engine: what it is built for."""

    model: str
    window: int | None  # input limit in tokens; None if unknown
    max_notes: int | None  # most tokens of notes that a client has asked for; None if it has not


REMEMBERED_ENGINES = 32
"""The most engines that are remembered: clients choose the names of models."""

REMEMBERED_SCHEMAS = 512
"""Sets of tools whose size is remembered."""

REMEMBERED_MODELS = 1_024
"""Models, by tenant, of which is remembered what was learned."""

FREE_SHARE = 0.05
"""Share of a window that stays free, because sizes are estimates; the answer may use it."""

MILLION = 1_000_000
"""The window that Anthropic's beta `context-1m` gives a model."""

MILLION_BETA = "context-1m"
"""The beginning of the name of this beta."""

WINDOW_FIELDS = (
    "loaded_context_length",  # LM Studio
    "max_model_len",  # vLLM
    "context_length",  # OpenRouter
    "context_window",  # Groq
    "max_context_length",  # Mistral
    "max_input_tokens",  # Anthropic, LiteLLM
    "inputTokenLimit",  # Gemini
    "n_ctx",  # llama.cpp
    "max_context_window_tokens",  # GitHub Copilot
)
"""Fields of a model, in an upstream's list, with its window. The first one counts."""

# Some upstreams cut long requests silently. They report about the same number of tokens for two
# requests of different size, and much less than both have.
SILENT_CUT_SHARE = 0.7
"""A report below this share of a request's tokens may show a cut."""

SAME_REPORT = 0.03
"""Two reports of a cut window differ by no more than this share."""

LARGER_REQUEST = 1.1
"""The second request is so many times larger than the first."""

LEAST_WINDOW = 1_000
"""The fewest tokens of a report; one of fewer counts something else."""

SILENT_CUT = (
    "the upstream counts no more than %s tokens of requests that are larger, which is taken as the "
    "window of the model %s from now on; --window or serve.windows overrules that"
)

NO_WINDOW = (
    "its window is not known, so nothing is compacted before the upstream refuses; give --window, "
    "or serve.windows in the file of --config"
)

Form = Literal["", "roles", "thoughtless", "switch"]
"""A form that an upstream requires: user messages in a row joined, all thoughts left out, or its
own switch that drops thoughts. Empty if it requires none."""


@dataclass(slots=True)
class Learned:
    """What the endpoint has learned of a model for one tenant. It changes with each answer."""

    listed: int | None = None  # its window in the list of models
    refused: int | None = None  # its window, from a refused request
    cut: int | None = None  # its window, from reports about larger requests
    most_counted: int = 0  # largest report that agrees with the estimate
    has_asked_for_list: bool = False
    last_sent: int = 0  # estimated tokens of the last request
    last_reported: int = 0  # reported tokens of the last request
    forms: set[str] = field(default_factory=set)  # the forms without which requests were refused

    def see_usage(self, sent: int, reported: int, model: str = "") -> None:
        """Notice an upstream that cuts requests silently, by the tokens that it reports.

        `sent` are the tokens that it must count at least: some leave out thoughts, pictures, or
        cached parts. A larger report shows that it does not cut there.
        """
        sent_before = self.last_sent
        reported_before = self.last_reported
        self.last_sent = sent
        self.last_reported = reported
        if reported > LARGER_REQUEST * (self.cut or reported):
            self.cut = None
        if reported >= SILENT_CUT_SHARE * sent:
            self.most_counted = max(self.most_counted, reported)
            return
        shows_cut = (
            abs(reported - reported_before) <= SAME_REPORT * reported
            and sent >= LARGER_REQUEST * sent_before > 0
            and reported_before < SILENT_CUT_SHARE * sent_before
            and reported >= LEAST_WINDOW
        )
        window = max(reported, reported_before)
        has_counted_more = window < (1 - SAME_REPORT) * self.most_counted
        if shows_cut and not has_counted_more and self.cut != window:
            self.cut = window
            logger.warning(SILENT_CUT, f"{window:,}", printable(model))


class Models:
    """What is known of all models, by name.

    Raises:
        ConfigError: a function of the configuration cannot be loaded.
    """

    def __init__(
        self, settings: ServeSettings, config: SummarizationConfig, archive: Archive
    ) -> None:
        self._settings = settings
        self._config = config
        self._archive = archive
        self.engine = lru_cache(REMEMBERED_ENGINES)(self._make_engine)
        self.meter = lru_cache(REMEMBERED_ENGINES)(self._make_meter)
        self._configured_window = lru_cache(REMEMBERED_ENGINES)(self._find_configured_window)
        self._schema_tokens = BoundedCache[tuple[str, str], int](REMEMBERED_SCHEMAS)
        self._learned = BoundedCache[tuple[str, str], Learned](REMEMBERED_MODELS)
        options = settings_of(config)
        engine_options = {field.name for field in fields(Settings)}
        self._engine_settings = Settings(
            **{name: value for name, value in options.items() if name in engine_options}
        )
        self._token_counter = options["token_counter"] if config.token_counter else None
        # The value in the endpoint's own section comes before that of `summarization:`.
        self.alternate_roles: AlternateRoles = settings.alternate_roles
        if settings.alternate_roles == "auto":
            self.alternate_roles = config.alternate_roles
        self._is_pinned_by_user = predicate(options["pin"])
        if config.model_name and not names_embedded(config.model_name):
            # Its library takes seconds to load; no request should wait for that.
            chat_model_named(config.model_name)

    def learned(self, tenant: str, model: str) -> Learned:
        """Return what was learned of a model."""
        joins = joins_by_setting(self.alternate_roles, model)
        forms = {"roles"} if joins else set[str]()
        return self._learned.get_or_make((tenant, model), lambda: Learned(forms=forms))

    def forms(self, model: str, learned: Learned, history_alternates: bool) -> set[str]:
        """Return the forms for a compacted request: those learned, and that of the history."""
        is_undecided = joins_by_setting(self.alternate_roles, model) is None
        if history_alternates and is_undecided:
            return {*learned.forms, "roles"}
        return learned.forms

    def window(self, model: str, learned: Learned, betas: Sequence[str] = ()) -> int | None:
        """Return the input limit of a model, in tokens; None if unknown.

        The operator's setting counts first, then the upstream's list, then the profile of the
        model. One of a client's `betas` makes the latter two larger, and the upstream's reports
        limit them. A window from a refused request limits all of them.
        """
        window = self._configured_window(model)
        if window is None:
            window = learned.listed or input_limit_in_profile(model)
            if MILLION_BETA in ",".join(betas):
                window = max(window or 0, MILLION)
            window = _smallest(window, learned.cut)
        return _smallest(window, learned.refused)

    def fixed_tokens(self, protocol: Protocol, body: Mapping[str, Any], meter: TokenMeter) -> int:
        """Return the tokens of instructions and tools."""
        tokens = 0
        for name in protocol.instruction_fields:
            text = body.get(name)
            if text:
                tokens += meter.count_message(
                    without_cache_marks({"role": "system", "content": text})
                )
        for name in protocol.schema_fields:
            schemas = body.get(name)
            if schemas:
                tokens += self._tokens_of_schemas(schemas, meter)
        return tokens

    def _tokens_of_schemas(self, schemas: Any, meter: TokenMeter) -> int:
        text = json.dumps(schemas, separators=(",", ":"))
        key = (f"{meter.family}", hashlib.sha256(text.encode()).hexdigest())
        tokens = self._schema_tokens.get(key)
        if tokens is None:
            try:
                tokens = meter.count_tools(schemas)
            except PolicyError:  # the upstream decides whether it is a tool
                tokens = meter.count_text(text)
            self._schema_tokens.put(key, tokens)
        return tokens

    def room(self, body: Mapping[str, Any], window: int | None, fixed_tokens: int) -> Window | None:
        """Return the window that is left for a history and its answer; None if it is unknown.

        Shares in the settings are shares of this window. With many tools, a share of the whole
        window might never be reached before the window is full.
        """
        if window is None:
            return None
        left = window - fixed_tokens
        if left <= 0:
            return Window(window, fixed_tokens)
        free = min(int(window * FREE_SHARE), left // 2)
        answer = reserved_for_answer((body,), left)
        return Window(left, max(self._config.reserved_tokens, answer, free))

    def _find_configured_window(self, model: str) -> int | None:
        window = self._settings.window_of(model) or self._config.window
        return window or declared_window(self._config.source.models.get(model, {}))

    def _make_meter(self, model: str) -> TokenMeter:
        return TokenMeter(self._token_counter, model=model or None)

    def _make_engine(self, model: str, window: int | None, max_notes: int | None = None) -> Engine:
        """Return the engine that compacts histories for a model; see `EngineKey`.

        If a client asks for a compaction, every message that may be evicted is; the notes have at
        most `max_notes` tokens.
        """
        settings = replace(
            self._engine_settings,
            summarizer=self._config.model_name or EMBEDDED,
            fallbacks=self._config.fallback_models,
            skills=None,
            archive=self._archive,
            pin=self._is_pinned,
            background=False,
            summary_request="smallest",
        )
        if max_notes is not None:
            max_tokens = self._config.max_summary_tokens or max_notes
            settings = replace(settings, keep=("messages", 1), max_summary_tokens=max_tokens)
        engine = Engine.build(settings, settings.policy(), self.meter(model))
        return replace(engine, joining="never")  # `RequestFitter` joins messages

    def _is_pinned(self, message: Any) -> bool:
        if isinstance(message, UnknownMessage):
            return True
        return self._is_pinned_by_user is not None and bool(self._is_pinned_by_user(message))


def _smallest(*limits: int | None) -> int | None:
    return min(filter(None, limits), default=None)


def window_in(listed: Any, model: str) -> int | None:
    """Return the window of a model in an upstream's list of models.

    Example:
        >>> window_in({"data": [{"id": "m", "max_model_len": 8192}]}, "m")
        8192
    """
    if isinstance(listed, Mapping):
        listed = listed.get("data", listed.get("models"))
    entries = [entry for entry in listed or () if isinstance(entry, Mapping)]
    named = [entry for entry in entries if _is_entry_of(entry, model)]
    if not named and len(entries) == 1:
        named = entries
    for entry in named:
        for limit in _limits_in(entry):
            return limit
    return None


def _is_entry_of(entry: Mapping[str, Any], model: str) -> bool:
    return any(entry.get(key) in (model, f"models/{model}") for key in ("id", "name", "key"))


def _limits_in(entry: Mapping[str, Any]) -> Iterator[int]:
    """Yield the windows that an entry names, also in its parts, such as `meta`."""
    for value in map(entry.get, WINDOW_FIELDS):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            yield value
    for part in entry.values():
        if isinstance(part, Mapping):
            yield from _limits_in(part)


DROP_THOUGHTS = "drop_block"
DROP_THOUGHTS_BETA = "thinking-binding-controls-2026-08-01"
"""The provider's own switch for thoughts after changed messages, and the beta header that it needs
(see its page on preserved thinking)."""


def form_asked_for(refusal: str, forms: Collection[str], thinking: Any, alternate: str) -> Form:
    """Return the form that a refusal of a compacted request requires; empty if none.

    Args:
        refusal: the upstream's words.
        forms: the forms that are in use.
        thinking: the request's field `thinking`.
        alternate: the setting `alternate_roles`.
    """
    if alternate != "off" and refuses_roles(refusal):
        return "" if "roles" in forms else "roles"
    if not THOUGHTS_REFUSED.search(refusal) or "thoughtless" in forms:
        return ""
    is_off = isinstance(thinking, Mapping) and thinking.get("type") == "disabled"
    may_switch = DROP_THOUGHTS in refusal and not is_off and "switch" not in forms
    return "switch" if may_switch else "thoughtless"


def in_forms(
    protocol: str, view: list[Any], body: dict[str, Any], forms: Collection[str]
) -> tuple[list[Any], dict[str, Any], Sequence[str]]:
    """Bring a compacted request into the forms of its upstream: view, body, further betas."""
    view = without_stale_thoughts(view, all_of_them="thoughtless" in forms)
    if "roles" in forms:
        view = alternating(view)
    if "switch" not in forms or protocol != "messages":
        return view, body, ()
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping):
        thinking = {"type": "adaptive"}
    binding = {"block_binding": {"prefix_mismatch_behavior": DROP_THOUGHTS}}
    return view, {**body, "thinking": {**thinking, **binding}}, (DROP_THOUGHTS_BETA,)
