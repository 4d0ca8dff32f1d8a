"""A world around a real agent: `create_agent` with our middleware, a checkpointer and a store.

The model is scripted; what it is really sent is what is looked at. A tap before our middleware
writes down what is said, so the observer needs nothing that the middleware says of itself.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver

from conspectus import ContextGuard, SummarizationMiddleware
from conspectus.archive import Archive, Scope
from conspectus.bridge import run
from conspectus.errors import ConspectusError
from graph_support import scope_of
from scripted_models import ScriptedChatModel
from stateful.agent_talk import THREADS, AgentTalk, Talk, Tip
from stateful.looks import Look, counted, lines_of
from stateful.messages import planted, words_in
from stateful.oracle import is_summary, plain


class Tap(AgentMiddleware[Any, Any, Any]):
    """Writes down what stands in the channel before each call of the model."""

    def __init__(self, world: "AgentWorld") -> None:
        super().__init__()
        self.world = world

    def before_model(self, state: Any, runtime: Any) -> None:
        self.world.hears(state["messages"])

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        self.world.hears(state["messages"])


AGENT_SETTINGS = st.fixed_dictionaries(
    {
        "history": st.sampled_from(["replace", "preserve"]),
        "trigger": st.sampled_from([("messages", 8), ("messages", 14), ("tokens", 600)]),
        "keep": st.tuples(st.just("messages"), st.integers(2, 6)),
        "window": st.sampled_from([1_500, 3_000, 6_000]),
        "on_failure": st.sampled_from(["degrade", "degrade", "keep"]),
        "recall": st.sampled_from(["off", "tool", "auto"]),
    }
)


class AgentWorld(AgentTalk):
    """The world; a promise is a subclass with `judge`."""

    settings_of: Mapping[str, Any] = {}
    steps = 6
    form = "langchain"
    named = True

    def __init__(self) -> None:
        super().__init__()
        self.saver = InMemorySaver()
        self.all: dict[tuple[str, str], Talk] = {}
        self.at = self.talk(THREADS[0])
        self.script: list[AIMessage] = []
        self.asked: list[tuple[list[BaseMessage], list[Any]]] = []

    def talk(self, name: tuple[str, str]) -> Talk:
        return self.all.setdefault(name, Talk(name))

    @initialize(
        settings=AGENT_SETTINGS,
        guard=st.booleans(),
        kind=st.sampled_from(["protocol", "model", "side by side", "embedded"]),
    )
    def begins(self, settings: dict[str, Any], guard: bool, kind: str) -> None:
        self.settings = {**settings, **self.settings_of}
        self.guarded = guard
        self.kind = kind
        self.builds()
        self.ready = True

    def builds(self) -> None:
        """The agent, as a new process would build it on the same checkpoints and store."""
        self.model = ScriptedChatModel(answers=self.answer)
        given = {"summarizer": self.moods.made(self.kind), "summarizer_timeout": 600}
        given |= {"tenant": lambda runtime: self.at.name[0], **self.settings}
        given["alternate_roles"] = "off"  # each message is looked for by itself
        own = SummarizationMiddleware(None, **given)
        guard = [ContextGuard(own, reserved_tokens=100, on_stuck="raise")] if self.guarded else []
        parts = {"middleware": [Tap(self), own, *guard], "system_prompt": "You look at modules."}
        parts |= {"checkpointer": self.saver, "store": self.store}
        self.graph = create_agent(self.model, [look], **parts)

    def text(self, text: str) -> str:
        words = [f"zq{self.planted}{n}z" for n in range(3)]
        self.planted += 1
        # A checkpoint itself does not bring a lone surrogate back as it was.
        return planted(text.encode("utf-8", "replace").decode(), words)

    def hears(self, channel: Sequence[BaseMessage]) -> None:
        """Whatever is new in the channel was said just now."""
        known = {message.id for message in self.at.whole}
        new = [m for m in channel if m.id not in known and not is_summary(m)]
        for message in new:
            if isinstance(message, ToolMessage) and message.name == "recall":
                said = words_in("\n".join(map(plain, self.at.whole)))
                assert words_in(message.text) <= said, "recalled from elsewhere"
        self.at.whole.extend(m.model_copy(deep=True) for m in new)

    def answer(self, messages: list[BaseMessage]) -> Any:
        """What the agent's model says next, and a note of what it was sent."""
        self.asked.append((messages, list(self.at.whole)))
        if self.script:
            return self.script.pop(0)
        return self.says("That is all.")

    def says(self, text: str, calls: Sequence[str] = ()) -> AIMessage:
        number = self.planted
        made: list[Any] = [
            {"name": "look", "args": {"at": f"{at}{number}"}, "id": at, "type": "tool_call"}
            for at in calls
        ]
        return AIMessage(self.text(text), tool_calls=made, id=f"a{number}")

    @property
    def config(self) -> Any:
        name = {"thread_id": "/".join(self.at.name)}
        return {"configurable": name, "recursion_limit": 60}

    def shown(self) -> Sequence[BaseMessage]:
        return self.asked[-1][0] if self.asked else []

    def changed(self, config: Any, messages: Sequence[BaseMessage], node: str) -> Any:
        """The place of a thread once its channel was changed by hand, as if by a node."""
        return self.graph.update_state(config, {"messages": list(messages)}, as_node=node)

    def run_graph(self, given: Any, config: Any, on_a_loop: bool, how: Any) -> Any:
        """One run of the agent; what it raised, where it did."""
        try:
            if on_a_loop:
                return self.loop.run(self.moods.watched(self.graph.ainvoke(given, config, **how)))
            return self.graph.invoke(given, config, **how)
        except (ConspectusError, KeyboardInterrupt, asyncio.CancelledError) as error:
            return error

    def goes(self, given: Any, on_a_loop: bool, **how: Any) -> None:
        at = self.at
        start = at.tip.config if at.tip is not None else self.config
        config = {**start, "recursion_limit": 60}
        read = len(self.moods.readings)
        prompts = len(self.moods.prompts)
        failed = self.store.failed
        records = self.store.held("records")
        drafts = self.store.held("drafts")
        head = self.head(at.tip.config) if at.tip is not None else None
        back = at.back
        reach = at.tip.reach if at.tip is not None else Counter()
        self.asked = []
        answer = self.run_graph(given, config, on_a_loop, how)
        self.trouble = self.store.failed > failed
        self.store.recovers()
        state = self.graph.get_state(self.config)
        self.hears(state.values.get("messages", []))
        now_read = self.moods.readings[read:]
        if self.store.held("drafts") != drafts or self.store.held("records") != records:
            at.readings += now_read
        self.error = answer if isinstance(answer, BaseException) else None
        now = self.head(state.config)
        found, covered, lines, summary = self.reached(state)
        kept = self.all_kept(state)
        for number, (shown, whole) in enumerate(self.asked):
            last = number + 1 == len(self.asked)
            own = [m for m in shown if m.type != "system"]
            own = [m for m in own if m.additional_kwargs.get("lc_source") != "recalled"]
            self.judge(
                Look(
                    whole=whole,
                    shown=own,
                    kept=kept,
                    known=last,
                    reach=found,
                    covered=covered,
                    readings=at.readings,
                    fresh=now_read,
                    prompts=self.moods.prompts[prompts:] if last else [],
                    records=(records, self.store.held("records")),
                    heads=(head, now),
                    came=[plain(message) for message in shown],
                    failed=self.trouble or self.error is not None,
                    budget=self.settings["window"] - 100 if self.guarded else None,
                    lines=lines,
                    summary=summary,
                    calls=len(self.moods.readings) - read,
                    back=(reach, []) if back and number == 0 else None,
                )
            )
        self.ends(list(state.values.get("messages", [])), found)
        if state.config["configurable"].get("checkpoint_id"):
            at.tip = Tip(state.config, list(at.whole), counted(found))
            at.tips.append(at.tip)
            at.back = False

    def ends(self, channel: list[Any], reach: list[Any]) -> None:
        """What a promise says once a run is over; the channel is what the checkpoint holds.

        `error` is what it raised, and `trouble` says whether the store failed in it.
        """

    def held(self, config: Any) -> Mapping[str, Any]:
        return self.graph.get_state(config).values.get("_conspectus") or {}

    def head(self, config: Any) -> Any:
        return self.held(config).get("head")

    def scope(self, held: Mapping[str, Any]) -> Scope:
        return Scope(self.at.name[0], held["thread"], held["session"])

    def reached(self, state: Any) -> tuple[list[Any], int, str, str]:
        """What the record in the state answers for, with its lines and its summary."""
        held = state.values.get("_conspectus") or {}
        if not held.get("head"):
            return [], 0, "", ""
        archive = Archive(self.store)
        scope = self.scope(held)
        chain = run(archive.call_either_way(archive.chain_at, scope, held["head"]))
        assert chain, "the record in force is not in the archive"
        gone = {key for record in chain for key in record.covers}
        # Those that are only truncated stand between them where the archive knows their place.
        rows = archive.export(scope, chain)
        keys = sorted((row["key"] for row in rows), key=lambda key: key not in gone)
        found = [one.message for one in archive.get(scope, keys)]
        return found, len(gone), lines_of(chain), chain[-1].summary

    def all_kept(self, state: Any) -> list[Any]:
        """Every original of this thread in the archive, of whatever branch."""
        tenant = self.at.name[0]
        name = "/".join(self.at.name)
        archive = Archive(self.store)
        scope = scope_of(state.values, name, tenant)
        keys = [key for record in archive.records(scope) for key in record.covers]
        keys += [clip.key for record in archive.records(scope) for clip in record.clips]
        return [one.message for one in archive.get(scope, list(dict.fromkeys(keys)))]

    def judge(self, look: Look) -> None:
        """What a promise says of one request."""
        raise NotImplementedError


@tool
def look(at: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Look at a module."""
    code = "pass  # a line of it\n" * 20
    return ToolMessage(f"module {at}: {code}", tool_call_id=tool_call_id, id=f"t-{at}")
