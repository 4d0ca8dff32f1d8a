"""A made-up agent thread of any length: varied, valid, and the same every time.

Tool results of all sizes, parallel calls, prose in five scripts, code, logs, JSON, identifiers that
never come again, files that come again often, and now and then a rule or a decision.
"""

from __future__ import annotations

import json
import random
from typing import Any

Message = dict[str, Any]

SYSTEM = "You are an engineer on call for a shop. Work step by step and report what you find."
RULE = "Please never edit anything under generated/ by hand, whatever a tool suggests."
"""The first rule of every thread; it must hold to the end."""

RULES = (
    "From now on keep every function below 40 lines.",
    "Always run the tests of the module before you report it as done.",
    "Do not restart the payment service without asking me first.",
    "今后请务必用中文写提交说明。",
    "Nunca borres un registro de auditoría.",
    "必ず変更前にバックアップを取ってください。",
)
ASKS = (
    "The nightly job failed again, run {id}. Find out why and fix it in {file}.",
    "Customers report a wrong total for order {id}; have a look at {file}, please.",
    "订单 {id} 的金额不对，请检查 {file} 并说明原因。",
    "Bitte prüfe, warum der Import {id} in {file} so lange dauert.",
    "Проверь, почему отчёт {id} пустой, начни с {file}.",
    "注文 {id} の配送状況が更新されません。{file} を確認してください。",
    "Why does {file} log a warning for session {id} every ten minutes?",
)
THOUGHTS = (
    "I look at {file} first, since run {id} ended there.",
    "The value for {id} comes from {file}; I compare it with the log.",
    "I decided to cache the lookup in {file} because it is read for every row.",
    "{file} 里的参数 {id} 没有传下去，我先看调用处。",
    "That explains {id}: {file} rounds before it adds. I check the callers.",
)
TOOLS = ("read_file", "run_shell", "search", "query_orders")
LINES = (
    "2025-03-{day:02} 04:{day:02}:17 INFO  worker {id} took {n} ms for {file}",
    "2025-03-{day:02} 04:{day:02}:18 WARN  retry {n} of job {id}: connection reset by peer",
    "ValueError: cannot convert {id!r} to a price in {file}, line {n}",
    "    total_{n} = add(total, price_of(row['{id}']), places={day})",
    "def check_{n}(row: Row) -> bool:  # see {id}",
    '{{"order": "{id}", "items": {n}, "state": "shipped", "file": "{file}"}}',
    "| {id} | {n} | {day} | 已发货 | отправлено | 発送済み |",
)
SIZES = (1, 2, 4, 8, 8, 16, 30, 60)
"""Lines of tool results; one in a hundred is eight times as long."""


def made_thread(count: int, seed: int = 7) -> list[Message]:
    """Make a thread of exactly `count` messages, of which the last is the user's.

    Args:
        count: number of messages; at least 4.
        seed: another one gives another thread.
    """
    maker = _Maker(random.Random(seed))
    out: list[Message] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"{RULE} {maker.text(ASKS)}"},
    ]
    while len(out) < count:
        out += maker.turn()
    del out[count - 1 :]
    while out[-1]["role"] == "tool" or out[-1].get("tool_calls"):
        out.pop()  # an exchange that would be cut in two gives way to plain talk
    while len(out) < count - 1:
        out.append({"role": "assistant", "content": maker.text(THOUGHTS)})
    return [*out, {"role": "user", "content": maker.text(ASKS)}]


class _Maker:
    """A maker of the parts of one thread."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.calls = 0

    def turn(self) -> list[Message]:
        """Make a request, a few steps with tools, and a report."""
        ask = self.text(ASKS)
        if self.chance.random() < 0.1:
            ask += " " + self.chance.choice(RULES)
        out: list[Message] = [{"role": "user", "content": ask}]
        for _ in range(self.chance.randint(1, 6)):
            out += self.step()
        return [*out, {"role": "assistant", "content": self.text(THOUGHTS)}]

    def step(self) -> list[Message]:
        """Make one to three calls side by side, with their results."""
        calls = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            self.calls += 1
            given = {"path": self.file(), "pattern": self.id(), "limit": self.chance.randint(1, 99)}
            function = {"name": self.chance.choice(TOOLS), "arguments": json.dumps(given)}
            calls.append({"id": f"call_{self.calls}", "type": "function", "function": function})
        out: list[Message] = [
            {"role": "assistant", "content": self.text(THOUGHTS), "tool_calls": calls}
        ]
        for call in calls:
            lines = self.chance.choice(SIZES) * (8 if self.chance.random() < 0.01 else 1)
            result = "\n".join(self.text(LINES) for _ in range(lines))
            out.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return out

    def text(self, forms: tuple[str, ...]) -> str:
        """Fill in one of the forms."""
        return self.chance.choice(forms).format(
            id=self.id(),
            file=self.file(),
            n=self.chance.randint(1, 9999),
            day=self.chance.randint(1, 28),
        )

    def id(self) -> str:
        """Make an identifier that hardly comes twice."""
        return f"{self.chance.choice(('ord', 'run', 'job'))}-{self.chance.getrandbits(32):08x}"

    def file(self) -> str:
        """Name one of some four hundred files."""
        folder = self.chance.choice(("billing", "orders", "stock", "mail"))
        return f"src/{folder}/part_{self.chance.randint(1, 99)}.py"
