"""Whatever happens, a secret that somebody said is kept nowhere where a redactor is at work: not in
the store, a summary or an event, not in what a model is given to summarise, and not in
what is recalled."""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from made_secrets import Made, provider_secrets
from stateful.budgets import budgeted
from stateful.compactor_talk import CALL_IDS
from stateful.compactor_world import CompactorWorld
from stateful.looks import Look
from stateful.messages import answering, calling, speaking
from stateful.oracle import text_of
from stored_values import stored

KINDS = ("openai-key", "aws-access-key", "github-token", "slack-token", "stripe-key", "jwt")
REMEMBER = "Always use {0} for the build. The deploy key is {0}, never write it down."
ENV = "DEBUG=1\nTOKEN={0}\nPORT=80\n"


class SecretsAreKeptNowhere(CompactorWorld):
    archives = False  # so that there always is one
    settings_of: ClassVar = {"redact": True}
    summarizer_kinds = ("model", "side by side", "embedded")

    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[str] = []

    def secret(self, kind: str) -> str:
        self.secrets.append(provider_secrets(Made(len(self.secrets)))[kind])
        return self.secrets[-1]

    @rule(kind=st.sampled_from(KINDS), who=st.sampled_from(["user", "assistant"]))
    def somebody_says_a_secret(self, kind: str, who: str) -> None:
        said = self.text(REMEMBER.format(self.secret(kind)))
        self.say(speaking(self.form, who, said, name=self.name()))

    @rule(kind=st.sampled_from(KINDS), lines=st.sampled_from([1, 400]))
    def a_tool_shows_a_secret(self, kind: str, lines: int) -> None:
        free = [call for call in CALL_IDS if call not in self.at.pending]
        if not free:
            return
        secret = self.secret(kind)
        command = self.text(f"curl -H 'Authorization: Bearer {secret}' example.org")
        self.say(calling(self.form, self.text("Looking."), [(free[0], command)], self.name()))
        shown = self.text("a line\n" * lines + ENV.format(secret))
        self.say(answering(self.form, free[0], shown, self.name()))

    def judge(self, look: Look) -> None:
        kept = {
            "the store": "\n".join(one.text for one in stored(self.store)),
            "a summary": "\n".join(text_of(m) for m in look.parts[0]),
            "a summary in force": look.summary,
            "a prompt": "\n".join(look.prompts),
            "an event": repr(self.events),
        }
        if look.error is None and look.reach:  # of a thread without a record nothing is recalled
            found = self.compactor.recall("deploy key TOKEN Bearer", tokens=4_000, **self.at.where)
            kept["what was recalled"] = found.text
        for place, text in kept.items():
            folded = text.casefold()  # as the words of a search index are
            for secret in self.secrets:
                assert secret.casefold() not in folded, f"a secret is in {place}"
        if look.error is None and any(s in text_of(m) for s in self.secrets for m in look.gone):
            assert "[redacted" in repr(look.reach), "it left, and nothing says that it was there"


TestSecretsAreKeptNowhere = budgeted(SecretsAreKeptNowhere, short=5, long=300)
