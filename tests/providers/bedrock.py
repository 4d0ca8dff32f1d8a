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
    inner = maker.choose(
        {"text": maker.text(), "signature": maker.id("sig_", 30)},
        {"redacted_content": maker.id("enc_", 20) * 20},
    )
    return [{"type": "reasoning_content", "reasoning_content": inner}] if maker.happens(0.6) else []


def make(maker: Maker) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    maker.begin({"type": "image", "source": source})
    for _ in range(maker.chance.randint(0, 4)):
        uses = [
            {"type": "tool_use", "id": maker.id("tooluse_", 12), "name": "edit", "input": args}
            for args in [maker.args() for _ in maker.some_of()]
        ]
        words = [{"type": "text", "text": maker.text()}] if maker.happens(0.4) else []
        maker.say(_answer([*_thoughts(maker), *words, *uses]))
        _results(maker, uses)
        maker.ask()
    maker.say(_answer([*_thoughts(maker), {"type": "text", "text": maker.text()}]))


def _results(maker: Maker, uses: list[dict[str, Any]]) -> None:
    """Results as messages, or as blocks in the user's name, in Bedrock's own form or not."""
    form = maker.choose("messages", "messages", "own", "typed")
    blocks: list[Any] = []
    for use in maker.shuffled(uses):
        if form == "messages":
            content = maker.choose(maker.text(), [{"type": "json", "json": maker.args()}])
            maker.say(ToolMessage(content, tool_call_id=use["id"]))
        elif form == "own":
            inner = {"toolUseId": use["id"], "content": [{"text": maker.text()}]}
            blocks.append({"toolResult": {**inner, "status": "success"}})
        else:
            text = [{"type": "text", "text": maker.text()}]
            blocks.append({"type": "tool_result", "tool_use_id": use["id"], "content": text})
    if blocks:
        words = [{"type": "text", "text": maker.text()}] if maker.happens(0.5) else []
        maker.say(HumanMessage([*blocks, *words]))


def _answer(blocks: list[Any]) -> AIMessage:
    return using(blocks, {"model_provider": "bedrock_converse"})


def request(messages: Sequence[Any]) -> list[Any]:
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    rows, _ = _messages_to_bedrock(list(messages), model_id=model, provider="anthropic")
    return rows


def kinds_of(row: Any) -> tuple[str, ...]:
    return (row["role"], *(next(iter(block)) for block in row["content"]))


def refuses(rows: list[Any], whole: list[Any]) -> list[str]:
    faults: list[str] = []
    originals = {dumped(block) for row in whole for block in row["content"]}
    waiting: list[str] = []
    for index, row in enumerate(rows):
        blocks = row["content"]
        role = row["role"]
        if role != ("user", "assistant")[index % 2]:
            faults.append(f"{index}: roles do not alternate")
        if not blocks:
            faults.append(f"{index}: empty")
        answered_ids = [b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b]
        if sorted(answered_ids) != sorted(waiting):
            faults.append(f"{index}: calls {sorted(waiting)} answered by {sorted(answered_ids)}")
        waiting = [b["toolUse"]["toolUseId"] for b in blocks if "toolUse" in b]
        if role == "user" and waiting:
            faults.append(f"{index}: a user uses a tool")
        for block_index, block in enumerate(blocks):
            if "reasoningContent" in block:
                if dumped(block) not in originals:
                    faults.append(f"{index}: reasoning was changed")
                if block_index:
                    faults.append(f"{index}: reasoning does not stand first")
            if "toolUse" in block and not isinstance(block["toolUse"]["input"], dict):
                faults.append(f"{index}: input is no object")
            if "text" in block and not block["text"].strip():
                faults.append(f"{index}: blank text")
        if role == "assistant" and kinds_of(row) not in map(kinds_of, whole):
            faults.append(f"{index}: kinds of blocks were changed")
    if waiting:
        faults.append("the last calls have no result")
    return faults


PROVIDERS = [
    Provider("Bedrock, messages", make, request, refuses),
    Provider("Bedrock, standard content", standard(make), request, refuses),
]
