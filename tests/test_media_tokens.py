"""Documents by their pages, recordings by their length, in every provider's form of a block."""

import base64
import zlib
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from conspectus.messages import read_messages
from conspectus.messages.media import media_of
from conspectus.tokens import TokenMeter
from conspectus.tokens.media import (
    PAGE_BYTES,
    PER_PAGE,
    UNPACKED,
    media_tokens,
    pdf_pages,
)
from engine import compacted, engine
from histories import user


def pdf(pages: int, *, packed: bool = False) -> bytes:
    """A PDF with so many pages, whose tree stands in the open or in an object stream."""
    kids = b" ".join(b"%d 0 R" % (n + 3) for n in range(pages))
    tree = b"<< /Kids [%s] /Resources << /Font << >> >> /Count %d /Type /Pages >>" % (kids, pages)
    leaf = b"<< /Type /Page /Parent 2 0 R >>"
    outlines = b"1 0 obj << /Type /Outlines /Count 99999 >> endobj\n"
    drawn = b"stream\n<< /Type /Pages /Count 77777 >>\nendstream endobj\n"
    if packed:
        inside = zlib.compress(b"2 0 3 500 " + tree + leaf * pages)
        head = b"9 0 obj << /Type /ObjStm /N 2 /First 10 /Filter /FlateDecode >> stream\r\n"
        body = head + inside + b"\r\nendstream endobj\n"
    else:
        leaves = b"".join(b"%d 0 obj %s endobj\n" % (n + 3, leaf) for n in range(pages))
        body = b"2 0 obj " + tree + b" endobj\n" + leaves
    return b"%PDF-1.7\n" + outlines + body + b"8 0 obj << /Length 9 >> " + drawn + b"%%EOF"


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def forms(raw: bytes) -> dict[str, dict[str, Any]]:
    """One PDF as every provider wants it."""
    data, mime = b64(raw), "application/pdf"
    url = f"data:{mime};base64,{data}"
    return {
        "OpenAI chat": {"type": "file", "file": {"filename": "a.pdf", "file_data": url}},
        "OpenAI Responses": {"type": "input_file", "filename": "a.pdf", "file_data": url},
        "Anthropic": {
            "type": "document",
            "source": {"type": "base64", "media_type": mime, "data": data},
        },
        "Google": {"inline_data": {"mime_type": mime, "data": data}},
        "Google, camel case": {"inlineData": {"mimeType": mime, "data": data}},
        "LangChain's Google": {"type": "media", "mime_type": mime, "data": raw},
        "Bedrock": {"document": {"format": "pdf", "name": "a", "source": {"bytes": raw}}},
        "LangChain v1": {"type": "file", "mime_type": mime, "base64": data},
        "LangChain v0": {"type": "file", "source_type": "base64", "mime_type": mime, "data": data},
    }


NAMED: list[dict[str, Any]] = [
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "input_file", "file_id": "file-1"},
    {"type": "input_file", "file_url": "https://example.org/a.pdf"},
    {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    {"file_data": {"file_uri": "gs://a/b.pdf", "mime_type": "application/pdf"}},
    {"type": "media", "file_uri": "gs://a/b.mp4", "mime_type": "video/mp4"},
    {"document": {"format": "pdf", "name": "a", "source": {"s3Location": {"uri": "s3://a/b"}}}},
    {"type": "file", "file_id": "file-1"},
    {"type": "file", "url": "https://example.org/a.pdf"},
    {"type": "audio", "file_id": "file-1"},
    {"type": "video", "url": "https://example.org/a.mp4"},
]


def test_an_address_that_holds_its_bytes_as_text_is_read_too():
    media = media_of({"type": "file", "url": "data:text/plain;charset=utf-8,two%20words"})
    assert (media.kind, media.raw()) == ("text", b"two words")


@pytest.mark.parametrize("packed", [False, True])
def test_the_pages_of_a_pdf_are_read_from_its_tree(packed):
    assert [pdf_pages(pdf(n, packed=packed)) for n in (1, 7, 100)] == [1, 7, 100]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"%PDF-1.7 " + bytes(range(256)) * 100,
        b"<<" * 200_000,
        b"%PDF-1.7 << /Type /Pages /Count " + b"9" * 100_000 + b" >>",
        b"/Type /ObjStm /FlateDecode stream\n" + zlib.compress(bytes(2 * UNPACKED)),
    ],
)
def test_what_is_no_pdf_has_no_pages(damaged):
    assert pdf_pages(damaged) is None


@pytest.mark.parametrize("form", forms(b""))
def test_a_pdf_counts_by_its_pages_in_every_form(form):
    message = {"role": "user", "content": [forms(pdf(100, packed=True))[form]]}
    (entry,) = read_messages([message])
    assert [media_tokens(block, "anthropic") for block in entry.media] == [300_000]
    assert TokenMeter(model="gpt-4o").message(message) > 100 * PER_PAGE["openai"]
    assert TokenMeter(model="gemini-3-pro").message(message) < 100 * 600
    assert b64(pdf(100))[:60] not in entry.text


def test_a_pdf_that_does_not_tell_its_pages_counts_by_its_bytes():
    raw = b"%PDF-1.7 " + b"\xab" * 10 * PAGE_BYTES
    assert media_tokens(forms(raw)["Anthropic"], "anthropic") == 11 * PER_PAGE["anthropic"]


@pytest.mark.parametrize("block", NAMED)
def test_what_is_only_named_counts_as_ten_pages(block):
    (entry,) = read_messages([HumanMessage([block])])
    assert entry.media == (block,)
    assert 30_000 < TokenMeter().entry(entry) < 30_100
    assert 20_050 < TokenMeter(model="gpt-4o").entry(entry) < 20_150
    assert 5_600 < TokenMeter(model="gemini-3-pro").entry(entry) < 5_700


def test_a_text_file_and_any_other_count_by_their_bytes():
    text = {"type": "file", "mime_type": "text/csv", "base64": b64(b"a,b\n" * 3_000)}
    sheet = {"type": "input_file", "filename": "a.xlsx", "file_data": b64(b"PK" + b"\xab" * 3_997)}
    assert media_tokens(text, "openai") == 4_000
    assert media_tokens(sheet, "openai") == 1_000


@pytest.mark.parametrize(
    ("mime", "size", "tokens"),
    [("audio/wav", 960_000, 600), ("audio/mpeg", 240_000, 600), ("audio/pcm16", 480_000, 100)],
)
def test_the_length_of_a_recording_follows_from_its_bytes(mime, size, tokens):
    block = {"type": "audio", "mime_type": mime, "base64": b64(bytes(size))}
    assert media_tokens(block, "openai") == tokens


def test_three_pdfs_of_100_pages_do_not_fit_200_000_tokens():
    files = [{"role": "user", "content": [block]} for block in [*forms(pdf(100)).values()][:3]]
    messages = [turn for file in files for turn in (file, {"role": "assistant", "content": "Yes."})]
    result = compacted([*messages, user("And now?")], engine(window=200_000))
    assert result.tokens_before > 200_000
    assert result.outcome == "compacted"
    assert result.tokens_after < 200_000
