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
from conspectus.model.answers import wrong_with
from conspectus.model.base import Form, LastRequest, SummaryRequest, check_settings
from conspectus.model.calls import Caller, Steps, model_and_provider, profile_window
from conspectus.model.chunks import Part, divide
from conspectus.model.lengths import answer_limit, shortened
from conspectus.tokens.meter import PER_MESSAGE

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

# Input limit, in tokens, of a model of which nothing is known. One that is smaller says so by an
# error, after which smaller pieces are read.
DEFAULT_WINDOW = 32_000
LEAST_READING = 200  # tokens of messages in one reading; below that, frames are most of it
LEAST_NOTES = 50  # tokens that notes on one piece may take at least
ANSWER = 3  # An answer takes at most one part in so many of the window, the rest is for reading
# Notes on the earlier pieces take one part in so many of the reading of the last piece.
NOTES_SHARE = 3
SMALLEST_READING = 500  # tokens down to which all is read again in halves after an overflow


class ChatModelSummarizer(Steps):
    """Has a chat model read all that is evicted, whole, and write the summary.

    Of a span larger than one reading, pieces are read side by side into notes, and of those one
    summary is made. An answer that is none is asked for once more.

    Args:
        model: a LangChain chat model, or `provider:model` as `init_chat_model` takes it.
        prompt: instructions instead of ours, with `{messages}` where the messages go, else they
            follow.
        trim_tokens_to_summarize: tokens of messages in one reading, at least 200. Default: as much
            as the window takes.
        window: input limit of the model, in tokens. Default: what its profile says, else 32,000.
        max_concurrency: calls at once.
        timeout: seconds for each call; None waits as long as the model does.
        min_tokens: tokens that make any text a summary, for 0 every text that is not empty.
            Default: it cites a message or has 60, or with `prompt` is not too short for what it
            replaces.

    Raises:
        PolicyError: a model that cannot be had, a prompt that is no text, a wrong number.
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
        min_tokens: int | None = None,
    ) -> None:
        limits = {"trim_tokens_to_summarize": trim_tokens_to_summarize, "min_tokens": min_tokens}
        check_settings(timeout, **limits, window=window, max_concurrency=max_concurrency)
        built: Any = chat_model_named(model) if isinstance(model, str) else model
        if not is_runnable(built):
            form = "a LangChain chat model or a text such as 'openai:gpt-5-mini'"
            raise PolicyError(f"model must be {form}, not {model!r}")
        self.model = self._model = built
        kind, name = type(innermost(model)).__name__, named(model)
        self.name = model if isinstance(model, str) else f"{kind}:{name}" if name else kind
        self.min_tokens, self._trim, self._timeout = min_tokens, trim_tokens_to_summarize, timeout
        prompt = None if prompt == prompts.DEFAULT_SUMMARY_PROMPT else prompt
        self._template = None if prompt is None else prompts.Template(prompt)
        is_own = self._template is not None and not self._template.extends_ours
        self.form: Form = "whole" if is_own else "findings"
        self._window = window or profile_window(self.model) or DEFAULT_WINDOW
        self._concurrency = max_concurrency
        made, warmth = type(self.model).__qualname__, str(getattr(self.model, "temperature", None))
        told = (*prompts.TEXTS, self.answer_limit)
        parts = (made, warmth, self.name, prompt, *told, self._window, *limits.values())
        self.identity = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    @property
    def answer_limit(self) -> int | None:
        """Tokens that an answer of its model can have at most; None if nothing limits it."""
        return answer_limit(self.model)

    async def _write(self, request: SummaryRequest, caller: Caller) -> str:
        if self.form == "whole":
            request = replace(request, form="whole")
        if (last := request.last) is None:
            request = request.within(self.answer_limit)
            return await _Reading(self, request, caller).text()
        caller.model, caller.kind = last.bound(), "cached"
        request = request.within(answer_limit(caller.model))
        from langchain_core.messages import HumanMessage

        asked = [*last.messages, HumanMessage(prompts.instruction(request))]
        size, most = request.last_tokens + caller.size(asked[-1:]), request.fine or request.limit
        check = partial(wrong_with, request=request, min_tokens=self.min_tokens)
        # Where the answer is none, the engine goes on with the smallest request.
        return await caller.ask(asked, check, most=most, size=size, once=True)

    def obstacle(self, last: LastRequest, tokens: int, request: SummaryRequest) -> str:
        """Why it does not ask with an agent's last request of so many tokens; empty if it does."""
        if self._template:
            return "a summary_prompt says where the messages go"
        own, other = (model_and_provider(one, "") for one in (self.model, last.model))
        if not (last.any_model or self.model is last.model or (own[0] and own == other)):
            return "another model summarises"
        asked = tokens + request.count(prompts.instruction(request)) + PER_MESSAGE + request.limit
        fits = asked <= (last.window or self._window)
        return "" if fits else "with an instruction and an answer it does not fit the window"


def chat_model_named(model: str) -> BaseChatModel:
    """Return the chat model of a name, such as `openai:gpt-5-mini`.

    Raises:
        PolicyError: it cannot be built; names the package to install where that is missing.
    """
    meant = "" if ":" in model else did_you_mean(model, [EMBEDDED])
    if meant or not model.strip():
        form = "A model is written as in 'openai:gpt-5-mini'"
        raise PolicyError(f"{model!r} names no model;{meant} {form}")
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(model)
    except Exception as error:
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        package = "its provider's package"
        if isinstance(error, ImportError):
            named = re.search(r"langchain[-_]([a-z_-]+)", str(error))
            missing = named[1].replace("_", "-") if named else "openai"
            extra = missing in ("anthropic", "openai")
            command = install_command(missing) if extra else f"pip install langchain-{missing}"
            package = f"{package} ({command})"
        raise PolicyError(
            f"the model {model!r} could not be built ({why}); write it as in 'openai:gpt-5-mini', "
            f"install {package} and set its key; or give a LangChain chat model, or 'embedded', "
            "which needs no model"
        ) from error


class _Reading:
    """The reading of one span; `SummarizerOverflow` where the window is too small for any."""

    def __init__(self, own: ChatModelSummarizer, request: SummaryRequest, caller: Caller) -> None:
        self._set_up(own, request, caller)
        texts = [(entry, entry.reading) for entry in request.entries]
        self.parts = [Part(entry, text, self._size(entry, text)) for entry, text in texts]
        total = sum(part.size for part in self.parts)
        if request.brief and self.room < total <= (own._trim or total):
            saved = request.count(request.notes) - request.count(request.brief)
            if total <= self.room + saved:
                self._set_up(own, replace(request, notes=request.brief), caller)

    def _set_up(self, own: ChatModelSummarizer, request: SummaryRequest, caller: Caller) -> None:
        request = replace(request, limit=min(request.limit, own._window // ANSWER))
        self.request, self.caller, self.concurrency = request, caller, own._concurrency
        self.prompt = partial(prompts.prompt, own._template, request)
        self.check = partial(wrong_with, min_tokens=own.min_tokens)
        # Measured with frames around nothing, so that no estimate is below what is really sent.
        self.base = caller.size(self.prompt(_messages("-"))) + request.count(prompts.PART)
        taken = self.base + request.limit + 2 * PER_MESSAGE
        self.room = own._window - taken  # for messages
        self.trim = max(own._trim or self.room, LEAST_READING)
        if self.room < LEAST_READING:
            raise SummarizerOverflow(
                f"the window of {caller.name} is {own._window:,} tokens; prompt, notes so far and "
                f"answer take {taken:,} of them, which leaves too few to read with; use a model "
                "with a larger window, or ask for a smaller summary"
            )

    async def text(self) -> str:
        while True:
            try:
                return await self._once(self.parts)
            except SummarizerOverflow as error:
                total = sum(part.size for part in self.parts)
                self.room = min(self.room, self.trim, total) // 2
                if self.room < min(SMALLEST_READING, self.trim):
                    advice = "give `window` the real input limit of the model, or use a larger one"
                    raise SummarizerOverflow(f"{error}; {advice}") from error

    async def _once(self, parts: Sequence[Part]) -> str:
        request, room, count, size = self.request, self.room, self._count, 0
        pieces = divide(parts, min(room, self.trim), count, self._size)
        if len(pieces) == 1:
            material, size = _framed(parts), self.base + sum(part.size for part in parts)
        else:
            frame = request.count(prompts.framed("notes", "-", "999 of 999")) + 1
            pieces, last = self._with_last(parts, pieces, frame)
            for_notes = room - sum(part.size for part in last)
            share = for_notes // (len(pieces) + (not last)) - frame  # so that all fit one reading
            limit = max(LEAST_NOTES, min(request.limit, share))
            notes = await gather(partial(self._notes_on, limit=limit), pieces, self.concurrency)
            if sum(count(text) + frame for text in notes) > for_notes:
                share = max(1, for_notes // len(notes) - frame)
                notes = [shortened(text, share, count) for text in notes]
            labelled = ((f"{n} of {len(notes)}", text) for n, text in enumerate(notes, 1))
            framed = [prompts.framed("notes", text, label) for label, text in labelled]
            material = "\n".join([*framed, *([_framed(last)] if last else [])])
        check, most = partial(self.check, request=request), request.fine or request.limit
        return await self.caller.ask(self.prompt(material), check, most=most, size=size)

    def _with_last(
        self, parts: Sequence[Part], pieces: list[list[Part]], frame: int
    ) -> tuple[list[list[Part]], list[Part]]:
        """Return the pieces to take notes on, and the one that is read with these notes.

        So as many readings do as there are pieces. Where notes on the others would take more than
        half of a reading, all pieces are taken notes on, and the last one is empty.
        """
        fewest = len(pieces)
        for number in (fewest, fewest + 1):
            others = number - 1
            share = self.room // (NOTES_SHARE * others) - frame
            notes = others * (max(LEAST_NOTES, min(self.request.limit, share)) + frame)
            if notes > self.room // 2:
                break
            room = min(self.room - notes, self.trim)
            smaller = divide(parts, room, self._count, self._size)
            if len(smaller) <= number:
                return smaller[:-1], smaller[-1]
        return pieces, []

    async def _notes_on(self, piece: Sequence[Part], limit: int) -> str:
        entries = [*{part.entry.key: part.entry for part in piece}.values()]
        asked = replace(self.request, entries=entries, notes="", kept=(), limit=limit)
        check = partial(self.check, request=asked, leaving=sum(part.size for part in piece))
        return await self.caller.ask(self.prompt(_framed(piece), limit), check)

    def _size(self, entry: Message, text: str = "") -> int:
        """Return the tokens of a message in its frame; without a text, of that of a part."""
        label = "" if text else "999 of 999"
        return self.request.count(prompts.message_frame(entry, text, label)) + 1

    def _count(self, text: str) -> int:
        return self.request.count(as_data(text))


def _framed(piece: Sequence[Part]) -> str:
    frames = (prompts.message_frame(part.entry, part.text, part.label) for part in piece)
    return _messages("\n".join(frames))


def _messages(material: str) -> str:
    return f"<messages>\n{material}\n</messages>"
