"""The summariser that asks a chat model: any model of LangChain, and any number of messages."""

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
from conspectus.model.chunks import Fragment, divide
from conspectus.model.gate import reason_not_a_summary
from conspectus.model.sentences import shortened
from conspectus.tokens.meter import PER_MESSAGE

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

DEFAULT_WINDOW = 32_000
"""The input limit, in tokens, of an unknown model. If the model takes less, its error says so, and
smaller pieces are read."""

LEAST_READING_TOKENS = 200
"""The fewest tokens of messages in one reading. With fewer, most of it would be frames."""

LEAST_HALVED_TOKENS = 500
"""The fewest tokens of a reading that is smaller because a larger one did not fit the window."""

LEAST_REPORT_TOKENS = 50
"""The fewest tokens for a report on one piece."""

ANSWER_DIVISOR = 3
"""An answer takes at most the window divided by this, so that the rest is for reading."""

REPORTS_DIVISOR = 3
"""Reports on the earlier pieces together take the room of one reading divided by this."""

_LARGEST_LABEL = "999 of 999"
"""The longest label that a fragment or a report may have."""


class ChatModelSummarizer(SteppedSummarizer):
    """A summariser that lets a chat model read all evicted messages and write the summary.

    If the messages do not fit into one request, they are divided into pieces. The model reads the
    pieces at the same time and writes a report on each; then it makes one summary of these reports.
    If an answer is not a summary, the model is asked once more.

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
        """Return a function that says why an answer to this request is no summary."""
        has_our_prompt = self._template is None or self._template.extends_ours
        return partial(reason_not_a_summary, request=request, has_our_prompt=has_our_prompt)

    async def _write(self, request: SummaryRequest, calls: ModelCalls) -> str:
        if self.form == "whole":
            request = replace(request, form="whole")
        if request.last is not None:
            return await self._ask_after_last_request(request.last, request, calls)
        request = request.within(self.answer_limit)
        return await _Reading(self, request, calls).write_summary()

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
        instruction = HumanMessage(prompts.instruction_after_request(request))
        return await calls.ask(
            [*last.messages, instruction],
            self.check_of(request),
            most=request.accepted_up_to or request.limit,
            size=request.last_tokens + calls.size([instruction]),
            once=True,
        )

    def obstacle(self, last: LastRequest, tokens: int, request: SummaryRequest) -> str:
        """Say why it cannot ask after an agent's last request; empty if it can.

        `tokens` is the size of that request.
        """
        if self._template:
            return "a summary_prompt says where the messages go"
        if not (last.any_model or self._is_model_of(last)):
            return "another model summarises"
        instruction = request.count(prompts.instruction_after_request(request)) + PER_MESSAGE
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
    """The reading of the messages of one request, in one piece or several."""

    def __init__(
        self, summarizer: ChatModelSummarizer, request: SummaryRequest, calls: ModelCalls
    ) -> None:
        """Measure the messages.

        Raises:
            SummarizerOverflow: the window is too small to read anything.
        """
        limit = min(request.limit, summarizer._window // ANSWER_DIVISOR)
        self.summarizer = summarizer
        self.request = replace(request, limit=limit)
        self.calls = calls
        self.fragments = [
            Fragment(entry, entry.reading, self._size(entry, entry.reading))
            for entry in request.entries
        ]
        self._make_room()
        if self._saves_reading_with_brief_summary():
            self.request = replace(self.request, summary_so_far=self.request.brief_summary)
            self._make_room()

    def _make_room(self) -> None:
        """Calculate how many tokens of messages one reading holds next to the notes so far."""
        # The frame of all messages is counted, too, so that the size is not too low.
        empty_prompt = self._prompt(_messages("-"))
        self.base = self.calls.size(empty_prompt) + self.request.count(prompts.REPORT)
        taken = self.base + self.request.limit + 2 * PER_MESSAGE
        window = self.summarizer._window
        self.room = window - taken
        self.trim = max(self.summarizer._trim or self.room, LEAST_READING_TOKENS)
        if self.room < LEAST_READING_TOKENS:
            raise SummarizerOverflow(
                f"the window of {self.calls.name} is {window:,} tokens; prompt, notes so far and "
                f"answer take {taken:,} of them, which leaves too few to read with; use a model "
                "with a larger window, or ask for a smaller summary"
            )

    def _saves_reading_with_brief_summary(self) -> bool:
        """Tell whether fewer readings are needed with the shorter form of the notes so far."""
        request = self.request
        saved = request.count(request.summary_so_far) - request.count(request.brief_summary)
        if not request.brief_summary or saved <= 0:
            return False
        trim = self.summarizer._trim
        largest = self.room + saved if trim is None else min(self.room + saved, trim)
        return self._number_of_pieces(largest) < self._number_of_pieces(min(self.room, self.trim))

    def _number_of_pieces(self, room: int) -> int:
        return len(divide(self.fragments, room, self._count, self._size))

    async def write_summary(self) -> str:
        """Read all messages and return the summary. After an overflow, read smaller pieces.

        Raises:
            SummarizerOverflow: the smallest pieces were too large for the model, too.
        """
        while True:
            try:
                return await self._read()
            except SummarizerOverflow as error:
                self.room = min(self.room, self.trim, _total(self.fragments)) // 2
                if self.room < min(LEAST_HALVED_TOKENS, self.trim):
                    raise SummarizerOverflow(
                        f"{error}; give `window` the real input limit of the model, or use a "
                        "larger one"
                    ) from error

    async def _read(self) -> str:
        pieces = divide(self.fragments, min(self.room, self.trim), self._count, self._size)
        if len(pieces) == 1:
            size = self.base + _total(self.fragments)
            return await self._ask_for_summary(_framed(self.fragments), size)
        frame = self.request.count(prompts.framed("notes", "-", _LARGEST_LABEL)) + 1
        earlier, last = self._split_off_last_piece(pieces, frame)
        room = self.room - _total(last)
        material = await self._write_reports(earlier, room, frame, is_all=not last)
        if last:
            material.append(_framed(last))
        return await self._ask_for_summary("\n".join(material))

    async def _ask_for_summary(self, material: str, size: int | None = None) -> str:
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
        self, pieces: list[list[Fragment]], frame: int
    ) -> tuple[list[list[Fragment]], list[Fragment]]:
        """Return the pieces to report on, and the piece that is read together with the reports.

        So there are as many readings as pieces. If the reports would take more than half of the
        last reading, all pieces are reported on, and the piece that is returned apart is empty.

        Args:
            pieces: all messages, in as few pieces as possible.
            frame: the tokens of the frame around each report.
        """
        for number in (len(pieces), len(pieces) + 1):
            others = number - 1
            tokens_each = self._report_limit(self.room // (REPORTS_DIVISOR * others) - frame)
            reports = others * (tokens_each + frame)
            if reports > self.room // 2:
                break
            room = min(self.room - reports, self.trim)
            smaller = divide(self.fragments, room, self._count, self._size)
            if len(smaller) <= number:
                return smaller[:-1], smaller[-1]
        return pieces, []

    async def _write_reports(
        self, pieces: Sequence[Sequence[Fragment]], room: int, frame: int, *, is_all: bool
    ) -> list[str]:
        """Have a report written on each piece, and return the reports framed.

        Together they take at most `room` tokens. If `is_all`, there are no messages next to them,
        and the room of one report is spare.
        """
        number = len(pieces) + (1 if is_all else 0)
        limit = self._report_limit(room // number - frame)
        write_report = partial(self._write_report, limit=limit)
        reports = await gather(write_report, pieces, self.summarizer._concurrency)
        taken = sum(self._count(report) + frame for report in reports)
        if taken > room:
            tokens_each = max(1, room // len(reports) - frame)
            reports = [shortened(report, tokens_each, self._count) for report in reports]
        return [
            prompts.framed("notes", report, f"{number} of {len(reports)}")
            for number, report in enumerate(reports, 1)
        ]

    def _report_limit(self, room: int) -> int:
        """Return the most tokens of one report, for which there are `room` tokens."""
        return max(LEAST_REPORT_TOKENS, min(self.request.limit, room))

    async def _write_report(self, piece: Sequence[Fragment], limit: int) -> str:
        entries = {fragment.entry.key: fragment.entry for fragment in piece}
        request = replace(
            self.request, entries=list(entries.values()), summary_so_far="", kept=(), limit=limit
        )
        prompt = self._prompt(_framed(piece), limit)
        return await self.calls.ask(prompt, self.summarizer.check_of(request))

    def _prompt(self, material: str, report_tokens: int = 0) -> list[Any]:
        template = self.summarizer._template
        return prompts.summary_prompt(template, self.request, material, report_tokens)

    def _size(self, entry: Message, text: str = "") -> int:
        """Return the tokens of a message in its frame; without a text, of the frame alone."""
        label = "" if text else _LARGEST_LABEL
        return self.request.count(prompts.message_frame(entry, text, label)) + 1

    def _count(self, text: str) -> int:
        return self.request.count(as_data(text))


def _total(fragments: Sequence[Fragment]) -> int:
    return sum(fragment.size for fragment in fragments)


def _framed(piece: Sequence[Fragment]) -> str:
    frames = (
        prompts.message_frame(fragment.entry, fragment.text, fragment.label) for fragment in piece
    )
    return _messages("\n".join(frames))


def _messages(material: str) -> str:
    return f"<messages>\n{material}\n</messages>"
