"""The table of content blocks: calls, answers, and parts that may be shortened.

A block is one part of a message's content. The table knows the kinds of OpenAI (Chat Completions
and Responses), Anthropic, Google, Bedrock and LangChain's standard content. A block that it does
not name is opaque: it is never shortened, and it is read and counted as text. Only encoded bytes in
it count as a file (`messages/media.py`). Thoughts and blocks that a provider's server wrote are
opaque, too: providers refuse them if a letter has changed.

Sources: the request types of the packages `openai` (`types/responses/response_input_item_param`),
`anthropic` (`types/beta/beta_content_block_param`) and `google-genai` (`types.Part`), the Converse
API's `ContentBlock`, and `langchain_core.messages.content`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from conspectus._langchain import is_message

UNTYPED = tuple("inline_data inlineData file_data fileData document image video audio".split())
"""Google's and Bedrock's media have no `type`. They have one of these keys, with a mapping."""

ShorteningMode = Literal["text", "json", "object", "strings", "content"]
"""How a field is shortened: as text; as JSON in a string; as an object, by its long values or at
last as a whole; as a list or object, by its long strings; as content, block by block."""

MediaKind = Literal["image", "pdf", "audio", "video", "text", "file", "sealed"]
"""What media are; `sealed` is text that only its provider can read."""

Paths = tuple[str, ...]
Shortenable = tuple[tuple[str, ShorteningMode], ...]


USUAL_TEXT = ("text",)


@dataclass(frozen=True, slots=True)
class BlockKind:
    """One kind of block: a row of the table.

    A path is names of fields with dots between them. Of several paths, the first that has a value
    counts.

    Attributes:
        text_paths: paths to what the block says, texts or blocks. Default: `text`; for an answer
            `content` or `output`, else all its fields.
        extra_text_paths: paths to further texts, such as a title; all of them count.
        media: the kind of its media, unless their bytes or their type tell more. Set it for a block
            that may have bytes or a link instead of text. In a message of the user, a description
            may replace such a block.
        call_id_paths: paths to the id of the call that the block makes.
        answered_id_paths: paths to the id of the call that it answers.
        needed_id_paths: paths to the id of a call that must come before it.
        args: the field with the arguments of its call. Default: all fields except ids and the
            status.
        shortenable: paths to what may be shortened, and how. All else stays as it is.
        wrapped_in: the field with the block itself. Bedrock and LangChain wrap some blocks.
        item_author: who wrote it, if it is an item of OpenAI's Responses. Such items are not in a
            message.
    """

    text_paths: Paths = USUAL_TEXT
    extra_text_paths: Paths = ()
    media: MediaKind | None = None
    call_id_paths: Paths = ()
    answered_id_paths: Paths = ()
    needed_id_paths: Paths = ()
    args: str = ""
    shortenable: Shortenable = ()
    wrapped_in: str = ""
    item_author: Literal["model", "client"] | None = None


CALLER = ("caller.tool_id", "caller.caller_id")
"""Where a call names the program of the provider that makes it."""

EXTRA_CALLER = tuple(f"extras.{path}" for path in CALLER)
TOOL_USE = ("tool_use_id", "tool_call_id", "toolUseId")

ARGS: Shortenable = (("args", "object"), ("extras.arguments", "json"))
ARGUMENTS: Shortenable = (("arguments", "json"),)
OUTPUT: Shortenable = (("output", "content"),)
CONTENT: Shortenable = (("content", "content"),)
INPUT: Shortenable = (("input", "object"), ("partial_json", "json"))
TEXT: Shortenable = (("text", "text"),)
RESOURCE: Shortenable = (("resource.text", "text"),)

CALLS: Shortenable = (
    ("function.arguments", "json"),
    ("custom.input", "text"),
    *ARGUMENTS,
    ("input", "text"),
    ("args", "object"),
)
"""Fields that may be shortened in a call outside of the content, as OpenAI and LangChain write
it."""

# Items of OpenAI's Responses
_call = partial(BlockKind, call_id_paths=("call_id", "id"), item_author="model")
_output = partial(BlockKind, answered_id_paths=("call_id",), item_author="client")
_sealed = BlockKind(media="sealed")

KINDS: dict[str, BlockKind] = {
    # Text
    **dict.fromkeys(("text", "input_text", "output_text"), BlockKind(shortenable=TEXT)),
    "text-plain": BlockKind(extra_text_paths=("title", "context"), shortenable=TEXT),
    "search_result": BlockKind(
        text_paths=("content",), extra_text_paths=("title", "source"), shortenable=CONTENT
    ),
    "json": BlockKind(shortenable=(("json", "object"),)),
    # Images, documents, recordings
    **dict.fromkeys(
        ("image", "image_url", "input_image", "computer_screenshot"), BlockKind(media="image")
    ),
    **dict.fromkeys(("audio", "input_audio", "audio_url"), BlockKind(media="audio")),
    **dict.fromkeys(("video", "video_url"), BlockKind(media="video")),
    "pdf": BlockKind(media="pdf"),
    # MCP's embedded resource: a text, or the bytes of a file
    "resource": BlockKind(
        text_paths=("resource.text",),
        extra_text_paths=("resource.uri",),
        media="file",
        shortenable=RESOURCE,
    ),
    **dict.fromkeys(("file", "input_file", "media", "document_url"), BlockKind(media="file")),
    **dict.fromkeys(UNTYPED[:4], BlockKind(media="file")),
    "document": BlockKind(
        text_paths=("source.content", "document.source.text"),
        extra_text_paths=("title", "context", "document.context"),
        media="file",
    ),
    # Thoughts
    "thinking": BlockKind(text_paths=("thinking",)),
    "redacted_thinking": _sealed,
    "reasoning": BlockKind(text_paths=("reasoning", "summary", "content"), item_author="model"),
    "reasoning_content": BlockKind(text_paths=("reasoning_content.text",)),
    # Thoughts outside of the content, as OpenRouter writes them
    "reasoning.summary": BlockKind(text_paths=("summary",)),
    "reasoning.encrypted": _sealed,
    # Calls of a caller's own tools, and results
    "tool_use": BlockKind(
        call_id_paths=("id",), needed_id_paths=CALLER, args="input", shortenable=INPUT
    ),
    "tool_call": BlockKind(
        call_id_paths=("id",), needed_id_paths=EXTRA_CALLER, args="args", shortenable=ARGS
    ),
    "invalid_tool_call": BlockKind(
        call_id_paths=("id",), args="args", shortenable=(("args", "text"),)
    ),
    "tool_call_chunk": BlockKind(
        call_id_paths=("id",), args="args", shortenable=(("args", "json"),)
    ),
    "function_call": _call(needed_id_paths=CALLER, args="arguments", shortenable=ARGUMENTS),
    "custom_tool_call": _call(
        needed_id_paths=CALLER, args="input", shortenable=(("input", "text"),)
    ),
    "tool_result": BlockKind(answered_id_paths=TOOL_USE, shortenable=CONTENT),
    **dict.fromkeys(
        ("function_call_output", "custom_tool_call_output"), _output(shortenable=OUTPUT)
    ),
    # OpenAI's tools that the caller carries out or approves
    "local_shell_call": _call(args="action"),
    "local_shell_call_output": _output(
        answered_id_paths=("call_id", "id"), shortenable=(("output", "json"),)
    ),
    "shell_call": _call(needed_id_paths=CALLER, args="action"),
    "shell_call_output": _output(shortenable=(("output", "strings"),)),
    "apply_patch_call": _call(needed_id_paths=CALLER, args="operation"),
    "apply_patch_call_output": _output(shortenable=(("output", "text"),)),
    "mcp_approval_request": _call(call_id_paths=("id",), args="arguments"),
    "mcp_approval_response": _output(answered_id_paths=("approval_request_id",)),
    # OpenAI's tools that its server carries out; most hold call and result in one item
    "mcp_call": BlockKind(needed_id_paths=("approval_request_id",), item_author="model"),
    "program": _call(call_id_paths=("call_id",), args="code"),
    "program_output": _output(item_author="model"),
    "tool_search_call": _call(call_id_paths=("call_id",), args="arguments"),
    "tool_search_output": _output(item_author="model"),
    "image_generation_call": BlockKind(media="image", item_author="model"),
    "compaction": BlockKind(item_author="model"),
    # Anthropic's in LangChain's standard content; call and result may be in two messages
    "server_tool_call": BlockKind(call_id_paths=("id",), args="args"),
    "server_tool_call_chunk": BlockKind(call_id_paths=("id",), args="args"),
    # Blocks around others
    "non_standard": BlockKind(wrapped_in="value"),
    "toolUse": BlockKind(
        call_id_paths=("toolUseId",), args="input", shortenable=INPUT[:1], wrapped_in="toolUse"
    ),
    "toolResult": BlockKind(
        answered_id_paths=("toolUseId",), shortenable=CONTENT, wrapped_in="toolResult"
    ),
}
"""By the `type` of a block, or by its only key if it has no type, as in Bedrock's own form."""

ENDINGS = {
    "_tool_use": BlockKind(
        call_id_paths=("id",), needed_id_paths=CALLER, args="input"
    ),  # `server_tool_use`
    "_tool_result": BlockKind(answered_id_paths=TOOL_USE),  # such as `web_search_tool_result`
    "_call": _call(call_id_paths=("call_id",)),  # one without is carried out by the server
    "_output": _output(),  # such as `computer_call_output`
    "_response": BlockKind(item_author="client"),
    **dict.fromkeys(("_request", "_tools", "_reference"), BlockKind(item_author="model")),
}
"""Kinds of blocks by the end of their name, for names that the table does not have: providers name
new blocks in the same way."""

KEYS = ("text", "toolUse", "toolResult", "json")
"""Kinds of Bedrock's own form, without media. In this form the key names the kind."""

OPAQUE = BlockKind()

CACHE = "cache_control"  # Anthropic's mark for its cache

SIGNED_FIELDS = ("citations", "annotations", "signature", "thought_signature", "encrypted_content")
"""Fields that refer to the exact text of a block, or sign it. A block with one is never
shortened."""

PLAIN_KEYS = frozenset({"type", "text", "index"})
"""The keys that a block of plain text may have."""

_NOT_ARGUMENTS = frozenset("type id call_id status caller created_by".split())


def kind_name(block: Mapping[str, Any]) -> str:
    """Return a block's name in the table; empty for one without type or known key."""
    name = block.get("type")
    if isinstance(name, str) and name:
        return name
    media_key = next((key for key in UNTYPED if isinstance(block.get(key), Mapping)), "")
    return media_key or next((key for key in KEYS if key in block), "")


def plain_text(block: Any) -> str:
    """Return the kind of a block of text that can be joined with others; else an empty text."""
    if not isinstance(block, Mapping) or not block.keys() <= PLAIN_KEYS:
        return ""
    name = block.get("type")
    is_text = name in ("text", "input_text") and isinstance(block.get("text"), str)
    return str(name) if is_text else ""


def kind_of(block: Mapping[str, Any]) -> BlockKind:
    """Look a block up in the table; one that it does not name is `OPAQUE`."""
    name = kind_name(block)
    kind = KINDS.get(name)
    if kind is not None:
        return kind
    if "_" in name:
        for ending, kind_of_ending in ENDINGS.items():
            if name.endswith(ending):
                return kind_of_ending
    return OPAQUE


def unwrap_block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Unwrap a block, and give it its kind as `type`."""
    for _ in range(3):  # no provider wraps deeper
        inside = kind_of(block).wrapped_in
        inner = block.get(inside)
        if not inside or not isinstance(inner, Mapping):
            break
        if inside == kind_name(block):  # the key was the kind
            return {"type": inside, **inner}
        block = inner
    return block


def blocks_of(message: Any) -> list[Mapping[str, Any]]:
    """Return the blocks of a message's content; none if the content is a text."""
    content = message.content if is_message(message) else message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping)]


def is_answer(block: Mapping[str, Any]) -> bool:
    """Tell whether a block holds the answer of a tool or a person."""
    return bool(kind_of(unwrap_block(block)).answered_id_paths)


def brings_results(message: Any) -> bool:
    """Tell whether a message holds results of tools."""
    return any(map(is_answer, blocks_of(message)))


def at_path(block: Any, path: str) -> Any:
    """Return the value under keys that dots divide; None if one is missing."""
    for key in path.split("."):
        block = block.get(key) if isinstance(block, Mapping) else None
    return block


def first_id(block: Mapping[str, Any], paths: Paths) -> str:
    """Return the first id at some paths; empty if there is none."""
    ids = (at_path(block, path) for path in paths)
    return next((name for name in ids if isinstance(name, str) and name), "")


def tool_and_arguments(block: Mapping[str, Any], kind: BlockKind) -> tuple[str, Any]:
    """Return the tool's name, or else the block's, and the arguments of a block with a call."""
    if kind.args:
        partial_args = block.get("partial_json", block.get(kind.args))
        args = block.get(kind.args) or partial_args
    else:
        args = {key: part for key, part in block.items() if key not in _NOT_ARGUMENTS}
    name = str(block.get("name") or block.get("type") or "")
    return name, {} if args is None else args


def stays_whole(block: Mapping[str, Any]) -> bool:
    """Tell whether a block refers to its exact text, or signs it."""
    extras = block.get("extras")
    inner: Mapping[str, Any] = extras if isinstance(extras, Mapping) else {}
    proofs = [part.get(field) for part in (block, inner) for field in SIGNED_FIELDS]
    # `{"enabled": true}` requests citations, and has none.
    return any(value and not isinstance(value, Mapping) for value in proofs)


def is_item(message: Mapping[str, Any]) -> bool:
    """Tell whether a dict is an item of OpenAI's Responses other than a message."""
    has_only_type = isinstance(message.get("type"), str) and "role" not in message
    return has_only_type and kind_of(message).item_author is not None


def without_cache_marks(message: Any) -> Any:
    """Return a message without marks for a provider's cache; the same object if it has none.

    Clients move such marks with every request, and make a block of a text to put one into it. So a
    single block of text becomes a plain text again.

    Example:
        >>> block = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
        >>> without_cache_marks({"role": "user", "content": [block]})
        {'role': 'user', 'content': 'hi'}
    """
    if not isinstance(message, dict):
        return message
    if CACHE not in message and not isinstance(message.get("content"), list):
        return message
    unmarked = {key: part for key, part in message.items() if key != CACHE}
    content = unmarked.get("content")
    if isinstance(content, list):
        blocks = [without_cache_marks(block) for block in content]
        is_sole_text = "role" in unmarked and len(blocks) == 1 and _is_bare_text(blocks[0])
        unmarked["content"] = blocks[0]["text"] if is_sole_text else blocks
    return message if unmarked == message else unmarked


def _is_bare_text(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text"
