"""A conversation whose every part holds secrets; what looks for them, and into archives.

They are put together when the tests run; see `made_secrets`.
"""

import json
from base64 import b64decode
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from conspectus.archive import Archive
from conspectus.archive.values import unpacked
from made_secrets import SecretMaker

MADE = SecretMaker(11)
TOKEN = "ghp" + "_" + MADE.alnum(36)
PASSWORD = MADE.password()
KEY = MADE.alnum(32)
SECRETS = (TOKEN, PASSWORD, KEY)


def history() -> list[BaseMessage]:
    """Secrets in every part of a message; each is said to the model and by it."""
    call = {"name": "run", "id": "c1", "args": {"cmd": f"login {TOKEN}", "password": PASSWORD}}
    function = {"name": "run", "arguments": json.dumps(call["args"])}
    raw = {"id": "c1", "type": "function", "function": function}
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
            message
            for n in range(12)
            for message in (
                HumanMessage(f"Look at module {n} again.", id=f"v{n}"),
                AIMessage(f"Module {n} is fine.", id=f"b{n}"),
            )
        ],
        HumanMessage(f"And again, with {TOKEN}.", id="last"),
    ]


class Stored(NamedTuple):
    """One value: where it lies, and its data as JSON text."""

    namespace: tuple[str, ...]
    key: str
    text: str


def stored_values(store: Any, *prefix: str) -> list[Stored]:
    """Every value below a namespace, unpacked where an archive has packed it."""
    if isinstance(store, Archive):
        return values_in_tables(store)
    values = []
    for item in store.search(prefix, limit=100_000):
        packed = b64decode(item.value["z"]) if "z" in item.value else b""
        data = unpacked(packed) if packed else item.value
        text = json.dumps(data, ensure_ascii=False, default=repr)
        values.append(Stored(tuple(item.namespace), item.key, text))
    return values


def values_in_tables(archive: Archive) -> list[Stored]:
    """Every row of an archive in SQLite, and every word of its index."""
    index = "TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'words', 'row')"
    guarded: Any = archive.backend
    with guarded.store.transaction(writes=False) as run:
        rows = list(run("SELECT name, about, body FROM item"))
        run(f"CREATE VIRTUAL {index}")
        words = [word for (word,) in run("SELECT term FROM temp.vocabulary")]
    texts = [json.dumps([*about, unpacked(body)], ensure_ascii=False) for *about, body in rows]
    return [Stored(("item",), "", text) for text in [*texts, *words]]


def check_no_secret(value: Any) -> None:
    text = value if isinstance(value, str) else repr(value)
    folded = text.casefold()  # the words of a search index are
    for secret in SECRETS:
        assert secret.casefold() not in folded
        assert secret.encode().hex() not in text


def text_of_store(store: InMemoryStore) -> str:
    """Everything that a store holds, its values as they are read."""
    return "\n".join(
        f"{value.namespace} {value.key} {value.text}" for value in stored_values(store)
    )
