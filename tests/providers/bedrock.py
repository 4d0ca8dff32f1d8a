"""Bedrock's Converse: signed reasoning before the use of tools, documents, results in any order.

Rules: the reference of the Converse API (`Message`, `ContentBlock`, `ToolResultBlock`,
`ReasoningContentBlock`) and the errors of the API.
"""

from collections.abc import Sequence
from typing import Any

from langchain_aws.chat_models.bedrock_converse import _messages_to_bedrock
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from providers.making import PIXEL, Maker, Provider, dumped, standard, using


def _thoughts(maker: Maker) -> list[Any]:
    inner = maker.one(
        {"text": maker.text(), "signature": maker.id("sig_", 30)},
        {"redacted_content": maker.id("enc_", 20) * 20},
    )
    return [{"type": "reasoning_content", "reasoning_content": inner}] if maker.often(0.6) else []


def make(maker: Maker) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    maker.begin({"type": "image", "source": source})
    for _ in range(maker.chance.randint(0, 4)):
        uses = [
            {"type": "tool_use", "id": maker.id("tooluse_", 12), "name": "edit", "input": args}
            for args in [maker.args() for _ in maker.few()]
        ]
        words = [{"type": "text", "text": maker.text()}] if maker.often(0.4) else []
        maker.say(_answer([*_thoughts(maker), *words, *uses]))
        _results(maker, uses)
        maker.ask()
    maker.say(_answer([*_thoughts(maker), {"type": "text", "text": maker.text()}]))


def _results(maker: Maker, uses: list[dict[str, Any]]) -> None:
    """Results as messages, or as blocks in the user's name, in Bedrock's own form or not."""
    form = maker.one("messages", "messages", "own", "typed")
    blocks: list[Any] = []
    for use in maker.mixed(uses):
        if form == "messages":
            content = maker.one(maker.text(), [{"type": "json", "json": maker.args()}])
            maker.say(ToolMessage(content, tool_call_id=use["id"]))
        elif form == "own":
            inner = {"toolUseId": use["id"], "content": [{"text": maker.text()}]}
            blocks.append({"toolResult": {**inner, "status": "success"}})
        else:
            text = [{"type": "text", "text": maker.text()}]
            blocks.append({"type": "tool_result", "tool_use_id": use["id"], "content": text})
    if blocks:
        words = [{"type": "text", "text": maker.text()}] if maker.often(0.5) else []
        maker.say(HumanMessage([*blocks, *words]))


def _answer(blocks: list[Any]) -> AIMessage:
    return using(blocks, {"model_provider": "bedrock_converse"})


def request(messages: Sequence[Any]) -> list[Any]:
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    made, _ = _messages_to_bedrock(list(messages), model_id=model, provider="anthropic")
    return made


def kinds_of(row: Any) -> tuple[str, ...]:
    return (row["role"], *(next(iter(block)) for block in row["content"]))


def refuses(rows: list[Any], whole: list[Any]) -> list[str]:
    wrong: list[str] = []
    originals = {dumped(block) for row in whole for block in row["content"]}
    waiting: list[str] = []
    for place, row in enumerate(rows):
        blocks = row["content"]
        role = row["role"]
        if role != ("user", "assistant")[place % 2]:
            wrong.append(f"{place}: roles do not alternate")
        if not blocks:
            wrong.append(f"{place}: empty")
        found = [b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b]
        if sorted(found) != sorted(waiting):
            wrong.append(f"{place}: calls {sorted(waiting)} answered by {sorted(found)}")
        waiting = [b["toolUse"]["toolUseId"] for b in blocks if "toolUse" in b]
        if role == "user" and waiting:
            wrong.append(f"{place}: a user uses a tool")
        for at, block in enumerate(blocks):
            if "reasoningContent" in block:
                if dumped(block) not in originals:
                    wrong.append(f"{place}: reasoning was changed")
                if at:
                    wrong.append(f"{place}: reasoning does not stand first")
            if "toolUse" in block and not isinstance(block["toolUse"]["input"], dict):
                wrong.append(f"{place}: input is no object")
            if "text" in block and not block["text"].strip():
                wrong.append(f"{place}: blank text")
        if role == "assistant" and kinds_of(row) not in map(kinds_of, whole):
            wrong.append(f"{place}: kinds of blocks were changed")
    if waiting:
        wrong.append("the last calls have no result")
    return wrong


PROVIDERS = [
    Provider("Bedrock, messages", make, request, refuses),
    Provider("Bedrock, standard content", standard(make), request, refuses),
]
