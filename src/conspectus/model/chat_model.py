"""The summariser that asks a chat model: any LangChain model, any size of span."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from conspectus._langchain import innermost, is_runnable, named
from conspectus.bridge import gather
from conspectus.core.policy import EMBEDDED, TIMEOUT
from conspectus.errors import PolicyError, SummarizerOverflow, did_you_mean, install_command
from conspectus.messages import Message, as_data
from conspectus.model import prompts
from conspectus.model.answer_limits import answer_limit
from conspectus.model.base import AnswerForm, LastRequest, SummaryRequest, check_settings
from conspectus.model.calls import (
    AnswerCheck,
    ModelCalls,
    SteppedSummarizer,
    model_and_provider,
    profile_window,
)
from conspectus.model.chunks import Part, divide
from conspectus.model.gate import reason_not_a_summary
from conspectus.model.sentences import shortened
from conspectus.tokens.meter import PER_MESSAGE

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

DEFAULT_WINDOW = 32_000
"""The input limit, in tokens, of an unknown model. If the model takes less, its error says so, and
smaller pieces are read."""

LEAST_READING = 200
"""The fewest tokens of messages in one reading. With fewer, frames would be most of it."""

SMALLEST_READING = 500
"""A reading is halved after an overflow, but not below so many tokens."""

LEAST_NOTES = 50
"""The fewest tokens for notes on one piece."""

ANSWER_DIVISOR = 3
"""An answer takes at most one part in so many of the window, so that the rest is for reading."""

REPORTS_DIVISOR = 3
"""Notes on the earlier pieces take one part in so many of the reading of the last piece."""

_LARGEST_LABEL = "999 of 999"
"""A label that is as long as any label can be."""


class ChatModelSummarizer(SteppedSummarizer):
    """A summariser that lets a chat model read all evicted messages and write the summary.

    If the messages do not fit into one request, they are divided into pieces. The model reads the
    pieces at the same time and writes notes on each; then it makes one summary of these notes. If
    an answer is not a summary, the model is asked once more.

    Args:
        model: a LangChain chat model, or `provider:model` as for `init_chat_model`.
        prompt: instructions that replace ours. The messages replace `{messages}` in it; if it has
            none, they follow it.
        trim_tokens_to_summarize: the most tokens of messages in one request, at least 200. Default:
            as many as the window takes.
        window: the input limit of the model, in tokens. Default: the limit in its profile; without
            a profile 32,000.
        max_concurrency: the most calls at the same time.
        timeout: seconds for each call; None: no limit.

    Raises:
        PolicyError: the model cannot be made, the prompt is not a text, or a number is not valid.
    """

    def __init__(
        self,
        model: BaseChatModel | Runnable[Any, Any] | str,
        *,
        prompt: str | None = None,
        trim_tokens_to_summarize: int | None = None,
        window: int | None = None,
        max_concurrency: int = 4,
        timeout: float | None = TIMEOUT,
    ) -> None:
        check_settings(
            timeout,
            trim_tokens_to_summarize=trim_tokens_to_summarize,
            window=window,
            max_concurrency=max_concurrency,
        )
        chat_model: Any = chat_model_named(model) if isinstance(model, str) else model
        if not is_runnable(chat_model):
            raise PolicyError(
                "model must be a LangChain chat model or a text such as 'openai:gpt-5-mini', "
                f"not {model!r}"
            )
        self.model = chat_model
        self.name = model if isinstance(model, str) else _class_and_name(model)
        self._model = chat_model
        self._trim = trim_tokens_to_summarize
        self._timeout = timeout
        self._window = window or profile_window(chat_model) or DEFAULT_WINDOW
        self._concurrency = max_concurrency
        is_ours = prompt is None or prompt == prompts.DEFAULT_SUMMARY_PROMPT
        self._template = None if is_ours else prompts.Template(prompt)
        extends_ours = self._template is None or self._template.extends_ours
        self.form: AnswerForm = "findings" if extends_ours else "whole"
        self.identity = self._identity(None if is_ours else prompt)

    def _identity(self, prompt: str | None) -> str:
        """Return a hash of all settings that change its summaries."""
        settings = (
            type(self.model).__qualname__,
            str(getattr(self.model, "temperature", None)),
            self.name,
            prompt,
            *prompts.TEXTS,
            self.answer_limit,
            self._window,
            self._trim,
        )
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]

    @property
    def answer_limit(self) -> int | None:
        """Tokens that an answer of its model can have at most; None if nothing limits it."""
        return answer_limit(self.model)

    def check_of(self, request: SummaryRequest) -> AnswerCheck:
        """Return what says why an answer to this request is no summary."""
        has_our_prompt = self._template is None or self._template.extends_ours
        return partial(reason_not_a_summary, request=request, has_our_prompt=has_our_prompt)

    async def _write(self, request: SummaryRequest, calls: ModelCalls) -> str:
        if self.form == "whole":
            request = replace(request, form="whole")
        if request.last is not None:
            return await self._ask_after_last_request(request.last, request, calls)
        request = request.within(self.answer_limit)
        return await _Reading(self, request, calls).summary()

    def _calls_for(self, request: SummaryRequest) -> ModelCalls:
        calls = super()._calls_for(request)
        if request.last is None:
            return calls
        return replace(calls, model=request.last.bound(), kind="cached")

    async def _ask_after_last_request(
        self, last: LastRequest, request: SummaryRequest, calls: ModelCalls
    ) -> str:
        """Ask for the summary after an agent's last request, which has all that must be read.

        If the answer is no summary, it is not asked for again here: the engine then sends the
        smallest request.
        """
        from langchain_core.messages import HumanMessage

        request = request.within(answer_limit(calls.model))
        instruction = HumanMessage(prompts.instruction(request))
        return await calls.ask(
            [*last.messages, instruction],
            self.check_of(request),
            most=request.accepted_up_to or request.limit,
            size=request.last_tokens + calls.size([instruction]),
            once=True,
        )

    def obstacle(self, last: LastRequest, tokens: int, request: SummaryRequest) -> str:
        """Say why it cannot ask after an agent's last request, which has so many tokens.

        The answer is empty if it can.
        """
        if self._template:
            return "a summary_prompt says where the messages go"
        if not (last.any_model or self._is_model_of(last)):
            return "another model summarises"
        instruction = request.count(prompts.instruction(request)) + PER_MESSAGE
        window = last.window or self._window
        if tokens + instruction + request.limit > window:
            return "with an instruction and an answer it does not fit the window"
        return ""

    def _is_model_of(self, last: LastRequest) -> bool:
        if self.model is last.model:
            return True
        name, provider = model_and_provider(self.model, "")
        return bool(name) and (name, provider) == model_and_provider(last.model, "")


def _class_and_name(model: object) -> str:
    class_name = type(innermost(model)).__name__
    name = named(model)
    return f"{class_name}:{name}" if name else class_name


def chat_model_named(model: str) -> BaseChatModel:
    """Return the chat model of a name, such as `openai:gpt-5-mini`.

    Raises:
        PolicyError: it cannot be built. The error names the package to install if one is missing.
    """
    suggestion = "" if ":" in model else did_you_mean(model, [EMBEDDED])
    if suggestion or not model.strip():
        raise PolicyError(
            f"{model!r} names no model;{suggestion} A model is written as in 'openai:gpt-5-mini'"
        )
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(model)
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        raise PolicyError(
            f"the model {model!r} could not be built ({type(error).__name__}: {first_line}); write "
            f"it as in 'openai:gpt-5-mini', install {_package_to_install(error)} and set its key; "
            "or give a LangChain chat model, or 'embedded', which needs no model"
        ) from error


def _package_to_install(error: Exception) -> str:
    """Name the package of a model's provider, with the command if the error says which."""
    if not isinstance(error, ImportError):
        return "its provider's package"
    mentioned = re.search(r"langchain[-_]([a-z_-]+)", str(error))
    provider = mentioned[1].replace("_", "-") if mentioned else "openai"
    is_extra = provider in ("anthropic", "openai")
    command = install_command(provider) if is_extra else f"pip install langchain-{provider}"
    return f"its provider's package ({command})"


class _Reading:
    """The reading of one span, in one piece or several."""

    def __init__(
        self, summarizer: ChatModelSummarizer, request: SummaryRequest, calls: ModelCalls
    ) -> None:
        """Measure the span.

        Raises:
            SummarizerOverflow: the window is too small to read anything.
        """
        limit = min(request.limit, summarizer._window // ANSWER_DIVISOR)
        self.summarizer = summarizer
        self.request = replace(request, limit=limit)
        self.calls = calls
        self.parts = [
            Part(entry, entry.reading, self._size(entry, entry.reading))
            for entry in request.entries
        ]
        self._make_room()
        if self._fits_with_brief_summary():
            self.request = replace(self.request, summary_so_far=self.request.brief_summary)
            self._make_room()

    def _make_room(self) -> None:
        """Calculate how many tokens of messages one reading holds next to the notes so far."""
        # Empty frames are measured, too, so that no estimate is too low.
        empty_prompt = self._prompt(_messages("-"))
        self.base = self.calls.size(empty_prompt) + self.request.count(prompts.PART)
        taken = self.base + self.request.limit + 2 * PER_MESSAGE
        window = self.summarizer._window
        self.room = window - taken
        self.trim = max(self.summarizer._trim or self.room, LEAST_READING)
        if self.room < LEAST_READING:
            raise SummarizerOverflow(
                f"the window of {self.calls.name} is {window:,} tokens; prompt, notes so far and "
                f"answer take {taken:,} of them, which leaves too few to read with; use a model "
                "with a larger window, or ask for a smaller summary"
            )

    def _fits_with_brief_summary(self) -> bool:
        """Tell whether shorter notes so far save a reading."""
        request = self.request
        saved = request.count(request.summary_so_far) - request.count(request.brief_summary)
        if not request.brief_summary or saved <= 0:
            return False
        trim = self.summarizer._trim
        largest = self.room + saved if trim is None else min(self.room + saved, trim)
        return self._parts_within(largest) < self._parts_within(min(self.room, self.trim))

    def _parts_within(self, room: int) -> int:
        return len(divide(self.parts, room, self._count, self._size))

    async def summary(self) -> str:
        """Read all messages and return the summary. After an overflow, read smaller pieces.

        Raises:
            SummarizerOverflow: the smallest pieces were too large for the model, too.
        """
        while True:
            try:
                return await self._read()
            except SummarizerOverflow as error:
                self.room = min(self.room, self.trim, _total(self.parts)) // 2
                if self.room < min(SMALLEST_READING, self.trim):
                    raise SummarizerOverflow(
                        f"{error}; give `window` the real input limit of the model, or use a "
                        "larger one"
                    ) from error

    async def _read(self) -> str:
        pieces = divide(self.parts, min(self.room, self.trim), self._count, self._size)
        if len(pieces) == 1:
            size = self.base + _total(self.parts)
            return await self._summary_of(_framed(self.parts), size)
        around_notes = self.request.count(prompts.framed("notes", "-", _LARGEST_LABEL)) + 1
        noted, last = self._split_off_last_piece(pieces, around_notes)
        room = self.room - _total(last)
        notes = await self._notes_on_each(noted, room, around_notes, is_all=not last)
        if last:
            notes.append(_framed(last))
        return await self._summary_of("\n".join(notes))

    async def _summary_of(self, material: str, size: int | None = None) -> str:
        """Ask for the summary. `size` is the size of the prompt in tokens, if it is known."""
        request = self.request
        return await self.calls.ask(
            self._prompt(material),
            self.summarizer.check_of(request),
            most=request.accepted_up_to or request.limit,
            size=size,
            complaint=request.complaint,
        )

    def _split_off_last_piece(
        self, pieces: list[list[Part]], around_notes: int
    ) -> tuple[list[list[Part]], list[Part]]:
        """Return the pieces to take notes on, and the piece that is read together with these notes.

        So there are as many readings as pieces. If notes on the others would take more than half of
        a reading, notes are taken on all pieces, and the last one is empty.
        """
        for number in (len(pieces), len(pieces) + 1):
            others = number - 1
            share = self.room // (REPORTS_DIVISOR * others) - around_notes
            each = max(LEAST_NOTES, min(self.request.limit, share))
            notes = others * (each + around_notes)
            if notes > self.room // 2:
                break
            room = min(self.room - notes, self.trim)
            smaller = divide(self.parts, room, self._count, self._size)
            if len(smaller) <= number:
                return smaller[:-1], smaller[-1]
        return pieces, []

    async def _notes_on_each(
        self, pieces: Sequence[Sequence[Part]], room: int, around_notes: int, *, is_all: bool
    ) -> list[str]:
        """Take notes on each piece, and return them framed, in `room` tokens together."""
        shares = len(pieces) + (1 if is_all else 0)  # one is spare if notes alone fill the reading
        share = room // shares - around_notes
        limit = max(LEAST_NOTES, min(self.request.limit, share))
        take_notes = partial(self._notes_on, limit=limit)
        notes = await gather(take_notes, pieces, self.summarizer._concurrency)
        taken = sum(self._count(text) + around_notes for text in notes)
        if taken > room:
            share = max(1, room // len(notes) - around_notes)
            notes = [shortened(text, share, self._count) for text in notes]
        return [
            prompts.framed("notes", text, f"{number} of {len(notes)}")
            for number, text in enumerate(notes, 1)
        ]

    async def _notes_on(self, piece: Sequence[Part], limit: int) -> str:
        entries = {part.entry.key: part.entry for part in piece}
        request = replace(
            self.request, entries=list(entries.values()), summary_so_far="", kept=(), limit=limit
        )
        prompt = self._prompt(_framed(piece), limit)
        return await self.calls.ask(prompt, self.summarizer.check_of(request))

    def _prompt(self, material: str, part: int = 0) -> list[Any]:
        return prompts.prompt(self.summarizer._template, self.request, material, part)

    def _size(self, entry: Message, text: str = "") -> int:
        """Return the tokens of a message in its frame; without a text, of the frame alone."""
        label = "" if text else _LARGEST_LABEL
        return self.request.count(prompts.message_frame(entry, text, label)) + 1

    def _count(self, text: str) -> int:
        return self.request.count(as_data(text))


def _total(parts: Sequence[Part]) -> int:
    return sum(part.size for part in parts)


def _framed(piece: Sequence[Part]) -> str:
    frames = (prompts.message_frame(part.entry, part.text, part.label) for part in piece)
    return _messages("\n".join(frames))


def _messages(material: str) -> str:
    return f"<messages>\n{material}\n</messages>"
