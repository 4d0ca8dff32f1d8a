"""Media in the forms of all providers: where a block has them, their kind, and bytes in text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any
from urllib.parse import unquote_to_bytes

from conspectus.messages.blocks import SIGNED_FIELDS, UNTYPED, MediaKind, kind_name, kind_of

# Where providers and protocols put media: the mapping with them, then bytes, type and names.
_INNER = (*UNTYPED, "source", "image_url", "file", "input_audio", "resource")
_DATA = ("data", "base64", "bytes", "file_data", "blob", "image_url", "url", "encrypted_content")
_ADDRESSES = ("image_url", "url")
_MIME = ("mime_type", "mimeType", "media_type", "mediaType", "format")
_NAMES = ("filename", "name", "file_uri", "fileUri", "file_url", "image_url", "url", "uri")
_TEXTS = ("txt", "md", "csv", "html", "application/json")

SIGNATURES: tuple[tuple[re.Pattern[bytes], MediaKind], ...] = (
    (re.compile(rb"%PDF-"), "pdf"),
    (re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP|II\*\0|MM\0\*", re.DOTALL), "image"),
    (re.compile(rb"RIFF....WAVE|OggS|ID3|fLaC|\xff[\xf1-\xfb]", re.DOTALL), "audio"),
    (re.compile(rb"....ftyp|\x1aE\xdf\xa3|RIFF....AVI ", re.DOTALL), "video"),
)
"""How files begin, for media that come without a type."""

SIGNATURE_BYTES = 24
"""Bytes at the beginning of a file that are compared with `SIGNATURES`."""

LEAST_ENCODED_CHARACTERS = 400
"""A shorter text of base64 counts as words, and not as encoded bytes."""

LEAST_LINE_CHARACTERS = 40
"""The fewest characters of a line of base64."""

LEAST_DISTINCT_CHARACTERS = 4
"""The fewest different characters in it. A line of one or two signs is no base64."""

URL_SAFE = str.maketrans("-_", "+/")
"""Translates the signs of base64 in addresses to the usual ones."""

SEARCHED_NESTING = 24
"""Levels of a value in which encoded bytes are looked for."""

_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]+")
_BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True)
class Media:
    """The media in one block.

    Attributes:
        kind: what they are.
        mime: their type; empty if unknown.
        data: bytes or base64 characters; empty for an id or an address.
        detail: the requested resolution, as OpenAI names it.
        names: the file's name and address, if they are known.
    """

    kind: MediaKind
    mime: str
    data: str | bytes
    detail: str
    names: tuple[str, ...] = ()

    def raw(self, limit: int | None = None) -> bytes:
        """Decode the bytes, up to about `limit` of them; empty if they are not base64."""
        if isinstance(self.data, bytes):
            return self.data[:limit]
        encoded = self.data if limit is None else self.data[: limit // 3 * 4]
        text = "".join(encoded.split()).translate(URL_SAFE)
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            return b""

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return len(self.data) if isinstance(self.data, bytes) else len(self.data) * 3 // 4


def media_of(block: Mapping[str, Any]) -> Media:
    """Read the media in a block."""
    parts = list(_parts(block, 3))

    def texts(*keys: str) -> list[str]:
        values = [part.get(key) for part in parts for key in keys]
        return [value for value in values if isinstance(value, str) and value]

    data, mime_of_address = _data_of(parts)
    mime = (mime_of_address or next(iter(texts(*_MIME)), "")).lower()
    detail = next(iter(texts("detail")), "")
    names = tuple(dict.fromkeys(name for name in texts(*_NAMES) if name[:5] != "data:"))
    kind = _media_kind(kind_of(block).media or "file", mime, data, names)
    return Media(kind, mime, data, detail, names)


def _data_of(parts: list[Mapping[str, Any]]) -> tuple[str | bytes, str]:
    """Return the bytes in the parts of a block, and the type that a `data:` address gives them.

    Keys that a provider documents are tried first, then all others.
    """
    documented = [(key, part.get(key)) for part in parts for key in _DATA]
    for key, value in documented:
        if isinstance(value, _BYTES) or is_data_address(value):
            return _decode_bytes(value)
        may_be_data = isinstance(value, str) and "://" not in value[:10]
        if value and may_be_data and key not in _ADDRESSES:
            return value, ""
        if is_encoded(value):
            return _decode_bytes(value)
    for part in parts:
        for key, value in part.items():
            if key not in SIGNED_FIELDS and is_encoded(value):
                return _decode_bytes(value)
    return "", ""


def is_data_address(value: Any) -> bool:
    """Tell whether a value is an address that holds its data itself."""
    return isinstance(value, str) and value[:5].lower() == "data:" and "," in value[:400]


def is_encoded(value: Any) -> bool:
    """Tell whether a value is bytes, or encodes bytes as long base64 or a list of numbers.

    Example:
        >>> is_encoded("iVBORw0KGgo" * 60), is_encoded("Look at the picture. " * 60)
        (True, False)
    """
    if isinstance(value, str):
        if is_data_address(value):
            return len(value) > LEAST_ENCODED_CHARACTERS
        lines = (
            value[:LEAST_ENCODED_CHARACTERS].split()
            if len(value) > LEAST_ENCODED_CHARACTERS
            else []
        )
        has_long_lines = all(len(line) >= LEAST_LINE_CHARACTERS for line in lines[:-1])
        is_varied = len(set(value[:LEAST_ENCODED_CHARACTERS])) >= LEAST_DISTINCT_CHARACTERS
        if not lines or not has_long_lines or not is_varied:
            return False
        return all(map(_BASE64.fullmatch, lines))
    if isinstance(value, list):
        beginning = (
            value[:LEAST_ENCODED_CHARACTERS] if len(value) > LEAST_ENCODED_CHARACTERS else []
        )
        return bool(beginning) and all(type(part) is int and 0 <= part < 256 for part in beginning)
    return isinstance(value, _BYTES)


def _decode_bytes(value: Any) -> tuple[str | bytes, str]:
    """Return the bytes or the base64 in a value, and the type that it names."""
    if isinstance(value, list):
        return bytes(part for part in value if type(part) is int and 0 <= part < 256), ""
    if not isinstance(value, str):
        return bytes(value), ""
    if not is_data_address(value):
        return value, ""
    head, _, body = value.partition(",")
    data = body if head.lower().endswith(";base64") else unquote_to_bytes(body)
    return data, head[5:].partition(";")[0]


def without_bytes(value: Any) -> tuple[Any, list[Mapping[str, Any]]]:
    """Copy a value, with a short description in the place of media and encoded bytes.

    This is for all that the table of blocks does not know.

    Returns:
        The copy, or the value itself if there is nothing to describe; and what was described, as
        blocks that count as media.
    """
    descriptions = _Descriptions()
    return descriptions.put_into(value), descriptions.described


class _Descriptions:
    """Puts descriptions in the place of bytes, and keeps what they describe."""

    def __init__(self) -> None:
        self.described: list[Mapping[str, Any]] = []

    def put_into(self, value: Any, around: tuple[int, ...] = ()) -> Any:
        """Copy a value; `around` has the identities of the parts around it."""
        if is_encoded(value):
            return self._describe({"data": value})
        is_mapping = isinstance(value, Mapping)
        if not is_mapping and not isinstance(value, (list, tuple)):
            return value
        if id(value) in around or len(around) >= SEARCHED_NESTING:
            return value
        if is_mapping and _is_media(value):
            return self._describe(value)
        around = (*around, id(value))
        if is_mapping:
            return self._put_into_fields(value, around)
        parts = [self.put_into(part, around) for part in value]
        return parts if _differ(parts, value) else value

    def _put_into_fields(self, value: Mapping[str, Any], around: tuple[int, ...]) -> Any:
        names = {key: part for key, part in value.items() if _is_short(part)}
        fields = {}
        for key, part in value.items():
            if key in SIGNED_FIELDS:
                fields[key] = part
            elif is_encoded(part):
                fields[key] = self._describe({**names, "data": part})
            else:
                fields[key] = self.put_into(part, around)
        return fields if _differ(fields.values(), value.values()) else value

    def _describe(self, block: Mapping[str, Any]) -> str:
        self.described.append(block)
        return described(block)


def _differ(parts: Iterable[Any], others: Iterable[Any]) -> bool:
    """Tell whether any part differs from the part in its place, as an object."""
    return not all(map(is_, parts, others))


def _is_media(block: Mapping[str, Any]) -> bool:
    """Tell whether a block is a kind of media, and has their bytes."""
    if kind_of(block).media in (None, "sealed"):
        return False
    return any(is_encoded(value) for part in _parts(block, 3) for value in part.values())


def _is_short(value: Any) -> bool:
    """Tell whether a value is a text that may name a file or its type."""
    return isinstance(value, str) and len(value) < LEAST_ENCODED_CHARACTERS


def _parts(block: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield a block, and the mappings in it where providers put media."""
    yield block
    for key in _INNER if depth else ():
        inner = block.get(key)
        if isinstance(inner, Mapping):
            yield from _parts(inner, depth - 1)


def _media_kind(
    usual: MediaKind, mime: str, data: str | bytes, names: tuple[str, ...]
) -> MediaKind:
    """Return the kind of media: by their bytes, type, block, or the name of their file."""
    if usual == "sealed":
        return usual
    if data[:5] in ("JVBER", b"%PDF-") or mime in ("pdf", "application/pdf"):
        return "pdf"
    for kind in ("image", "audio", "video"):
        if mime.startswith(f"{kind}/"):
            return kind
    if usual != "file":
        return usual
    if mime.startswith("text/") or mime in _TEXTS:
        return "text"
    if any(name.lower().partition("?")[0].endswith(".pdf") for name in names):
        return "pdf"
    beginning = Media("file", mime, data, "").raw(SIGNATURE_BYTES)
    for signature, kind_of_signature in SIGNATURES:
        if signature.match(beginning):
            return kind_of_signature
    return "file"


def described(block: Mapping[str, Any]) -> str:
    """Describe an image or a document in a few words, without its bytes."""
    media = media_of(block)
    kind = kind_name(block) or media.kind
    size = f"{media.size:,} bytes" if media.data else ""
    details = ", ".join(part for part in (media.mime, *media.names, size) if part)
    return f"[{kind}: {details}]" if details else f"[{kind}]"
