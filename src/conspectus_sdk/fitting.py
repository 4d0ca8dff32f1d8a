"""Fit the messages of one request to the window of its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypedDict, Unpack

from conspectus import CompactionResult
from conspectus._arguments import documented, takes
from conspectus.bridge import arun, run
from conspectus.core.items import Window
from conspectus.core.policy import check_whole_number
from conspectus.engine.building import open_archive, window_of
from conspectus.engine.closing import Closing
from conspectus.engine.engine import Engine
from conspectus.engine.entry import compact_messages
from conspectus.engine.history import HistoryContext, scope_of
from conspectus.engine.settings import (
    AnyArchive,
    AnyTrigger,
    PolicySettings,
    PythonSettings,
    Settings,
)
from conspectus.errors import PolicyError, StuckError, install_command
from conspectus.messages import Source
from conspectus.messages.blocks import without_cache_marks
from conspectus.messages.reading import as_messages
from conspectus.messages.thoughts import without_stale_thoughts
from conspectus.model.windows import input_limit_in_profile, input_limit_named
from conspectus.observe import heard_by
from conspectus.tokens import TokenCounter, TokenMeter, family_of

REMEMBERED_MODELS = 64
"""The most models that are remembered: clients of a proxy choose their names."""


class Request(TypedDict, total=False):
    """The parts of a request besides its messages. `model` and `thread_id` are required.

    Attributes:
        model: the name of the model that answers.
        thread_id: the name of the conversation.
        tenant: the owner of the conversation. Default: `local`.
        session: the name of one of several agents in the conversation. Default: `main`.
        system: Anthropic's `system` (a text or blocks), or the `instructions` of Responses.
        tools: the tools, in the provider's form.
        answer_tokens: the largest number of tokens of the answer. Set it if the model counts the
            answer in its window. Conspectus keeps this number of tokens free. Default: none.
    """

    model: str
    thread_id: str
    tenant: str | None
    session: str
    system: object
    tools: Sequence[Any]
    answer_tokens: int | None


@dataclass(frozen=True, kw_only=True)
class FitterSettings(PythonSettings, PolicySettings):
    """The settings of a `Fitter`."""

    archive: AnyArchive = field()
    """If the fitter has opened the archive, `close` or the end of a `with` block closes it."""
    trigger: AnyTrigger = ("fraction", 0.85)
    window: int | Mapping[str, int] | None = None
    """The input limit of the models, in tokens.

    A number for all models, or a mapping of their names to limits. The name `gpt-4o` also means
    `openai/gpt-4o` and `gpt-4o-2024-08-06`; `*` matches anything. Default, also for models that are
    not in the mapping: the limit in the LangChain profile of the model.
    """
    token_counter: TokenCounter | str | None = None
    """As in `Compactor`: a function that takes a list of messages and returns the number of tokens,
    or the name of a vocabulary. Default: an estimate for the model of the request.
    """


@documented
class Fitter(Closing):
    """Compact the messages of requests, so that they fit the window of their model.

    Call `fit` before each request. One fitter can be used for several models.

    Raises:
        PolicyError: a setting is invalid.
        ArchiveError: the archive cannot be opened.

    Example:
        >>> with Fitter(archive="memory:", window={"own-model": 32_000}) as fitter:
        ...     messages = [{"role": "user", "content": "hi"}]
        ...     fitter.fit(messages, model="own-model", thread_id="t").outcome
        'kept'
    """

    @takes(FitterSettings)
    def __init__(self, settings: FitterSettings) -> None:
        window = settings.window
        for limit in window.values() if isinstance(window, Mapping) else (window,):
            window_of(limit, 0)
        self._windows = window
        self._counter = settings.token_counter
        self._policy = replace(settings.policy(), keep_is_set=settings.keep is not None)
        archive = open_archive(settings.archive)
        if archive is None:
            raise PolicyError("a fitter needs an archive=: a path, a URL, or memory:")
        self.archive = archive
        self._preparations = None
        self._opened = archive if isinstance(settings.archive, (str, Path)) else None
        names = {field.name for field in fields(Settings)} & {*vars(settings)}
        shared = {name: getattr(settings, name) for name in names}
        self._settings = Settings(**(shared | {"archive": archive}))
        self.engine = lru_cache(REMEMBERED_MODELS)(self._make_engine)

    def fit(self, messages: Sequence[Source], **request: Unpack[Request]) -> CompactionResult:
        """Make the messages of a request fit. Send the `messages` of the result.

        Pass the whole history each time, or the messages of the last result followed by the new
        messages. Messages that stay are the caller's own objects, with one exception. If the
        beginning of the history has changed, the model may refuse old thinking blocks. Messages
        with such blocks come back without them.

        Args:
            messages: OpenAI's chat messages, items of Responses, or Anthropic's messages.
            **request: `model=` and `thread_id=`, and other parts of the request; see `Request`.

        Raises:
            StuckError: the messages cannot be made to fit; with the numbers.
            InputError: `thread_id` or `tenant` is not a valid name.
            PolicyError: the window of the model is not known.
            MessageError: a message has an unknown form.
            ArchiveError: the archive cannot be read; with `on_failure="raise"` also if it cannot be
                written.
            SummaryError: every summariser failed, and `on_failure` is `"raise"`.
        """
        return run(self._fit(messages, **request))

    async def afit(
        self, messages: Sequence[Source], **request: Unpack[Request]
    ) -> CompactionResult:
        """Fit on an event loop; see `fit`."""
        return await arun(self._fit(messages, **request))

    async def _fit(
        self,
        messages: Sequence[Source],
        *,
        model: str,
        thread_id: str,
        tenant: str | None = None,
        session: str = "main",
        system: object = None,
        tools: Sequence[Any] = (),
        answer_tokens: int | None = None,
    ) -> CompactionResult:
        scope = scope_of(tenant, thread_id, session)
        engine, window = self.engine(model)
        meter = engine.meter
        reserved_tokens = check_whole_number(
            answer_tokens or 0, "answer_tokens", 0
        ) + meter.count_tools(tools or ())
        if system:
            reserved_tokens += meter.count_message(plain({"role": "system", "content": system}))
        if reserved_tokens >= window:
            raise StuckError(
                f"system prompt, tools and answer_tokens ({answer_tokens or 0:,}) take "
                f"{reserved_tokens:,} of the window's {window:,} tokens, which leaves no room for "
                "messages; lower answer_tokens, or give the model fewer tools or a shorter prompt",
                needed=reserved_tokens,
                budget=window,
            )
        messages = as_messages(messages)
        plain_messages = messages
        if isinstance(messages, (list, tuple)):
            plain_messages = [plain(message) for message in messages]
        history = HistoryContext(engine, scope, Window(window, reserved_tokens))
        result = await heard_by(engine.listeners, compact_messages(history, plain_messages))
        result.raise_if_stuck()
        own_messages = {
            id(plain_message): message
            for plain_message, message in zip(plain_messages, messages, strict=True)
        }
        view = [own_messages.get(id(message), message) for message in result.messages]
        if view != list(messages):
            chain = await self.archive.call_either_way(self.archive.chain, scope)
            if chain:
                view = without_stale_thoughts(view, chain[-1].messages_after)
        return replace(result, messages=view)

    _fit.__qualname__ = "Fitter.fit"  # the name in Python's error for a missing argument

    def _make_engine(self, model: str) -> tuple[Engine, int]:
        """Return the engine of a model, and its window in tokens."""
        if not isinstance(model, str):
            raise PolicyError(f"model must be the name of the model that answers, not {model!r}")
        windows = self._windows
        limit = input_limit_named(model, windows) if isinstance(windows, Mapping) else windows
        window = limit or input_limit_in_profile(model)
        if window is None:
            raise PolicyError(
                f"the window of the model {model!r} is not known here; give Fitter(window=...) "
                f"its input limit in tokens or a mapping of names to limits{_extra_for(model)}"
            )
        meter = TokenMeter(self._counter, model=model)
        return Engine.build(self._settings, self._policy, meter), window


def _extra_for(model: str) -> str:
    """Name the package that has the window of a model, if that is not installed."""
    extra = family_of(model)[1]
    if extra not in ("openai", "anthropic") or find_spec(f"langchain_{extra}"):
        return ""
    return f", or install its provider's package: {install_command(extra)}"


FAKE_ID = "__fake_id__"
"""The id that the Agents SDK gives to all items of other protocols."""


def plain(message: Any) -> Any:
    """Return a message without cache marks and made-up ids; itself if it has none.

    Example:
        >>> plain({"type": "message", "id": "__fake_id__", "role": "assistant", "content": "b"})
        {'type': 'message', 'role': 'assistant', 'content': 'b'}
    """
    unmarked = without_cache_marks(message)
    if isinstance(unmarked, dict) and unmarked.get("id") == FAKE_ID:
        return {key: value for key, value in unmarked.items() if key != "id"}
    return unmarked
