"""What images, documents and recordings take: a fixed rule a provider, never their characters.

Sources: OpenAI's guide to images and vision (high detail: fit into 2,048 pixels, then the shorter
side into 768, then 170 tokens for each tile of 512 and 85 for the whole; low detail: 85).
Anthropic's guide to vision (width times height over 750, scaled down to 1,568 pixels a side and
about 1,600 tokens) and to PDF support (1,500 to 3,000 tokens a page).
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from typing import Any

from conspectus.tokens.families import Family

LOW_DETAIL = 85
TILE = 170
OPENAI_DEFAULT = 1_105
"""An image of unknown size at OpenAI: six tiles, the most for usual proportions up to 2 to 1."""

ANTHROPIC_DEFAULT = 1_600
"""An image of unknown size at Anthropic: the most that one takes."""

PER_MEDIA = ANTHROPIC_DEFAULT
"""Tokens of an image where neither its size nor the provider is known: the larger default."""

PER_DOCUMENT = 3_000
"""Tokens of a file or document whose pages are not known: one full page at Anthropic."""

PER_RECORDING = 1_600
"""Tokens of audio or video whose length is not known."""

_HEAD = 65_536
"""Characters of base64 that are looked at for the size of a picture."""


def media_tokens(block: Mapping[str, Any], family: Family) -> int:
    """Tokens of one block that is no text.

    Args:
        block: a content block of any provider, such as `{"type": "image_url", ...}`.
        family: of the model that reads it.

    Example:
        >>> media_tokens({"type": "image_url", "image_url": {"url": "u", "detail": "low"}}, "o200k")
        85
    """
    kind = str(block.get("type", ""))
    data = _data(block)
    if kind == "redacted_thinking":  # encrypted text: about four bytes a token
        return math.ceil(len(data) * 3 / 4 / 4)
    if "audio" in kind or "video" in kind:
        return PER_RECORDING
    mime = str(block.get("mime_type") or _inner(block).get("media_type") or "")
    if ("image" not in kind and "screenshot" not in kind) and not mime.startswith("image/"):
        return PER_DOCUMENT
    image = block.get("image_url")
    detail = block.get("detail") or (image.get("detail") if isinstance(image, Mapping) else None)
    size = picture_size(data)
    if family in ("o200k", "cl100k"):
        return _openai(size, detail)
    if family == "claude":
        return _anthropic(size)
    return max(_openai(size, detail), _anthropic(size))


def _openai(size: tuple[int, int] | None, detail: object) -> int:
    if detail == "low":
        return LOW_DETAIL
    if size is None:
        return OPENAI_DEFAULT
    scale = min(1.0, 2048 / max(size))
    scale = min(scale, 768 / min(size))
    tiles = math.prod(math.ceil(side * scale / 512) for side in size)
    return LOW_DETAIL + TILE * tiles


def _anthropic(size: tuple[int, int] | None) -> int:
    if size is None:
        return ANTHROPIC_DEFAULT
    scale = min(1.0, 1568 / max(size))
    return min(ANTHROPIC_DEFAULT, math.ceil(size[0] * scale * size[1] * scale / 750))


def _inner(block: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("source", "image_url", "file", "input_audio"):
        if isinstance(inner := block.get(name), Mapping):
            return inner
    return {}


def _data(block: Mapping[str, Any]) -> str:
    """The base64 characters of a block; empty where it only links to the thing."""
    inner = _inner(block)
    for value in (
        *(block.get(name) for name in ("data", "base64", "image_url", "url")),
        *(inner.get(name) for name in ("data", "url", "file_data")),
    ):
        if isinstance(value, str) and value and "://" not in value[:10]:
            return value.split(",", 1)[1] if value.startswith("data:") and "," in value else value
    return ""


def picture_size(data: str) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, GIF, WebP or JPEG picture; None where unknown.

    Example:
        >>> picture_size("iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=")
        (640, 480)
    """
    try:
        head = data[:_HEAD]
        raw = base64.b64decode(head[: len(head) // 4 * 4])
        size = _size(raw)
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _size(raw: bytes) -> tuple[int, int] | None:
    if raw[:8] == b"\x89PNG\r\n\x1a\n":
        return _pair(raw, ">II", 16)
    if raw[:4] == b"GIF8":
        return _pair(raw, "<HH", 6)
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return _webp(raw)
    if raw[:2] == b"\xff\xd8":
        return _jpeg(raw)
    return None


def _pair(raw: bytes, form: str, at: int) -> tuple[int, int]:
    one, two = struct.unpack_from(form, raw, at)
    return int(one), int(two)


def _webp(raw: bytes) -> tuple[int, int] | None:
    kind = raw[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = _pair(raw, "<HH", 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    """The frame header stands after segments of metadata; each says how long it is."""
    at = 2
    while at + 9 < len(raw) and raw[at] == 0xFF:
        mark = raw[at + 1]
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = _pair(raw, ">HH", at + 5)
            return width, height
        at += 2 + max(2, int.from_bytes(raw[at + 2 : at + 4], "big"))
    return None
