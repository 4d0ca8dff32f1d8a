"""What providers fail with, what a model answers that is taken or refused, and pieces of a span."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage

from conspectus.core.records import Draft
from conspectus.errors import SummarizerOverflow, SummaryError, SummaryRejected
from conspectus.messages import read_messages
from conspectus.model.answers import answer_of
from conspectus.model.base import LastRequest
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.model.checks import problems
from conspectus.model.chunks import Part, divide
from conspectus.model.provider_errors import explained, is_overflow, retry_after
from histories import talk
from model_support import ScriptedChatModel, both, kinds, request, summarised, turns


class _Status(Exception):
    def __init__(self, status: int, text: str = "no") -> None:
        super().__init__(text)
        self.status_code = status


class _Coded(Exception):
    """An error in the middle of a stream that began well."""

    def __init__(self, code: str) -> None:
        super().__init__("no")
        self.body, self.status_code = {"error": {"type": code}}, 200


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
        (_Coded("overloaded_error"), True),
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
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "prompt is too long: 205371 tokens > 200000 maximum",
        "The input token count (1594712) exceeds the maximum number of tokens allowed (1048576)",
        "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000",
        "Error code: 400 - context_length_exceeded",
        "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Request too large for gpt-x: tokens_limit_reached",
        "`inputs` tokens + `max_new_tokens` must be <= 4096",
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 limit",
        "The input (9000 tokens) is longer than the model's context length (4096).",
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is "
        "loaded with context length of only 4096 tokens, which is not enough.",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "Requested token count exceeds the model's maximum context length of 8192 tokens.",
        "The sum of prompt length (9000), query length (0) should not exceed max_num_tokens (8192)",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
        "the input token count is 34000 but the model only supports up to 32768",
        "tokens in request more than max tokens allowed",
        "{'error': {'code': '1261', 'message': 'Prompt 超长'}}",
        "当前对话已达到模型上下文窗口上限",
        "Total tokens of image and text exceed max message tokens.",
        "The prompt (total length 40000) is too long to fit into the model (context length 32768).",
        "You passed 40001 input tokens and requested 0 output tokens. However, the model's context "
        "length is only 40000 tokens",
        "Current length is 9000 while limit is 8192",
        "the maximum supported sequence length is just 8192!",
        "Prompt tokens limit exceeded: 24000 > 8192. To increase, visit your settings",
        "the max input characters is 20000",
        "Malformed input request: expected maxLength: 200000, actual: 310000",
        "max tokens of 8192 exceeded",
        "prompt token count (9000) cannot be greater than 4096",
        "number of input tokens must be no more than 32768, got 59830",
        "folder_id=1111: text length is 349354, which is outside the range (0, 100000]",
        "Total number of tokens (prompt+generation) exceeded the service limit of 2048 tokens. "
        "Please make the prompt shorter or reduce the number of tokens to generate.",
        "413 https://gigachat.example: {'status': 413, 'message': 'Tokens limit exceeded'}",
        "Prompt tokens (2068) cannot be greater than the model's max prompt length (2000)",
        "Input tokens exceed the configured limit of 272000 tokens.",
        "CONTENT_LENGTH_EXCEEDS_THRESHOLD",
        "输入内容过长，请缩短后重试",
        "输入的 tokens 总数超过模型限制",
        "token数量超过上限",
        "超出模型最大上下文",
    ],
)
def test_what_providers_say_about_a_full_window_is_understood(text):
    assert is_overflow(ValueError(text))
    assert is_overflow(_Status(400, text))
    assert is_overflow(_Status(503, text))  # relays, and servers of one's own
    assert not is_overflow(_Status(429, text))
    assert isinstance(explained(ValueError(text), "m", None), SummarizerOverflow)


def test_one_request_with_more_tokens_than_a_minute_has_is_too_long():
    assert is_overflow(_Status(429, "Request too large for m on TPM: Limit 30, Requested 48."))


@pytest.mark.parametrize(
    "text",
    [
        "no key",
        "max_tokens should not exceed 8192, the max of this model",
        "top_p must be less than 1",
        "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum "
        "length 64, but got a string with length 70 instead.",
        "You exceeded your current quota, please check your plan and billing details.",
        "Rate limit reached: limit 30000 tokens per minute, try again later",
        "Rate limit exceeded: 30000 input tokens per minute",
        "请求 token 速率超过最大限制",
        "max_tokens 超过模型最大输出 token 限制",
    ],
)
def test_another_error_is_no_full_window(text):
    assert not is_overflow(ValueError(text))
    assert not is_overflow(_Status(400, text))


def test_a_long_error_is_cut_between_words_as_half_a_secret_is_not_recognised():
    said = f"{'word ' * 58}key sk-{'A1b2' * 12} was turned down"
    assert "sk-" in said[:300]
    told = str(explained(ValueError(said), "m", None))
    assert "word key ...)" in told
    assert "sk-" not in told
    assert "bad key)" in str(explained(ValueError("bad key"), "m", None))
    chinese = "密钥无效，请检查。" * 40
    assert f"{chinese[:300]}...)" in str(explained(ValueError(chinese), "m", None))


class Speechless(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_error_without_a_text_is_explained_by_its_class():
    failure = explained(Speechless(), "m", None)
    assert "Speechless: a Speechless without a text" in str(failure)
    assert not is_overflow(Speechless())


class Busy(ConnectionError):
    response: object = None


def busy(response: object) -> Busy:
    error = Busy("busy")
    error.response = response
    return error


@pytest.mark.parametrize(
    ("response", "seconds"),
    [
        (SimpleNamespace(headers={"retry-after": "7"}), 7.0),
        (SimpleNamespace(headers={"retry-after": "1.5"}), 1.5),
        (SimpleNamespace(headers=["retry-after"]), None),
        ({"ResponseMetadata": {"HTTPHeaders": {}}}, None),
        *(
            (SimpleNamespace(headers={"retry-after": said}), None)
            for said in ("Fri, 31 Dec 9999 23:59:59 -1200", "soon", "nan", "inf", "-1", "0", [7])
        ),
    ],
)
def test_when_to_ask_again_is_read_from_headers_and_nonsense_there_is_nothing(response, seconds):
    found = explained(busy(response), "model", 1.0)
    assert (found.transient, found.retry_after) == (True, seconds)
    assert retry_after(busy(response)) == seconds


FRAME = 4

# Drawn texts are short, so some are repeated: a long one is divided, and its parts again.
_prose = st.builds(
    lambda text, times: text * times,
    st.text(alphabet="ab .\n。漢</>é😀", max_size=40),
    st.sampled_from([1, 1, 5, 20]),
)
_part = st.builds(
    lambda text, begins: Part(0, text, len(text) + FRAME, FRAME, begins), _prose, st.booleans()
)


def numbered(parts: list[Part]) -> list[Part]:
    return [replace(part, index=index) for index, part in enumerate(parts)]


def _parts(most: int, least: int = 0) -> st.SearchStrategy[list[Part]]:
    return st.lists(_part, min_size=least, max_size=most).map(numbered)


def read_back(parts: list[Part], pieces: list[list[Part]]) -> list[str]:
    back = [""] * len(parts)
    before = -1
    for one in (one for piece in pieces for one in piece):
        assert one.index >= before
        before = one.index
        back[one.index] += one.text
    return back


@given(_parts(25), st.integers(FRAME + 1, 120))
def test_pieces_give_every_character_back_once_and_in_order(parts, room):
    pieces = divide(parts, room, len)
    assert read_back(parts, pieces) == [one.text for one in parts]
    assert {one.index for piece in pieces for one in piece} == set(range(len(parts)))
    assert all(pieces)


@given(_parts(25), st.integers(FRAME + 1, 120))
def test_no_piece_is_larger_than_a_reading(parts, room):
    for piece in divide(parts, room, len):
        assert sum(one.size for one in piece) <= room
        assert all(one.size == len(one.text) + FRAME for one in piece)


@given(_parts(10, 1), st.integers(20, 120), st.integers(8, 60))
def test_a_piece_divided_again_still_gives_all_of_it_back(parts, room, smaller):
    again = [finer for piece in divide(parts, room, len) for finer in divide(piece, smaller, len)]
    assert read_back(parts, again) == [one.text for one in parts]


GOOD = "## Goal\n- ship [u0]"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (AIMessage(GOOD, response_metadata={"finish_reason": "length"}), "cut off"),
        (AIMessage(GOOD, response_metadata={"stop_reason": "max_tokens"}), "cut off"),
        (AIMessage(GOOD, response_metadata={"finish_reason": "MAX_TOKENS"}), "cut off"),
        (AIMessage(GOOD, response_metadata={"model_provider": "openai"}), "broke off"),
        (
            AIMessage(
                GOOD,
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
        (AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c1"}]), "asked for tools"),
    ],
)
def test_an_answer_of_which_its_provider_says_that_it_is_none_is_refused_at_once(answer, says):
    answer.usage_metadata = {"input_tokens": 70, "output_tokens": 9, "total_tokens": 79}
    model = ScriptedChatModel(answers=[answer])
    with pytest.raises(SummaryRejected, match=says) as caught:
        ChatModelSummarizer(model).summarize(request(turns(1)))
    assert caught.value.problems
    assert caught.value.cost.tokens == 79  # type: ignore[attr-defined]
    assert len(model.calls) == 1


BADLY = {
    "an empty answer": ("  \n", "empty"),
    "nothing but thoughts": ("<think>what matters?</think>\n", "empty"),
    "thoughts that nobody opened": ("what matters is the cache [u0]</think>", "empty"),
    "thoughts without an end": ("<thinking>the user wants [u0]\n## Goal\n- ship [u0]", "empty"),
    "a dash": ("- ", "empty"),
    "no source": ("## Found and decided\n- the cache was stale", "cites"),
    "ids of no message": ("## Goal\n- ship it [m99]\n- test it [z1]", "cites"),
    "a reply": ("Sure, I will look at the cache next. Shall I?", "cites"),
    "a source before the headings alone": ("As [u0] says:\n## Goal\n- ship it", "cites"),
    "JSON": ('{"goal": "ship it [u0]", "next": ["test it [r0]"]}', "JSON"),
    "the prompt": (
        "You hand over long work to a colleague who will see notes on it and the newest messages, "
        "and nothing else. [u0]",
        "repeats the prompt",
    ),
    "the messages": ('<message id="u0" role="user">\nq0x0 [u0]\n</message>', "repeats the prompt"),
    "a message's own words": (" ".join(f"q0x{n}" for n in range(40)), "repeats a message"),
}


@both
@pytest.mark.parametrize(("written", "says"), BADLY.values(), ids=BADLY)
def test_what_is_written_badly_is_asked_for_once_more_and_then_refused(written, says, mode):
    model = ScriptedChatModel(answers=lambda _: written, usage=(10, 1))
    with pytest.raises(SummaryRejected, match=says) as caught:
        summarised(ChatModelSummarizer(model), request(turns(1)), mode)
    assert "use another" in str(caught.value)
    assert caught.value.problems
    assert not caught.value.transient
    assert kinds(model) == ["findings", "findings"]
    assert caught.value.cost.tokens == 22  # type: ignore[attr-defined]
    assert model.calls[1].text.startswith(model.calls[0].text), "the beginning stays the same"
    assert says.split()[-1] in model.calls[1].text[len(model.calls[0].text) :]


TALKED = "## Found and decided\n- the parser drops {} [u0]"
TAKEN = [
    ("<think>What matters?</think>\n" + GOOD, GOOD),
    ("<THINK>What\nmatters?</THINK>" + GOOD, GOOD),
    ("What matters?\n</think>\n\n" + GOOD, GOOD),
    ("<thought>a</thought><reasoning>b</reasoning>\n" + GOOD, GOOD),
    ("<seed:think>a</seed:think>\n" + GOOD, GOOD),
    ("[THINK]a[/THINK]" + GOOD, GOOD),
    ("◁think▷a◁/think▷" + GOOD, GOOD),
    (GOOD + "\n<think>is that all?</think>", GOOD),
    ("a </think>\n<think> c </think>\n" + GOOD, GOOD),
    (f"```markdown\n{GOOD}\n```", GOOD),
    ([{"type": "reasoning", "reasoning": "What?"}, {"type": "text", "text": GOOD}], GOOD),
    (TALKED.format("`</think>` and '<think>'"), TALKED.format("`</think>` and '<think>'")),
    ("```\nls\n```\nthen [u0]\n```\npwd\n```", "```\nls\n```\nthen [u0]\n```\npwd\n```"),
]


@pytest.mark.parametrize(("answer", "taken"), TAKEN)
def test_thoughts_and_a_fence_around_the_answer_are_taken_off_and_words_stay(answer, taken):
    model = ScriptedChatModel(answers=[AIMessage(answer)])
    assert ChatModelSummarizer(model).summarize(request(turns(1))).text == taken


TALK = [
    HumanMessage("Ship the importer.\nNever restart\nhost-02!", id="m12"),
    AIMessage("I will restart nothing.", id="m15"),
    HumanMessage("Delete all.", id="m16", name="researcher"),
    AIMessage("no id of its own"),
]


def test_after_the_agents_last_request_goal_and_next_step_are_findings():
    last = LastRequest(ScriptedChatModel(answers=[]), ())
    said = "## Goal\n- obey [m12]\n## Found and decided\n- a [m12]\n## Next\n- send keys [m15]"
    answer = answer_of(said, request(TALK, last=last))
    assert (answer.goal, answer.next) == ([], [])
    assert [line for line, _ in answer.found] == ["obey", "a", "send keys"]


def found(draft: Draft, entries: Any, **more: Any) -> tuple[str, ...]:
    return problems(draft, entries, **{"tokens": 100, "replaced": 2_000, "limit": 500, **more})


def test_sizes_and_reading_are_held_against_the_numbers():
    entries = read_messages(talk(20))
    draft = Draft("- ok", "model", tuple(e.key for e in entries))
    assert found(draft, entries, tokens=501) == ("it takes 501 tokens and 500 are allowed",)
    assert found(draft, entries, tokens=500) == ()
    assert "what it replaces only 300" in found(draft, entries, tokens=400, replaced=300)[0]
    assert found(draft, entries, tokens=200, replaced=10) == ()
    assert found(Draft(" ", "model", ()), entries) == ("it is empty",)
    half = Draft("- ok", "model", tuple(e.key for e in entries[::2]))
    assert "20 of 40 messages were not read" in found(half, entries)[0]
