"""How long a summary may be: limits of the model, limits of the caller, and texts that are cut."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField

import conspectus.short_term as short_term
from conspectus import Compactor, SummarizationMiddleware
from conspectus.errors import SummarizerOverflow, SummaryError, SummaryRejected
from conspectus.messages import is_summary_message
from conspectus.messages.framing import summary_body
from conspectus.model.answer_limits import answer_limit
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.model.sentences import whole_sentences
from conspectus.tokens import estimate
from model_support import request, turns

TEXTS_AND_ENDS = {
    "English": (
        "The user wants version {n} of the importer on Friday. The budget is {n}00 dollars, and no "
        "push goes to main. ",
        ".",
    ),
    "German": (
        "Der Nutzer will Fassung {n} des Importers am Freitag. Das Budget beträgt {n}00 Euro, und "
        "nichts geht nach main. ",
        ".",
    ),
    "Chinese": ("用户要在星期五发布导入器的第{n}版。预算是{n}00元，不要推送到主分支。", "。"),
    "Arabic": (
        "يريد المستخدم الإصدار {n} من المستورد يوم الجمعة. هل الميزانية {n}00 دولار؟ ",
        ".؟",
    ),
    "Hindi": ("उपयोगकर्ता शुक्रवार को संस्करण {n} चाहता है। बजट {n}00 डॉलर है। ", "।"),
    "a list": ("- version {n} of the importer is wanted on Friday [u0]\n", "]"),
}
FRIDAYS = {
    name: "".join(text.format(n=n) for n in range(1, 60))
    for name, (text, _) in TEXTS_AND_ENDS.items()
}


class LimitedModel(BaseChatModel):
    """Write a long text, and stop at the limit that it is given, as providers do."""

    text: str
    max_tokens: int | None = None
    window_left: int | None = None  # tokens after which its window is full
    metadata_of_cut: dict[str, Any] = {"finish_reason": "length"}  # noqa: RUF012
    counts: bool = True
    prompts: list[str] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "limited"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.prompts.append("\n".join(str(message.content) for message in messages))
        limit = min(
            options.get("max_tokens") or self.max_tokens or 9_999, self.window_left or 9_999
        )
        text = self.text
        metadata = {"finish_reason": "stop"}
        if estimate(text) > limit:
            while estimate(text) > limit:
                text = text[: len(text) * limit // estimate(text)]
            metadata = self.metadata_of_cut
        usage: Any = {"input_tokens": 500, "output_tokens": limit, "total_tokens": 500 + limit}
        message = AIMessage(text, response_metadata=metadata)
        if self.counts:
            message.usage_metadata = usage
        return ChatResult(generations=[ChatGeneration(message=message)])


def limited_model(text: str = FRIDAYS["English"], **settings: Any) -> LimitedModel:
    return LimitedModel(text=text, prompts=[], **settings)


def talk(count: int = 24) -> list[AnyMessage]:
    messages: list[AnyMessage] = []
    for n in range(count):
        messages.append(
            HumanMessage(f"Look at part {n}. " + "some words about it " * 20, id=f"h{n}")
        )
        messages.append(AIMessage(f"Part {n} is sound. " + "it was read whole " * 20, id=f"a{n}"))
    return [*messages, HumanMessage("And now?", id="now")]


def by_compactor(model: Any) -> tuple[str, Any]:
    compactor = Compactor(model, keep=("messages", 4), on_failure="raise", notes=False)
    result = compactor.compact(talk(), thread_id="t", force=True)
    return result.summary, result


def by_compactor_on_a_loop(model: Any) -> tuple[str, Any]:
    compactor = Compactor(model, keep=("messages", 4), on_failure="raise", notes=False)
    result = asyncio.run(compactor.acompact(talk(), thread_id="t", force=True))
    return result.summary, result


def by_middleware(model: Any) -> tuple[str, Any]:
    middleware: Any = SummarizationMiddleware(
        model, trigger=("messages", 20), keep=("messages", 4), on_failure="raise", notes=False
    )
    agent: Any = create_agent(FakeListChatModel(responses=["Well."]), [], middleware=[middleware])
    state = agent.invoke({"messages": talk()})
    assert is_summary_message(state["messages"][0])
    return summary_body(str(state["messages"][0].text)), None


def by_short_term(model: Any) -> tuple[str, Any]:
    result = short_term.summarize_messages(
        talk(), running_summary=None, model=model, max_tokens=2_500, on_failure="raise"
    )
    assert result.running_summary is not None
    return result.running_summary.summary, None


SURFACES = [by_compactor, by_compactor_on_a_loop, by_middleware, by_short_term]


@pytest.mark.parametrize("summarise", SURFACES)
@pytest.mark.parametrize("language", TEXTS_AND_ENDS)
def test_a_summary_that_ends_at_a_bound_limit_is_used(language, summarise):
    model = limited_model(FRIDAYS[language])
    summary, _ = summarise(model.bind(max_tokens=128))
    used = re.sub(r" \[u0\]", "", summary)
    whole = re.sub(r" \[u0\]", "", FRIDAYS[language])
    assert len(model.prompts) == 1
    assert used
    assert used in whole
    following = whole[whole.index(used) + len(used) :]
    assert used[-1] in TEXTS_AND_ENDS[language][1] or (
        language == "a list" and following[0] == "\n"
    )
    assert estimate(used) > 40


def test_a_summary_that_was_cut_is_said_to_be_cut(caplog):
    with caplog.at_level(logging.WARNING, "conspectus"):
        _, result = by_compactor(limited_model(max_tokens=128))
    assert result.cut == result.record.cut > 0
    assert "misses its end" in result.reason
    assert "summary_cut" in [record.conspectus["event"] for record in caplog.records]


def test_a_finished_summary_is_not_reported_as_cut():
    _, result = by_compactor(
        limited_model(
            "Each part was looked at and read whole, and all of them are sound.", max_tokens=128
        )
    )
    assert result.cut == 0
    assert "misses" not in result.reason


PROVIDERS = {
    "OpenAI": {"finish_reason": "length", "model_provider": "openai"},
    "OpenAI's Responses": {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    },
    "Anthropic": {"stop_reason": "max_tokens", "model_provider": "anthropic"},
    "Google": {"finish_reason": "MAX_TOKENS"},
    "Google's enumeration": {"finish_reason": "FinishReason.MAX_TOKENS"},
    "Bedrock": {"stopReason": "max_tokens"},
    "Titan": {"completionReason": "LENGTH"},
    "Ollama": {"done_reason": "length"},
    "xAI": {"finish_reason": "REASON_MAX_LEN"},
    "llama.cpp": {"stop_type": "limit"},
}


@pytest.mark.parametrize("metadata", PROVIDERS.values(), ids=PROVIDERS)
@pytest.mark.parametrize("counts", [True, False])
def test_the_end_at_a_limit_is_known_by_each_providers_words(metadata, counts):
    model = limited_model(max_tokens=128, metadata_of_cut=metadata, counts=counts)
    summary = ChatModelSummarizer(model).summarize(request(turns(30), form="whole"))
    assert summary.text.endswith(("main.", "Friday."))  # the sentences of the text end so
    assert summary.cut > 0


OTHER_ENDS: list[tuple[dict[str, Any], type[SummaryError]]] = [
    ({}, SummaryRejected),  # nobody has set a limit
    ({"max_tokens": 2_000, "window_left": 90}, SummaryRejected),
    ({"max_tokens": 128, "metadata_of_cut": {"finish_reason": "content_filter"}}, SummaryRejected),
    ({"max_tokens": 128, "metadata_of_cut": {"finish_reason": "model_length"}}, SummarizerOverflow),
    (
        {"max_tokens": 128, "metadata_of_cut": {"stop_reason": "model_context_window_exceeded"}},
        SummarizerOverflow,
    ),
    ({"max_tokens": 128, "metadata_of_cut": {"model_provider": "openai"}}, SummaryRejected),
]


@pytest.mark.parametrize(("settings", "error"), OTHER_ENDS)
def test_a_summary_that_was_cut_for_another_reason_is_not_used(settings, error):
    model = limited_model(**{"window_left": 128, **settings})
    with pytest.raises(error):
        ChatModelSummarizer(model).summarize(request(turns(3), form="whole"))


def test_thoughts_that_take_the_whole_limit_leave_no_summary():
    model = limited_model("<think>" + FRIDAYS["English"], max_tokens=128)
    with pytest.raises(SummaryRejected, match="thoughts took all of its limit of 128 tokens"):
        ChatModelSummarizer(model).summarize(request(turns(3)))


def test_a_frame_that_was_cut_with_the_text_is_taken_off():
    for frame in ("<summary>\n", "```markdown\n"):
        model = limited_model(frame + FRIDAYS["English"], max_tokens=128)
        summary = ChatModelSummarizer(model).summarize(request(turns(30), form="whole"))
        assert summary.text.startswith("The user wants version 1")


WRAPPERS: dict[str, Any] = {
    "set": lambda: limited_model(max_tokens=96),
    "bound": lambda: limited_model().bind(max_tokens=96),
    "bound over a larger one": lambda: limited_model(max_tokens=900).bind(max_tokens=96),
    "with retries": lambda: limited_model().bind(max_tokens=96).with_retry(),
    "with a configuration": lambda: limited_model(max_tokens=96).with_config(tags=["cheap"]),
    "with fallbacks": lambda: limited_model(max_tokens=900).with_fallbacks(
        [limited_model(max_tokens=96)]
    ),
    "configurable": lambda: (
        limited_model(max_tokens=900)
        .configurable_fields(max_tokens=ConfigurableField(id="most"))
        .with_config(configurable={"most": 96})
    ),
}
OPTIONS: list[dict[str, Any]] = [
    {"max_completion_tokens": 96},
    {"max_output_tokens": 96},
    {"num_predict": 96},
    {"max_new_tokens": 96},
    {"model_kwargs": {"max_tokens": 96}},
    {"extra_body": {"max_tokens": 96}},
    {"generation_config": {"max_output_tokens": 96}},
    {"options": {"num_predict": 96}},
    {"inferenceConfig": {"maxTokens": 96}},
]


@pytest.mark.parametrize("model", WRAPPERS.values(), ids=WRAPPERS)
def test_the_prompt_names_the_length_that_the_models_limit_allows(model):
    prompts = []

    def note(self: Any, messages: Any, *arguments: Any, **options: Any) -> Any:
        prompts.append(str(messages[-1].content))
        return write(self, messages, *arguments, **options)

    write = LimitedModel._generate
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LimitedModel, "_generate", note)
        ChatModelSummarizer(model()).summarize(request(turns(6)))
    assert "Write at most 96 tokens" in prompts[0]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_limit_is_known_under_each_name(options):
    assert answer_limit(limited_model().bind(**options)) == 96
    assert answer_limit(limited_model().bind(temperature=0)) is None
    assert answer_limit(limited_model().bind(max_tokens=-1)) is None


def test_limits_of_real_providers_models_are_known(monkeypatch):
    anthropic = pytest.importorskip("langchain_anthropic")
    openai = pytest.importorskip("langchain_openai")
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "-")
    assert answer_limit(openai.ChatOpenAI(model="gpt-4o", max_tokens=96)) == 96
    assert answer_limit(openai.ChatOpenAI(model="gpt-4o", max_completion_tokens=96)) == 96
    assert answer_limit(openai.ChatOpenAI(model="gpt-4o").bind(max_tokens=96)) == 96
    assert answer_limit(openai.ChatOpenAI(model="gpt-4o")) is None
    assert answer_limit(anthropic.ChatAnthropic(model="claude-sonnet-4-5", max_tokens=96)) == 96


def test_langmems_prompts_name_the_length_too():
    model = limited_model()
    by_short_term(model.bind(max_tokens=128))
    assert "Write at most 128 tokens" in model.prompts[0]
    model = limited_model("Each part was looked at and read whole, and all of them are sound.")
    by_short_term(model)
    assert "Write at most 256 tokens" in model.prompts[0]


class RamblingModel(LimitedModel):
    """Write a long text first, and the next one when it is asked again."""

    texts: list[str]
    text: str = ""

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.text = self.texts[min(len(self.prompts), len(self.texts) - 1)]
        return super()._generate(messages, stop, run_manager, **options)


LONG = FRIDAYS["English"]


def compacted_within_200(texts: list[str], mode: str) -> tuple[RamblingModel, Any]:
    model = RamblingModel(texts=texts, prompts=[])
    settings: Any = {"max_summary_tokens": 200, "notes": False, "keep": ("messages", 4)}
    compactor = Compactor(model, on_failure="raise", **settings)
    if mode == "async":
        work = compactor.acompact(talk(), thread_id="t", force=True)
        return model, asyncio.run(work)
    return model, compactor.compact(talk(), thread_id="t", force=True)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_summary_over_its_limit_is_sent_back_with_the_number(mode):
    short = "Version 1 is wanted on Friday, and nothing goes to main. " * 5
    model, result = compacted_within_200([LONG, short], mode)
    assert len(model.prompts) == 2
    assert LONG.strip() in model.prompts[1]
    assert f"{estimate(LONG.strip()):,} tokens" in model.prompts[1]
    assert "at most 200" in " ".join(model.prompts[1].split())
    assert "some words about it" not in model.prompts[1], "the messages are not paid for again"
    assert result.summary == short.strip()
    assert result.cut == 0


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_summary_that_stays_too_long_is_cut_behind_a_sentence(mode):
    model, result = compacted_within_200([LONG, LONG], mode)
    assert len(model.prompts) == 2
    assert LONG.startswith(result.summary)
    assert result.summary.endswith(("Friday.", "main."))
    assert 120 < estimate(result.summary) <= 200
    assert result.cut == estimate(LONG.strip()) - estimate(result.summary)


def test_a_long_summary_is_shortened_in_langmems_way_too():
    model = RamblingModel(texts=[LONG], prompts=[])
    summary, _ = by_short_term(model)
    assert len(model.prompts) == 2
    assert LONG.startswith(summary)
    assert 100 < count_tokens_approximately([SystemMessage(summary)]) <= 260


def test_a_loop_without_an_end_is_no_summary():
    model = RamblingModel(texts=["word " * 3_000], prompts=[])
    with pytest.raises(SummaryError, match="over and over"):
        by_compactor_with(model)


def by_compactor_with(model: Any) -> Any:
    settings: Any = {"max_summary_tokens": 200, "notes": False, "keep": ("messages", 4)}
    compactor = Compactor(model, on_failure="raise", **settings)
    return compactor.compact(talk(), thread_id="t", force=True)


CUT_TEXTS = [
    ("Ship on Friday. The budget is 3.5 million, and the tea", "Ship on Friday."),
    ("Das kostet z. B. 5 Euro. Dann wird das Te", "Das kostet z. B. 5 Euro."),
    ("用户想要发布。预算是五百元，不要推", "用户想要发布。"),
    ("彼は「はい。」と言った。次に彼", "彼は「はい。」と言った。"),
    ("هل نؤجل النشر؟ الميزانية خمسمئ", "هل نؤجل النشر؟"),
    ("Պատրաստ է։ Հետո կլի", "Պատրաստ է։"),
    ("## Goal\n- ship it [m1]\n## Next\n- the st", "## Goal\n- ship it [m1]"),
    ("1. Install it\n2. Run the te", "1. Install it"),
    ("Goal: ship\nRules: none\nOpen: ever", "Goal: ship\nRules: none"),
    ('They said "go." [m1] Then th', 'They said "go." [m1]'),
    ("The user wants to\nship it and th", "The user wants to\nship it and"),
    ("one sentence that goes on without any en", "one sentence that goes on without any"),
    ("一个没有结尾的长句子，它一直在继续下", "一个没有结尾的长句子，"),
    ("The end is here.", "The end is here."),
]


@pytest.mark.parametrize(("text", "used"), CUT_TEXTS)
def test_a_text_is_used_up_to_its_last_whole_sentence(text, used):
    assert whole_sentences(text) == used
