"""The simulated caches do what the providers' pages say, with the numbers of their examples.

Anthropic: https://platform.claude.com/docs/en/build-with-claude/prompt-caching; OpenAI:
https://developers.openai.com/api/docs/guides/prompt-caching and the cookbook's Prompt Caching 201;
Gemini: https://ai.google.dev/gemini-api/docs/caching. Read on 2026-11-23.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus_lab.billing import Block, CacheRules, CacheUse, PrefixCache, rules_for
from conspectus_lab.billing.prefix_cache import FIVE_MINUTES

SONNET = rules_for("claude-sonnet-4-5")
GPT = rules_for("gpt-5.4")


def book() -> list[Block]:
    """Anthropic's first example: a whole book behind a breakpoint, and a question of 21 tokens."""
    return [
        Block("You are an assistant that analyses books.", 86),
        Block("Pride and Prejudice", 188_000, mark=True),
        Block("Analyse the major themes.", 21),
    ]


def test_the_book_is_written_once_and_then_read():
    cache = PrefixCache(SONNET)
    assert cache.request(book(), 0) == CacheUse(0, 188_086, 21)
    assert cache.request(book(), 60) == CacheUse(188_086, 0, 21)


def test_a_lifetime_counts_from_the_start_of_a_request_and_a_hit_begins_it_anew():
    cache = PrefixCache(SONNET)
    cache.request(book(), 0)
    assert cache.request(book(), FIVE_MINUTES).read == 188_086
    assert cache.request(book(), 2 * FIVE_MINUTES).read == 188_086
    assert cache.request(book(), 3 * FIVE_MINUTES + 1) == CacheUse(0, 188_086, 21)


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5", 512),
        ("anthropic:claude-sonnet-5-5", 512),
        ("claude-fable-5-1", 512),
        ("claude-sonnet-5", 1_024),
        ("claude-sonnet-4-6", 1_024),
        ("claude-opus-4-8", 1_024),
        ("claude-opus-4-7-20260416", 2_048),
        ("claude-opus-4-6", 4_096),
        ("anthropic/claude-haiku-4-5", 4_096),
        ("bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0", 4_096),
        ("claude-haiku-5-5", 512),
        ("gpt-5.6", 1_024),
        ("openai:gpt-6.1-sol", 1_024),
        ("gpt-4o-mini", 1_024),
        ("gemini-2.5-pro", 2_048),
        ("gemini/gemini-3.1-pro-preview", 4_096),
    ],
)
def test_below_the_least_length_nothing_is_cached(model, least):
    for tokens, cached in ((least, True), (least - 1, False)):
        cache = PrefixCache(rules_for(model))
        prompt = [Block("instructions", tokens, mark="claude" in model)]
        cache.request(prompt, 0)
        assert (cache.request(prompt, 1).read > 0) is cached


def growing(count: int, run: str = "") -> list[Block]:
    """A conversation with one breakpoint, on its last block."""
    blocks = [Block(f"block {n}", 1_000, run=run) for n in range(count)]
    return [*blocks[:-1], Block(f"block {count - 1}", 1_000, True, run)]


def test_twenty_positions_are_looked_at_the_breakpoint_being_the_first():
    """The page: 35 blocks, of which 35 to 16 are looked at; the entry at block 15 is not found."""
    cache = PrefixCache(SONNET)
    cache.request(growing(15), 0)
    assert cache.request(growing(34), 1).read == 15_000
    cache = PrefixCache(SONNET)
    cache.request(growing(15), 0)
    assert cache.request(growing(35), 1) == CacheUse(0, 35_000, 0)
    nearer = growing(35)
    nearer[20] = Block("block 20", 1_000, mark=True)
    cache = PrefixCache(SONNET)
    cache.request(growing(15), 0)
    assert cache.request(nearer, 1) == CacheUse(15_000, 20_000, 0)


def test_results_of_calls_side_by_side_take_one_position():
    cache = PrefixCache(SONNET)
    cache.request(growing(15), 0)
    many = growing(15) + [Block(f"result {n}", 100, run="results") for n in range(40)]
    many[14] = Block("block 14", 1_000)
    many[-1] = Block("last", 100, mark=True)
    assert cache.request(many, 1) == CacheUse(15_000, 4_000, 0)


def test_only_what_a_breakpoint_stood_behind_is_found():
    """Writes happen at breakpoints alone: a prefix that none ended is not known."""
    cache = PrefixCache(SONNET)
    cache.request(growing(10), 0)
    changed = growing(10)
    changed[8] = Block("changed", 1_000)
    assert cache.request(changed, 1) == CacheUse(0, 10_000, 0)


@pytest.mark.parametrize(
    ("tokens", "read"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (2_006, 1_920)]
)
def test_openai_reads_1024_tokens_and_steps_of_128(tokens, read):
    """The last is the usage in OpenAI's guide: 1,920 of 2,006 tokens are cached."""
    cache = PrefixCache(GPT)
    prompt = [Block("prompt", tokens)]
    assert cache.request(prompt, 0) == CacheUse(plain=tokens)
    assert cache.request(prompt, 1) == CacheUse(read=read, plain=tokens - read)


def test_openai_keeps_every_prefix_down_to_the_middle_of_a_block():
    cache = PrefixCache(GPT)
    cache.request([Block("x" * 4_096 + "yes", 1_025), Block("tail", 3_000)], 0)
    other = [Block("x" * 4_096 + "not", 1_025), Block("tail", 3_000)]
    assert cache.request(other, 1).read == 1_024
    assert cache.request(other, 1 + FIVE_MINUTES).read == 3_968  # 1,024 and 23 steps of 128
    assert cache.request(other, 2 + 2 * FIVE_MINUTES).read == 0


def test_openai_from_gpt_5_6_on_reads_what_ended_with_a_request_for_half_an_hour():
    """One implicit breakpoint at the end, half an hour, and writes that are told."""
    cache = PrefixCache(rules_for("gpt-6.1-sol"))
    first = [Block("system", 2_000), Block("question", 100)]
    longer = [*first, Block("answer", 50), Block("next", 50)]
    assert cache.request(first, 0) == CacheUse(written=2_100)
    assert cache.request(longer, 1_800) == CacheUse(read=2_100, written=100)
    assert cache.request([first[0], Block("other", 100)], 1_801) == CacheUse(written=2_100)
    assert cache.request(longer, 3_601).read == 0


LISTS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3_000)), min_size=1, max_size=30)


@given(
    requests=st.lists(st.tuples(LISTS, st.floats(0, 4_000)), min_size=1, max_size=6),
    model=st.sampled_from(["claude-sonnet-5-5", "gpt-5.4", "gpt-6.1-sol", "gemini-2.5-pro"]),
)
def test_all_of_an_input_is_accounted_for_once(requests, model):
    rules = rules_for(model)
    cache, at = PrefixCache(rules), 0.0
    for sizes, passes in requests:
        blocks = [Block(f"{name} {tokens}", tokens) for name, tokens in sizes]
        if rules.marked:
            blocks[-1] = Block(blocks[-1].text, blocks[-1].tokens, mark=True)
        at += passes
        use = cache.request(blocks, at)
        assert use.input == sum(block.tokens for block in blocks)
        assert min(use.read, use.written, use.plain) >= 0
        assert use.read == 0 or use.read >= rules.least
        assert cache.request(blocks, at).plain <= use.plain


def test_rules_can_be_of_ones_own():
    cache = PrefixCache(CacheRules(least=10))
    cache.request([Block("abc", 12)], 0)
    assert cache.request([Block("abc", 12), Block("d", 1)], 1) == CacheUse(read=12, plain=1)
