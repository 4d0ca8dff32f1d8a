"""Ids of calls that come again: each result is sent or archived, and stands behind its own call.

Many servers begin the ids of calls anew in each turn or response, give each the tool's name, or
none. People delete, edit and repeat turns of such histories, and clients clear old results.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from conspectus import Compactor
from conspectus.archive import Archive, Scope
from conspectus.messages import is_summary_message
from conspectus.messages.shortening import POINTER
from conspectus_serve.cleared import is_notice
from serve_support import (
    SECRET,
    chat_reply,
    conspectus_header,
    message_reply,
    post,
    proxied_upstream,
)

CLEARED = "[Old tool result content cleared]"


@dataclass(frozen=True)
class Step:
    """One response of the model with calls, and their results."""

    args: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Turn:
    question: str
    steps: tuple[Step, ...]
    answer: str


Naming = Callable[[int, int, int, int], str]
"""The id of a call by its place in the history, in its turn, and in its response; and its step."""

NAMINGS: dict[str, Naming] = {
    "anew in each turn": lambda every, turn, step, response: f"call_{turn}",
    "anew in each response": lambda every, turn, step, response: f"call_{response}",
    "one for all": lambda every, turn, step, response: "call_0",
    "one that looks random": lambda every, turn, step, response: "call_a1b2c3d4e5",
    "the tool's name": lambda every, turn, step, response: "read_function1",
    "none": lambda every, turn, step, response: "",
    "by place": lambda every, turn, step, response: f"call_{every}",
    "by response": lambda every, turn, step, response: f"toolcall{step}",
}
NAMED = st.sampled_from(sorted(NAMINGS))


@dataclass
class Talk:
    """A conversation that its user edits, and what was said in it."""

    random: Random
    turns: list[Turn] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def result(self) -> str:
        size = self.random.choice((0, 2, 20, 60))
        if self.random.random() < 0.1:
            return self.random.choice(("ok", "[]", "done"))  # equal to others
        return f"RESULT-{next(self.numbers):03d}. " + "Lorem ipsum dolor. " * size

    def step(self) -> Step:
        number = self.random.choice((1, 1, 1, 2, 3))
        args = tuple(self.random.choice(("a", "b")) for _ in range(number))
        return Step(args, tuple(self.result() for _ in args))

    def add(self) -> None:
        question = self.random.choice(("Go on.", f"Do task {next(self.numbers)}."))
        steps = tuple(self.step() for _ in range(self.random.choice((1, 1, 2))))
        self.turns.append(Turn(question, steps, self.random.choice(("It is done.", "Ready."))))

    def change(self, edit: str) -> None:
        """Change what was said, as a user or a client does."""
        if not self.turns:
            return
        index = self.random.choice((0, len(self.turns) // 2, len(self.turns) - 1))
        turn = self.turns[index]
        if edit == "delete":
            del self.turns[index]
        elif edit == "delete half":
            del self.turns[index : index + len(self.turns) // 2]
        elif edit == "go back":
            del self.turns[index:]
        elif edit == "ask otherwise":
            self.turns[index] = replace(turn, question=f"Do task {next(self.numbers)} otherwise.")
        elif edit == "regenerate":
            self.turns[index] = replace(turn, steps=tuple(self.step() for _ in turn.steps))
        elif edit == "edit a result":
            first = turn.steps[0]
            edited = replace(first, results=(self.result(), *first.results[1:]))
            self.turns[index] = replace(turn, steps=(edited, *turn.steps[1:]))

    def messages(self, naming: Naming) -> list[dict[str, Any]]:
        """Return it as Chat Completions has it, with what its user asks next."""
        history: list[dict[str, Any]] = []
        in_history = responses = 0
        for turn in self.turns:
            in_turn = 0
            history.append({"role": "user", "content": turn.question})
            for step in turn.steps:
                names = [
                    naming(in_history + at, in_turn + at, responses, at)
                    for at in range(len(step.args))
                ]
                in_history += len(names)
                in_turn += len(names)
                responses += 1
                calls = [
                    {
                        "id": name,
                        "type": "function",
                        "function": {"name": "read", "arguments": json.dumps({"path": path})},
                    }
                    for name, path in zip(names, step.args, strict=True)
                ]
                history.append({"role": "assistant", "content": None, "tool_calls": calls})
                history += [
                    {"role": "tool", "tool_call_id": name, "content": result}
                    for name, result in zip(names, step.results, strict=True)
                ]
            history.append({"role": "assistant", "content": turn.answer})
        return [*history, {"role": "user", "content": "What is next?"}]


CHANGES = ("delete", "delete half", "go back", "ask otherwise", "regenerate", "edit a result")
TALKS = st.tuples(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(("add",) * 6 + CHANGES), min_size=3, max_size=8),
)


def edited_talks(seed: int, changes: list[str]) -> Iterator[Talk]:
    """Yield a conversation after each change."""
    talk = Talk(Random(seed))
    for _ in range(5):
        talk.add()
    for change in changes:
        for _ in range(2 if change == "add" else 0):
            talk.add()
        talk.change(change)
        yield talk


def text_of(message: Any) -> str:
    return str(message["content"] if isinstance(message, dict) else message.content)


def check(history: list[Any], view: list[Any], archived_rows: list[Any]) -> None:
    """Check a view against the history that it is of, and what the archive has of it."""
    shown_texts = {text_of(message) for message in view}
    archived_texts = {text for row in archived_rows for text in texts_in(row)}
    unseen = [
        text_of(message)
        for message in history
        if text_of(message) not in shown_texts | archived_texts
    ]
    assert unseen == []
    # What is sent stands in the order in which it came, each result behind its own call.
    rest_of_history = iter(history)
    strange = [
        message
        for message in view
        if POINTER not in text_of(message) and message not in rest_of_history
    ]
    assert strange == []
    pairs = [*pairwise(history)]
    for pair in pairwise(view):
        if is_result(pair[1]) and not any(POINTER in text_of(message) for message in pair):
            assert pair in pairs


def is_result(message: Any) -> bool:
    return (
        message["role"] == "tool" if isinstance(message, dict) else isinstance(message, ToolMessage)
    )


def texts_in(row: dict[str, Any]) -> list[str]:
    message = row["message"]
    content = message["data"]["content"] if "data" in message else message["content"]
    return [str(content)]


def as_objects(history: list[dict[str, Any]]) -> list[Any]:
    objects: list[Any] = []
    for message in history:
        if message["role"] == "user":
            objects.append(HumanMessage(message["content"]))
        elif message["role"] == "tool":
            objects.append(ToolMessage(message["content"], tool_call_id=message["tool_call_id"]))
        else:
            calls = [
                {"name": "read", "args": {"path": call["function"]["arguments"]}, "id": call["id"]}
                for call in message.get("tool_calls", ())
            ]
            objects.append(AIMessage(message["content"] or "", tool_calls=calls))
    return objects


@pytest.mark.parametrize("form", ["dicts", "objects"])
@given(naming=NAMED, talk=TALKS)
def test_a_compactor_archives_or_sends_each_result(form, naming, talk):
    with Archive.open("memory:") as archive:
        compactor = Compactor(archive=archive, window=1_500, alternate_roles="off")
        for edited in edited_talks(*talk):
            history: list[Any] = edited.messages(NAMINGS[naming])
            history = as_objects(history) if form == "objects" else history
            result = compactor.compact(history, thread_id="t")
            view = [message for message in result.messages if not is_summary_message(message)]
            check(history, view, archive.export(Scope("local", "t")))


def as_anthropic(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history in Anthropic's form, where results stand with the user's next words."""
    messages: list[dict[str, Any]] = []
    for message in history:
        role = "user"
        blocks = [{"type": "text", "text": message["content"]}]
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
            blocks = [{**result, "content": message["content"]}]
        elif message["role"] == "assistant":
            role = "assistant"
            blocks = blocks if message["content"] else []
            blocks += [
                {
                    "type": "tool_use",
                    "id": call["id"],
                    "name": "read",
                    "input": json.loads(call["function"]["arguments"]),
                }
                for call in message.get("tool_calls", ())
            ]
        if messages and messages[-1]["role"] == role:
            messages[-1] = {"role": role, "content": [*messages[-1]["content"], *blocks]}
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def unbroken(talk: Talk) -> Talk:
    """Return a conversation in which the user speaks right behind the results of each turn."""
    return replace(talk, turns=[replace(turn, answer="") for turn in talk.turns])


def without_silence(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in history if message["content"] != ""]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a call that asks an endpoint; it returns what was sent, and what is archived."""
    folder = tmp_path_factory.mktemp("serve")

    def answer(request: Any) -> Any:
        return message_reply() if request.path.endswith("/messages") else chat_reply()

    def ask(path: str, history: list[Any]) -> tuple[list[Any], list[Any]]:
        answer = post(serving, path, {"model": "m", "max_tokens": 50, "messages": history})
        assert answer.status_code == 200, answer.text
        scope = Scope(SECRET.tenant("k"), str(conspectus_header(answer, "thread")))
        return upstream.posts[-1].body["messages"], archive.export(scope)

    settings: Any = {"window": 2_000, "recall": "off"}
    with (
        proxied_upstream(answer, folder, **settings) as (upstream, serving),
        Archive.open(folder / "a.db") as archive,
    ):
        yield ask


CONVERSATIONS = count()


@pytest.mark.slow
# A turn that was asked again ends with the call with which the turn behind it ends.
@example(naming="anew in each response", talk=(535924, ["delete half", "regenerate", "regenerate"]))
@given(naming=NAMED, talk=TALKS)
def test_the_endpoint_archives_or_sends_each_result(served, naming, talk):
    first = {"role": "user", "content": f"This is conversation {next(CONVERSATIONS)}."}
    for edited in edited_talks(*talk):
        history = [first, *edited.messages(NAMINGS[naming])]
        sent, kept = served("/v1/chat/completions", history)
        # The user's own messages may be joined with the summary before them.
        not_the_users = [message for message in history if message["role"] != "user"]
        check(not_the_users, [message for message in sent if message["role"] != "user"], kept)
        user_texts = [message["content"] for message in history if message["role"] == "user"]
        assert all(
            any(text in str(message_or_row) for message_or_row in (*sent, *kept))
            for text in user_texts
        )


@pytest.mark.parametrize("joined", [False, True], ids=["apart", "results beside words"])
@given(naming=NAMED, talk=TALKS)
def test_the_endpoint_archives_or_sends_each_block_of_results(served, joined, naming, talk):
    first = {"role": "user", "content": f"This is conversation {next(CONVERSATIONS)}."}
    for edited in edited_talks(*talk):
        shown = unbroken(edited) if joined else edited
        history = as_anthropic(without_silence([first, *shown.messages(NAMINGS[naming])]))
        sent, kept = served("/v1/messages", history)
        sent_or_archived = json.dumps([sent, [row["message"] for row in kept]])
        results = [
            block["content"]
            for message in history
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        assert [
            result for result in results if json.dumps(result)[1:-1] not in sent_or_archived
        ] == []


@pytest.mark.parametrize("naming", ["anew in each turn", "one for all", "by place"])
def test_cleared_results_with_repeated_ids_are_not_summarised_again(tmp_path, naming):
    talk = Talk(Random(1))
    records = list[str | None]()
    with proxied_upstream(lambda asked: chat_reply(), tmp_path, window=2_000) as (_, endpoint):
        for _ in range(30):
            talk.add()
            history = talk.messages(NAMINGS[naming])
            results = [message for message in history if message["role"] == "tool"]
            for message in results[:-8]:
                message["content"] = (
                    CLEARED if len(message["content"]) > 200 else message["content"]
                )
            body = {"model": "m", "messages": history}
            records.append(
                conspectus_header(post(endpoint, "/v1/chat/completions", body), "record")
            )
    with Archive.open(tmp_path / "a.db") as archive:
        [scope] = archive.scopes(SECRET.tenant("k"))
        chain = archive.chain(scope)
        kept = json.dumps(archive.export(scope))
    covered = [key for record in chain for key in record.covers]
    assert len(chain) > 1
    assert len(covered) == len(set(covered))
    assert len({record for record in records if record}) == len(chain)
    assert "Lorem ipsum dolor." in kept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CLEARED, True),
        ("[cleared]", True),
        ("<MASKED>", True),
        ("(tool output truncated to save context)", True),
        ("Old environment output: (14 lines omitted)", True),
        ("", False),
        ("[]", False),
        ("[1, 2]", False),
        ("done", False),
        ("Cache cleared.", False),
        ("removed 3 files", False),
    ],
)
def test_a_clearing_notice_differs_from_a_result(text, says):
    assert is_notice(text) is says
