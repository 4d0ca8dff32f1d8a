"""A conversation whose every part holds secrets, and what looks for them.

They are put together when the tests run; see `made_secrets`.
"""

import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from made_secrets import Made
from stored_values import stored

MADE = Made(11)


TOKEN = "ghp" + "_" + MADE.alnum(36)


PASSWORD = MADE.password()


KEY = MADE.alnum(32)


SECRETS = (TOKEN, PASSWORD, KEY)


def history() -> list[BaseMessage]:
    """Secrets in every part of a message; each is said to the model and by it."""
    call = {"name": "run", "id": "c1", "args": {"cmd": f"login {TOKEN}", "password": PASSWORD}}
    raw = {
        "id": "c1",
        "type": "function",
        "function": {"name": "run", "arguments": json.dumps(call["args"])},
    }
    return [
        SystemMessage("You deploy.", id="s"),
        HumanMessage(f"Always use the api_key={KEY} for staging, never prod.", id="u1", name="ann"),
        AIMessage(
            [
                {"type": "thinking", "thinking": f"I have {TOKEN}", "signature": "sig"},
                {"type": "text", "text": f"I use {TOKEN}."},
                {"type": "tool_use", "id": "c1", "name": "run", "input": call["args"]},
            ],
            tool_calls=[call],
            additional_kwargs={"tool_calls": [raw], "note": {"password": PASSWORD}},
            response_metadata={"headers": {"authorization": f"Bearer {KEY}"}},
            id="a1",
        ),
        ToolMessage(
            [{"type": "text", "text": f"ok, PASSWORD={PASSWORD}\n"}],
            tool_call_id="c1",
            artifact={"log": [f"token {TOKEN}"], "raw": f"PASSWORD={PASSWORD}".encode(), TOKEN: 1},
            name="run",
            id="t1",
        ),
        AIMessage(f"Done; the password is {PASSWORD}.", id="a2"),
        *[
            one
            for n in range(12)
            for one in (
                HumanMessage(f"Look at module {n} again.", id=f"v{n}"),
                AIMessage(f"Module {n} is fine.", id=f"b{n}"),
            )
        ],
        HumanMessage(f"And again, with {TOKEN}.", id="last"),
    ]


def no_secret(value: Any) -> None:
    text = value if isinstance(value, str) else repr(value)
    folded = text.casefold()  # the words of a search index are
    for secret in SECRETS:
        assert secret.casefold() not in folded
        assert secret.encode().hex() not in text


def in_the_store(store: InMemoryStore) -> str:
    """Everything that a store holds, its values as they are read."""
    return "\n".join(f"{one.namespace} {one.key} {one.text}" for one in stored(store))
