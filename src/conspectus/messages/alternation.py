"""Join messages of the user that stand in a row, for models that refuse them.

The chat templates of Mistral, Gemma and others raise an error unless messages of the user and
answers of the assistant alternate, beginning with the user; calls of tools and their results do not
count. A compacted history begins with the summary, which is the user's, and the user's task often
follows at once. Here they become one message: the text of the summary, an empty line, the task.

A caller may send that message back. It is known by its record, and divided again (`taken_apart`)
into the messages of which it was made.
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
"""Whether messages of the user in a row are joined: for models that need it, always, or never."""

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
"""Names of models that are known to take them."""

GOES_ON = "(The conversation goes on.)"
"""Stands before an answer with which a prompt begins, where a template lets the user begin."""

BETWEEN = "\n\n"  # stands between texts that are joined
JOINED = "joined"  # key in a LangChain message's `additional_kwargs["conspectus"]`
HUMAN_TYPES = ("human", "HumanMessageChunk")
REMEMBERED_JOINS = 16  # joined messages that are kept: an agent sends the same one at each step


class JoinedMessage(NamedTuple):
    """A joined LangChain message, the messages that it was made of, and what they held."""

    whole: Any
    parts: tuple[Any, ...]
    contents: tuple[Any, ...]

    def is_made_of(self, messages: Sequence[Any]) -> bool:
        """Tell whether it was made of just these messages as they are now."""
        contents = map(_content_of, messages)
        return all(map(is_, self.parts, messages)) and all(map(is_, self.contents, contents))


_newest_joins: BoundedCache[tuple[int, ...], JoinedMessage] = BoundedCache(REMEMBERED_JOINS)
"""The newest joined messages, by the identities of their parts."""

_parts_of: dict[int, tuple[KeyedRef[int, Any], tuple[Any, ...]]] = {}
"""By the identity of a joined LangChain message: itself, weakly, and the messages it is made of."""


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
    """Tell whether the model of a history has answered two messages of the user in a row.

    Calls and their results do not count between two of them, as in Mistral's templates. A model
    that has answered refuses nothing of that kind.
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


class ReceivedJoined(NamedTuple):
    """A message that came joined, and the messages that it was made of."""

    whole: Source
    parts: tuple[Source, ...]

    def is_made_of(self, messages: Sequence[Source]) -> bool:
        """Tell whether a run of messages is just these parts."""
        return len(messages) == len(self.parts) and all(map(is_, messages, self.parts))


def alternating(view: Sequence[Any], received_joined: Sequence[ReceivedJoined] = ()) -> list[Any]:
    """Join messages of the user that stand one behind another.

    Args:
        view: the messages to send, as dicts or LangChain messages. None is changed.
        received_joined: messages that came joined. Where just the parts of one stand in a row, the
            same object is sent again.

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


def rejoined(view: Sequence[Any], received_joined: Sequence[ReceivedJoined]) -> list[Any]:
    """Put messages that came joined in the place of their parts, and join no others."""
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
    start: int | None = None  # of the run that goes up to this message
    for position, message in enumerate(view):
        # Most messages are an agent's, which their type tells without a call.
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
    """Make one message of several; a LangChain message that was made before is used again."""
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
    """Make one message that is, but for its content and a mark, the last of several."""
    contents = [_content_of(message) for message in run]
    last = run[-1]
    options = {**last.additional_kwargs}
    options["conspectus"] = {**(options.get("conspectus") or {}), JOINED: len(run)}
    update = {"content": _joined_content(contents), "additional_kwargs": options}
    return JoinedMessage(last.model_copy(update=update), tuple(run), tuple(contents))


def _holder_of_fields(run: Sequence[Any]) -> Mapping[str, Any]:
    """Return the dict whose fields, such as a name, the joined one gets.

    By a host's name or mark the words of the user in it would be taken for the host's. Behind a
    summary it is the last one all the same, as its record tells the parts.
    """
    last: Mapping[str, Any] = run[-1]
    if is_summary_message(run[0]):
        return last
    own = [message for message in run if not is_message(message) and not is_host_message(message)]
    return own[-1] if own else last


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
    """Make system messages the user's, and join all messages of the user that then stand in a row.

    So a leading one begins the first message of the user.
    """
    as_user_messages = [as_users(message) for message in messages]
    original_of = dict(zip(map(id, as_user_messages), messages, strict=True))
    sent = alternating(as_user_messages)
    for message in sent:
        parts = _remembered_parts(message)
        if parts is not None:
            # It was made of the system message, and that is what `with_parts` gives back.
            originals = tuple(original_of.get(id(part), part) for part in parts)
            _parts_of[id(message)] = (_parts_of[id(message)][0], originals)
    return sent


def _remembered_parts(message: Any) -> tuple[Any, ...] | None:
    """Return the messages of which this process has made a LangChain message; None if it has not.

    Identities are used again, so that it is compared.
    """
    entry = _parts_of.get(id(message))
    if entry is None:
        return None
    reference, parts = entry
    return parts if reference() is message else None


# Taking apart


def with_parts(messages: Sequence[Any]) -> Sequence[Any]:
    """Return a request as it was before `alternating`, if this process has joined it.

    It is the same list if nothing in it was joined.
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


def is_labelled_joined(message: Any) -> bool:
    """Tell whether a LangChain message is marked as a joined one; dicts have no such mark."""
    if not is_message(message):
        return False
    options = message.additional_kwargs.get("conspectus")
    return isinstance(options, Mapping) and JOINED in options


def described_parts(sources: Sequence[Source], *, fields: bool = True) -> list[dict[str, Any]]:
    """Describe messages that are joined behind a summary, so that they can be taken apart.

    Each has its `size`, in characters of its text or in blocks. Several have, with `fields`, all
    that they hold beside their content.
    """
    described: list[dict[str, Any]] = []
    for source in sources:
        content = _content_of(source)
        if not content:
            continue  # nothing of it stands in the joined message
        part: dict[str, Any] = {"size": len(content), "blocks": isinstance(content, list)}
        if fields and len(sources) > 1:
            part |= _described_fields(source)
        described.append(part)
    return described


def _described_fields(source: Source) -> dict[str, Any]:
    """Describe what a message holds beside its content; `_made_of_description` reads it."""
    message = read_message(source)
    form, data, _ = message.encoded
    if form == "langchain":
        fields = {key: value for key, value in data["data"].items() if key != "content"}
        described: dict[str, Any] = {"type": data["type"], "data": fields}
    else:
        described = {key: value for key, value in data.items() if key != "content"}
    return {"data": described, "form": form, "id": message.given_id}


def taken_apart(source: Source, record: Record) -> list[Source] | None:
    """Return the messages of which a message was made that begins with a record's summary.

    None if it begins otherwise, or holds nothing else.
    """
    text = summary_text(record.summary, archived=record.archived, number=record.notes_number)
    remaining = _content_behind(source, text)
    if remaining is None:
        return None
    summary = summary_message(text, record.id, as_dict=not is_message(source))
    return [summary, *_divided(source, remaining, record.joined)]


def is_joined_into(message: Any, joined: Any) -> bool:
    """Tell whether the dict `joined` contains all of `message` behind some other text."""
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


def message_behind(source: Source, text: str) -> Source | None:
    """Return the message that stood behind a text to which it was joined; None if there is none."""
    remaining = _content_behind(source, text)
    return None if remaining is None else _with_content(source, remaining)


def _content_of(source: Source) -> Any:
    return source.content if is_message(source) else source.get("content")


def _content_behind(source: Source, text: str) -> str | list[Any] | None:
    """Return what stands behind a text to which it was joined; None if there is no such text."""
    content = _content_of(source)
    if isinstance(content, str) and content.startswith(text + BETWEEN):
        return content[len(text) + len(BETWEEN) :]
    if isinstance(content, list) and len(content) > 1 and _text_of(content[0]) == text:
        return content[1:]
    return None


def _text_of(block: Any) -> Any:
    return block.get("text") if isinstance(block, Mapping) else block


def _divided(
    source: Source, content: str | list[Any], described: Sequence[Mapping[str, Any]]
) -> Iterator[Source]:
    """Divide what stands behind the summary as a record describes it.

    What the record does not describe is one message more.
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

    The content is None if something else stands there.
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
