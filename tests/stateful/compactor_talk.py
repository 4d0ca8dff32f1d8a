"""What is said around `Compactor`: by people, agents and tools, whole or broken."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from conspectus.archive import Scope
from stateful.messages import GIANT, WRITTEN, answering, blocks, calling, planted, speaking
from stateful.summarizers import Reading
from stateful.world import World

NAMES = [("local", "t", "main"), ("local", "t", "sub")]
NAMES += [("local", "u", "main"), ("acme", "t", "main")]


@dataclass
class Moment:
    """A conversation as it was after a look."""

    whole: list[Any]
    view: list[Any]
    reach: Counter[str]


@dataclass
class Conversation:
    """What an observer knows of one conversation."""

    name: tuple[str, str, str]
    whole: list[Any] = field(default_factory=list)  # what was said on this branch
    view: list[Any] = field(default_factory=list)  # what the last look showed
    shown_count: int = 0  # how much of `whole` that look knew
    unedited: bool = True  # nothing was edited, and nobody went back, since then
    whole_only: bool = False  # `view` no longer goes with `whole`
    returned_to: Moment | None = None  # the moment to which somebody went back
    # calls without a result, with the ids of their messages
    pending: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)  # all looks that went well
    readings: list[Reading] = field(default_factory=list)  # what summarisers have read of it
    quiet: bool = False  # nothing happened since the last look that went well

    @property
    def scope_arguments(self) -> dict[str, str]:
        return dict(zip(("tenant", "thread_id", "session"), self.name, strict=True))

    @property
    def scope(self) -> Scope:
        return Scope(*self.name)


CALL_IDS = ["a", "b", "call_1", "call_2"]
"""Used again and again, as some providers do."""

LookOptions = tuple[bool, bool, bool]
LOOK_OPTIONS = st.tuples(st.booleans(), st.booleans(), st.booleans())
"""How somebody looks: a compaction is asked for, the whole history is sent, on an event loop."""


class CompactorTalk(World):
    """A conversation goes on; `CompactorWorld` says who looks at it."""

    current: Conversation
    form: str
    named = broken = False

    def name(self) -> str | None:
        return f"m{self.planted}" if self.named else None

    def text(self, text: str, plant: bool = True) -> str:
        if not plant:
            return text
        words = [f"zq{self.planted}{n}z" for n in range(3)]
        self.planted += 1
        return planted(text, words)

    def say(self, *messages: Any) -> None:
        self.current.whole.extend(messages)
        self.current.quiet = False

    @rule(text=WRITTEN, plant=st.integers(0, 9))
    def a_user_speaks(self, text: str, plant: int) -> None:
        spoken = self.text(text, plant > 0)
        self.say(speaking(self.form, "user", spoken, name=self.name()))

    @rule(text=WRITTEN, plant=st.integers(0, 9), content=st.data())
    def the_agent_answers(self, text: str, plant: int, content: st.DataObject) -> None:
        content_blocks = content.draw(blocks(self.broken)) if self.form != "openai" else []
        spoken = self.text(text, plant > 0)
        self.say(speaking(self.form, "assistant", spoken, content_blocks, self.name()))

    @rule(text=WRITTEN, content=st.data())
    def a_user_sends_blocks(self, text: str, content: st.DataObject) -> None:
        content_blocks = content.draw(blocks(self.broken))
        self.say(speaking(self.form, "user", self.text(text), content_blocks, self.name()))

    @rule(
        text=WRITTEN,
        calls=st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True),
        results=st.lists(WRITTEN, min_size=3, max_size=3),
        order=st.permutations(range(3)),
        late=st.integers(0, 5),
    )
    def the_agent_calls_tools(
        self, text: str, calls: list[str], results: list[str], order: list[int], late: int
    ) -> None:
        calls = [call for call in calls if call not in self.current.pending]
        if not calls:
            return
        named_calls = [(call, self.text(f"src/{call}.py")) for call in calls]
        self.say(calling(self.form, self.text(text), named_calls, self.name()))
        answered_calls = [calls[n] for n in order if n < len(calls)]
        unanswered = answered_calls[-1:] if late == 0 else []
        for call, result in zip(answered_calls, results, strict=False):
            if call not in unanswered:
                self.say(answering(self.form, call, self.text(result), self.name()))
        self.current.pending += unanswered
        if not unanswered:
            self.say(speaking(self.form, "assistant", self.text("done"), name=self.name()))

    @rule(text=WRITTEN)
    def a_late_result_comes(self, text: str) -> None:
        if not self.current.pending:
            return
        call = self.current.pending.pop()
        self.say(answering(self.form, call, self.text(text), self.name()))

    @rule(turns=st.integers(2, 8), size=st.sampled_from([3, 30, 120]))
    def the_talk_goes_on(self, turns: int, size: int) -> None:
        for _ in range(turns):
            question = self.text("why " * size)
            answer = self.text("because " * size)
            self.say(speaking(self.form, "user", question, name=self.name()))
            self.say(speaking(self.form, "assistant", answer, name=self.name()))

    @rule(
        steps=st.integers(2, 8),
        at_once=st.integers(1, 3),
        size=st.sampled_from([2, 40]),
        options=LOOK_OPTIONS,
    )
    def the_agent_works(self, steps: int, at_once: int, size: int, options: LookOptions) -> None:
        """Calls upon calls, with ids used before; of several results the last comes first."""
        ids = [call for call in CALL_IDS if call not in self.current.pending][:at_once]
        for _ in range(steps):
            named_calls = [(call, self.text("src/app.py")) for call in ids]
            self.say(calling(self.form, self.text("Looking."), named_calls, self.name()))
            for call in reversed(ids):
                self.say(answering(self.form, call, self.text("a line\n" * size), self.name()))
        self.look(*options)

    @rule(text=WRITTEN)
    def a_system_message_comes(self, text: str) -> None:
        self.say(speaking(self.form, "system", self.text(text), name=self.name()))

    @rule(size=st.sampled_from([*[4_000] * 20, *[20_000] * 8, *[60_000] * 2, GIANT]))
    def somebody_pastes_a_giant(self, size: int) -> None:
        text = self.text("a line of a log file, as it is\n" * (size // 31))
        self.say(speaking(self.form, "user", text, name=self.name()))

    @precondition(lambda self: self.ready and self.broken)
    @rule(kind_of_damage=st.integers(0, 5), index=st.integers(0, 1_000))
    def something_broken_comes(self, kind_of_damage: int, index: int) -> None:
        if kind_of_damage == 0:
            self.say(answering(self.form, "nobody", self.text("an orphan"), self.name()))
        elif kind_of_damage == 1:
            self.say(calling(self.form, "", [("never", self.text("?"))], self.name()))
        elif kind_of_damage == 2:
            self.say(speaking(self.form, "user", "", name=self.name()))
        elif kind_of_damage == 3:
            self.say(speaking(self.form, "user", self.text("the same id"), name="same"))
        elif kind_of_damage == 4 and self.current.whole:
            self.say(self.current.whole[index % len(self.current.whole)])
        elif self.current.whole:  # somebody forgot the id of a message
            self.say(speaking(self.form, "assistant", "", name=None))
