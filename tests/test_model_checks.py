"""What counts as a summary: error texts do not, good ones in any language do, in linear time."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from conspectus.core.records import Draft
from conspectus.errors import SummaryRejected
from conspectus.messages import read_messages
from conspectus.model.callables import CallableSummarizer
from conspectus.model.chat_model import ChatModelSummarizer
from conspectus.model.checks import problems
from conspectus.tokens import estimate
from histories import talk
from test_model_support import ScriptedChatModel, request

BAD = [
    "502 Bad Gateway",
    "<!DOCTYPE html>\n<html lang=en><head><style>body { margin: 0; font: 14px sans-serif }</style>"
    "</head><body>" + "<p>The web server reported a gateway time-out. Please try again.</p>" * 9
    + "</body></html>\n",
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code><Message>Please reduce '
    "your request rate.</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>",
    "null",
    "[object Object]",
    "{}",
    "",
    "- ",
    "```\n```",
    '{"error": {"message": "The server had an error while processing your request. Sorry about '
    'that! You can retry your request, or contact us through our help center.", "type": '
    '"server_error", "param": null, "code": null}}',
    "There are no messages to summarise. Could you share the conversation, please?",
    "I'm sorry, I can't help with that.",
    "抱歉，我无法协助处理该请求。",
    "Sure! I will summarise the conversation now.",
    "Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\n    main()\n"
    "openai.APIConnectionError: Connection error.",
    "<think>The user wants a summary. Let me look at the messages first. The user asked for",
]  # fmt: skip


def long_history() -> list[BaseMessage]:
    """Some 5,000 tokens."""
    messages: list[BaseMessage] = []
    while sum(estimate(str(message.text)) for message in messages) < 5_000:
        n = len(messages)
        messages += [
            HumanMessage(f"Why does request {n} fail with error 502 on host-{n:02}?", id=f"m{n}"),
            AIMessage(f"Host-{n:02} is down; I restarted its service and saw it answer. " * 5),
        ]
    return messages


@pytest.mark.parametrize("text", BAD)
def test_an_error_text_is_no_summary(text):
    model = ScriptedChatModel(answers=lambda _: text)
    for summarizer in (ChatModelSummarizer(model), CallableSummarizer(lambda _: text)):
        with pytest.raises(SummaryRejected):
            summarizer.summarize(request(long_history()))


# Of each language: what was asked, what came of it, and what is next.
GOOD: dict[str, tuple[str, str, str]] = {
    "english": (
        "The login page must keep the session for 30 minutes, not for 5.",
        "The cause was a stale cache; it is emptied at each start now, and all tests pass.",
        "Next, the user will look at the result and answer.",
    ),
    "german": (
        "Die Anmeldung soll 30 Minuten gelten und nicht nur 5.",
        "Es bleibt beim alten Verfahren, denn das neue war dreimal so langsam.",
        "Als Nächstes sieht sich die Nutzerin das Ergebnis an.",
    ),
    "russian": (
        "Сеанс должен длиться 30 минут, а не 5.",
        "Причиной был старый кэш; теперь он очищается при каждом запуске.",
        "Затем пользователь посмотрит результат.",
    ),
    "chinese": (
        "登录会话要保持三十分钟，而不是现在的五分钟。",
        "原因是缓存过期，现在每次启动都会清空，所有测试都已通过。",
        "接下来由用户查看结果并作出答复。",
    ),
    "japanese": (
        "ログインの有効時間は五分ではなく三十分にする。",
        "原因は古いキャッシュで、今は起動のたびに空にしている。",
        "次は利用者が結果を確認する。",
    ),
    "arabic": (
        "يجب أن تبقى الجلسة ثلاثين دقيقة وليس خمس دقائق.",
        "كان السبب ذاكرة مؤقتة قديمة، وهي تفرغ الآن عند كل تشغيل.",
        "بعد ذلك ينظر المستخدم في النتيجة.",
    ),
    "hindi": (
        "लॉगिन सत्र पाँच नहीं बल्कि तीस मिनट तक चलना चाहिए।",
        "कारण पुराना कैश था, जो अब हर शुरुआत पर खाली होता है।",
        "आगे उपयोगकर्ता परिणाम देखेगा।",
    ),
}


@pytest.mark.parametrize("said", GOOD.values(), ids=GOOD)
def test_no_good_summary_of_a_short_history_is_refused_in_any_language(said):
    for tokens in (100, 400, 1_500):
        messages = list[BaseMessage]()
        while sum(estimate(str(m.text)) for m in messages) < tokens:
            turn = len(messages)
            messages.append(HumanMessage(f"({turn}) {said[0]} {turn}", id=f"u{turn}"))
            messages.append(AIMessage(f"({turn}) {said[1]} {turn}", id=f"r{turn}"))
        whole, lines = " ".join(said), "\n".join(f"- {one} [u0]" for one in said)
        model = ScriptedChatModel(answers=lambda _, t=lines: f"## Found and decided\n{t}")
        for summarizer in (CallableSummarizer(lambda _, t=whole: t), ChatModelSummarizer(model)):
            assert summarizer.summarize(request(messages)).cost.calls == 1, summarizer.name


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
