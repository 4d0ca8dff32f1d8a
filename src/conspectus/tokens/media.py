"""Tokens of images, documents and recordings: a fixed rule for each provider.

Images. OpenAI's guide to images and vision (high detail: fit into 2,048 pixels, then the shorter
side into 768, then 170 tokens for each tile of 512 and 85 for the whole; low detail: 85).
Anthropic's guide to vision (width times height over 750, scaled down to 1,568 pixels a side and
about 1,600 tokens). Google's guide to media resolution (1,120 where nothing is set).

PDFs, by the page. Anthropic's guide to PDF support (the text of a page takes 1,500 to 3,000 tokens,
and 3 pages in all about 7,000). OpenAI's guide to file inputs (the text of each page and its
image). Google's guide to media resolution (560 where nothing is set).

Recordings, by the second. Google's guides to audio (32) and video (300, sound included), which are
the most; OpenAI's guide to realtime costs (10 for a user's speech).
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from typing import Any

from conspectus.messages.media import Media, media_of
from conspectus.tokens.families import Maker
from conspectus.tokens.pdf_pages import pdf_pages
from conspectus.tokens.recordings import seconds

LOW_DETAIL = 85
TILE = 170
OPENAI_DEFAULT = 1_105
"""An image of unknown size at OpenAI: six tiles, the most for proportions up to 2 to 1."""

ANTHROPIC_DEFAULT = 1_600  # An image of unknown size at Anthropic: the most that one takes
GOOGLE_DEFAULT = 1_120  # An image of any size at Google

PER_MEDIA = ANTHROPIC_DEFAULT
"""Tokens of an image of unknown size at an unknown provider: the largest default."""

PER_PAGE: dict[Maker, int] = {
    "anthropic": 3_000,
    "openai": OPENAI_DEFAULT + 900,
    "google": 560,
    "unknown": 3_000,
}
"""Tokens of one page of a PDF; at OpenAI its image, and 900 for a page full of text."""

PAGE_BYTES = 10_000
"""Bytes of a page if a PDF does not say its pages: few, so that they are not too few."""

PER_AUDIO_SECOND: dict[Maker, int] = {"openai": 10, "anthropic": 32, "google": 32, "unknown": 32}
PER_VIDEO_SECOND = 300

PCM = 48_000
"""Bytes a second of sound without a header: 16 bits, 24,000 times a second, as OpenAI takes it."""

TEXT_BYTES, FILE_BYTES = 3, 4
"""Bytes a token of a text file, and of any other, such as a spreadsheet."""

NAMED_PAGES = 10
"""Pages of a file that is only an id or an address, a recording too; see `file_tokens`."""

_HEAD = 65_536  # Characters of base64 that are searched for the size of a picture


def media_tokens(block: Mapping[str, Any], maker: Maker, named: int | None = None) -> int:
    """Estimate the tokens of a content block without text, of any provider.

    `named` are the tokens of a document or recording that is only an id or an address, by default
    those of ten pages of a PDF.
    """
    media = media_of(block)
    if media.kind == "image":
        return _image(media, maker)
    if not media.data and media.kind != "sealed":
        return NAMED_PAGES * PER_PAGE[maker] if named is None else named
    match media.kind:
        case "sealed":  # encrypted text: about four bytes a token
            return math.ceil(media.size / 4)
        case "pdf":
            pages = pdf_pages(media.raw()) or math.ceil(media.size / PAGE_BYTES)
            return PER_PAGE[maker] * pages
        case "audio":
            plain = media.mime.removeprefix("audio/") in ("pcm", "pcm16", "l16")
            length = media.size / PCM if plain else seconds(media.raw(), film=False)
            return math.ceil(length * PER_AUDIO_SECOND[maker])
        case "video":
            return math.ceil(seconds(media.raw(), film=True) * PER_VIDEO_SECOND)
        case "text":
            return math.ceil(media.size / TEXT_BYTES)
    return math.ceil(media.size / FILE_BYTES)


def _image(media: Media, maker: Maker) -> int:
    size = picture_size(media.data) if isinstance(media.data, str) else _sized(media.data)
    if maker == "openai":
        return _openai(size, media.detail)
    if maker == "anthropic":
        return _anthropic(size)
    if maker == "google":
        return GOOGLE_DEFAULT
    return max(_openai(size, media.detail), _anthropic(size))


def _openai(size: tuple[int, int] | None, detail: str) -> int:
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


def picture_size(data: str) -> tuple[int, int] | None:
    """Read width and height of a PNG, GIF, WebP or JPEG; None if unknown."""
    try:
        head = data[:_HEAD]
        return _sized(base64.b64decode(head[: len(head) // 4 * 4]))
    except (binascii.Error, ValueError):
        return None


def _sized(raw: bytes) -> tuple[int, int] | None:
    try:
        size = _size(raw[:_HEAD])
    except (struct.error, IndexError):
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
    """Find the frame header behind the segments of metadata."""
    at = 2
    while at + 9 < len(raw) and raw[at] == 0xFF:
        mark = raw[at + 1]
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = _pair(raw, ">HH", at + 5)
            return width, height
        at += 2 + max(2, int.from_bytes(raw[at + 2 : at + 4], "big"))
    return None
