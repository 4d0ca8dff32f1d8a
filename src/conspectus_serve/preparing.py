"""Turn the bytes of a request into the bytes to send, or into the endpoint's own answer.

Each method takes a step of an exchange, in a worker thread.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from conspectus.archive import Archive
from conspectus.config import SummarizationConfig
from conspectus.errors import ArchiveError, ConspectusError, InputError
from conspectus.messages.recalled import LEAST_RECALL, newest_user
from conspectus.messages.thoughts import REFUSED, without_stale_thoughts
from conspectus.model.provider_errors import is_overflow
from conspectus_serve.compaction import MARK, Asked, BadItem, Items, answer_of, asked_of
from conspectus_serve.entrance import Refusal
from conspectus_serve.fitting import Exchange, Fitter, TooLarge
from conspectus_serve.held import Held
from conspectus_serve.models import Models
from conspectus_serve.operation import printable
from conspectus_serve.protocols import RESPONSES
from conspectus_serve.recall import Chosen, Recall, may_have_tool, tool_in
from conspectus_serve.settings import ServeSettings
from conspectus_serve.upstream import Raw, RefusedByUpstream, own_headers

logger = logging.getLogger("conspectus.serve")

LONGEST_NAME = 200  # maximum characters of a thread's name in a header, and of a model's name
TURNS = 1_024  # turns whose recalled originals are remembered
MODELS = 100  # models of which the log says that their window is not known

UNREADABLE = (ConspectusError, ValueError, TypeError, KeyError, AttributeError)
"""Errors of messages that are not understood."""

NO_WINDOW = (
    "its window is not known, so nothing is compacted before the upstream refuses; give --window, "
    "or serve.windows in the file of --config"
)

ALTERNATE = re.compile(
    r"(?:roles?|messages?)\b.{0,80}?\balternat|multiple .{0,20}?roles? in a row|"
    r"consecutive .{0,30}?(?:messages|roles?)|unexpected role|after role\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words of refusals by templates of Mistral, Gemma and others, and by strict gateways."""

SWITCH = "drop_block"
BETA = b"thinking-binding-controls-2026-08-01"
"""The provider's own switch for thoughts behind another beginning, and the beta header that it
needs (its page on preserved thinking)."""


class Preparer:
    """Read requests, and write what is sent."""

    def __init__(
        self, archive: Archive, settings: ServeSettings, config: SummarizationConfig, items: Items
    ) -> None:
        self._archive, self._settings, self._items = archive, settings, items
        models = Models(settings, config, archive)
        self._fitter = Fitter(archive, models, send_stuck=settings.on_stuck == "send")
        self._held, self._chosen = Held(archive), Chosen(TURNS)
        self._holds = not config.redact  # they are kept as they were sent
        self._warned = set[str]()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn errors of the engine into refusals."""
        try:
            yield
        except TooLarge as error:
            raise Refusal(400, str(error), "context_length_exceeded") from None
        except ArchiveError as error:
            raise Refusal(503, f"the archive is not there just now: {error}") from None
        except BadItem as error:
            raise Refusal(400, str(error), "invalid_compaction_item") from None
        except RecursionError:
            raise Refusal(400, "the request is nested too deeply; send less of it") from None

    def read(self, x: Exchange) -> None:
        """Read a request, measure it, and find its thread. Raises Refusal."""
        named = x.headers.get("x-conspectus-thread")
        if named is not None and not 0 < len(named) <= LONGEST_NAME:
            raise Refusal(400, f"x-conspectus-thread is a name of up to {LONGEST_NAME} characters")
        body, protocol, x.content = _parsed(x.raw), x.route.protocol, x.raw
        x.streamed, x.named = body.get("stream") is True and not x.route.counts, named or ""
        x.note = ""
        asked = Asked(body)
        if self._settings.compaction == "here":
            try:
                asked = asked_of(x.route.name, body)
            except InputError as error:
                raise Refusal(400, str(error)) from None
        if body.get("conversation"):
            x.state = "upstream"
            return
        if x.route.counts:
            asked = replace(asked, alone=False)
        x.asked, x.new = asked, protocol.history(asked.body)
        parent = body.get("previous_response_id")
        with self._refusing():
            if isinstance(parent, str) and parent and protocol is RESPONSES:
                held = self._held.history(x.tenant, parent) if self._holds else None
                if held is None:
                    x.state = "upstream"
                    return
                x.state, x.parent, (x.named, x.before) = "held", parent, held
                rest = {k: v for k, v in asked.body.items() if k != "previous_response_id"}
                x.asked = replace(asked, body=rest)
            x.history, of_item = [*x.before, *x.new], ""
            if x.before or MARK.encode() in x.raw:
                x.history, of_item = self._items.expanded(x.tenant, x.history)
            x.named = x.named or of_item
            x.filled = x.asked.body is not body or bool(of_item)
            model = body.get("model") if isinstance(body.get("model"), str) else x.route.model
            x.model = str(model)[:LONGEST_NAME]
            if not x.history:
                return
            with self._unread(x):
                self._fitter.measure(x)
                if not x.room and x.engine and not x.engine.policy.trigger:
                    x.note = NO_WINDOW
                    if x.model not in self._warned and len(self._warned) < MODELS:
                        self._warned.add(x.model)
                        logger.warning("model %s: %s", printable(x.model) or "-", NO_WINDOW)

    @contextmanager
    def _unread(self, x: Exchange) -> Iterator[None]:
        """Send on a request with a message that is not understood: the upstream decides."""
        try:
            yield
        except (ArchiveError, TooLarge, RecursionError):
            raise
        except UNREADABLE as error:
            if x.filled or x.asked.alone:
                raise Refusal(400, f"a message is not understood: {error}") from None
            logger.info("sent on as it came: %s", type(error).__name__)
            x.note = "a message was not understood; the request is sent on as it came"
            x.trail, x.view, x.due = None, None, False

    def compact(self, x: Exchange) -> None:
        """Compact the history of a request for which that is due. Raises Refusal."""
        with self._refusing(), self._unread(x):
            self._fitter.compact(x)
            if x.fresh:  # its client may have gone, and sends the same request again
                self.settle(x)

    def settle(self, x: Exchange) -> None:
        """Keep the thread's progress; a failure does not stop the answer."""
        try:
            self._fitter.settle(x)
        except ArchiveError as error:
            logger.warning("how far a thread has come could not be kept: %s", error)

    def write(self, x: Exchange) -> None:
        """Write the bytes to send, or the endpoint's own answer. Raises Refusal."""
        if x.trail is None:
            return
        if x.asked.alone and x.fresh:
            view = x.plain if x.view is None else x.view
            item = self._items.written(x.tenant, x.match.thread, view)
            asked = {**x.asked.body, "previous_response_id": x.parent or None}
            x.answer = answer_of(x.route.name, asked, item, x.notes, x.cost, stream=x.streamed)
            return
        if not x.filled and x.view is None:
            return
        name, view, body = x.route.protocol.name, list(x.history), x.asked.body
        x.recalled, x.betas, x.with_tool = 0, (), False
        if x.view is not None:
            view = x.view
            if self._settings.recall != "off" and x.head and x.trail:
                end = (newest_user(x.plain) or 0) + 1
                turn = "-".join(mark.name for mark in x.trail.marks[:end] if mark.said)
                view, x.recalled = self.recall(x).shown(turn, x.plain, view)
            view, body = self._formed(x, view, body)
        body = {**body, x.route.protocol.field: view}
        x.with_tool = self._may_have_tool(x, body)
        spare = self.recall(x).spare if x.with_tool else None
        if x.with_tool and (spare is None or spare >= LEAST_RECALL):
            body["tools"] = [*(body.get("tools") or ()), tool_in(name)]
        else:
            x.with_tool = False
        with self._refusing():
            x.body, x.content = body, json.dumps(body, separators=(",", ":")).encode()

    def recall(self, x: Exchange) -> Recall:
        """Return the originals of an exchange's thread, with the room that there is for them."""
        assert x.engine is not None
        meter, spare = x.engine.meter, x.spare
        if x.with_tool and spare is not None:
            spare -= x.recalled + meter.tools([tool_in(x.route.protocol.name)])
        tokens = self._settings.recall_tokens
        return Recall(self._archive, x.scope, x.head, meter, tokens, spare, self._chosen)

    def _formed(
        self, x: Exchange, view: list[Any], body: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Give a compacted request the form that its upstream takes."""
        forms = x.learned.forms
        view = without_stale_thoughts(view, all_of_them="thoughtless" in forms)
        alternate = self._settings.alternate_roles
        if alternate == "on" or (alternate == "auto" and "roles" in forms):
            view = alternating(view)
        thinking = body.get("thinking")
        thinking = dict(thinking) if isinstance(thinking, Mapping) else {"type": "adaptive"}
        if "switch" in forms and x.route.protocol.name == "messages":
            binding = {"block_binding": {"prefix_mismatch_behavior": SWITCH}}
            body, x.betas = {**body, "thinking": {**thinking, **binding}}, (BETA,)
        return view, body

    def _may_have_tool(self, x: Exchange, body: Mapping[str, Any]) -> bool:
        if x.route.counts or not (self._settings.recall_tool and x.view is not None and x.head):
            return False
        # An upstream that keeps the answer would know it by another name than the client.
        stored = x.route.protocol is RESPONSES and body.get("store") is not False
        return may_have_tool(body) and (self._holds or not stored)

    def again(self, x: Exchange, refusal: RefusedByUpstream) -> bool:
        """Write a refused request in a form that the upstream may take; False for none."""
        if x.trail is None:
            return False
        if is_overflow(refusal):
            try:
                smaller = self._fitter.shrink(x, refusal)
            except ConspectusError as error:
                logger.warning("a refused request could not be made smaller: %s", error)
                return False
            if smaller and x.fresh:
                self.settle(x)
        else:
            form = self._form_of(x, str(refusal)) if x.view is not None else ""
            smaller = bool(form)
            if form:
                x.learned.forms.add(form)
        if smaller:
            self.write(x)
        return smaller

    def _form_of(self, x: Exchange, refusal: str) -> str:
        """Return the form that a refusal of a compacted request asks for; empty for none."""
        forms = x.learned.forms
        if ALTERNATE.search(refusal) and self._settings.alternate_roles == "auto":
            return "" if "roles" in forms else "roles"
        if not REFUSED.search(refusal) or "thoughtless" in forms:
            return ""
        thinking = x.asked.body.get("thinking")
        off = isinstance(thinking, Mapping) and thinking.get("type") == "disabled"
        return "thoughtless" if SWITCH not in refusal or off or "switch" in forms else "switch"

    def keeps(self, x: Exchange) -> bool:
        """Return whether a later request may name the response."""
        stored = x.asked.body.get("store") is not False and not x.route.counts
        return self._holds and stored and x.trail is not None and x.route.protocol is RESPONSES

    def keep_response(self, x: Exchange, response: str, output: list[Any]) -> None:
        """Keep a response that a later request may name."""
        try:
            self._held.keep(x.scope, response, x.parent, x.before, [*x.new, *output])
        except ArchiveError as error:
            logger.warning("a response could not be kept: %s", error)

    def headers(self, x: Exchange) -> Raw:
        """Write the endpoint's own headers."""
        if x.trail is None:
            return own_headers(state=x.state, note=x.note)
        return own_headers(
            thread=x.match.thread,
            compacted=x.view is not None,
            messages_archived=x.left_out,
            tokens_before=x.tokens,
            tokens_after=x.sent + x.recalled,
            record=x.head,
            recalled_tokens=x.recalled or None,
            state=x.state,
            note=x.note,
        )


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw.decode("utf-8"))
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply; send less of it") from None
    except ValueError as error:
        known = isinstance(error, json.JSONDecodeError)
        why = str(error).partition(":")[0] if known else type(error).__name__
        raise Refusal(400, f"the body is no JSON in UTF-8 ({why}); check it") from None
    if not isinstance(body, dict):
        raise Refusal(400, "the body is no JSON object; send {...}")
    return body


def alternating(view: Sequence[Any]) -> list[Any]:
    """Join messages of the user that stand one after another.

    Example:
        >>> alternating([{"role": "user", "content": "Notes."}, {"role": "user", "content": "Hi."}])
        [{'role': 'user', 'content': 'Notes.\\n\\nHi.'}]
    """
    made: list[Any] = []
    for message in view:
        if not (made and _is_users(made[-1]) and _is_users(message)):
            made.append(message)
            continue
        one, other = made[-1].get("content"), message.get("content")
        content: Any = [*_blocks(one), *_blocks(other)]
        if isinstance(one, str) and isinstance(other, str):
            content = f"{one}\n\n{other}"
        made[-1] = {**made[-1], **message, "content": content}
    return made


def _is_users(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "user"


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": str(content)}] if content else []
