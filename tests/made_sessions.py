"""Sessions as Claude Code writes them, made at random, with what was said in them."""

import json
import random
from typing import Any

Row = dict[str, Any]


class Session:
    """Writes the lines of a session, by a seed, and keeps what a reader is to find in them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rows: list[Row] = []
        self.said: list[tuple[str, list[Any]]] = []
        self._leaf: str | None = None
        self._count = 0

    def text(self) -> str:
        """The file."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)

    def ask(self, text: str) -> None:
        """The user says something."""
        self._line("user", {"role": "user", "content": text})
        self.said.append(("user", [{"type": "text", "text": text}]))

    def work(self, calls: int) -> None:
        """The agent thinks, and makes so many calls at once, a line each; then their results."""
        number = self._new()
        message = f"msg_{number}"
        blocks: list[Row] = [
            {"type": "thinking", "thinking": f"thought {number}", "signature": "c2ln"},
            {"type": "text", "text": f"I look at part {number}."},
        ]
        for call in range(calls):
            use = {"id": f"toolu_{number}_{call}", "name": "Bash", "input": {"n": call}}
            blocks.append({"type": "tool_use", **use})
        callers: dict[str, str] = {}
        results: list[Row] = []
        for block in blocks:
            uuid = self._spoken(message, block)
            if block["type"] == "tool_use":
                callers[block["id"]] = uuid
                if self.random.random() < 0.3:  # a result comes before the next call is written
                    results.append(self._result(block["id"], uuid))
        for call_id, uuid in callers.items():
            if call_id not in [result["tool_use_id"] for result in results]:
                results.append(self._result(call_id, uuid))
        self.said.append(("assistant", blocks))
        self.said += [("user", [result]) for result in results]

    def answer(self, text: str) -> None:
        """The agent says something."""
        block = {"type": "text", "text": text}
        self._spoken(f"msg_{self._new()}", block)
        self.said.append(("assistant", [block]))

    def noise(self) -> None:
        """Lines that are no part of the conversation."""
        kind_of_line = self.random.randrange(6)
        if kind_of_line == 0:
            self.rows.append({"type": "summary", "summary": "A title", "leafUuid": "gone"})
        elif kind_of_line == 1:
            self.rows.append({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
        elif kind_of_line == 2:
            self._line("system", None, subtype="informational", content="Hook ran")
        elif kind_of_line == 3:
            message = {"role": "user", "content": "Caveat: local commands"}
            self._line("user", message, isMeta=True)
        elif kind_of_line == 4:
            message_text = {
                "role": "assistant",
                "content": [{"type": "text", "text": "API Error: 529"}],
            }
            self._line(
                "assistant", {"id": f"e{self._new()}", **message_text}, isApiErrorMessage=True
            )
        else:
            self._aside()

    def rewind(self) -> None:
        """The user goes back, after a stretch that no longer counts."""
        leaf = self._leaf
        said_before = len(self.said)
        self.ask(f"Try it another way {self._new()}.")
        self.work(2)
        if self.random.random() < 0.5:
            self.answer("That failed.")
        del self.said[said_before:]
        self._leaf = leaf
        self.ask(f"No, go on {self._new()}.")

    def compact(self) -> None:
        """Claude Code sums up, and goes on from its summary."""
        leaf_before = self._leaf
        self._leaf = None
        self._line(
            "system",
            None,
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=leaf_before,
            compactMetadata={"trigger": "auto", "preTokens": 155_000},
        )
        text = f"This session is being continued from a previous conversation ({self._new()})."
        message = {"role": "user", "content": text}
        self._line("user", message, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def resume(self) -> None:
        """The session goes on in another process, which repeats lines, some of them changed."""
        first = self.random.randrange(len(self.rows))
        session = f"s{self._new()}"
        for row in self.rows[first:]:
            if "uuid" in row:
                copy = {**row, "sessionId": session}
                if self.random.random() < 0.3:
                    copy |= {"parentUuid": self._leaf, "timestamp": self._time()}
                self.rows.append(copy)

    def _aside(self) -> None:
        leaf = self._leaf
        self._leaf = None
        self._line("user", {"role": "user", "content": "Search."}, isSidechain=True)
        message = {"role": "assistant", "content": [{"type": "text", "text": "Found."}]}
        self._line("assistant", {"id": f"a{self._new()}", **message}, isSidechain=True)
        self._leaf = leaf

    def _spoken(self, message: str, block: Row) -> str:
        spoken_message = {"id": message, "role": "assistant", "type": "message", "content": [block]}
        return self._line("assistant", {**spoken_message, "usage": {"input_tokens": self._count}})

    def _result(self, call_id: str, caller: str) -> Row:
        """A result; the next line follows whichever line was written last."""
        block = {"type": "tool_result", "tool_use_id": call_id, "content": f"result of {call_id}"}
        if self.random.random() < 0.5:
            self._leaf = caller
        self._line("user", {"role": "user", "content": [block]}, toolUseResult={"stdout": "x"})
        return block

    def _line(self, row_type: str, message: Row | None, **fields: Any) -> str:
        uuid = f"uuid-{self._new()}"
        row: Row = {
            "parentUuid": self._leaf,
            "isSidechain": False,
            "sessionId": "s",
            "type": row_type,
        }
        row |= {"uuid": uuid, "timestamp": self._time(), **fields}
        if message is not None:
            row["message"] = message
        self.rows.append(row)
        self._leaf = uuid
        return uuid

    def _time(self) -> str:
        number = self._new()
        return f"2026-03-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.123Z"

    def _new(self) -> int:
        self._count += 1
        return self._count


def random_session(seed: int, events: int = 14) -> Session:
    """A session in which all sorts of things have happened."""
    session = Session(seed)
    session.ask("Find the slow query, please.")
    for _ in range(events):
        event = session.random.choices(
            [
                lambda: session.ask(session.random.choice(["continue", "Go on with the tests."])),
                lambda: session.work(session.random.randint(1, 3)),
                lambda: session.answer(f"Done with part {len(session.said)}."),
                session.noise,
                session.rewind,
                session.compact,
                session.resume,
            ],
            [3, 5, 3, 3, 1, 1, 2],
        )[0]
        event()
    session.answer("All is done.")
    return session
