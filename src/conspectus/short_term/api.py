"""Provide `summarize_messages`, with and without an event loop, and as a node of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.utils.runnable import RunnableCallable  # type: ignore[attr-defined]
from pydantic import BaseModel

from conspectus._arguments import suggesting, unknown_argument
from conspectus.bridge import arun, io, run
from conspectus.core.policy import OnFailure, whole
from conspectus.engine.settings import AnyArchive, Settings, open_archive
from conspectus.errors import ArchiveError, Attributes, InputError, PolicyError
from conspectus.messages.alternation import AlternateRoles
from conspectus.observe import log
from conspectus.redaction import Redact
from conspectus.short_term.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Prompt,
)
from conspectus.short_term.step import Invocation, RunningSummary, SummarizationResult
from conspectus.tokens import TokenMeter

TokenCounter = Callable[[Any], int]
"""LangMem's name. Fractions are rounded up."""

RUNNING = "running_summary"  # a parameter, and a key in `context` of a node's state

SIZES = ("max_tokens", "max_summary_tokens", "max_tokens_before_summary")


@suggesting("summarize_messages")
def summarize_messages(
    messages: Sequence[AnyMessage],
    *,
    running_summary: RunningSummary | None,
    model: Any,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: TokenCounter = count_tokens_approximately,
    initial_summary_prompt: Prompt = DEFAULT_INITIAL_SUMMARY_PROMPT,
    existing_summary_prompt: Prompt = DEFAULT_EXISTING_SUMMARY_PROMPT,
    final_prompt: Prompt = DEFAULT_FINAL_SUMMARY_PROMPT,
    archive: AnyArchive | None = None,
    thread_id: str | None = None,
    on_failure: OnFailure = Settings.on_failure,
    redact: Redact = None,
    alternate_roles: AlternateRoles = "auto",
) -> SummarizationResult:
    """Replace the oldest messages by a summary once enough has gathered.

    From the oldest to the newest: once `max_tokens_before_summary` have gathered and the rest fits
    in `max_tokens`, less the system message and `max_summary_tokens`, all up to there is
    summarised. A leading system message, the newest human message, the last exchange and unanswered
    calls stay; a call and its results stay together. What is longer than `max_tokens` is read in
    several calls of the model. A summary that fails a check never takes effect.

    Args:
        messages: the history, with ids: whole, or the last result and what is new.
        running_summary: of the last result; None the first time. A dict with the same names, as
            from a strict serializer, will do.
        model: writes the summary: a chat model, or anything whose `invoke` takes a list of
            messages. It is told how long the summary may be: `max_summary_tokens`, or less where
            the model has a limit, as by `model.bind(max_tokens=128)`. A summary that ends at such a
            limit is used up to its last whole sentence.
        max_tokens: most tokens of the result of a call that summarises. Messages that gather after
            it may exceed them until the next summary.
        max_tokens_before_summary: tokens that gather before that. Default: `max_tokens`.
        max_summary_tokens: tokens set aside for the summary. A longer one is sent back once to be
            shortened, and then cut behind its last whole sentence that fits. From 64 on; fewer are
            set aside only. Default: 256.
        token_counter: tokens of a list of messages. Default: LangChain's approximate count.
        initial_summary_prompt: asks for the first summary. Slot: `messages`.
        existing_summary_prompt: asks to update it. Slots: `messages`, `existing_summary`.
        final_prompt: puts the result together. Slots: `system_message`, `summary`, `messages`.
        archive: where originals go before they leave: an `Archive`, a LangGraph store, a path or a
            URL. Default: nowhere; then nothing is truncated, and nothing can be recalled.
        thread_id: the conversation, for the archive. Default: that of the graph's config.
        on_failure: when no summary can be made: `"degrade"` keeps the history while it fits
            `max_tokens`, and else uses the embedded summariser; `"keep"` keeps it; `"raise"`
            raises. Default: `"degrade"`.
        redact: takes secrets out of all that is archived or summarised; see `Compactor`. Default:
            None, for off.
        alternate_roles: whether the result has no two messages of the user in a row, as Mistral's
            and Gemma's templates demand: `"on"`, `"off"`, or `"auto"`, by the name of `model`. The
            summary is then a message of the user, in one with the question behind it, which is
            taken apart when it comes back. Default: `"auto"`.

    Returns:
        The messages to send to the model, and the running summary to pass the next time.

    Raises:
        ValueError: `max_summary_tokens` is not less than `max_tokens`; a message has no id, or one
            that was summarised already; another setting is invalid (`PolicyError`,
            `MessageError`, `InputError`).
        SummaryError, ArchiveError, StuckError: only with `on_failure="raise"`.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> from langchain_core.language_models import FakeListChatModel
        >>> talk = [HumanMessage("hello " * 60, id="1"), AIMessage("hi " * 60, id="2")]
        >>> talk.append(HumanMessage("and now?", id="3"))
        >>> model = FakeListChatModel(responses=["They greeted each other."])
        >>> result = summarize_messages(
        ...     talk, running_summary=None, model=model, max_tokens=140, max_summary_tokens=60,
        ... )
        >>> [message.type for message in result.messages], result.running_summary.summary
        (['system', 'human'], 'They greeted each other.')
    """
    return run(_summarized(locals(), ensure_config()))


PARAMETERS = signature(summarize_messages)


@wraps(summarize_messages, assigned=())  # the signature
async def asummarize_messages(*args: Any, **kwargs: Any) -> SummarizationResult:
    """`summarize_messages` on an event loop; a model that is no `Runnable` gets a thread."""
    if unknown := kwargs.keys() - PARAMETERS.parameters.keys():
        raise unknown_argument("asummarize_messages", min(unknown), PARAMETERS.parameters)
    bound = PARAMETERS.bind(*args, **kwargs)
    bound.apply_defaults()
    return await arun(_summarized(bound.arguments, ensure_config()))


async def _summarized(
    given: Mapping[str, Any], config: RunnableConfig, *, named: bool = False
) -> SummarizationResult:
    """Do what is due; `given` has the parameters by name."""
    _check(given)
    setting = given["archive"]
    thread = given["thread_id"] or (config.get("configurable") or {}).get("thread_id")
    call = Invocation(given, thread)
    if setting == "memory:":
        raise PolicyError(
            "an archive of 'memory:' would be gone after each call; make one with "
            "Archive.open('memory:') and pass that"
        )
    if setting is not None and thread in (None, ""):
        raise InputError(
            "archive= needs to know the conversation: pass thread_id=, or call it in a graph "
            'whose config has {"configurable": {"thread_id": ...}}'
        )
    try:
        archive = await io(lambda: open_archive(setting))
        try:
            made = await call.made(archive)
        finally:
            if archive is not None and archive is not setting:
                archive.close()
    except ArchiveError as error:
        if given["on_failure"] == "raise":
            raise
        log("history_kept", "the archive cannot be read for now, nothing is summarised: %s", error)
        made = call.running, call.rest
    return call.result(*made, in_state=named)


def _check(given: Mapping[str, Any]) -> None:
    """Raise `PolicyError` for an invalid parameter."""
    most, share, before = (given[name] for name in SIZES)
    for name, size, least in zip(SIZES, (most, share, before or 0), (1, 0, 0), strict=True):
        whole(size, name, least)
    if share >= most:
        # The first sentence is the one that users of LangMem look for.
        raise PolicyError(
            "`max_summary_tokens` must be less than `max_tokens`. They are "
            f"{share:,} and {most:,}, which leaves no room for any message: lower the first one."
        )
    if not hasattr(model := given["model"], "invoke"):
        form = "a chat model, whose method invoke takes a list of messages"
        raise PolicyError(f"model must be {form}, not {model!r:.200}")
    for name in ("initial_summary_prompt", "existing_summary_prompt", "final_prompt"):
        if not hasattr(given[name], "invoke"):
            raise PolicyError(f"{name} must be a ChatPromptTemplate, not {given[name]!r:.200}")
    TokenMeter(given["token_counter"])
    Settings.of(given)


class SummarizationNode(Attributes, RunnableCallable):
    """Summarise the oldest messages of a state once enough has gathered.

    It takes the parameters of `summarize_messages`, and reads and writes the state in LangMem's
    form: `{output_messages_key: [...], "context": {"running_summary": RunningSummary}}`, the latter
    once something was summarised: the state needs a key `context` that holds a dict. It works with
    and without an event loop.

    It also takes:

    - `input_messages_key`: where the state has the history. Default: `"messages"`.
    - `output_messages_key`: where the result goes. Default: `"summarized_messages"`. The same as
      `input_messages_key` replaces the history.
    - `name`: of the node. Default: `"summarization"`.

    An archive is opened once; `node.archive.close()` closes it.

    Raises:
        ValueError: a setting is invalid (`PolicyError`).
        ArchiveError: the archive cannot be opened.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from langchain_core.language_models import FakeListChatModel
        >>> node = SummarizationNode(
        ...     model=FakeListChatModel(responses=["A talk."]), max_tokens=1_000
        ... )
        >>> list(node.invoke({"messages": [HumanMessage("hi", id="1")]}))
        ['summarized_messages']
    """

    if TYPE_CHECKING:  # the parameters

        def __getattr__(self, name: str) -> Any: ...

    @suggesting("SummarizationNode")
    def __init__(
        self,
        *,
        model: Any,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        token_counter: TokenCounter = count_tokens_approximately,
        initial_summary_prompt: Prompt = DEFAULT_INITIAL_SUMMARY_PROMPT,
        existing_summary_prompt: Prompt = DEFAULT_EXISTING_SUMMARY_PROMPT,
        final_prompt: Prompt = DEFAULT_FINAL_SUMMARY_PROMPT,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
        archive: AnyArchive | None = None,
        thread_id: str | None = None,
        on_failure: OnFailure = Settings.on_failure,
        redact: Redact = None,
        alternate_roles: AlternateRoles = "auto",
    ) -> None:
        given = {key: value for key, value in locals().items() if key not in ("self", "name")}
        _check(given)  # what is invalid is refused before the archive is opened
        RunnableCallable.__init__(self, self._summarise, self._asummarise, name=name, trace=False)
        vars(self).update(given, archive=open_archive(archive))
        self._is_built = True

    def _summarise(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return run(self._updated(state, config))

    async def _asummarise(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        return await arun(self._updated(state, config))

    async def _updated(self, given: Any, config: RunnableConfig) -> dict[str, Any]:
        if not (isinstance(given, (Mapping, BaseModel)) or is_dataclass(given)):
            kinds = "a dict, a dataclass or a pydantic model"
            raise InputError(f"Invalid input type: {type(given)}. Give {kinds}.")
        if is_dataclass(given):  # which may have slots
            given = {one.name: getattr(given, one.name) for one in fields(given)}
        state = given if isinstance(given, Mapping) else vars(given)
        messages, context = state.get(self.input_messages_key), state.get("context") or {}
        if messages is None:
            raise InputError(
                f"Missing required field `{self.input_messages_key}` in the input. Name the one "
                "that holds the history with input_messages_key."
            )
        if not isinstance(context, Mapping):
            form = "the field `context`, which holds the running summary, must be a dict"
            raise InputError(f"{form}, not {type(context).__name__}")
        same = self.input_messages_key == self.output_messages_key
        asked = {**vars(self), "messages": messages, RUNNING: context.get(RUNNING)}
        made = await _summarized(asked, config, named=same)
        if made.running_summary is None:
            return {self.output_messages_key: made.messages}
        first = [RemoveMessage(REMOVE_ALL_MESSAGES)] if same else []
        update = {**context, RUNNING: made.running_summary}
        return {self.output_messages_key: [*first, *made.messages], "context": update}
