"""Promise 3: what a provider would accept before a compaction it accepts after each."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Scripted, compacted, engine, short
from providers import anthropic, bedrock, google, openai
from providers.making import Maker, Provider
from stateful.budgets import LONG, few

FORMS = {
    "Anthropic": anthropic.PROVIDERS,
    "OpenAI Chat Completions": openai.CHAT,
    "OpenAI Responses": openai.RESPONSES,
    "Mistral": openai.MISTRAL,
    "Google": google.PROVIDERS,
    "Bedrock": bedrock.PROVIDERS,
}
"""The forms in which callers have the messages of each."""

TRIED = settings(
    max_examples=2_000 if LONG else few(6), deadline=None, suppress_health_check=list(HealthCheck)
)


def made(provider: Provider, seed: int, turns: int) -> Maker:
    maker = Maker(random.Random(seed), provider.fresh)
    for _ in range(turns):
        provider.make(maker)
    return maker


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("whose", FORMS)
@TRIED
@given(
    seed=st.integers(0, 2**40),
    turns=st.integers(1, 4),
    window=st.sampled_from([300, 600, 1_200, 2_400, 5_000]),
    keep=st.integers(1, 12),
    force=st.booleans(),
)
def test_no_request_is_refused_after_a_compaction(whose, seed, turns, window, keep, force):
    provider = FORMS[whose][seed % len(FORMS[whose])]
    maker = made(provider, seed, turns)
    compactor = engine(Scripted(short), window=window, keep=("messages", keep))
    for place in maker.asked:
        history = maker.messages[:place]
        whole = provider.request(history)
        assert provider.refuses(whole, whole) == [], "it is no history of this provider"
        result = compacted(history, compactor, force=force)
        assert provider.refuses(provider.request(result.messages), whole) == []
