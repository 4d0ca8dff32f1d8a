"""Counting tokens: everything in a message counts once, and a user's own counter plugs in."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool

from conspectus import Compactor, PolicyError
from conspectus.tokens import (
    FAMILIES,
    PER_MEDIA,
    Report,
    TokenMeter,
    correction,
    estimate,
    families,
)
from conspectus.tokens.families import family_of
from conspectus.tokens.media import media_tokens
from histories import assistant, user


def test_an_empty_text_takes_nothing_and_a_longer_one_more():
    assert estimate("") == 0
    sizes = [estimate("some words of text " * n) for n in (1, 2, 10, 100)]
    assert sizes == sorted(set(sizes))


@given(st.text(st.characters(exclude_categories=()), min_size=1))
def test_any_text_takes_a_token_and_at_most_its_bytes(text):
    size = len(text.encode("utf-8", "surrogatepass"))
    for family in FAMILIES:
        assert 1 <= estimate(text, family) <= 4 * size + 4


@given(st.text(max_size=300), st.text(max_size=20), st.sampled_from(FAMILIES))
def test_a_longer_text_never_takes_less(text, more, family):
    assert estimate(text, family) <= estimate(text + more, family)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("Yes.", 1, 3), ("Thank you!", 2, 5), ("src/app/main.py", 4, 9), ("да", 1, 3), ("好的", 1, 4)],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_few_words_take_a_few_tokens(text, least, most, family):
    assert least <= estimate(text, family) <= most


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o-mini", "o200k"),
        ("openai:gpt-4.1", "o200k"),
        ("gpt-5-mini", "o200k"),
        ("o3-mini", "o200k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-3.5-turbo-0125", "cl100k"),
        ("gpt-35-turbo", "cl100k"),
        ("text-embedding-3-small", "cl100k"),
        ("anthropic:claude-sonnet-4-5", "claude"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude"),
        ("deepseek-chat", "deepseek"),
        ("llama-3.1-70b", "unknown"),
        ("gemini-2.5-pro", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_family_follows_from_the_model(model, family):
    assert family_of(model) == family
    assert TokenMeter(model=model).family == family


def test_names_arguments_and_reasoning_count():
    meter = TokenMeter()
    assert meter.message(assistant("", ("c", "x " * 200))) > 150
    thought = {"type": "thinking", "thinking": "One more thing to weigh. " * 50, "signature": "s"}
    assert meter.message(AIMessage([thought])) > 200
    assert meter.message(HumanMessage("hi", name="a very long name of a speaker")) > meter.message(
        HumanMessage("hi")
    )


def png(width: int, height: int, more: int = 0) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return base64.b64encode(head + b"\x08\x02\x00\x00\x00" + b"x" * more).decode()


def test_the_characters_of_an_image_never_count():
    meter = TokenMeter()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 99_999}}
    assert PER_MEDIA < meter.message(HumanMessage([image])) < PER_MEDIA + 60
    small, large = png(640, 480), png(640, 480, 300_000)
    sizes = [
        media_tokens({"type": "image", "mime_type": "image/png", "base64": data}, "anthropic")
        for data in (small, large)
    ]
    assert sizes[0] == sizes[1] == 410  # 640 x 480 / 750


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(1024, 1024, 765), (2048, 4096, 1105), (512, 512, 255)]
)
def test_an_image_of_known_size_takes_what_openai_documents(width, height, tokens):
    url = f"data:image/png;base64,{png(width, height)}"
    block = {"type": "image_url", "image_url": {"url": url}}
    assert media_tokens(block, "openai") == tokens
    low = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    assert media_tokens(low, "openai") == 85


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (b"GIF89a" + struct.pack("<HH", 300, 200), (300, 200)),
        (
            b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640),
            (640, 480),
        ),
    ],
)
def test_sizes_of_pictures_are_read_from_their_heads(raw, size):
    data = base64.b64encode(raw + b"\0" * 12).decode()
    block = {"type": "image", "mime_type": "image/png", "base64": data}
    assert media_tokens(block, "anthropic") == -(-size[0] * size[1] // 750)


def test_tools_count_with_their_schemas():
    @tool
    def search(query: str, limit: int = 10) -> str:
        """Look words up in the documentation of the project and give back what was found."""
        return query * limit

    meter = TokenMeter(model="gpt-4o")
    assert meter.tools([]) == 0
    one = meter.tools([search])
    assert 40 < one < 160
    assert meter.tools([search, search]) == 2 * one
    own = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    assert meter.tools([own]) > 8
    with pytest.raises(PolicyError, match="is no tool"):
        meter.tools([3])


def test_a_message_is_counted_once_and_a_changed_one_anew():
    calls = []

    def counter(messages: Any) -> int:
        calls.append(messages)
        return sum(len(str(m.content)) for m in messages)

    meter = TokenMeter(counter)
    message = HumanMessage("hello there", id="1")
    assert [meter.message(message) for _ in range(3)] == [11] * 3
    assert len(calls) == 1
    message.content = "hello there, world"
    assert meter.message(message) == 18
    assert meter.message(HumanMessage("other", id="1")) == 5
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("tiktoken", "write tiktoken:o200k_base"),
        ("magic:x", "write tiktoken:o200k_base"),
        ("tokenizers:/nowhere/tokenizer.json", "there is no file"),
        ("tiktoken:no-such-encoding", "cannot be had"),
        (3, "or the name of a vocabulary"),
    ],
)
def test_a_counter_that_cannot_be_had_is_named(spec, why):
    if isinstance(spec, str) and ":" in spec:
        pytest.importorskip(spec.split(":")[0]) if not spec.startswith("magic") else None
    with pytest.raises(PolicyError, match=why):
        TokenMeter(spec)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tiktoken", None)
    with pytest.raises(PolicyError, match=r"pip install .*\[tokens\]'"):
        TokenMeter("tiktoken:o200k_base")


def test_a_vocabulary_of_tokenizers_counts(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    words = {"hello": 0, "there": 1, "[UNK]": 2}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    meter = TokenMeter(f"tokenizers:{tmp_path / 'tokenizer.json'}")
    assert meter.text("hello there you") == 3
    assert meter.text("hello \ud800") == 2
    assert meter.exact


@pytest.mark.parametrize(
    ("reports", "overhead", "ratio"),
    [
        ([], 0, 1.0),
        ([(1_000, 1_000)], 0, 1.0),
        ([(1_000, 900)], 0, 0.9),  # whatever else was in it, the messages took no more
        ([(1_000, 1_500)], 0, 1.5),
        ([(1_000, 1_500)], 400, 1.1),
        ([(1_000, 1_500)], 800, 1.0),
        ([(1_000, 90_000)], 0, 2.0),
        ([(1_000, 600)], 0, 0.6),
        ([(1_000, 1)], 0, 1.0),  # a report of something else
        ([(1_000, 499), (3_000, 2_400)], 0, 0.8),
        ([(1_000, 900), (3_000, 901)], 0, 1.0),  # nor do the ones before a report of something else
        ([(1_000, 1_200), (3_000, 901)], 0, 1.2),
        ([(10, 1)], 0, 1.0),  # too small to say anything
        ([(1_000, 5_000), (3_000, 7_400)], 0, 1.2),  # 4,000 tokens of tools are in both
        ([(1_000, 5_000), (3_000, 4_000)], 0, 1.333),  # less than before: the first is void
    ],
)
def test_reports_correct_the_estimate_within_bounds(reports, overhead, ratio):
    assert correction([Report(*r) for r in reports], overhead) == pytest.approx(ratio, abs=0.001)


@pytest.mark.parametrize(
    ("reports", "overhead", "ratio"),
    [
        ([(1_000, 10**9)], 0, 1.0),
        ([(1_000, 1_200), (3_000, 10**9)], 0, 1.2),
        ([(1_000, 10**9), (3_000, 3_300)], 0, 1.1),
        ([(1_000, 5_000)], 0, 2.0),  # tools that nobody told of
        ([(1_000, 5_001)], 0, 1.0),
        ([(4_000, 8_000)], 0, 2.0),  # sent to a model with a larger window, before
        ([(1_000, 8_000)], 3_000, 2.0),
    ],
)
def test_a_report_far_above_the_window_and_the_estimate_says_nothing(reports, overhead, ratio):
    found = correction([Report(*r) for r in reports], overhead, 2_500)
    assert found == pytest.approx(ratio, abs=0.001)


def test_an_exact_counter_is_never_corrected():
    exact = TokenMeter(count_tokens_approximately)
    assert exact.corrected([Report(1_000, 2_000)]) is exact
    meter = TokenMeter()
    assert meter.corrected([]) is meter
    twice = meter.corrected([Report(1_000, 2_000)])
    assert twice.message(user("hello there")) == 2 * meter.message(user("hello there"))
    assert twice.plain.message(user("hello there")) == meter.message(user("hello there"))


def answer(text: str, tokens: int) -> AIMessage:
    usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
    return AIMessage(text, usage_metadata=usage)  # type: ignore[arg-type]


def talk(turns: int, share: float, start: str = "t") -> list[Any]:
    """A history whose answers report `share` of what is estimated."""
    meter, messages = TokenMeter(model="gpt-4o"), list[Any]()
    for turn in range(turns):
        messages.append(HumanMessage(f"{start}{turn}: " + "Look at the next module, please. " * 20))
        size = meter.messages(messages)
        messages.append(answer(f"{start}{turn} is done.", int(size * share)))
    return messages


@pytest.mark.parametrize("share", [0.75, 1.5])
def test_what_models_reported_corrects_the_size_of_a_history(share):
    messages = talk(20, share)
    plain = TokenMeter(model="gpt-4o").messages(messages)
    result = Compactor(tokenizer="gpt-4o").compact(messages, thread_id="t")
    assert result.tokens_before == pytest.approx(plain * share, rel=0.05)
    exact = Compactor(token_counter=count_tokens_approximately).compact(messages, thread_id="t")
    assert exact.tokens_before == sum(count_tokens_approximately([m]) for m in messages)


def test_clips_stay_the_same_when_reports_come_and_go():
    giant = HumanMessage("word " * 6_000, id="giant")
    messages = [*talk(12, 1.9), giant]
    compactor = Compactor(tokenizer="gpt-4o", window=4_000, archive="memory:")
    first = compactor.compact(messages, thread_id="t")
    assert first.outcome == "compacted"
    assert first.clipped == 1
    shown = TokenMeter(model="gpt-4o").message(first.messages[-1])
    assert 1.9 * shown <= 1_300  # a quarter of the window, and its pointer, as corrected
    whole = compactor.compact(messages, thread_id="t")
    assert [m.content for m in whole.messages] == [m.content for m in first.messages]
    assert whole.record_id is None


HOLDS_ITSELF: dict[str, Any] = {"name": "search"}
HOLDS_ITSELF["parameters"] = HOLDS_ITSELF


@pytest.mark.parametrize(
    "odd", [3, "search", {"name": "search"}, [3], [None], [{(1, 2): "x"}], [HOLDS_ITSELF]]
)
def test_what_is_no_list_of_tools_is_refused(odd):
    with pytest.raises(PolicyError, match="tool"):
        TokenMeter().tools(odd)


class ScriptedThing:
    model_name = "scripted-1"


def test_a_model_whose_tokenizer_is_not_known_is_named_once_in_a_process(caplog, monkeypatch):
    monkeypatch.setattr(families, "_warned", [])
    TokenMeter(model="unknown")
    TokenMeter()
    TokenMeter(model=ScriptedThing())
    TokenMeter(model=object())
    TokenMeter(count_tokens_approximately, model="nonsense-2")
    TokenMeter(model="gpt-4o")
    assert not caplog.records
    for name in ("nonsense-1", "nonsense-1", "nonsense-3"):
        assert TokenMeter(model=name).family == "unknown"
        Compactor(tokenizer=name)
    told = [record.message for record in caplog.records if "is not known" in record.message]
    assert len(told) == 1
    assert "'nonsense-1'" in told[0]
