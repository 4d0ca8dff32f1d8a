"""Bytes in a message count as media, whatever wraps them, and no text of ours quotes them."""

import base64
from random import Random
from typing import Any

import pytest

from conspectus import Compactor
from conspectus.messages import read_message
from scripted_models import ScriptedChatModel

RAW = b"\x89PNG\r\n\x1a\n" + Random(7).randbytes(60_000)
PICTURE = base64.b64encode(RAW).decode()
ADDRESS = f"data:image/png;base64,{PICTURE}"
SOUND = base64.b64encode(b"RIFF\0\0\0\0WAVEfmt " + Random(8).randbytes(60_000)).decode()
LINES = base64.encodebytes(RAW).decode()
ANTHROPIC = {"type": "base64", "media_type": "application/pdf", "data": PICTURE}

WRAPPERS: dict[str, dict[str, Any]] = {
    "MCP resource": {"type": "resource", "resource": {"uri": "shot://1", "blob": PICTURE}},
    "MCP image": {"type": "image", "data": PICTURE, "mimeType": "image/png"},
    "MCP sound": {"type": "audio", "data": SOUND, "mimeType": "audio/wav"},
    "OpenAI file": {"type": "file", "file": {"file_data": ADDRESS, "filename": "a.png"}},
    "OpenAI sound": {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
    "OpenAI image": {"type": "input_image", "image_url": ADDRESS},
    "OpenAI chat image": {"type": "image_url", "image_url": {"url": ADDRESS}},
    "OpenAI drawing": {"type": "image_generation_call", "id": "i", "result": PICTURE},
    "OpenAI code": {
        "type": "code_interpreter_call",
        "id": "ci",
        "code": "plot()",
        "outputs": [{"type": "image", "url": ADDRESS}],
    },
    "Anthropic image": {"type": "image", "source": {**ANTHROPIC, "media_type": "image/png"}},
    "Anthropic fetch": {
        "type": "web_fetch_tool_result",
        "tool_use_id": "c",
        "content": {
            "type": "web_fetch_result",
            "content": {"type": "document", "source": ANTHROPIC},
        },
    },
    "Google": {"inline_data": {"mime_type": "image/png", "data": PICTURE}},
    "Google bytes": {"inlineData": {"mimeType": "image/png", "data": RAW}},
    "Google function": {
        "functionResponse": {
            "name": "shot",
            "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}],
        }
    },
    "Bedrock": {"image": {"format": "png", "source": {"bytes": RAW}}},
    "Bedrock base64": {"image": {"format": "png", "source": {"bytes": PICTURE}}},
    "Bedrock JSON": {"toolResult": {"toolUseId": "c", "content": [{"json": {"a": PICTURE}}]}},
    "LangChain": {"type": "image", "base64": PICTURE, "mime_type": "image/png"},
    "Vercel file": {"type": "file", "data": PICTURE, "mediaType": "image/png"},
    "Vercel image": {"type": "image", "image": PICTURE},
    "Vercel result": {
        "type": "tool-result",
        "toolCallId": "c",
        "output": {
            "type": "content",
            "value": [{"type": "media", "data": PICTURE, "mediaType": "image/png"}],
        },
    },
    "Node buffer": {"type": "thing", "body": {"type": "Buffer", "data": list(RAW[:9_000])}},
    "Python bytes": {"type": "thing", "payload": RAW},
    "Python bytearray": {"type": "thing", "payload": bytearray(RAW)},
    "unknown key": {"type": "screenshot", "png": PICTURE},
    "unknown depth": {"type": "thing", "parts": [{"a": {"b": ADDRESS}}]},
    "unknown lines": {"type": "screenshot", "png": LINES},
    "no type": {"png": PICTURE, "width": 10},
    "beside content": {"type": "shot", "content": "a login page", "png": PICTURE},
    "beside text": {"type": "text", "text": "a login page", "thumbnail": {"data": PICTURE}},
    "URL-safe": {"type": "thing", "raw": base64.urlsafe_b64encode(RAW).decode()},
    "pieces": {"type": "thing", "body": [PICTURE[:40_000], PICTURE[40_000:]]},
}

CALL = {"id": "c", "type": "function", "function": {"name": "shot", "arguments": "{}"}}


def shot(content: Any) -> list[dict[str, Any]]:
    """A history in which a tool brings some content."""
    return [
        {"role": "user", "content": "Take a picture."},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": content},
        {"role": "assistant", "content": "Taken."},
        {"role": "user", "content": "Go on."},
    ]


def quotes(text: str) -> bool:
    """Tell whether a text has a piece of the encoded bytes."""
    pieces = (PICTURE[200:240], SOUND[200:240], LINES[200:240], str(list(RAW[40:60]))[1:-1])
    return any(piece in text for piece in pieces)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapped_bytes_count_as_media_and_are_never_quoted(wrapper):
    history = shot([WRAPPERS[wrapper]])
    compactor = Compactor(archive="memory:", keep=("messages", 1), window=60_000)
    result = compactor.compact(history, thread_id="t", force=True)
    assert result.outcome == "compacted"
    assert 150 < result.tokens_before < 25_000
    assert not quotes(result.summary)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_summariser_never_reads_wrapped_bytes(wrapper):
    answer = "The tool shot took a picture of a login page, and the user wants to go on. " * 8
    model = ScriptedChatModel(answers=[answer] * 4)
    compactor = Compactor(model, archive="memory:", keep=("messages", 1), window=60_000)
    compactor.compact(shot([WRAPPERS[wrapper]]), thread_id="t", force=True)
    assert model.calls
    assert not any(quotes(call.text) for call in model.calls)


def test_what_stands_beside_bytes_is_still_read():
    block = {"type": "screenshot", "note": "the login page", "png": PICTURE}
    (read,) = [read_message(message) for message in shot([block])[2:3]]
    assert "the login page" in read.text
    assert "bytes" in read.text


@pytest.mark.parametrize("text", [f'{{"picture": "{PICTURE}"}}', f"see {ADDRESS} there", LINES])
def test_base64_in_a_plain_result_is_never_quoted(text):
    compactor = Compactor(archive="memory:", keep=("messages", 1), window=200_000)
    result = compactor.compact(shot(text), thread_id="t", force=True)
    assert result.outcome == "compacted"
    assert result.tokens_before > len(text) / 2
    assert not quotes(result.summary)
    assert "characters of encoded bytes" in result.summary


def test_long_words_and_rules_are_no_bytes():
    block = {"type": "thing", "text_in_chinese": "没有空格的文字" * 90, "rule": "-" * 500}
    (read,) = [read_message(message) for message in shot([block])[2:3]]
    assert "没有空格的文字" in read.text
    assert not read.media
