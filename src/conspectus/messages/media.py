"""Media in every provider's form: kind, bytes and detail of a block without text.

OpenAI (`file`, `input_file`, `input_image`, `input_audio`, `image_url`), Anthropic (`document`,
`image`), Google (`media`, `inline_data`, `file_data`), Bedrock (`document`, `image`, `video`,
`audio`, which have no `type`) and LangChain (`file`, `image`, `audio`, `video` with `base64`,
`data`, `url`, `file_id` or `id`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

MediaKind = Literal["image", "pdf", "audio", "video", "text", "file", "sealed"]

UNTYPED = tuple("inline_data inlineData file_data fileData document image video audio".split())
"""Google's and Bedrock's blocks have no `type`: one of these keys, which holds a mapping."""

_INNER = (*UNTYPED, "source", "image_url", "file", "input_audio")
_DATA = ("data", "base64", "bytes", "file_data", "image_url", "url", "encrypted_content")
_ADDRESSES = ("image_url", "url")
_MIME = ("mime_type", "mimeType", "media_type", "format")
_NAMES = ("filename", "name", "file_uri", "fileUri", "file_url", "image_url", "url", "uri")
_TEXTS = ("txt", "md", "csv", "html", "application/json")


@dataclass(frozen=True, slots=True)
class Media:
    """The media in one block.

    `kind` is `sealed` for text that only its provider can read. `data` is bytes or base64
    characters, empty for an id or an address. `detail` is the requested resolution, as OpenAI names
    it. `names` are its file's name and address, where they are known.
    """

    kind: MediaKind
    mime: str
    data: str | bytes
    detail: str
    names: tuple[str, ...] = ()

    def raw(self, most: int | None = None) -> bytes:
        """Decode its bytes, up to about `most`; empty if they are no base64."""
        if isinstance(self.data, bytes):
            return self.data[:most]
        text = "".join((self.data if most is None else self.data[: most // 3 * 4]).split())
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            return b""

    @property
    def size(self) -> int:
        """About the number of its bytes."""
        return len(self.data) if isinstance(self.data, bytes) else len(self.data) * 3 // 4


def untyped(block: Mapping[str, Any]) -> str:
    """Return the key of media without a `type`; empty for other blocks."""
    if block.get("type"):
        return ""
    return next((key for key in UNTYPED if isinstance(block.get(key), Mapping)), "")


def media_of(block: Mapping[str, Any]) -> Media:
    """Read the media in a block."""
    parts = list(_parts(block, 3))
    values = [(key, part[key]) for part in parts for key in _DATA if part.get(key)]

    def texts(*keys: str) -> list[str]:
        some = [part.get(key) for part in parts for key in keys]
        return [value for value in some if isinstance(value, str) and value]

    data: str | bytes = ""
    mime = next(iter(texts(*_MIME)), "")
    for key, value in values:
        if isinstance(value, (bytes, bytearray)):
            data = bytes(value)
        elif isinstance(value, str) and value.startswith("data:"):
            head, _, body = value.partition(",")
            data = body if head.endswith(";base64") else unquote_to_bytes(body)
            mime = head[5:].partition(";")[0] or mime
        elif isinstance(value, str) and key not in _ADDRESSES and "://" not in value[:10]:
            data = value
        else:
            continue
        break
    mime = mime.lower()
    names = tuple(dict.fromkeys(name for name in texts(*_NAMES) if name[:5] != "data:"))
    kind = _kind(str(block.get("type") or untyped(block)), mime, data, names)
    return Media(kind, mime, data, next(iter(texts("detail")), ""), names)


def _parts(block: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    yield block
    for key in _INNER if depth else ():
        if isinstance(inner := block.get(key), Mapping):
            yield from _parts(inner, depth - 1)


def _kind(kind: str, mime: str, data: str | bytes, names: tuple[str, ...]) -> MediaKind:
    if kind == "redacted_thinking":
        return "sealed"
    if data[:5] in ("JVBER", b"%PDF-") or mime in ("pdf", "application/pdf"):
        return "pdf"
    for name in ("image", "audio", "video"):
        if mime.startswith(f"{name}/") or name in kind:
            return name
    if "screenshot" in kind:
        return "image"
    if mime.startswith("text/") or mime in _TEXTS:
        return "text"
    named = any(name.lower().partition("?")[0].endswith(".pdf") for name in names)
    return "pdf" if kind == "pdf" or named else "file"


def described(kind: str, block: Mapping[str, Any]) -> str:
    """Describe an image or a document in a few words, without its bytes."""
    media = media_of(block)
    size = f"{media.size:,} bytes" if media.data else ""
    details = ", ".join(part for part in (media.mime, *media.names, size) if part)
    return f"[{kind or 'block'}: {details}]" if details else f"[{kind or 'block'}]"
