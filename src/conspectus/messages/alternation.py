"""Several messages of the user in a row, which some models refuse, and one message in their place.

The chat templates of Mistral, Gemma and others raise an error unless messages of the user and
answers of the assistant alternate, beginning with the user; calls of tools and their results do not
count. A compacted history begins with the summary, which is the user's, and the user's task often
follows at once. Here they become one message: the text of the summary, an empty line, the task.

A caller may send that message back. It is known by its record, and taken apart again
(`taken_apart`), so that its parts are the messages that they were.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import KeyedRef

from conspectus._langchain import is_message
from conspectus._newest import Newest
from conspectus.messages.framing import summary_message, summary_text
from conspectus.messages.message import Message, Source, as_text, decode
from conspectus.messages.reading import read_message
from conspectus.messages.requests import brings_results

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from conspectus.core.records import Record

AlternateRoles = Literal["auto", "on", "off"]
"""Whether messages of the user in a row are joined: always, never, or for models that need it."""

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

REFUSED = re.compile(
    r"(?:roles?|messages?)\b.{0,80}?\balternat|multiple .{0,20}?roles? in a row"
    r"|consecutive .{0,30}?(?:messages|roles?)|successive user|unexpected role|after role\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words of refusals by templates of Mistral, Gemma and others, and by strict gateways."""

NO_SYSTEM = re.compile(
    r"system (?:role|messages?) (?:is |are )?not supported|only user and assistant roles are"
    r"|does not support (?:the )?(?:system|developer)|developer instruction is not enabled"
    r"|unsupported role:? .?(?:system|developer)",
    re.IGNORECASE,
)
"""Words of refusals of a system message, as by the first templates of Gemma and Mistral."""

GOES_ON = "(The conversation goes on.)"
"""Stands before an answer with which a prompt begins, where a template lets the user begin."""

BETWEEN = "\n\n"  # stands between texts that are joined
JOINED = "joined"  # key in a LangChain message's `additional_kwargs["conspectus"]`
MOST_READ = 4_000  # characters of an error that are searched

_PARTS: dict[int, tuple[KeyedRef[int, Any], tuple[Any, ...]]] = {}
"""By the identity of a joined LangChain message: itself, weakly, and the messages it is made of."""


HUMAN = ("human", "HumanMessageChunk")
MOST_JOINED = 16  # joined messages that are kept: an agent sends the same one at each step


class Joined(NamedTuple):
    """A joined LangChain message, the messages that it was made of, and what they held."""

    whole: Any
    parts: tuple[Any, ...]
    contents: tuple[Any, ...]

    def is_of(self, run: Sequence[Any]) -> bool:
        """Tell whether it was made of these messages as they are now."""
        contents = [one.content for one in run]
        return all(map(is_, self.parts, run)) and all(map(is_, self.contents, contents))


_JOINED: Newest[tuple[int, ...], Joined] = Newest(MOST_JOINED)
"""By the identities of its parts: the newest joined messages."""


# Who needs it


def alternates(setting: AlternateRoles, model: str) -> bool | None:
    """Tell whether messages are joined for a model of this name; None if only the history tells.

    Example:
        >>> [alternates("auto", name) for name in ("mistral-small", "gpt-4o", "my-own")]
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
    before = ""
    found = False
    for message in messages:
        if message.role == "user":
            found = found or before == "user"
            before = "user"
        elif message.role == "assistant":
            if found:
                return True
            if not message.calls:
                before = "assistant"
    return False


def refuses_roles(error: BaseException | str) -> bool:
    """Tell whether a provider has refused messages of one role in a row."""
    return bool(REFUSED.search(_words(error)))


def refuses_system(error: BaseException | str) -> bool:
    """Tell whether a provider has refused a system message."""
    return bool(NO_SYSTEM.search(_words(error)))


def _words(error: BaseException | str) -> str:
    return str(error)[:MOST_READ]


Form = Literal["roles", "system"]
"""A form of a request that a model may ask for: no messages of one role in a row, or no system
message."""


def asked_form(error: BaseException | str) -> Form | None:
    """Return the form that a refusal asks for; None for another error."""
    if refuses_system(error):
        return "system"
    return "roles" if refuses_roles(error) else None


def in_forms(prompt: Sequence[BaseMessage], forms: Collection[Form]) -> list[BaseMessage]:
    """Return the messages of a prompt in the forms that its model has asked for."""
    from langchain_core.messages import HumanMessage

    sent = without_system(prompt) if "system" in forms else list(prompt)
    if "roles" not in forms:
        return sent
    first = next((at for at, one in enumerate(sent) if one.type != "system"), len(sent))
    if first < len(sent) and sent[first].type == "ai":
        sent.insert(first, HumanMessage(GOES_ON))
    return alternating(sent)


# Joining


class Came(NamedTuple):
    """A message that came joined, and the messages that it was made of."""

    whole: Source
    parts: tuple[Source, ...]

    def stands_in(self, run: Sequence[Source]) -> bool:
        """Tell whether a run of messages is just these parts."""
        return len(run) == len(self.parts) and all(map(is_, run, self.parts))


def alternating(view: Sequence[Any], came: Sequence[Came] = ()) -> list[Any]:
    """Join messages of the user that stand one behind another.

    Args:
        view: the messages to send, as dicts or LangChain messages. None is changed.
        came: messages that came joined. Where just the parts of one stand in a row, the same object
            is sent again.

    Example:
        >>> alternating([{"role": "user", "content": "Notes."}, {"role": "user", "content": "Hi."}])
        [{'role': 'user', 'content': 'Notes.\\n\\nHi.'}]
    """
    sent: list[Any] = []
    at = 0
    for start, end in _runs(view):
        sent += view[at:start]
        run = view[start:end]
        known = next((one.whole for one in came if one.stands_in(run)), None)
        sent.append(_joined(run) if known is None else known)
        at = end
    sent += view[at:]
    return sent


def as_it_came(view: Sequence[Any], came: Sequence[Came]) -> list[Any]:
    """Put messages that came joined in the place of their parts, and join no others."""
    sent = list(view)
    for one in came:
        length = len(one.parts)
        places = (at for at in range(len(sent)) if one.stands_in(sent[at : at + length]))
        if (at := next(places, None)) is not None:
            sent[at : at + length] = [one.whole]
    return sent


def _runs(view: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield where messages begin and end that become one."""
    start: int | None = None  # of the user's messages before this one
    for at, message in enumerate(view):
        # Most messages are an agent's, which their type tells without a call.
        kind = None if type(message) is dict else getattr(message, "type", None)
        of_user = _is_users(message) if kind is None else kind in HUMAN
        goes_on = of_user and start is not None and not brings_results(message)
        if goes_on:
            continue
        if start is not None and at - start > 1:
            yield start, at
        start = at if of_user else None
    if start is not None and len(view) - start > 1:
        yield start, len(view)


def _is_users(message: Any) -> bool:
    """Tell whether a message has the user's role and a content that can be joined."""
    if is_message(message):
        return message.type in HUMAN
    if message.get("role") != "user":
        return False
    return isinstance(message.get("content", message), (str, list, type(None)))


def _joined(run: Sequence[Any]) -> Any:
    """Make one message; but for its content it is the last one."""
    last = run[-1]
    if is_message(last):
        names = tuple(map(id, run))
        known = _JOINED.get(names)
        if known is not None and known.is_of(run):
            return known.whole
    contents = [one.content if is_message(one) else one["content"] for one in run]
    content = _contents([one for one in contents if one])
    if not is_message(last):
        return {**last, "content": content}
    more = {**last.additional_kwargs}
    more["conspectus"] = {**(more.get("conspectus") or {}), JOINED: len(run)}
    made = last.model_copy(update={"content": content, "additional_kwargs": more})
    _PARTS[id(made)] = KeyedRef(made, _forget, id(made)), tuple(run)
    _JOINED.put(names, Joined(made, tuple(run), tuple(contents)))
    return made


def _forget(message: KeyedRef[int, Any]) -> None:
    _PARTS.pop(message.key, None)


def _contents(contents: Sequence[Any]) -> Any:
    """Join contents: texts with an empty line between them, else all of their blocks."""
    if all(isinstance(one, str) for one in contents):
        return BETWEEN.join(contents)
    kinds = {part.get("type") for one in contents for part in one if isinstance(part, Mapping)}
    kind = "input_text" if kinds & {"input_text", "input_image", "input_file"} else "text"
    blocks: list[Any] = []
    for one in contents:
        blocks += [{"type": kind, "text": one}] if isinstance(one, str) else one
    return blocks


def as_users(message: BaseMessage) -> BaseMessage:
    """Return a system message as one of the user; another message as it is."""
    from langchain_core.messages import HumanMessage

    return HumanMessage(message.content, id=message.id) if message.type == "system" else message


def without_system(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Put leading system messages of a prompt at the beginning of its first user message."""
    made = [*map(as_users, messages)]
    came = {id(one): message for one, message in zip(made, messages, strict=True)}
    sent = alternating(made)
    for message in sent:
        known, parts = _PARTS.get(id(message)) or (None, ())
        if known is not None and known() is message:  # it was made of the system message
            _PARTS[id(message)] = known, tuple(came.get(id(part), part) for part in parts)
    return sent


# Taking apart


def with_parts(messages: Sequence[Any]) -> Sequence[Any]:
    """Return a request as it was before `alternating`, if this process has joined it.

    It is the same list if nothing in it was joined.
    """
    if not _PARTS:
        return messages
    made: list[Any] = []
    for message in messages:
        known, parts = _PARTS.get(id(message)) or (None, ())
        made += parts if known is not None and known() is message else (message,)
    return messages if all(map(is_, made, messages)) else made


def bears_joined_mark(message: Any) -> bool:
    """Tell whether a LangChain message is marked as a joined one; dicts cannot be."""
    if not is_message(message):
        return False
    ours = message.additional_kwargs.get("conspectus")
    return isinstance(ours, Mapping) and JOINED in ours


def described_parts(sources: Sequence[Source], *, fields: bool = True) -> list[dict[str, Any]]:
    """Describe messages that are joined behind a summary, so that they can be taken apart.

    Each has its `size`, in characters of its text or in blocks. Several have, with `fields`, all
    that they hold beside their content.
    """
    described: list[dict[str, Any]] = []
    for source in sources:
        content: Any = source.content if is_message(source) else source.get("content")
        if not content:
            continue  # nothing of it stands in the joined message
        part: dict[str, Any] = {"size": len(content), "blocks": isinstance(content, list)}
        if fields and len(sources) > 1:
            read = read_message(source)
            form, data, _ = read.encoded
            holder = data["data"] if form == "langchain" else data
            holder = {key: value for key, value in holder.items() if key != "content"}
            part["data"] = {"type": data["type"], "data": holder} if "data" in data else holder
            part |= {"form": form, "id": read.given_id}
        described.append(part)
    return described


def taken_apart(source: Source, record: Record) -> list[Source] | None:
    """Return the messages of which a message was made that begins with a record's summary.

    None if it begins otherwise, or holds nothing else.
    """
    text = summary_text(record.summary, archived=record.archived, mark=record.mark)
    rest = _content_behind(source, text)
    if rest is None:
        return None
    like = None if is_message(source) else dict
    return [summary_message(text, record.id, like=like), *_divided(source, rest, record.joined)]


def holds(joined: Any, message: Any) -> bool:
    """Tell whether the content of one dict stands whole behind another text in that of another."""
    if is_message(joined) or not (_is_users(joined) and _is_users(message)):
        return False
    content, part = joined["content"], message["content"]
    if isinstance(content, str) and isinstance(part, str):
        return f"{BETWEEN}{part}" in content
    parts = part if isinstance(part, list) else [{"type": "text", "text": part}]
    return isinstance(content, list) and all(one in content[1:] for one in parts)


def without_text(source: Source, text: str) -> Source | None:
    """Return the message that stood behind a text to which it was joined; None if there is none."""
    rest = _content_behind(source, text)
    return None if rest is None else _piece(source, rest)


def _content_behind(source: Source, text: str) -> str | list[Any] | None:
    content: Any = source.content if is_message(source) else source.get("content")
    if isinstance(content, str) and content.startswith(text + BETWEEN):
        return content[len(text) + len(BETWEEN) :]
    if isinstance(content, list) and len(content) > 1 and _text(content[0]) == text:
        return content[1:]
    return None


def _text(block: Any) -> Any:
    return block.get("text") if isinstance(block, Mapping) else block


def _divided(
    source: Source, rest: str | list[Any], described: Sequence[Mapping[str, Any]]
) -> Iterator[Source]:
    """Divide what stands behind the summary as a record describes it; what is left is a message."""
    at = 0
    for number, part in enumerate(described):
        content, end = _next_part(rest, at, part)
        if content is None:
            break
        alone = end >= len(rest) or "data" not in part
        if alone and number < len(described) - 1:
            break  # it is not what the record tells of
        yield _piece(source, content) if alone else _described(part, content)
        at = end
    if at < len(rest):
        yield _piece(source, rest[at:])


def _next_part(
    rest: str | list[Any], at: int, part: Mapping[str, Any]
) -> tuple[str | list[Any] | None, int]:
    """Return the content of one part, and where the next one begins; None if it is another."""
    size = int(part["size"])
    if isinstance(rest, str):
        end = at + size
        ends = end == len(rest) or rest.startswith(BETWEEN, end)
        return (rest[at:end], end + len(BETWEEN)) if ends and not part["blocks"] else (None, at)
    if part["blocks"]:
        return rest[at : at + size], at + size
    text = _text(rest[at]) if at < len(rest) else None
    return (text, at + 1) if isinstance(text, str) and len(text) == size else (None, at)


def _piece(source: Source, content: str | list[Any]) -> Source:
    """Return a joined message with the content of its last part alone."""
    if not is_message(source):
        return {**source, "content": content}
    more = {**source.additional_kwargs}
    ours = {**(more.pop("conspectus", None) or {})}
    ours.pop(JOINED, None)
    if ours:
        more["conspectus"] = ours
    return source.model_copy(update={"content": content, "additional_kwargs": more})


def _described(part: Mapping[str, Any], content: str | list[Any]) -> Source:
    """Return a message by what a record tells of it."""
    data: Any = part["data"]
    if part["form"] == "langchain":
        data = {**data, "data": {**data["data"], "content": ""}}
        made: Any = decode("langchain", as_text(data), part["id"])
        return made.model_copy(update={"content": content})  # type: ignore[no-any-return]
    made = decode("dict", as_text({**data, "content": ""}), part["id"])
    return {**made, "content": content}
