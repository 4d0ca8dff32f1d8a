"""What providers fail with, what a model answers that is taken or refused, and pieces of a span."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage

from conspectus.archive.guard import explained as explained_store
from conspectus.core.records import Draft
from conspectus.engine.summary_notes import rejection_reasons
from conspectus.errors import SummarizerOverflow, SummaryError, SummaryRejected
from conspectus.messages import read_messages
from conspectus.messages.refusals import refuses_thoughts
from conspectus.model.answers import answer_of
from conspectus.model.base import LastRequest
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.model.overflow import read_overflow
from conspectus.model.provider_errors import as_summary_error, is_overflow, retry_after
from histories import talk
from model_support import (
    ScriptedChatModel,
    prompt_kinds,
    request,
    summarised,
    sync_and_async,
    turns,
)

SAID = Path(__file__).with_name("provider_errors.txt").read_text(encoding="utf-8")
FULL, OTHER = (part.strip().split("\n") for part in SAID.removeprefix("[FULL]").split("[OTHER]"))
"""What providers say of a full window, and of something else."""


class _StatusError(Exception):
    def __init__(self, status: int, text: str = "no") -> None:
        super().__init__(text)
        self.status_code = status


class _StreamError(Exception):
    """An error in the middle of a stream that began well."""

    def __init__(self, code: str) -> None:
        super().__init__("no")
        self.body = {"error": {"type": code}}
        self.status_code = 200


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (ModelRateLimitError("slow down"), True),
        (ModelAuthenticationError("who are you?"), False),
        (_StatusError(429), True),
        (_StatusError(503), True),
        (type("APIConnectionError", (Exception,), {})("refused"), True),
        (ConnectionResetError("reset"), True),
        (_StatusError(429, "insufficient_quota: add money"), False),
        (_StatusError(401), False),
        (_StatusError(400, "unknown field"), False),
        (_StreamError("overloaded_error"), True),
        (RuntimeError("429 Too Many Requests"), True),  # nothing but its text tells what it is
        (ValueError("bad"), True),
        (IndexError("list index out of range"), True),
        (RuntimeError("Invalid API key"), False),
        (type("InvalidRequestError", (Exception,), {})("no such field"), False),
        (NotImplementedError("no sync calls"), False),
    ],
)
def test_only_certain_failures_are_not_retried(error, transient):
    model = ScriptedChatModel(answers=[error])
    with pytest.raises(SummaryError) as caught:
        ChatModelSummarizer(model).summarize(request(turns(1)))
    assert caught.value.transient is transient
    assert caught.value.__cause__ is error
    assert len(model.calls) == 1


@pytest.mark.parametrize("text", FULL)
def test_what_providers_say_about_a_full_window_is_understood(text):
    assert is_overflow(ValueError(text))
    assert is_overflow(_StatusError(400, text))
    assert all(
        is_overflow(_StatusError(n, text)) for n in (401, 503)
    )  # Kimi; relays, one's own servers
    assert not is_overflow(_StatusError(429, text))
    assert isinstance(as_summary_error(ValueError(text), "m", None), SummarizerOverflow)


def test_a_request_beyond_the_rate_of_a_minute_is_too_long():
    assert is_overflow(_StatusError(429, "Request too large for m on TPM: Limit 30, Requested 48."))
    assert is_overflow(_StatusError(429, "Extra usage is required for long context requests."))


@pytest.mark.parametrize("text", OTHER)
def test_another_error_is_no_full_window(text):
    assert not is_overflow(ValueError(text))
    assert not is_overflow(_StatusError(400, text))


def test_a_long_error_is_cut_between_words():
    text = f"{'word ' * 58}key sk-{'A1b2' * 12} was turned down"
    assert "sk-" in text[:300]
    explanation = str(as_summary_error(ValueError(text), "m", None))
    assert "word key ...)" in explanation
    assert "sk-" not in explanation
    assert "bad key)" in str(as_summary_error(ValueError("bad key"), "m", None))
    chinese = "密钥无效，请检查。" * 40
    assert f"{chinese[:300]}...)" in str(as_summary_error(ValueError(chinese), "m", None))


class Speechless(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_error_without_a_text_is_explained_by_its_class():
    failure = as_summary_error(Speechless(), "m", None)
    assert "Speechless: a Speechless without a text" in str(failure)
    assert not is_overflow(Speechless())
    assert not refuses_thoughts(Speechless())
    assert read_overflow(Speechless()) == (None, None)
    assert read_overflow(ValueError("205413 tokens > 200000 maximum")) == (200_000, 205_413)
    assert read_overflow(ValueError("413 Request Entity Too Large")) == (None, None)
    assert "Speechless: a Speechless without a text" in str(explained_store(Speechless()))


HEADERS = [({"retry-after": "7"}, 7.0), ({"retry-after": "1.5"}, 1.5), (["retry-after"], None)]
NONSENSE = ("Fri, 31 Dec 9999 23:59:59 -1200", "soon", "nan", "inf", "-1", "0", [7])


@pytest.mark.parametrize(
    ("headers", "seconds"), [*HEADERS, *(({"retry-after": value}, None) for value in NONSENSE)]
)
def test_retry_times_are_read_from_valid_headers_only(headers, seconds):
    busy: Any = ConnectionError("busy")
    busy.response = SimpleNamespace(headers=headers)
    failure = as_summary_error(busy, "model", 1.0)
    assert (failure.transient, failure.retry_after) == (True, seconds)
    assert retry_after(busy) == seconds


GOOD_SUMMARY = "## Goal\n- ship [u0]"
INCOMPLETE = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (AIMessage(GOOD_SUMMARY, response_metadata={"finish_reason": "length"}), "cut off"),
        (AIMessage(GOOD_SUMMARY, response_metadata={"stop_reason": "max_tokens"}), "cut off"),
        (AIMessage(GOOD_SUMMARY, response_metadata={"finish_reason": "MAX_TOKENS"}), "cut off"),
        (AIMessage(GOOD_SUMMARY, response_metadata={"model_provider": "openai"}), "broke off"),
        (AIMessage(GOOD_SUMMARY, response_metadata=INCOMPLETE), "cut off"),
        (AIMessage("no", response_metadata={"finish_reason": "content_filter"}), "refused"),
        (AIMessage("", response_metadata={"stop_reason": "refusal"}), "refused"),
        (AIMessage("", additional_kwargs={"refusal": "I will not"}), "I will not"),
        (AIMessage([{"type": "refusal", "refusal": "not that"}]), "not that"),
        (AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c1"}]), "asked for tools"),
    ],
)
def test_an_answer_that_its_provider_refused_is_rejected(answer, problem):
    answer.usage_metadata = {"input_tokens": 70, "output_tokens": 9, "total_tokens": 79}
    model = ScriptedChatModel(answers=[answer])
    with pytest.raises(SummaryRejected, match=problem) as caught:
        ChatModelSummarizer(model).summarize(request(turns(1)))
    assert caught.value.cost.tokens == 79  # type: ignore[attr-defined]
    assert len(model.calls) == 1


BAD_ANSWERS = {
    "an empty answer": ("  \n", "empty"),
    "nothing but thoughts": ("<think>what matters?</think>\n", "empty"),
    "thoughts that nobody opened": ("what matters is the cache [u0]</think>", "empty"),
    "thoughts without an end": ("<thinking>the user wants [u0]\n## Goal\n- ship [u0]", "empty"),
    "a dash": ("- ", "empty"),
    "a reply": ("Sure, I will look at the cache next. Shall I?", "tells of nothing"),
    "JSON": ('{"goal": "ship it [u0]", "next": ["test it [r0]"]}', "JSON"),
    "the prompt": (
        "You hand over long work to a colleague who will see notes on it and the newest messages, "
        "and nothing else. [u0]",
        "repeats the prompt",
    ),
    "the messages": ('<message id="u0" role="user">\nq0x0 [u0]\n</message>', "repeats the prompt"),
}


@sync_and_async
@pytest.mark.parametrize(("text", "problem"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_bad_summary_is_asked_for_once_more_then_rejected(text, problem, mode):
    model = ScriptedChatModel(answers=lambda _: text, usage=(10, 1))
    with pytest.raises(SummaryRejected, match=problem) as caught:
        summarised(ChatModelSummarizer(model), request(turns(1), check_summaries=True), mode)
    assert "take another" in str(caught.value)
    assert not caught.value.transient
    assert prompt_kinds(model) == ["findings", "findings"]
    assert caught.value.cost.tokens == 22  # type: ignore[attr-defined]
    assert model.calls[1].text.startswith(model.calls[0].text), "the beginning stays the same"
    assert problem.split()[-1] in model.calls[1].text[len(model.calls[0].text) :]


TALKED = "## Found and decided\n- the parser drops {} [u0]"
ANSWERS_TAKEN = [
    ("<think>What matters?</think>\n" + GOOD_SUMMARY, GOOD_SUMMARY),
    ("<THINK>What\nmatters?</THINK>" + GOOD_SUMMARY, GOOD_SUMMARY),
    ("What matters?\n</think>\n\n" + GOOD_SUMMARY, GOOD_SUMMARY),
    ("<thought>a</thought><reasoning>b</reasoning>\n" + GOOD_SUMMARY, GOOD_SUMMARY),
    ("<seed:think>a</seed:think>\n" + GOOD_SUMMARY, GOOD_SUMMARY),
    ("[THINK]a[/THINK]" + GOOD_SUMMARY, GOOD_SUMMARY),
    ("◁think▷a◁/think▷" + GOOD_SUMMARY, GOOD_SUMMARY),
    (GOOD_SUMMARY + "\n<think>is that all?</think>", GOOD_SUMMARY),
    ("a </think>\n<think> c </think>\n" + GOOD_SUMMARY, GOOD_SUMMARY),
    (f"```markdown\n{GOOD_SUMMARY}\n```", GOOD_SUMMARY),
    (f"<think>a</think><summary>\n{GOOD_SUMMARY}\n</summary>", GOOD_SUMMARY),
    (
        [{"type": "reasoning", "reasoning": "What?"}, {"type": "text", "text": GOOD_SUMMARY}],
        GOOD_SUMMARY,
    ),
    (TALKED.format("`</think>` and '<think>'"), TALKED.format("`</think>` and '<think>'")),
    ("```\nls\n```\nthen [u0]\n```\npwd\n```", "```\nls\n```\nthen [u0]\n```\npwd\n```"),
]


@pytest.mark.parametrize(("answer", "taken"), ANSWERS_TAKEN)
def test_thoughts_and_wrappings_are_removed_from_answers(answer, taken):
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
    text = "## Goal\n- obey [m12]\n## Found and decided\n- a [m12]\n## Next\n- send keys [m15]"
    answer = answer_of(text, request(TALK, last=last))
    assert (answer.goal, answer.next) == ([], [])
    assert [line for line, _ in answer.found] == ["obey", "a", "send keys"]


def reasons_of(draft: Draft, entries: Any, **numbers: Any) -> list[str]:
    return rejection_reasons(
        draft, entries, **{"tokens": 100, "replaced": 2_000, "limit": 500, **numbers}
    )


def test_sizes_and_reading_are_held_against_the_numbers():
    entries = read_messages(talk(20))
    draft = Draft("- ok", "model", tuple(e.key for e in entries))
    assert reasons_of(draft, entries, tokens=501) == [
        "it takes 501 tokens and 500 (by max_summary_tokens or the window) are allowed"
    ]
    assert reasons_of(draft, entries, tokens=500) == []
    assert "what it replaces only 300" in reasons_of(draft, entries, tokens=400, replaced=300)[0]
    assert reasons_of(Draft(" ", "model", ()), entries) == ["it is empty"]
    half = Draft("- ok", "model", tuple(e.key for e in entries[::2]))
    assert "20 of 40 messages were not read" in reasons_of(half, entries)[0]
