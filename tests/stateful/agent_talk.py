"""What happens to an agent: users speak, tools work, approvals wait, threads are gone back in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage

from stateful.messages import WRITTEN, blocks
from stateful.oracle import is_summary
from stateful.summarizers import GOOD, KINDS, Reading
from stateful.world import World

THREADS = [("local", "t"), ("local", "u"), ("acme", "t")]


@dataclass
class Tip:
    """A place in a thread to which somebody can go back."""

    config: Any  # its checkpoint
    whole: list[Any]  # what was said up to there
    # the originals that its record answers for; empty where no look has told yet
    reach: Counter[str]


@dataclass
class ObservedThread:
    """What an observer knows of one thread."""

    name: tuple[str, str]  # tenant and thread
    whole: list[Any] = field(default_factory=list)  # what was said on this branch
    tips: list[Tip] = field(default_factory=list)  # the places that were looked at
    tip: Tip | None = None  # where it goes on
    # what summarisers read for what is in force or kept as a draft
    readings: list[Reading] = field(default_factory=list)
    returned_to: bool = False  # somebody has just gone to another of its places


class AgentTalk(World):
    """A conversation goes on; `AgentWorld` runs the agent and says who looks at it."""

    current: ObservedThread
    conversations: dict[tuple[str, str], ObservedThread]
    settings: Mapping[str, Any]
    script: list[AIMessage]
    graph: Any

    def say(self, *messages: Any) -> None:
        """Somebody says something, to which the agent answers."""
        self.script = []
        self.run_agent({"messages": list(messages)}, False)

    def name(self) -> str:
        """An id for what a user says next."""
        return f"h{self.planted}"

    def goes_on_from(self, config: Any) -> None:
        """From a place that was made by hand: no look has told yet what it can be held against."""
        self.current.tip = Tip(config, list(self.current.whole), Counter())
        self.current.returned_to = False

    @rule(
        text=WRITTEN,
        calls=st.lists(
            st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True), max_size=4
        ),
        content=st.data(),
        on_a_loop=st.booleans(),
    )
    def a_user_speaks(
        self, text: str, calls: list[list[str]], content: st.DataObject, on_a_loop: bool
    ) -> None:
        content_blocks = content.draw(blocks(False)) if not calls else []
        self.user_says(self.text(text), calls, on_a_loop, content_blocks)

    def user_says(
        self,
        text: str,
        calls: Sequence[Sequence[str]] = (),
        on_a_loop: bool = False,
        content_blocks: Sequence[Any] = (),
        steps: Sequence[AIMessage] = (),
        **options: Any,
    ) -> None:
        content: Any = [*content_blocks, {"type": "text", "text": text}] if content_blocks else text
        self.script = [*(self.ai_message("Looking.", call_names) for call_names in calls), *steps]
        message = HumanMessage(content, id=f"h{self.planted}")
        self.planted += 1
        self.run_agent({"messages": [message]}, on_a_loop, **options)

    @rule(turns=st.integers(2, 5), on_a_loop=st.booleans())
    def the_talk_goes_on(self, turns: int, on_a_loop: bool) -> None:
        for turn in range(turns):
            self.user_says(
                self.text("Look at the next module, please. " * 8), ["a"] * (turn % 3), on_a_loop
            )

    @rule(size=st.sampled_from([5_000, 20_000]))
    def a_user_pastes_a_giant(self, size: int) -> None:
        self.user_says(self.text("a line of a log, as it is\n" * (size // 26)))

    @precondition(lambda self: self.ready and self.settings["recall"] != "off")
    @rule(by_id=st.booleans(), choice=st.integers(0, 1_000), on_a_loop=st.booleans())
    def the_agent_recalls(self, by_id: bool, choice: int, on_a_loop: bool) -> None:
        """With its own tool, after some talk; an id may be one of another thread or branch."""
        self.the_talk_goes_on(4, on_a_loop)
        query = {"query": "the next module, a line of a log, what was said and done"}
        ids = [str(message.id) for talk in self.conversations.values() for message in talk.whole]
        args = {"id": ids[choice % len(ids)]} if by_id else query
        call: Any = {"name": "recall", "args": args, "id": "r", "type": "tool_call"}
        asks = AIMessage(self.text("What was it?"), tool_calls=[call], id=f"a{self.planted}")
        self.user_says(self.text("What did we say of it?"), (), on_a_loop, steps=[asks])

    @rule(on_a_loop=st.booleans())
    def an_approval_is_pending(self, on_a_loop: bool) -> None:
        self.user_says(self.text("Delete it."), ["abc"], on_a_loop, interrupt_before=["tools"])

    @rule(on_a_loop=st.booleans())
    def it_is_approved(self, on_a_loop: bool) -> None:
        if self.current.tip is None:
            return
        if self.graph.get_state(self.current.tip.config).next == ("tools",):
            self.script = []
            self.run_agent(None, on_a_loop)

    @rule(
        kinds=st.lists(st.sampled_from([*KINDS, *GOOD]), min_size=1, max_size=4),
        on_a_loop=st.booleans(),
    )
    def summarisers_behave(self, kinds: list[str], on_a_loop: bool) -> None:
        self.moods.kinds[:] = kinds
        self.the_talk_goes_on(3, on_a_loop)

    @rule(successes=st.integers(0, 10), times=st.integers(1, 6), on_a_loop=st.booleans())
    def the_archive_is_in_trouble(self, successes: int, times: int, on_a_loop: bool) -> None:
        self.store.fail_after(successes, times)
        self.user_says(self.text("Look once more. " * 40), ["a", "bc", "a"], on_a_loop)

    @rule()
    def the_process_restarts(self) -> None:
        self.build()

    @rule(name=st.sampled_from(THREADS))
    def another_thread_goes_on(self, name: tuple[str, str]) -> None:
        self.current = self.talk(name)

    @rule(choice=st.integers(0, 1_000), calls=st.integers(0, 3), on_a_loop=st.booleans())
    def somebody_goes_to_another_checkpoint(self, choice: int, calls: int, on_a_loop: bool) -> None:
        """Back, forward again, or over to another branch."""
        if not self.current.tips:
            return
        self.current.tip = self.current.tips[choice % len(self.current.tips)]
        self.current.whole = list(self.current.tip.whole)
        self.current.returned_to = True
        self.user_says(self.text("Look the other way."), ["ab"] * calls, on_a_loop)

    @rule(index=st.integers(0, 1_000), text=WRITTEN)
    def a_message_is_edited(self, index: int, text: str) -> None:
        if self.current.tip is None:
            return
        state = self.graph.get_state(self.current.tip.config)
        editable = [
            m for m in state.values["messages"] if not is_summary(m) and isinstance(m.content, str)
        ]
        editable = [m for m in editable if "clip_of" not in str(m.additional_kwargs)]
        if not editable or state.next:
            return
        new = editable[index % len(editable)].model_copy(update={"content": self.text(text)})
        config = self.changed(self.current.tip.config, [new], "model")
        self.current.whole = [new if m.id == new.id else m for m in self.current.whole]
        self.goes_on_from(config)

    @rule(choice=st.integers(0, 1_000), on_a_loop=st.booleans())
    def a_client_asks_again(self, choice: int, on_a_loop: bool) -> None:
        """All that came of what a user has said is taken out of the channel, and it is answered
        anew."""
        for _ in range(6):  # without tools, so that records may end with what a user has said
            self.user_says(self.text("And the next one? " * 8), (), on_a_loop)
        if self.current.tip is None:
            return
        channel = self.graph.get_state(self.current.tip.config).values["messages"]
        user_indexes = [n for n, m in enumerate(channel) if m.type == "human" and not is_summary(m)]
        if not user_indexes:
            return
        # Where a record ends it is most telling: at what the model was not shown any more.
        shown = {message.id for message in self.shown()}
        hidden_indexes = [n for n in user_indexes if channel[n].id not in shown][-1:]
        index = (
            hidden_indexes[0]
            if hidden_indexes and choice % 2
            else user_indexes[choice % len(user_indexes)]
        )
        ids = [message.id for message in self.current.whole]
        kept_count = ids.index(channel[index].id) + 1
        if not {*ids[kept_count:]} <= {message.id for message in channel}:
            return  # a summary tells of it: only a checkpoint takes that back
        removed = [RemoveMessage(id=message.id) for message in channel[index + 1 :]]
        config = self.changed(self.current.tip.config, removed, "__start__")
        del self.current.whole[kept_count:]
        self.goes_on_from(config)
        self.script = []
        self.run_agent(None, on_a_loop)
