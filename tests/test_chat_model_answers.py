"""What a model answers, or fails with: what is taken, what is refused, what is tried again."""

from types import SimpleNamespace

import pytest
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError
from langchain_core.messages import AIMessage

from conspectus.errors import SummaryError, SummaryRejected
from conspectus.summarize.chat_model import ChatModelSummarizer
from conspectus.summarize.provider_errors import explained, is_overflow
from conspectus_lab.testing.scripted_models import ScriptedChatModel
from summarizer_support import kinds, request, turns, words_read


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (AIMessage("## Goal", response_metadata={"finish_reason": "length"}), "cut off"),
        (AIMessage("## Goal", response_metadata={"stop_reason": "max_tokens"}), "cut off"),
        (AIMessage("## Goal", response_metadata={"finish_reason": "MAX_TOKENS"}), "cut off"),
        (
            AIMessage(
                "## Goal",
                response_metadata={
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
            ),
            "cut off",
        ),
        (AIMessage("no", response_metadata={"finish_reason": "content_filter"}), "refused"),
        (AIMessage("", response_metadata={"stop_reason": "refusal"}), "refused"),
        (AIMessage("", additional_kwargs={"refusal": "I will not"}), "I will not"),
        (AIMessage([{"type": "refusal", "refusal": "not that"}]), "not that"),
        (AIMessage("  \n"), "empty"),
        (AIMessage("<think>hm</think>\n"), "empty"),
        (AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c1"}]), "asked for tools"),
    ],
)
def test_an_answer_that_is_no_whole_summary_is_refused(answer, says):
    answer.usage_metadata = {"input_tokens": 70, "output_tokens": 9, "total_tokens": 79}
    model = ScriptedChatModel(answers=[answer])
    with pytest.raises(SummaryRejected, match=says) as caught:
        ChatModelSummarizer(model).summarize(request(turns(1)))
    assert caught.value.problems
    assert caught.value.cost.tokens == 79  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage("```markdown\n## Goal\n- ship [u0]\n```"),
        AIMessage("<think>What matters?</think>\n## Goal\n- ship [u0]"),
        AIMessage(
            [
                {"type": "thinking", "thinking": "What matters?", "signature": "s"},
                {"type": "text", "text": "## Goal\n- ship [u0]"},
            ]
        ),
        AIMessage(
            [
                {"type": "reasoning", "reasoning": "What matters?"},
                {"type": "text", "text": "## Goal\n"},
                {"type": "text", "text": "- ship [u0]"},
            ]
        ),
    ],
)
def test_reasoning_and_a_fence_around_the_answer_are_taken_off(answer):
    summary = ChatModelSummarizer(ScriptedChatModel(answers=[answer])).summarize(request(turns(1)))
    assert summary.text == "## Goal\n- ship [u0]"


def test_fences_inside_a_summary_stay():
    text = "```\nls\n```\nthen\n```\npwd\n```"
    summary = ChatModelSummarizer(ScriptedChatModel(answers=[text])).summarize(request(turns(1)))
    assert summary.text == text


class _Status(Exception):
    def __init__(self, status: int, text: str = "no") -> None:
        super().__init__(text)
        self.status_code = status


class APIConnectionError(Exception):
    """Named as providers name it."""


class InvalidRequestError(Exception):
    """Likewise."""


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (ModelRateLimitError("slow down"), True),
        (ModelAuthenticationError("who are you?"), False),
        (_Status(429), True),
        (_Status(503), True),
        (APIConnectionError("refused"), True),
        (ConnectionResetError("reset"), True),
        (_Status(429, "insufficient_quota: add money"), False),
        (_Status(401), False),
        (_Status(400, "unknown field"), False),
        (RuntimeError("429 Too Many Requests"), True),  # nothing but its text tells what it is
        (ValueError("bad"), True),
        (IndexError("list index out of range"), True),
        (RuntimeError("Invalid API key"), False),
        (InvalidRequestError("no such field"), False),
        (NotImplementedError("no sync calls"), False),
    ],
)
def test_every_failure_is_marked_for_another_try_but_those_that_are_certain_not_to_pass(
    error, transient
):
    model = ScriptedChatModel(answers=[error])
    with pytest.raises(SummaryError) as caught:
        ChatModelSummarizer(model).summarize(request(turns(1)))
    assert caught.value.transient is transient
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "prompt is too long: 205371 tokens > 200000 maximum",
        "The input token count (1594712) exceeds the maximum number of tokens allowed (1048576)",
        "Input is too long for requested model.",
        "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000",
        "Error code: 400 - context_length_exceeded",
        "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_what_providers_say_about_a_full_window_is_understood(text):
    assert is_overflow(ValueError(text))
    assert is_overflow(_Status(400, text))
    assert not is_overflow(_Status(429, text))
    assert not is_overflow(_Status(500, text))


def test_a_long_error_is_cut_between_words_as_half_a_secret_is_not_recognised():
    said = f"{'word ' * 58}key sk-{'A1b2' * 12} was turned down"
    assert "sk-" in said[:300]
    told = str(explained(ValueError(said), "m", None))
    assert "word key ...)" in told
    assert "sk-" not in told
    assert "bad key)" in str(explained(ValueError("bad key"), "m", None))
    chinese = "密钥无效，请检查。" * 40
    assert f"{chinese[:300]}...)" in str(explained(ValueError(chinese), "m", None))


def test_a_summary_above_its_limit_is_shortened_once():
    long = "## Goal\n" + "- a long line of things [u0]\n" * 60
    model = ScriptedChatModel(answers=[long, "## Goal\n- short [u0]"])
    summary = ChatModelSummarizer(model).summarize(request(turns(1), limit=100))
    assert kinds(model) == ["update", "shorten"]
    assert summary.text == "## Goal\n- short [u0]"
    assert summary.cost.calls == 2
    assert words_read(model.calls[1:]) == []


def test_a_summary_that_stays_too_long_is_returned_for_the_checks_to_refuse():
    long = "## Goal\n" + "- a long line of things [u0]\n" * 60
    for second in (long, ModelRateLimitError("busy"), AIMessage("")):
        model = ScriptedChatModel(answers=[long, second])
        summary = ChatModelSummarizer(model).summarize(request(turns(1), limit=100))
        assert summary.text == long.strip()
        assert len(model.calls) == 2


def test_a_summary_is_not_shortened_with_money_that_is_not_there():
    long = "- a long line of things [u0]\n" * 200
    model = ScriptedChatModel(answers=[long])
    asked = request(turns(1), limit=100)
    ChatModelSummarizer(model, max_summarizer_tokens=2_000).summarize(asked)
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    "response",
    [
        {"ResponseMetadata": "none"},
        {"ResponseMetadata": {"HTTPHeaders": ["retry-after"], "HTTPStatusCode": "429"}},
        *(
            SimpleNamespace(headers={"retry-after": said})
            for said in ("Fri, 31 Dec 9999 23:59:59 -1200", "soon", "nan", "-1", b"5", [7])
        ),
    ],
)
def test_a_response_that_says_nonsense_of_when_to_ask_again_is_an_error_as_any(response):
    class Busy(ConnectionError):
        pass

    busy = Busy("busy")
    busy.response = response  # type: ignore[attr-defined]
    found = explained(busy, "model", 1.0)
    assert (found.transient, found.retry_after) == (True, None)
