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
from stateful.agent_talk import THREADS, AgentTalk, ObservedThread, Tip
from stateful.looks import Look, counted, lines_of
from stateful.messages import planted, words_in
from stateful.oracle import is_summary, plain

RESERVED = 100
"""Tokens that the guard reserves in each request."""


class Tap(AgentMiddleware[Any, Any, Any]):
    """Writes down what stands in the channel before each call of the model."""

    def __init__(self, world: "AgentWorld") -> None:
        super().__init__()
        self.world = world

    def before_model(self, state: Any, runtime: Any) -> None:
        self.world.note_said(state["messages"])

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        self.world.note_said(state["messages"])


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
        self.conversations: dict[tuple[str, str], ObservedThread] = {}
        self.current = self.talk(THREADS[0])
        self.script: list[AIMessage] = []
        self.requests: list[tuple[list[BaseMessage], list[Any]]] = []

    def talk(self, name: tuple[str, str]) -> ObservedThread:
        return self.conversations.setdefault(name, ObservedThread(name))

    @initialize(
        settings=AGENT_SETTINGS,
        guard=st.booleans(),
        kind=st.sampled_from(["protocol", "model", "side by side", "embedded"]),
    )
    def begins(self, settings: dict[str, Any], guard: bool, kind: str) -> None:
        self.settings = {**settings, **self.settings_of}
        self.guarded = guard
        self.kind = kind
        self.build()
        self.ready = True

    def build(self) -> None:
        """The agent, as a new process would build it on the same checkpoints and store."""
        self.model = ScriptedChatModel(answers=self.answer)
        settings = {"summarizer": self.moods.new_summarizer(self.kind), "summarizer_timeout": 600}
        settings |= {"tenant": lambda runtime: self.current.name[0], **self.settings}
        settings["alternate_roles"] = "off"  # each message is looked for by itself
        middleware = SummarizationMiddleware(None, **settings)
        guard = (
            [ContextGuard(middleware, reserved_tokens=RESERVED, on_stuck="raise")]
            if self.guarded
            else []
        )
        parts = {
            "middleware": [Tap(self), middleware, *guard],
            "system_prompt": "You look at modules.",
        }
        parts |= {"checkpointer": self.saver, "store": self.store}
        self.graph = create_agent(self.model, [look], **parts)

    def text(self, text: str) -> str:
        words = [f"zq{self.planted}{n}z" for n in range(3)]
        self.planted += 1
        # A checkpoint itself does not bring a lone surrogate back as it was.
        return planted(text.encode("utf-8", "replace").decode(), words)

    def note_said(self, channel: Sequence[BaseMessage]) -> None:
        """Whatever is new in the channel was said just now."""
        known_ids = {message.id for message in self.current.whole}
        new = [m for m in channel if m.id not in known_ids and not is_summary(m)]
        for message in new:
            if isinstance(message, ToolMessage) and message.name == "recall":
                words_said = words_in("\n".join(map(plain, self.current.whole)))
                assert words_in(message.text) <= words_said, "recalled from elsewhere"
        self.current.whole.extend(m.model_copy(deep=True) for m in new)

    def answer(self, messages: list[BaseMessage]) -> Any:
        """What the agent's model says next, and a note of what it was sent."""
        self.requests.append((messages, list(self.current.whole)))
        if self.script:
            return self.script.pop(0)
        return self.ai_message("That is all.")

    def ai_message(self, text: str, calls: Sequence[str] = ()) -> AIMessage:
        number = self.planted
        tool_calls: list[Any] = [
            {"name": "look", "args": {"at": f"{at}{number}"}, "id": at, "type": "tool_call"}
            for at in calls
        ]
        return AIMessage(self.text(text), tool_calls=tool_calls, id=f"a{number}")

    @property
    def config(self) -> Any:
        name = {"thread_id": "/".join(self.current.name)}
        return {"configurable": name, "recursion_limit": 60}

    def shown(self) -> Sequence[BaseMessage]:
        return self.requests[-1][0] if self.requests else []

    def changed(self, config: Any, messages: Sequence[BaseMessage], node: str) -> Any:
        """The place of a thread once its channel was changed by hand, as if by a node."""
        return self.graph.update_state(config, {"messages": list(messages)}, as_node=node)

    def run_graph(self, agent_input: Any, config: Any, on_a_loop: bool, options: Any) -> Any:
        """One run of the agent; what it raised, where it did."""
        try:
            if on_a_loop:
                return self.loop.run(
                    self.moods.cancellable(self.graph.ainvoke(agent_input, config, **options))
                )
            return self.graph.invoke(agent_input, config, **options)
        except (ConspectusError, KeyboardInterrupt, asyncio.CancelledError) as error:
            return error

    def run_agent(self, agent_input: Any, on_a_loop: bool, **options: Any) -> None:
        current = self.current
        start = current.tip.config if current.tip is not None else self.config
        config = {**start, "recursion_limit": 60}
        readings_before = len(self.moods.readings)
        prompts = len(self.moods.prompts)
        failures_before = self.store.failed
        records = self.store.values_of("records")
        drafts = self.store.values_of("drafts")
        head = self.head(current.tip.config) if current.tip is not None else None
        returned = current.returned_to
        reach_before = current.tip.reach if current.tip is not None else Counter()
        self.requests = []
        answer = self.run_graph(agent_input, config, on_a_loop, options)
        self.archive_failed = self.store.failed > failures_before
        self.store.recover()
        state = self.graph.get_state(self.config)
        self.note_said(state.values.get("messages", []))
        new_readings = self.moods.readings[readings_before:]
        if self.store.values_of("drafts") != drafts or self.store.values_of("records") != records:
            current.readings += new_readings
        self.error = answer if isinstance(answer, BaseException) else None
        head_after = self.head(state.config)
        reach_now, covered, lines, summary = self.reach_of(state)
        archived_now = self.all_archived(state)
        for number, (shown, whole) in enumerate(self.requests):
            is_last = number + 1 == len(self.requests)
            without_system = [m for m in shown if m.type != "system"]
            without_system = [
                m for m in without_system if m.additional_kwargs.get("lc_source") != "recalled"
            ]
            self.judge(
                Look(
                    whole=whole,
                    shown=without_system,
                    archived_originals=archived_now,
                    reach_is_current=is_last,
                    reach=reach_now,
                    covered=covered,
                    readings=current.readings,
                    fresh=new_readings,
                    prompts=self.moods.prompts[prompts:] if is_last else [],
                    records_before=records,
                    records_after=self.store.values_of("records"),
                    head_before=head,
                    head_after=head_after,
                    sent_texts=[plain(message) for message in shown],
                    failed=self.archive_failed or self.error is not None,
                    budget=self.settings["window"] - RESERVED if self.guarded else None,
                    lines=lines,
                    summary=summary,
                    calls=len(self.moods.readings) - readings_before,
                    returned_to=(reach_before, []) if returned and number == 0 else None,
                )
            )
        self.judge_end(list(state.values.get("messages", [])), reach_now)
        if state.config["configurable"].get("checkpoint_id"):
            current.tip = Tip(state.config, list(current.whole), counted(reach_now))
            current.tips.append(current.tip)
            current.returned_to = False

    def judge_end(self, channel: list[Any], reach: list[Any]) -> None:
        """What a promise says once a run is over; the channel is what the checkpoint holds.

        `error` is what it raised, and `archive_failed` says whether the store did in it.
        """

    def channel_of(self, config: Any) -> Mapping[str, Any]:
        return self.graph.get_state(config).values.get("_conspectus") or {}

    def head(self, config: Any) -> Any:
        return self.channel_of(config).get("head_id")

    def scope(self, channel: Mapping[str, Any]) -> Scope:
        return Scope(self.current.name[0], channel["thread"], channel["session"])

    def reach_of(self, state: Any) -> tuple[list[Any], int, str, str]:
        """What the record in the state answers for, with its lines and its summary."""
        channel = state.values.get("_conspectus") or {}
        if not channel.get("head_id"):
            return [], 0, "", ""
        archive = Archive(self.store)
        scope = self.scope(channel)
        chain = run(archive.call_either_way(archive.chain_at, scope, channel["head_id"]))
        assert chain, "the record in force is not in the archive"
        covered_keys = {key for record in chain for key in record.covers}
        # Those that are only truncated stand between them where the archive knows their place.
        rows = archive.export(scope, chain)
        keys = sorted((row["key"] for row in rows), key=lambda key: key not in covered_keys)
        originals = [original.message for original in archive.get(scope, keys)]
        return originals, len(covered_keys), lines_of(chain), chain[-1].summary

    def all_archived(self, state: Any) -> list[Any]:
        """Every original of this thread in the archive, of whatever branch."""
        tenant = self.current.name[0]
        name = "/".join(self.current.name)
        archive = Archive(self.store)
        scope = scope_of(state.values, name, tenant)
        keys = [key for record in archive.records(scope) for key in record.covers]
        keys += [clip.key for record in archive.records(scope) for clip in record.clips]
        return [original.message for original in archive.get(scope, list(dict.fromkeys(keys)))]

    def judge(self, look: Look) -> None:
        """What a promise says of one request."""
        raise NotImplementedError


@tool
def look(at: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Look at a module."""
    code = "pass  # a line of it\n" * 20
    return ToolMessage(f"module {at}: {code}", tool_call_id=tool_call_id, id=f"t-{at}")
