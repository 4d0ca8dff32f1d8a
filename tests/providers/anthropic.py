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
    hidden = {"type": "redacted_thinking", "data": maker.id("enc_") * maker.choose(1, 40)}
    return maker.choose([], [thought], [hidden], [thought, hidden])


def _use(maker: Maker, **fields: Any) -> dict[str, Any]:
    use = {"type": "tool_use", "id": maker.id("toolu_"), "name": "edit", "input": maker.args()}
    return {**use, **fields}


def _server(maker: Maker, name: str) -> dict[str, Any]:
    args = {"query": maker.text(40)} if name == "web_search" else {"code": maker.text()}
    return {"type": "server_tool_use", "id": maker.id("srvtoolu_"), "name": name, "input": args}


def _server_result_and_text(maker: Maker, use: dict[str, Any]) -> list[Any]:
    if use["name"] == "code_execution":
        output = {
            "type": "code_execution_result", "stdout": maker.text(), "stderr": "",
            "return_code": 0, "content": [],
        }  # fmt: skip
        block_type = "code_execution_tool_result"
        content = output
        citations = {}
    else:
        block_type = "web_search_tool_result"
        content = [  # type: ignore[assignment]
            {
                "type": "web_search_result", "url": f"https://x.y/{n}", "title": f"Page {n}",
                "encrypted_content": maker.id("enc_") * 30, "page_age": None,
            }
            for n in maker.some_of()
        ]  # fmt: skip
        citations = {
            "citations": [
                {
                    "type": "web_search_result_location", "url": "https://x.y/0", "title": "Page 0",
                    "encrypted_index": maker.id("idx_") * 9, "cited_text": "word word",
                }
            ]
        }  # fmt: skip
    result = {"type": block_type, "tool_use_id": use["id"], "content": content}
    return [result, {"type": "text", "text": maker.text(), **citations}]


def _results(maker: Maker, uses: Sequence[dict[str, Any]], *, only: bool) -> None:
    """What the caller's tools gave: messages of their own, or blocks in the user's name."""
    if only or maker.happens(0.7):
        for use in maker.shuffled(uses):
            image = {"type": "image", "source": _png()}
            content = maker.choose(maker.text(), [{"type": "text", "text": maker.text()}, image])
            maker.say(ToolMessage(content, tool_call_id=use["id"]))
        return
    blocks = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": maker.text()}
        for use in maker.shuffled(uses)
    ]
    words = [{"type": "text", "text": maker.text()}] if maker.happens(0.7) else []
    maker.say(HumanMessage([*blocks, *words]))


def _png() -> dict[str, Any]:
    return {"type": "base64", "media_type": "image/png", "data": PIXEL}


def make(maker: Maker) -> None:
    blocks: list[Any] = [{"type": "text", "text": maker.text()}]
    if maker.happens(0.2):
        blocks.append({"type": "container_upload", "file_id": maker.id("file_")})
    if maker.happens(0.2):
        blocks.append({"type": "image", "source": _png()})
    maker.say(HumanMessage(maker.choose(maker.text(), blocks)))
    maker.ask()
    for _ in range(maker.chance.randint(0, 3)):
        maker.choose(_tools, _tools, _search, _paused, _programmatic)(maker)
    maker.say(
        _answer(maker, [*_thoughts(maker), {"type": "text", "text": maker.text()}], "end_turn")
    )


def _tools(maker: Maker) -> None:
    words = [{"type": "text", "text": maker.text()}] if maker.happens(0.5) else []
    uses = [_use(maker) for _ in maker.some_of()]
    maker.say(_answer(maker, [*_thoughts(maker), *words, *uses], "tool_use"))
    _results(maker, uses, only=False)
    maker.ask()


def _search(maker: Maker) -> None:
    """The server's tool and one of the caller's in one answer."""
    server = _server(maker, maker.choose("web_search", "code_execution"))
    use = _use(maker)
    needs_container = server["name"] == "code_execution"
    blocks = [*_thoughts(maker), server, *_server_result_and_text(maker, server), use]
    maker.say(_answer(maker, blocks, "tool_use", container=needs_container))
    _results(maker, [use], only=False)
    maker.ask()


def _paused(maker: Maker) -> None:
    server = _server(maker, "web_search")
    beginning = [*_thoughts(maker), {"type": "text", "text": maker.text()}, server]
    maker.say(_answer(maker, beginning, "pause_turn"))
    maker.ask()
    use = _use(maker)
    maker.say(_answer(maker, [*_server_result_and_text(maker, server), use], "tool_use"))
    _results(maker, [use], only=False)
    maker.ask()


def _programmatic(maker: Maker) -> None:
    """A program at the server calls the caller's tools, one request after the other."""
    server = _server(maker, "code_execution")
    caller = {"type": "code_execution_20250825", "tool_id": server["id"]}
    uses = [_use(maker, caller=caller) for _ in maker.some_of(2)]
    maker.say(_answer(maker, [*_thoughts(maker), server, *uses], "tool_use", container=True))
    _results(maker, uses, only=True)
    maker.ask()
    for _ in range(maker.chance.randint(0, 3)):
        uses = [_use(maker, caller=caller) for _ in maker.some_of(2)]
        maker.say(_answer(maker, list(uses), "tool_use", container=True))
        _results(maker, uses, only=True)
        maker.ask()
    use = _use(maker)
    maker.say(
        _answer(maker, [*_server_result_and_text(maker, server), use], "tool_use", container=True)
    )
    _results(maker, [use], only=False)
    maker.ask()


def as_dicts(messages: list[Any]) -> list[Any]:
    """The dicts of a caller of Anthropic's own package, who keeps the stop reason."""
    rows = []
    for message in messages:
        [request_row] = _model()._get_request_payload([message])["messages"]
        row = dict(request_row)
        if isinstance(message, AIMessage):
            row["stop_reason"] = message.response_metadata["stop_reason"]
            if "container" in message.response_metadata:
                row["container"] = message.response_metadata["container"]
        rows.append(row)
    return rows


@cache
def _model() -> ChatAnthropic:
    return ChatAnthropic(  # type: ignore[call-arg]
        model="claude-sonnet-4-5", api_key="none", reuse_last_container=True
    )


def request(messages: Sequence[Any]) -> dict[str, Any]:
    return _model()._get_request_payload(list(messages))


def request_of_dicts(messages: Sequence[Any]) -> dict[str, Any]:
    rows = [{"role": m["role"], "content": m["content"]} for m in messages]
    containers = [m["container"]["id"] for m in messages if "container" in m]
    return {"messages": rows, "container": containers[-1] if containers else None}


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
    faults: list[str] = []
    turns = _turns(payload)
    originals = {dumped(block) for _, blocks in _turns(whole) for block in blocks}
    if not turns or turns[0][0] != "user":
        faults.append("the first message is no user's")
    uses = set[str]()
    programs = dict[str, int]()
    open_programs = set[str]()
    for index, (role, blocks) in enumerate(turns):
        next_turn = turns[index + 1] if index + 1 < len(turns) else None
        if not blocks:
            faults.append(f"{index}: empty")
        for block in blocks:
            block_type = block["type"]
            if block_type not in KNOWN:
                faults.append(f"{index}: unknown block {block_type}")
            if block_type == "text" and not block["text"].strip():
                faults.append(f"{index}: empty text")
            opaque = block_type not in (*FREE, "text") or block.get("citations")
            if opaque and dumped(block) not in originals:
                faults.append(f"{index}: {block_type} was changed")
        faults += _exchange(index, role, blocks, next_turn)
        call_ids = [b["id"] for b in blocks if b["type"] in ("tool_use", "server_tool_use")]
        if len({*call_ids} - uses) < len(call_ids):
            faults.append(f"{index}: ids are not unique")
        uses.update(call_ids)
        for block in blocks:
            if block["type"] == "server_tool_use":
                programs[block["id"]] = index
                open_programs.add(block["id"])
            elif block["type"] in RESULTS:
                if block["tool_use_id"] not in programs:
                    faults.append(f"{index}: result of a server's tool without its call")
                open_programs.discard(block["tool_use_id"])
            elif caller := block.get("caller"):
                if caller["tool_id"] not in open_programs:
                    faults.append(f"{index}: a call of a program that does not run")
                elif next_turn and any(b["type"] != "tool_result" for b in next_turn[1]):
                    faults.append(f"{index}: results for a program beside something else")
        spoken = role == "user" and any(b["type"] != "tool_result" for b in blocks)
        if spoken and open_programs:
            faults.append(f"{index}: a server's tool without a result")
    calling = turns[-1][0] == "user" and open_programs
    if calling and not payload.get("container"):
        faults.append("a program runs and no container is named")
    return faults


def _exchange(
    index: int, role: str, blocks: list[dict[str, Any]], next_turn: tuple[str, list[Any]] | None
) -> Iterator[str]:
    """Calls of the caller's tools: each answered in the next message, before anything else."""
    call_ids = {b["id"] for b in blocks if b["type"] == "tool_use"}
    if role == "user":
        if call_ids:
            yield f"{index}: a user's tool_use"
        are_results = [b["type"] == "tool_result" for b in blocks]
        if are_results != sorted(are_results, reverse=True):
            yield f"{index}: tool_result after something else"
        if index == 0 and any(are_results):
            yield f"{index}: tool_result without tool_use"
        for block in blocks:
            if block["type"] == "tool_result" and block["content"] in ([], None):
                yield f"{index}: empty tool_result"
        return
    following = next_turn[1] if next_turn else []
    answered_ids = [b["tool_use_id"] for b in following if b["type"] == "tool_result"]
    if sorted(call_ids) != sorted(answered_ids):
        yield f"{index}: calls {sorted(call_ids)} answered by {sorted(answered_ids)}"
    shapes = ["thinking" in b["type"] for b in blocks if b["type"] != "text"]
    if blocks and "thinking" in blocks[-1]["type"] and any(shapes):
        yield f"{index}: a thought at the end"


PROVIDERS = [
    Provider("Anthropic, messages", make, request, refuses),
    Provider("Anthropic, standard content", standard(make), request, refuses),
    Provider("Anthropic, dicts", remade(make, as_dicts), request_of_dicts, refuses),
]
