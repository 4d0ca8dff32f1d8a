"""One word names the embedded summariser everywhere: `embedded`."""

from conspectus import Compactor, EmbeddedSummarizer, SummarizationMiddleware
from conspectus.config import create_summarization_middleware, load_config
from scripted_models import ScriptedChatModel

WORD = "embedded"
TALK = [
    {"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n} " * 30}
    for n in range(12)
]


def test_summariser_model_fallback_and_yaml_take_the_word(tmp_path):
    assert EmbeddedSummarizer().name == WORD
    failing = ScriptedChatModel(answers=[RuntimeError("no")] * 9)
    for given in ({"summarizer": WORD}, {"summarizer": failing, "fallbacks": [WORD]}):
        own = Compactor(**given, trigger=("messages", 6), keep=("messages", 2))
        assert own.compact(TALK, thread_id="t").record.by == WORD
    file = tmp_path / "a.yaml"
    file.write_text(
        f"summarization:\n  enabled: true\n  model_name: {WORD}\n"
        "  trigger: {type: messages, value: 60}\n"
    )
    for made in (
        SummarizationMiddleware(WORD, trigger=("messages", 60)),
        SummarizationMiddleware(None, summarizer=WORD, trigger=("messages", 60)),
        create_summarization_middleware(load_config(file)),
    ):
        assert made.model is None
        assert made._setup.engine.order == (WORD,)
