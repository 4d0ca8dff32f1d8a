"""Join answers of OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import written
from conspectus_serve.answers.joining import Lookup, LookupResult, total, visible

DONE_THERE = frozenset(
    f"{name}_call"
    for name in ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
)
"""Types of calls that the upstream carries out itself; others wait for the client."""


class ResponsesAnswers:
    """Answers of Responses; see `Answers`.

    Args:
        stored: the upstream keeps its responses and knows their items by id.
    """

    def __init__(self, stored: bool = True) -> None:
        self._stored = stored

    def lookups(self, body: Mapping[str, Any], tool: str) -> list[Lookup]:
        calls = [one for one in body["output"] if _is_clients(one)]
        ours = all(one.get("name") == tool and one.get("call_id") for one in calls)
        if not ours or body.get("status") != "completed":
            return []
        return [Lookup(str(one["call_id"]), str(one.get("arguments"))) for one in calls]

    def exchange(
        self, body: Mapping[str, Any], results: Sequence[tuple[Lookup, LookupResult]]
    ) -> list[dict[str, Any]]:
        said = [made for one in body["output"] for made in self._sent_back(one)]
        answers = [
            {"type": "function_call_output", "call_id": call.id, "output": result.text}
            for call, result in results
        ]
        return [*said, *answers]

    def _sent_back(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """Return an item in the form that the upstream accepts again."""
        if self._stored:
            return [item]
        if item.get("type") == "reasoning" and not item.get("encrypted_content"):
            return []
        return [{key: value for key, value in item.items() if key != "id"}]

    def joined(self, bodies: Sequence[Mapping[str, Any]], tool: str) -> dict[str, Any]:
        frame = {key: bodies[0][key] for key in ("id", "created_at") if key in bodies[0]}
        made = {**bodies[-1], **frame}
        if isinstance(made.get("tools"), list):
            made["tools"] = [one for one in made["tools"] if one.get("name") != tool]
        earlier = [one for body in bodies[:-1] for one in visible(body["output"], tool, last=False)]
        made["output"] = [*earlier, *visible(bodies[-1]["output"], tool)]
        if usage := total(bodies):
            made["usage"] = usage
        return made

    def events(self, body: Mapping[str, Any]) -> list[bytes]:
        begun = {**body, "status": "in_progress", "output": [], "usage": None}
        made: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            *(one for place, item in enumerate(body["output"]) for one in _grown(item, place)),
            {"type": f"response.{body.get('status') or 'completed'}", "response": dict(body)},
        ]
        return [written({**one, "sequence_number": number}) for number, one in enumerate(made)]


def _grown(item: Mapping[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """Write an item as its beginning, its parts, and its end."""
    at = {"output_index": place, "item_id": item.get("id")}
    parts = item.get("content") if item.get("type") == "message" else None
    texts = [one for one in parts or () if isinstance(one.get("text"), str)]
    begun = {**item, "content": []} if parts is not None else item
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    for number, part in enumerate(texts):
        inner = {**at, "content_index": number}
        empty, text = {**part, "text": ""}, part["text"]
        yield {"type": "response.content_part.added", **inner, "part": empty}
        yield {"type": "response.output_text.delta", **inner, "delta": text, "logprobs": []}
        yield {"type": "response.output_text.done", **inner, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **inner, "part": part}
    if isinstance(arguments := item.get("arguments"), str):
        name = "response.function_call_arguments"
        yield {"type": f"{name}.delta", **at, "delta": arguments}
        yield {"type": f"{name}.done", **at, "arguments": arguments, "name": item.get("name")}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _is_clients(item: Mapping[str, Any]) -> bool:
    """Return whether an item waits for the client or the endpoint."""
    kind = str(item.get("type"))
    return kind == "mcp_approval_request" or (kind.endswith("_call") and kind not in DONE_THERE)
