"""Anthropic's Messages: tools of the caller and of the server, thoughts, citations, containers.

Rules: the pages on tool use, extended thinking, web search, code execution, programmatic tool
calling and stop reasons of Anthropic's documentation, and the errors of the API.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from providers.making import PIXEL, Maker, Provider, dumped, remade, standard, using

RESULTS = ("web_search_tool_result", "code_execution_tool_result", "tool_search_tool_result")
FREE = ("tool_use", "tool_result", "image", "document")
KNOWN = {*RESULTS, *FREE, "text", "thinking", "redacted_thinking", "server_tool_use"} | {
    "container_upload"
}


def _answer(maker: Maker, blocks: list[Any], stop: str, container: bool = False) -> AIMessage:
    meta: dict[str, Any] = {"model_provider": "anthropic", "stop_reason": stop}
    if container:
        meta["container"] = {"id": "container_1", "expires_at": "2030-01-01T00:00:00Z"}
    return using(blocks, meta)


def _thoughts(maker: Maker) -> list[Any]:
    thought = {"type": "thinking", "thinking": maker.text(), "signature": maker.id("sig_")}
    hidden = {"type": "redacted_thinking", "data": maker.id("enc_") * maker.one(1, 40)}
    return maker.one([], [thought], [hidden], [thought, hidden])


def _use(maker: Maker, **more: Any) -> dict[str, Any]:
    return {
        "type": "tool_use", "id": maker.id("toolu_"), "name": "edit", "input": maker.args(), **more
    }  # fmt: skip


def _server(maker: Maker, name: str) -> dict[str, Any]:
    args = {"query": maker.text(40)} if name == "web_search" else {"code": maker.text()}
    return {"type": "server_tool_use", "id": maker.id("srvtoolu_"), "name": name, "input": args}


def _found(maker: Maker, use: dict[str, Any]) -> list[Any]:
    if use["name"] == "code_execution":
        output = {
            "type": "code_execution_result", "stdout": maker.text(), "stderr": "",
            "return_code": 0, "content": [],
        }  # fmt: skip
        kind = "code_execution_tool_result"
        content = output
        said = {}
    else:
        kind = "web_search_tool_result"
        content = [  # type: ignore[assignment]
            {
                "type": "web_search_result", "url": f"https://x.y/{n}", "title": f"Page {n}",
                "encrypted_content": maker.id("enc_") * 30, "page_age": None,
            }
            for n in maker.few()
        ]  # fmt: skip
        said = {
            "citations": [
                {
                    "type": "web_search_result_location", "url": "https://x.y/0", "title": "Page 0",
                    "encrypted_index": maker.id("idx_") * 9, "cited_text": "word word",
                }
            ]
        }  # fmt: skip
    result = {"type": kind, "tool_use_id": use["id"], "content": content}
    return [result, {"type": "text", "text": maker.text(), **said}]


def _results(maker: Maker, uses: Sequence[dict[str, Any]], *, only: bool) -> None:
    """What the caller's tools gave: messages of their own, or blocks in the user's name."""
    if only or maker.often(0.7):
        for use in maker.mixed(uses):
            image = {"type": "image", "source": _png()}
            content = maker.one(maker.text(), [{"type": "text", "text": maker.text()}, image])
            maker.say(ToolMessage(content, tool_call_id=use["id"]))
        return
    blocks = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": maker.text()}
        for use in maker.mixed(uses)
    ]
    words = [{"type": "text", "text": maker.text()}] if maker.often(0.7) else []
    maker.say(HumanMessage([*blocks, *words]))


def _png() -> dict[str, Any]:
    return {"type": "base64", "media_type": "image/png", "data": PIXEL}


def make(maker: Maker) -> None:
    said: list[Any] = [{"type": "text", "text": maker.text()}]
    if maker.often(0.2):
        said.append({"type": "container_upload", "file_id": maker.id("file_")})
    if maker.often(0.2):
        said.append({"type": "image", "source": _png()})
    maker.say(HumanMessage(maker.one(maker.text(), said)))
    maker.ask()
    for _ in range(maker.chance.randint(0, 3)):
        maker.one(_tools, _tools, _search, _paused, _programmatic)(maker)
    maker.say(
        _answer(maker, [*_thoughts(maker), {"type": "text", "text": maker.text()}], "end_turn")
    )


def _tools(maker: Maker) -> None:
    words = [{"type": "text", "text": maker.text()}] if maker.often(0.5) else []
    uses = [_use(maker) for _ in maker.few()]
    maker.say(_answer(maker, [*_thoughts(maker), *words, *uses], "tool_use"))
    _results(maker, uses, only=False)
    maker.ask()


def _search(maker: Maker) -> None:
    """The server's tool and one of the caller's in one answer."""
    server = _server(maker, maker.one("web_search", "code_execution"))
    use = _use(maker)
    own = server["name"] == "code_execution"
    blocks = [*_thoughts(maker), server, *_found(maker, server), use]
    maker.say(_answer(maker, blocks, "tool_use", container=own))
    _results(maker, [use], only=False)
    maker.ask()


def _paused(maker: Maker) -> None:
    server = _server(maker, "web_search")
    begun = [*_thoughts(maker), {"type": "text", "text": maker.text()}, server]
    maker.say(_answer(maker, begun, "pause_turn"))
    maker.ask()
    use = _use(maker)
    maker.say(_answer(maker, [*_found(maker, server), use], "tool_use"))
    _results(maker, [use], only=False)
    maker.ask()


def _programmatic(maker: Maker) -> None:
    """A program at the server calls the caller's tools, one request after the other."""
    server = _server(maker, "code_execution")
    caller = {"type": "code_execution_20250825", "tool_id": server["id"]}
    uses = [_use(maker, caller=caller) for _ in maker.few(2)]
    maker.say(_answer(maker, [*_thoughts(maker), server, *uses], "tool_use", container=True))
    _results(maker, uses, only=True)
    maker.ask()
    for _ in range(maker.chance.randint(0, 3)):
        uses = [_use(maker, caller=caller) for _ in maker.few(2)]
        maker.say(_answer(maker, list(uses), "tool_use", container=True))
        _results(maker, uses, only=True)
        maker.ask()
    use = _use(maker)
    maker.say(_answer(maker, [*_found(maker, server), use], "tool_use", container=True))
    _results(maker, [use], only=False)
    maker.ask()


def as_dicts(messages: list[Any]) -> list[Any]:
    """The dicts of a caller of Anthropic's own package, who keeps the stop reason."""
    made = []
    for message in messages:
        [written] = _model()._get_request_payload([message])["messages"]
        row = dict(written)
        if isinstance(message, AIMessage):
            row["stop_reason"] = message.response_metadata["stop_reason"]
            if "container" in message.response_metadata:
                row["container"] = message.response_metadata["container"]
        made.append(row)
    return made


@cache
def _model() -> ChatAnthropic:
    return ChatAnthropic(  # type: ignore[call-arg]
        model="claude-sonnet-4-5", api_key="none", reuse_last_container=True
    )


def request(messages: Sequence[Any]) -> dict[str, Any]:
    return _model()._get_request_payload(list(messages))


def request_of_dicts(messages: Sequence[Any]) -> dict[str, Any]:
    rows = [{"role": m["role"], "content": m["content"]} for m in messages]
    held = [m["container"]["id"] for m in messages if "container" in m]
    return {"messages": rows, "container": held[-1] if held else None}


def _turns(payload: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Messages as the API joins them: runs of one role are one turn."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in payload["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def refuses(payload: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    wrong: list[str] = []
    turns = _turns(payload)
    originals = {dumped(block) for _, blocks in _turns(whole) for block in blocks}
    if not turns or turns[0][0] != "user":
        wrong.append("the first message is no user's")
    uses = set[str]()
    programs = dict[str, int]()
    open_programs = set[str]()
    for place, (role, blocks) in enumerate(turns):
        after = turns[place + 1] if place + 1 < len(turns) else None
        if not blocks:
            wrong.append(f"{place}: empty")
        for block in blocks:
            kind = block["type"]
            if kind not in KNOWN:
                wrong.append(f"{place}: unknown block {kind}")
            if kind == "text" and not block["text"].strip():
                wrong.append(f"{place}: empty text")
            opaque = kind not in (*FREE, "text") or block.get("citations")
            if opaque and dumped(block) not in originals:
                wrong.append(f"{place}: {kind} was changed")
        wrong += _exchange(place, role, blocks, after)
        named = [b["id"] for b in blocks if b["type"] in ("tool_use", "server_tool_use")]
        if len({*named} - uses) < len(named):
            wrong.append(f"{place}: ids are not unique")
        uses.update(named)
        for block in blocks:
            if block["type"] == "server_tool_use":
                programs[block["id"]] = place
                open_programs.add(block["id"])
            elif block["type"] in RESULTS:
                if block["tool_use_id"] not in programs:
                    wrong.append(f"{place}: result of a server's tool without its call")
                open_programs.discard(block["tool_use_id"])
            elif caller := block.get("caller"):
                if caller["tool_id"] not in open_programs:
                    wrong.append(f"{place}: a call of a program that does not run")
                elif after and any(b["type"] != "tool_result" for b in after[1]):
                    wrong.append(f"{place}: results for a program beside something else")
        spoken = role == "user" and any(b["type"] != "tool_result" for b in blocks)
        if spoken and open_programs:
            wrong.append(f"{place}: a server's tool without a result")
    calling = turns[-1][0] == "user" and open_programs
    if calling and not payload.get("container"):
        wrong.append("a program runs and no container is named")
    return wrong


def _exchange(
    place: int, role: str, blocks: list[dict[str, Any]], after: tuple[str, list[Any]] | None
) -> Iterator[str]:
    """Calls of the caller's tools: each answered in the next message, before anything else."""
    called = {b["id"] for b in blocks if b["type"] == "tool_use"}
    if role == "user":
        if called:
            yield f"{place}: a user's tool_use"
        kinds = [b["type"] == "tool_result" for b in blocks]
        if kinds != sorted(kinds, reverse=True):
            yield f"{place}: tool_result after something else"
        if place == 0 and any(kinds):
            yield f"{place}: tool_result without tool_use"
        for block in blocks:
            if block["type"] == "tool_result" and block["content"] in ([], None):
                yield f"{place}: empty tool_result"
        return
    following = after[1] if after else []
    answered = [b["tool_use_id"] for b in following if b["type"] == "tool_result"]
    if sorted(called) != sorted(answered):
        yield f"{place}: calls {sorted(called)} answered by {sorted(answered)}"
    shapes = ["thinking" in b["type"] for b in blocks if b["type"] != "text"]
    if blocks and "thinking" in blocks[-1]["type"] and any(shapes):
        yield f"{place}: a thought at the end"


PROVIDERS = [
    Provider("Anthropic, messages", make, request, refuses),
    Provider("Anthropic, standard content", standard(make), request, refuses),
    Provider("Anthropic, dicts", remade(make, as_dicts), request_of_dicts, refuses),
]
