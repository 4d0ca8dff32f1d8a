"""Counting tokens: all in a message counts once, media by a rule, a user's own counter plugs in."""

import base64
import logging
import struct
import zlib
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from compactor_support import compacted, new_compactor
from conspectus import Compactor, SummarizationMiddleware, short_term
from conspectus.messages import read_message, read_messages
from conspectus.messages.media import media_of
from conspectus.tokens import FAMILIES, MAY_BE_LOW, TokenMeter, estimate
from conspectus.tokens.media import PAGE_BYTES, PER_IMAGE, PER_PAGE, media_tokens, pdf_pages
from conspectus_sdk import Fitter
from graph_support import pairing_faults, tool_turns
from histories import user
from short_term_support import summarise


@given(st.text(st.characters(exclude_categories=())), st.text(max_size=20))
def test_estimates_are_between_one_token_and_all_bytes(text, addition):
    size = len(text.encode("utf-8", "surrogatepass"))
    for family in FAMILIES:
        assert bool(text) <= estimate(text, family) <= 4 * size + 4 * bool(text)
        assert estimate(text, family) <= estimate(text + addition, family)


def odd_texts() -> dict[str, str]:
    """Texts of the kinds that tools print and of scripts that few people write."""
    draw = Random(5)
    words = "parser queue limit value index".split()
    ge_ez = "ሰላም ዓለም ቤት ውሃ መጽሐፍ ትምህርት ሀገር".split()
    rows = [(draw.choice(words), draw.randint(0, 9_999)) for _ in range(60)]
    return {
        "ruled table": "\n".join(f"+--------+------+\n| {a:<6} | {b:>4} |" for a, b in rows),
        "box": "\n".join(f"├────────┼──────┤\n│ {a:<6} │ {b:>4} │" for a, b in rows),
        "tree": "\n".join("│   " * (b % 5) + f"├── {a}.rs" for a, b in rows),
        "diff": "\n".join("+- "[b % 3] + " " * (b % 9) + "})"[: b % 3] for a, b in rows),
        "deep": "\n".join(" " * 4 * (b % 6) + "break" for a, b in rows),
        "same line": "        return\n" * 90,
        "Ge'ez": " ".join(draw.choice(ge_ez) for _ in range(90)),
        "Braille": "".join(chr(draw.randint(0x2800, 0x28FF)) for _ in range(300)),
        "bases": "".join(draw.choice("ACGT") for _ in range(600)),
        "signs": "".join(draw.choice("∀∃∈∉∋∑∏√∝∞∠∧∨∩∪∫≈≠≡≤≥⊂⊃⊕") for _ in range(200)),
        "Korean": "".join(
            draw.choice("값을확인하고결과를다시보내주세요오류가났습니다") for _ in range(200)
        ),
        "dump": "\n".join(f"{b:08x}: {b * 7:08x} {b * 977:08x}" for a, b in rows),
        "colours": "".join(f"\x1b[{30 + b % 8}m{a}\x1b[0m " for a, b in rows),
        "bar": "\n".join(f"{b % 100:>3}%|{'█' * (b % 30)}{' ' * (30 - b % 30)}|" for a, b in rows),
        "one line": "| 17 | -- |",
    }


def test_no_estimate_is_more_than_five_percent_too_low(script):
    counters = script("vocabularies").families()
    too_low: dict[str, float] = {}
    for kind_of_text, text in odd_texts().items():
        real = {family: count(text) for family, count in counters.items()}
        real["unknown"] = max(real.values())
        for family in FAMILIES:
            error = estimate(text, family) / real[family] - 1
            if error < -MAY_BE_LOW:
                too_low[f"{kind_of_text}, {family}"] = round(error, 2)
    assert too_low == {}


def talk(turns: int, share: float) -> list[Any]:
    """A history whose answers report `share` of what is estimated."""
    meter = TokenMeter(model="gpt-4o")
    messages = list[Any]()
    for turn in range(turns):
        messages.append(HumanMessage(f"t{turn}: " + "Look at the next module, please. " * 20))
        size = int(meter.count_messages(messages) * share)
        usage: Any = {"input_tokens": size, "output_tokens": 1, "total_tokens": size + 1}
        messages.append(AIMessage(f"t{turn} is done.", usage_metadata=usage))
    return messages


def counts_tools(messages: Any) -> int:
    """Count messages with 1,000 tokens of a model's tools."""
    return 1_000 + sum(len(read_message(message).text) // 4 + 4 for message in messages)


def test_what_a_counter_adds_to_any_list_counts_once():
    counter = counts_tools
    compactor = Compactor(window=2_000, token_counter=counter, archive="memory:")
    view = []
    for n in range(60):
        view += [HumanMessage(f"question {n} " + "word " * 10), AIMessage(f"answer {n}")]
        result = compactor.compact(view, thread_id="t")
        view = list(result.messages)
        assert result.outcome != "stuck"
        assert counter(view) <= 2_000
    assert (result.budget, result.tokens_after) == (2_000, counter(view))


def test_a_counters_base_is_left_free_in_every_way_in():
    messages = [HumanMessage(f"question {n} " + "word " * 30, id=f"q{n}") for n in range(60)]
    limits: Any = {"max_tokens": 2_000, "max_summary_tokens": 200}
    for limit_before_summary in (None, 1_500):
        limits["max_tokens_before_summary"] = limit_before_summary
        result = summarise(short_term, messages, token_counter=counts_tools, **limits)
        assert result.running_summary is not None
        assert 1_100 < counts_tools(result.messages) <= 2_000
    dicts = [{"role": "user", "content": message.text} for message in messages]
    with Fitter(archive="memory:", window=2_000, token_counter=counts_tools) as fitter:
        fitted = fitter.fit(dicts, model="own-model", thread_id="t", answer_tokens=200)
    assert fitted.outcome == "compacted"
    assert 1_100 < counts_tools(fitted.messages) <= 1_800


@pytest.mark.parametrize(("share", "counts"), [(0.75, 0.75), (1.5, 1.5), (9, 2), (10**6, 1)])
def test_what_models_reported_corrects_the_size_of_a_history_within_bounds(share, counts):
    messages = talk(20, share)
    plain = TokenMeter(model="gpt-4o").count_messages(messages)
    result = Compactor(tokenizer="gpt-4o", window=50_000).compact(messages, thread_id="t")
    assert result.tokens_before == pytest.approx(plain * counts, rel=0.05)
    exact = Compactor(token_counter=count_tokens_approximately).compact(messages, thread_id="t")
    assert exact.tokens_before == sum(count_tokens_approximately([m]) for m in messages)


def test_clips_stay_the_same_when_reports_come_and_go():
    giant = HumanMessage("word " * 6_000, id="giant")
    messages = [*talk(12, 1.9), giant]
    compactor = Compactor(tokenizer="gpt-4o", window=4_000, archive="memory:")
    result = compactor.compact(messages, thread_id="t")
    assert (result.outcome, result.clipped) == ("compacted", 1)
    shown = TokenMeter(model="gpt-4o").count_message(result.messages[-1])
    assert 1.9 * shown <= 1_300  # a quarter of the window, and its pointer, as corrected
    second_result = compactor.compact(messages, thread_id="t")
    assert [m.content for m in second_result.messages] == [m.content for m in result.messages]
    assert second_result.record_id is None


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def png(width: int, height: int, padding: int = 0) -> bytes:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return head + b"\x08\x02\x00\x00\x00" + b"x" * padding


GIF = b"GIF89a" + struct.pack("<HH", 300, 200)
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640)


@pytest.mark.parametrize(
    ("raw", "maker", "tokens"),
    [
        (png(1024, 1024), "openai", 765),
        (png(2048, 4096), "openai", 1105),
        (png(640, 480), "anthropic", 410),
        (GIF, "anthropic", 80),
        (JPEG, "anthropic", 410),
    ],
)
def test_an_image_takes_what_its_provider_documents_for_its_size(raw, maker, tokens):
    block = {"type": "image", "mime_type": "image/png", "base64": b64(raw + b"\0" * 12)}
    assert media_tokens(block, maker) == tokens
    url = f"data:image/png;base64,{b64(raw)}"
    low = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    assert media_tokens(low, "openai") == 85


def pdf(pages: int, *, packed: bool = False) -> bytes:
    """A PDF with so many pages, in the open or in an object stream."""
    kids = b" ".join(b"%d 0 R" % (n + 3) for n in range(pages))
    tree = b"<< /Kids [%s] /Count %d /Type /Pages >>" % (kids, pages)
    leaf = b"<< /Type /Page /Parent 2 0 R >>"
    drawn = b"stream\n<< /Type /Page >>\nendstream endobj\n"
    if packed:
        head = b"9 0 obj << /Type /ObjStm /N 2 /First 10 /Filter /FlateDecode >> stream\r\n"
        body = head + zlib.compress(tree + leaf * pages) + b"\r\nendstream endobj\n"
    else:
        leaves = b"".join(b"%d 0 obj %s endobj\n" % (n + 3, leaf) for n in range(pages))
        body = b"2 0 obj " + tree + b" endobj\n" + leaves
    return b"%PDF-1.7\n" + body + b"8 0 obj << /Length 9 >> " + drawn + b"%%EOF"


def forms(raw: bytes) -> dict[str, dict[str, Any]]:
    """One PDF as every provider wants it."""
    data = b64(raw)
    mime = "application/pdf"
    url = f"data:{mime};base64,{data}"
    source = {"type": "base64", "media_type": mime, "data": data}
    return {
        "OpenAI chat": {"type": "file", "file": {"filename": "a.pdf", "file_data": url}},
        "OpenAI Responses": {"type": "input_file", "filename": "a.pdf", "file_data": url},
        "Anthropic": {"type": "document", "source": source},
        "Google": {"inline_data": {"mime_type": mime, "data": data}},
        "Google, camel case": {"inlineData": {"mimeType": mime, "data": data}},
        "LangChain's Google": {"type": "media", "mime_type": mime, "data": raw},
        "Bedrock": {"document": {"format": "pdf", "name": "a", "source": {"bytes": raw}}},
        "LangChain v1": {"type": "file", "mime_type": mime, "base64": data},
        "LangChain v0": {"type": "file", "source_type": "base64", "mime_type": mime, "data": data},
    }


@pytest.mark.parametrize("packed", [False, True])
def test_the_pages_of_a_pdf_are_read_from_its_tree(packed):
    assert [pdf_pages(pdf(n, packed=packed)) for n in (1, 7, 100)] == [1, 7, 100]


@pytest.mark.parametrize("form", forms(b""))
def test_a_pdf_counts_by_its_pages_in_every_form(form):
    message = {"role": "user", "content": [forms(pdf(100, packed=True))[form]]}
    (read,) = read_messages([message])
    assert [media_tokens(block, "anthropic") for block in read.media] == [300_000]
    assert TokenMeter(model="gpt-4o").count_message(message) > 100 * PER_PAGE["openai"]
    assert TokenMeter(model="gemini-3-pro").count_message(message) < 100 * 600
    assert b64(pdf(100))[:60] not in read.text


NAMED_FILES: list[dict[str, Any]] = [
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "input_file", "file_url": "https://example.org/a.pdf"},
    {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    {"file_data": {"file_uri": "gs://a/b.pdf", "mime_type": "application/pdf"}},
    {"type": "media", "file_uri": "gs://a/b.mp4", "mime_type": "video/mp4"},
    {"document": {"format": "pdf", "name": "a", "source": {"s3Location": {"uri": "s3://a/b"}}}},
    {"type": "audio", "file_id": "file-1"},
    {"type": "video", "url": "https://example.org/a.mp4"},
]


@pytest.mark.parametrize("block", NAMED_FILES)
def test_what_is_only_named_counts_as_ten_pages(block):
    (read,) = read_messages([HumanMessage([block])])
    assert read.media == (block,)
    for model, at_least in ((None, 30_000), ("gpt-4o", 20_050), ("gemini-3-pro", 5_600)):
        assert at_least < TokenMeter(model=model).count_entry(read) < at_least + 100


RECORDED = [
    ("file", "text/csv", b"a,b\n" * 3_000, 4_000),
    ("file", "application/zip", b"PK" + b"\xab" * 3_997, 1_000),
    ("file", "application/pdf", b"%PDF-1.7 " + b"\xab" * 10 * PAGE_BYTES, 11 * PER_PAGE["openai"]),
    ("file", "text/plain;charset=utf-8", b"two words", 3),
    ("audio", "audio/wav", bytes(960_000), 600),
    ("audio", "audio/mpeg", bytes(240_000), 600),
    ("audio", "audio/pcm16", bytes(480_000), 100),
]


@pytest.mark.parametrize(("block_type", "mime", "raw", "tokens"), RECORDED)
def test_the_length_of_a_recording_follows_from_its_bytes(block_type, mime, raw, tokens):
    assert (
        media_tokens({"type": block_type, "mime_type": mime, "base64": b64(raw)}, "openai")
        == tokens
    )
    url = f"data:{mime};base64,{b64(raw)}"
    assert media_tokens({"type": block_type, "url": url}, "openai") == tokens


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_bytes_are_decoded_in_either_alphabet_of_base64(encode):
    raw = b"\x89PNG" + bytes(range(256))
    media = media_of({"type": "file", "data": encode(raw).decode()})
    assert (media.kind, media.raw()) == ("image", raw)


def test_media_count_by_their_rule_in_a_window():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 99_999}}
    largest = max(PER_IMAGE.values())
    assert largest < TokenMeter().count_message(HumanMessage([image])) < largest + 60
    files = [{"role": "user", "content": [block]} for block in [*forms(pdf(100)).values()][:3]]
    messages = [turn for file in files for turn in (file, {"role": "assistant", "content": "Yes."})]
    result = compacted([*messages, user("And now?")], new_compactor(window=200_000))
    assert result.outcome == "compacted"
    assert result.tokens_after < 200_000 < result.tokens_before


def test_a_vocabulary_of_tokenizers_counts(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = {"hello": 0, "there": 1, "[UNK]": 2}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    meter = TokenMeter(f"tokenizers:{tmp_path / 'tokenizer.json'}")
    assert meter.count_text("hello there you") == 3
    assert meter.count_text("hello \ud800") == 2
    messages = talk(12, 1.9)
    spec = f"tokenizers:{tmp_path / 'tokenizer.json'}"
    exact = Compactor(token_counter=spec).compact(messages, thread_id="t")
    assert exact.tokens_before == meter.count_messages(messages), "an exact count is not corrected"


Messages = list[AnyMessage]


HISTORY = [SystemMessage("Be careful.", id="s"), *tool_turns(8, 2)]


def size(messages: Messages) -> int:
    return sum(10 + len(f"{m.text}{getattr(m, 'tool_calls', '')}") for m in messages)


def size_of_legal(messages: Messages) -> int:
    if pairing_faults(messages):
        raise ValueError("400: no valid request")
    return size(messages)


def test_a_counter_that_takes_legal_histories_only(caplog):
    whole = size(HISTORY)
    near = 200
    for trigger, due in ((whole + near, False), (whole - near, True)):
        middleware = SummarizationMiddleware(
            None, trigger=("tokens", trigger), keep=("messages", 4), token_counter=size_of_legal
        )
        assert (middleware.before_model({"messages": list(HISTORY)}, Runtime()) is not None) is due
    assert "token_counter" not in caplog.text
    result = Compactor(
        token_counter=size_of_legal, trigger=("tokens", whole - near), keep=("messages", 4)
    ).compact(HISTORY, thread_id="t")
    assert result.outcome == "compacted"
    assert whole - near <= result.tokens_before <= whole + near


def test_a_counter_that_fails_is_said_once_and_the_estimate_counts(caplog):
    def down(messages: Any) -> int:
        raise ConnectionError("connection refused")

    middleware = SummarizationMiddleware(None, trigger=("tokens", 200), keep=("messages", 4))
    middleware.token_counter = down
    with caplog.at_level(logging.WARNING):
        update = middleware.before_model({"messages": list(HISTORY)}, Runtime())
    assert update is not None
    assert len(update["messages"]) < len(HISTORY)
    lines = [r for r in caplog.records if "connection refused" in r.getMessage()]
    assert 1 <= len(lines) <= 2, "once for the trigger, once for the window"


@pytest.mark.parametrize("form", ["thinking", "reasoning_content"])
def test_a_report_without_thoughts_lowers_no_estimate(form):
    words = "the relay must answer in time " * 20
    thoughts = "I look at it from each side. " * 60
    history: list[Any] = [HumanMessage(words * 8)]
    for turn in range(6):
        content: Any = [
            {"type": "thinking", "thinking": thoughts},
            {"type": "text", "text": "Yes."},
        ]
        fields = {} if form == "thinking" else {form: thoughts}
        reported = TokenMeter().count_messages(
            [message for message in history if message.type == "human"]
        )
        usage: Any = {"input_tokens": reported, "output_tokens": 9, "total_tokens": reported + 9}
        answer = AIMessage(content if form == "thinking" else "Yes.", additional_kwargs=fields)
        history += [
            answer.model_copy(update={"usage_metadata": usage}),
            HumanMessage(f"Go on {turn}."),
        ]
    history[-1] = HumanMessage(words * 48)
    result = Compactor(window=8_000, archive="memory:").compact(history, thread_id="t")
    assert TokenMeter().count_messages([m for m in result.messages if m.type == "human"]) <= 8_000
