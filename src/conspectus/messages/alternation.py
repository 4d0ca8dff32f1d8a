"""Join user messages in a row to one message, for models that refuse them.

The chat templates of Mistral, Gemma and others raise an error unless user messages and answers of
the assistant alternate, beginning with the user. Calls of tools and their results do not count. In
a compacted history the summary has the user's role, and the user's task often follows it at once.
Here the two become one message: the text of the summary, an empty line, the task.

A caller may send that message back. `take_apart` recognises it by its record, and divides it into
the messages that it was made of.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import KeyedRef

from conspectus._bounded_cache import BoundedCache
from conspectus._langchain import is_message
from conspectus.messages.blocks import brings_results
from conspectus.messages.framing import is_summary_message, summary_message, summary_text
from conspectus.messages.hosts import is_host_message
from conspectus.messages.message import Message, Source, as_text, decode
from conspectus.messages.reading import read_message
from conspectus.messages.refusals import RefusedFeature

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from conspectus.core.records import Record

AlternateRoles = Literal["auto", "on", "off"]
"""When user messages in a row are joined: for models that need it, always, or never."""

STRICT = re.compile(
    r"mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|mathstral|gemma|llama-?2\b"
    r"|codellama|vicuna|command-r|openchat|sonar",
    re.IGNORECASE,
)
"""Names of models whose template, or whose provider, refuses messages of one role in a row."""

TOLERANT = re.compile(
    r"(?:^|[/:])(?:gpt-?[345]|gpt-oss|chatgpt|o[1345](?:-|$)|claude|gemini|grok|qwen)",
    re.IGNORECASE,
)
"""Names of models that are known to accept messages of one role in a row."""

GOES_ON = "(The conversation goes on.)"
"""Put before an answer at the start of a prompt, for templates that need the user to begin."""

BETWEEN = "\n\n"
"""Stands between texts that are joined."""

JOINED = "joined"
"""The key of the mark of a joined message, in `additional_kwargs["conspectus"]`."""

HUMAN_TYPES = ("human", "HumanMessageChunk")
"""Values of `type` of LangChain's messages of the user."""

REMEMBERED_JOINS = 16
"""The most joined messages that are remembered: an agent sends the same one at each step."""


class JoinedMessage(NamedTuple):
    """A message that was joined, and the messages that it was made of."""

    whole: Source
    parts: tuple[Source, ...]
    contents: tuple[Any, ...] | None = None
    """The contents of the parts when they were joined; None if no caller can have changed them."""

    def is_made_of(self, messages: Sequence[Source]) -> bool:
        """Tell whether it was made of exactly these messages, as they are now."""
        if len(messages) != len(self.parts) or not all(map(is_, messages, self.parts)):
            return False
        return self.contents is None or all(map(is_, self.contents, map(_content_of, messages)))


_newest_joins: BoundedCache[tuple[int, ...], JoinedMessage] = BoundedCache(REMEMBERED_JOINS)
"""The newest joined messages, by the id() of their parts."""

_parts_of: dict[int, tuple[KeyedRef[int, Any], tuple[Any, ...]]] = {}
"""By the id() of a joined LangChain message: a weak reference to it, and its parts."""


# Who needs it


def joins_by_setting(setting: AlternateRoles, model: str) -> bool | None:
    """Tell whether messages are joined for a model of this name; None if only the history tells.

    Example:
        >>> [joins_by_setting("auto", name) for name in ("mistral-small", "gpt-4o", "my-own")]
        [True, False, None]
    """
    if setting != "auto":
        return setting == "on"
    if STRICT.search(model):
        return True
    return False if TOLERANT.search(model) else None


def took_two_in_a_row(messages: Sequence[Message]) -> bool:
    """Tell whether the model of a history has answered two user messages in a row.

    Such a model does not refuse them. As in Mistral's templates, calls and their results between
    two user messages do not count.
    """
    last_role = ""
    has_two_in_a_row = False
    for message in messages:
        if message.role == "user":
            has_two_in_a_row = has_two_in_a_row or last_role == "user"
            last_role = "user"
        elif message.role == "assistant":
            if has_two_in_a_row:
                return True
            if not message.calls:
                last_role = "assistant"
    return False


def without_refused(
    prompt: Sequence[BaseMessage], refused: Collection[RefusedFeature]
) -> list[BaseMessage]:
    """Return the messages of a prompt without what the template of its model has refused."""
    from langchain_core.messages import HumanMessage

    messages = without_system(prompt) if "system" in refused else list(prompt)
    if "roles" not in refused:
        return messages
    first = next((at for at, message in enumerate(messages) if message.type != "system"), None)
    if first is not None and messages[first].type == "ai":
        messages.insert(first, HumanMessage(GOES_ON))
    return alternating(messages)


# Joining


def alternating(view: Sequence[Any], received_joined: Sequence[JoinedMessage] = ()) -> list[Any]:
    """Join user messages that follow each other.

    Args:
        view: the messages to send, as dicts or LangChain messages. None is changed.
        received_joined: messages that a caller sent joined. If exactly the parts of one follow each
            other, the same object is sent again.

    Example:
        >>> alternating([{"role": "user", "content": "Notes."}, {"role": "user", "content": "Hi."}])
        [{'role': 'user', 'content': 'Notes.\\n\\nHi.'}]
    """
    sent: list[Any] = []
    last_end = 0
    for start, end in _user_runs(view):
        sent += view[last_end:start]
        run = view[start:end]
        as_it_was = [joined.whole for joined in received_joined if joined.is_made_of(run)]
        sent.append(as_it_was[0] if as_it_was else _join(run))
        last_end = end
    sent += view[last_end:]
    return sent


def rejoined(view: Sequence[Any], received_joined: Sequence[JoinedMessage]) -> list[Any]:
    """Put messages that a caller sent joined in the place of their parts, and join no others."""
    sent = list(view)
    for joined in received_joined:
        length = len(joined.parts)
        for start in range(len(sent)):
            if joined.is_made_of(sent[start : start + length]):
                sent[start : start + length] = [joined.whole]
                break
    return sent


def _user_runs(view: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of messages that become one."""
    start: int | None = None  # first message of the run that is being read
    for position, message in enumerate(view):
        # Most messages are an agent's. Their type tells that without a call of a function.
        langchain_type = None if type(message) is dict else getattr(message, "type", None)
        if langchain_type is None:
            is_users = _is_joinable(message)
        else:
            is_users = langchain_type in HUMAN_TYPES
        if is_users and start is not None and not brings_results(message):
            continue
        if start is not None and position - start > 1:
            yield start, position
        start = position if is_users else None
    if start is not None and len(view) - start > 1:
        yield start, len(view)


def _is_joinable(message: Any) -> bool:
    """Tell whether a message has the user's role and a content that can be joined."""
    if is_message(message):
        return message.type in HUMAN_TYPES
    if message.get("role") != "user" or "content" not in message:
        return False
    return isinstance(message["content"], (str, list, type(None)))


def _join(run: Sequence[Any]) -> Any:
    """Make one message of several; use a LangChain message again that was made before."""
    if not is_message(run[-1]):
        contents = [_content_of(message) for message in run]
        return {**_holder_of_fields(run), "content": _joined_content(contents)}
    identities = tuple(map(id, run))
    remembered = _newest_joins.get(identities)
    if remembered is not None and remembered.is_made_of(run):
        return remembered.whole
    joined = _join_langchain(run)
    _newest_joins.put(identities, joined)
    _parts_of[id(joined.whole)] = (
        KeyedRef(joined.whole, _forget, id(joined.whole)),
        joined.parts,
    )
    return joined.whole


def _join_langchain(run: Sequence[Any]) -> JoinedMessage:
    """Make a copy of the last of several messages, with the content of all and a mark."""
    contents = [_content_of(message) for message in run]
    last = run[-1]
    options = {**last.additional_kwargs}
    options["conspectus"] = {**(options.get("conspectus") or {}), JOINED: len(run)}
    update = {"content": _joined_content(contents), "additional_kwargs": options}
    return JoinedMessage(last.model_copy(update=update), tuple(run), tuple(contents))


def _holder_of_fields(run: Sequence[Any]) -> Mapping[str, Any]:
    """Return the dict whose fields, such as a name, the joined message gets.

    It is the last one that a host did not write: with a host's name or mark, the user's words would
    count as the host's. After a summary it is always the last one, because the record has the
    parts.
    """
    last: Mapping[str, Any] = run[-1]
    if is_summary_message(run[0]):
        return last
    written_by_users = [
        message for message in run if not is_message(message) and not is_host_message(message)
    ]
    return written_by_users[-1] if written_by_users else last


def _forget(message: KeyedRef[int, Any]) -> None:
    _parts_of.pop(message.key, None)


def _joined_content(contents: Sequence[Any]) -> Any:
    """Join contents: texts with an empty line between them, else all of their blocks."""
    contents = [content for content in contents if content]
    if all(isinstance(content, str) for content in contents):
        return BETWEEN.join(contents)
    listed = [content for content in contents if not isinstance(content, str)]
    types = {
        block.get("type") for content in listed for block in content if isinstance(block, Mapping)
    }
    is_of_responses = bool(types & {"input_text", "input_image", "input_file"})
    text_type = "input_text" if is_of_responses else "text"
    blocks: list[Any] = []
    for content in contents:
        if isinstance(content, str):
            blocks.append({"type": text_type, "text": content})
        else:
            blocks += content
    return blocks


def as_users(message: BaseMessage) -> BaseMessage:
    """Return a system message as one of the user; another message as it is."""
    from langchain_core.messages import HumanMessage

    return HumanMessage(message.content, id=message.id) if message.type == "system" else message


def without_system(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Give system messages the user's role, and join all user messages that then follow each other.

    So a leading system message becomes the start of the first user message.
    """
    as_user_messages = [as_users(message) for message in messages]
    original_of = dict(zip(map(id, as_user_messages), messages, strict=True))
    sent = alternating(as_user_messages)
    for message in sent:
        parts = _remembered_parts(message)
        if parts is not None:
            # `with_parts` gives the system message back, not the user message made of it.
            originals = tuple(original_of.get(id(part), part) for part in parts)
            _parts_of[id(message)] = (_parts_of[id(message)][0], originals)
    return sent


def _remembered_parts(message: Any) -> tuple[Any, ...] | None:
    """Return the messages that this process has joined to a LangChain message; None if it has not.

    Python uses the id() of a dead object again, so the object is compared, too.
    """
    entry = _parts_of.get(id(message))
    if entry is None:
        return None
    reference, parts = entry
    return parts if reference() is message else None


# Taking apart


def with_parts(messages: Sequence[Any]) -> Sequence[Any]:
    """Return a request as it was before this process joined messages in it.

    If it joined none, the result is the same list.
    """
    if not _parts_of:
        return messages
    result: list[Any] = []
    is_changed = False
    for message in messages:
        parts = _remembered_parts(message)
        if parts is None:
            result.append(message)
        else:
            result += parts
            is_changed = True
    return result if is_changed else messages


def is_marked_joined(message: Any) -> bool:
    """Tell whether a LangChain message is marked as a joined one; dicts have no such mark."""
    if not is_message(message):
        return False
    options = message.additional_kwargs.get("conspectus")
    return isinstance(options, Mapping) and JOINED in options


def described_parts(sources: Sequence[Source], *, fields: bool = True) -> list[dict[str, Any]]:
    """Describe messages that are joined to a summary before them, so that they can be taken apart.

    Each description has the `size` of a message, in characters of its text or in blocks. With
    `fields`, and if there are several messages, it also has all that they hold apart from content.
    """
    described: list[dict[str, Any]] = []
    for source in sources:
        content = _content_of(source)
        if not content:
            continue  # nothing of it is in the joined message
        part: dict[str, Any] = {"size": len(content), "blocks": isinstance(content, list)}
        if fields and len(sources) > 1:
            part |= _described_fields(source)
        described.append(part)
    return described


def _described_fields(source: Source) -> dict[str, Any]:
    """Describe what a message holds apart from its content; `_made_of_description` reads it."""
    message = read_message(source)
    form, data, _ = message.encoded
    if form == "langchain":
        fields = {key: value for key, value in data["data"].items() if key != "content"}
        described: dict[str, Any] = {"type": data["type"], "data": fields}
    else:
        described = {key: value for key, value in data.items() if key != "content"}
    return {"data": described, "form": form, "id": message.given_id}


def take_apart(source: Source, record: Record) -> list[Source] | None:
    """Divide a message that begins with the summary of a record into the messages it was made of.

    Return None if it begins with another text, or has nothing after the summary.
    """
    text = summary_text(record.summary, archived=record.archived, number=record.notes_number)
    remaining = _content_after(source, text)
    if remaining is None:
        return None
    summary = summary_message(text, record.id, as_dict=not is_message(source))
    return [summary, *_divide(source, remaining, record.joined)]


def is_joined_into(message: Any, joined: Any) -> bool:
    """Tell whether the dict `joined` contains all of `message` after some other text."""
    if is_message(joined) or not (_is_joinable(joined) and _is_joinable(message)):
        return False
    content = joined["content"]
    part = message["content"]
    if not part:
        return False
    if isinstance(content, str) and isinstance(part, str):
        return f"{BETWEEN}{part}{BETWEEN}" in f"{content}{BETWEEN}"
    blocks = part if isinstance(part, list) else [{"type": "text", "text": part}]
    return isinstance(content, list) and all(block in content[1:] for block in blocks)


def message_after(source: Source, text: str) -> Source | None:
    """Return the message that was joined to a text before it; None if there is none."""
    remaining = _content_after(source, text)
    return None if remaining is None else _with_content(source, remaining)


def _content_of(source: Source) -> Any:
    return source.content if is_message(source) else source.get("content")


def _content_after(source: Source, text: str) -> str | list[Any] | None:
    """Return the content that follows a text; None if the content does not begin with that text."""
    content = _content_of(source)
    if isinstance(content, str) and content.startswith(text + BETWEEN):
        return content[len(text) + len(BETWEEN) :]
    if isinstance(content, list) and len(content) > 1 and _text_of(content[0]) == text:
        return content[1:]
    return None


def _text_of(block: Any) -> Any:
    return block.get("text") if isinstance(block, Mapping) else block


def _divide(
    source: Source, content: str | list[Any], described: Sequence[Mapping[str, Any]]
) -> Iterator[Source]:
    """Divide what follows the summary, as a record describes it.

    What the record does not describe becomes one more message.
    """
    start = 0
    for number, part in enumerate(described):
        part_content, next_start = _next_part(content, start, part)
        if part_content is None:
            break
        is_last = next_start >= len(content)
        has_fields_of_source = is_last or "data" not in part
        if has_fields_of_source and number < len(described) - 1:
            break  # the record describes another message
        if has_fields_of_source:
            yield _with_content(source, part_content)
        else:
            yield _made_of_description(part, part_content)
        start = next_start
    if start < len(content):
        yield _with_content(source, content[start:])


def _next_part(
    content: str | list[Any], start: int, part: Mapping[str, Any]
) -> tuple[str | list[Any] | None, int]:
    """Return the content of a described part, and where the next part starts.

    The content is None if something else is there.
    """
    size = int(part["size"])
    if isinstance(content, str):
        end = start + size
        is_end_of_part = end == len(content) or content.startswith(BETWEEN, end)
        if part["blocks"] or not is_end_of_part:
            return None, start
        return content[start:end], end + len(BETWEEN)
    if part["blocks"]:
        return content[start : start + size], start + size
    text = _text_of(content[start]) if start < len(content) else None
    if not isinstance(text, str) or len(text) != size:
        return None, start
    return text, start + 1


def _with_content(source: Source, content: str | list[Any]) -> Source:
    """Return a message with other content, and without the mark of a joined one."""
    if not is_message(source):
        return {**source, "content": content}
    options = {**source.additional_kwargs}
    marks = {**(options.pop("conspectus", None) or {})}
    marks.pop(JOINED, None)
    if marks:
        options["conspectus"] = marks
    return source.model_copy(update={"content": content, "additional_kwargs": options})


def _made_of_description(part: Mapping[str, Any], content: str | list[Any]) -> Source:
    """Return the message that `described_parts` has described."""
    data: Any = part["data"]
    if part["form"] == "langchain":
        data = {**data, "data": {**data["data"], "content": ""}}
        message: Any = decode("langchain", as_text(data), part["id"])
        return message.model_copy(update={"content": content})  # type: ignore[no-any-return]
    message = decode("dict", as_text({**data, "content": ""}), part["id"])
    return {**message, "content": content}
