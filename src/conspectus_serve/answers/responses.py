"""Read answers of OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conspectus_serve.answers.events import data_of, written
from conspectus_serve.answers.reading import AnswerReader, Lookup, LookupResult

BEGINS = ("response.created", "response.in_progress", "response.queued")
ENDS = ("response.completed", "response.incomplete", "response.failed")
"""Types of events that hold the whole response, at its beginning and at its end."""


DONE_THERE = frozenset(
    f"{name}_call"
    for name in ("web_search", "file_search", "code_interpreter", "image_generation", "mcp")
)
"""Types of calls that the upstream carries out itself; others wait for the client."""


class ResponsesAnswer(AnswerReader):
    """Read one answer of Responses.

    Args:
        tool: name of the endpoint's own tool.
        stored: the upstream keeps its responses and knows their items by id.
    """

    place_field = "output_index"

    def __init__(self, tool: str, *, stored: bool = True) -> None:
        super().__init__(tool)
        self._stored = stored
        self._frame: dict[str, Any] = {}
        self._number = 0

    def _begin(self) -> None:
        super()._begin()
        self._last = {}
        self._kind = ""

    @property
    def asks(self) -> Sequence[Lookup]:
        calls = [one for one in self._blocks.values() if _is_clients(one)]
        answerable = all(self._is_ours(one) and one.get("call_id") for one in calls)
        if self._last.get("status") != "completed" or not answerable:
            return []
        return [Lookup(str(one["call_id"]), str(one.get("arguments"))) for one in calls]

    def event(self, raw: bytes) -> list[bytes]:
        data = data_of(raw)
        kind = data.get("type") if isinstance(data, dict) else None
        if kind in BEGINS and self._round:
            return []
        if kind in BEGINS:
            data["response"] = self._own(data["response"])
            return [self._numbered(data)]
        if kind in ENDS:
            self._whole(data["response"])
            self._kind = str(kind)
            return []
        if not isinstance(data, dict) or kind is None:
            return [raw]
        if "output_index" not in data:
            return [self._numbered(data)]
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._blocks[data["output_index"]] = data["item"]
        return [*map(self._numbered, self._shown(data))]

    def _numbered(self, data: dict[str, Any]) -> bytes:
        made = {**data, "sequence_number": self._number}
        self._number += 1
        return written(made)

    def _own(self, response: Mapping[str, Any]) -> dict[str, Any]:
        """Return a response with the id of the first one, without our tool."""
        names = ("id", "created_at")
        self._frame = self._frame or {key: response[key] for key in names if key in response}
        made = {**response, **self._frame}
        if isinstance(made.get("tools"), list):
            made["tools"] = [one for one in made["tools"] if one.get("name") != self._tool]
        return made

    def whole(self, body: Mapping[str, Any]) -> None:
        self._own(body)
        self._whole(body)

    def _whole(self, response: Mapping[str, Any]) -> None:
        self._last = dict(response)
        self._blocks = dict(enumerate(response["output"]))
        self._usage = response.get("usage")

    def exchange(self, found: Sequence[LookupResult]) -> list[dict[str, Any]]:
        results = [
            {"type": "function_call_output", "call_id": call.id, "output": one.text}
            for call, one in zip(self.asks, found, strict=True)
        ]
        said = [made for one in self._blocks.values() for made in self._sent_back(one)]
        self._next()
        return [*said, *results]

    def _sent_back(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """Return an item in the form that the upstream accepts again."""
        if self._stored:
            return [item]
        if item.get("type") == "reasoning" and not item.get("encrypted_content"):
            return []
        return [{key: value for key, value in item.items() if key != "id"}]

    def end(self) -> list[bytes]:
        made = [*map(self._numbered, self._released())]
        if self._kind:
            made.append(self._numbered({"type": self._kind, "response": self.body()}))
        return made

    def body(self) -> dict[str, Any]:
        made = self._own(self._last)
        made["output"] = [*self._seen, *self._visible()]
        if total := self._total():
            made["usage"] = total
        return made

    def failed(self, said: Any) -> bytes:
        error = said.get("error") if isinstance(said, Mapping) else None
        error = error if isinstance(error, Mapping) else {}
        text = error.get("message") or "the upstream has refused to go on"
        event = {"type": "error", "code": error.get("code"), "message": text, "param": None}
        return self._numbered(event)


def _is_clients(item: Mapping[str, Any]) -> bool:
    """Return whether an item waits for the client or the endpoint."""
    kind = str(item.get("type"))
    return kind == "mcp_approval_request" or (kind.endswith("_call") and kind not in DONE_THERE)
