"""Promise 12 as a property: the user's words stand, whoever summarises, whatever else is said."""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from notes_read import left_out, pieces, words
from stateful.agent_world import AgentWorld
from stateful.budgets import budgeted
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import speaking
from stateful.oracle import content_of, role_of, text_of

REMARKS = (
    "I think the blue one was nicer.",
    "Wir treffen uns am Dienstag um halb vier am Nordtor.",
    "昨天那份报告里第三页的表格不对。",
    "駅の近くの小さな店が好きです。",
    "어제 보낸 파일은 무시해 주세요.",
    "El presupuesto es de 1.250 euros, sin contar el IVA.",
)
BINDING = (
    "Never push to the main branch.",
    "绝不要删除生产数据库。",
    "Always ask me before you send an e-mail.",
)
LITTLE = 1_000
"""Characters of all that users and systems have said up to which nothing is left out."""


def bare(text: str) -> str:
    """Letters and digits alone: signs that would close our frames are shown otherwise."""
    return "".join(filter(str.isalnum, text))


class WordsStand:
    settings_of: ClassVar = {"max_summary_tokens": 1_200, "window": 9_000}

    @rule(text=st.sampled_from(REMARKS + BINDING))
    def a_user_says_something_short(self, text: str) -> None:
        self.say(speaking(self.form, "user", text, name=self.name()))  # type: ignore[attr-defined]
        self.planted += 1  # type: ignore[attr-defined]

    def judge(self, look: Look) -> None:
        if look.reach is None or look.error is not None or not look.covered:
            return
        gone = look.reach[: look.covered]
        said = [text_of(message) for message in gone if role_of(message) in ("user", "system")]
        # A summary is smaller than what it replaces: of next to nothing it holds less.
        little = sum(map(len, said)) <= min(LITTLE, sum(len(text_of(m)) for m in gone) // 20)
        for text in REMARKS + BINDING:
            if text in said and text not in look.summary:
                assert not little, f"{text} was left out of few words"
                assert left_out(look.summary), f"nothing says that {text} was left out"
        self.quoted(look)

    def quoted(self, look: Look) -> None:
        """Each piece of the user's words stands in a message of the user, sign for sign."""
        spoken = [content_of(m) for m in look.whole if role_of(m) == "user"]
        if not all(isinstance(content, str) for content in spoken):
            return
        said = [bare(content) for content in spoken]
        for text in words(look.summary):
            for piece in map(bare, pieces(text)):
                assert any(piece in one for one in said), f"nobody said {piece}"


TestWordsStandThroughCompactor = budgeted(WordsStand, CompactorWorld, short=6, long=600)


class WordsStandAgent(WordsStand, AgentWorld):
    @rule(text=st.sampled_from(REMARKS + BINDING), on_a_loop=st.booleans())
    def something_short_is_said_before_much_talk(self, text: str, on_a_loop: bool) -> None:
        self.a_user_says_something_short(text)
        self.the_talk_goes_on(4, on_a_loop)

    def judge(self, look: Look) -> None:
        if look.known:
            super().judge(look)


TestWordsStandThroughAgents = budgeted(WordsStandAgent, short=2, long=100)
