"""The endpoint before many short conversations: each is compacted once and never comes again."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fault_soak import megabytes
from starlette.testclient import TestClient
from tables import FaultServer, Row

from conspectus_serve import load_settings, make_app

TURNS = 10  # of a conversation, of some 3,000 tokens
WINDOW = 2_000
KEY = {"authorization": "Bearer k"}


def history(number: int) -> list[dict[str, Any]]:
    """Return a conversation that has no message in common with another one."""
    draw = random.Random(number)
    roles = ("user", "assistant") * TURNS
    return [
        {
            "role": role,
            "content": f"{number} {at} " + " ".join(str(draw.random()) for _ in range(20)),
        }
        for at, role in enumerate(roles)
    ] + [{"role": "user", "content": f"Go on with {number}."}]


def rows(conversations: int) -> Iterator[Row]:
    """Send them one after another; compare the memory at the end with that at half time."""
    compacted = 0
    half = 0.0
    end = 0.0
    with tempfile.TemporaryDirectory() as folder, FaultServer(lambda _: "fine") as upstream:
        where = str(Path(folder) / "a.db")
        given = {"upstream": upstream.openai_url, "archive": where, "window": WINDOW}
        app = make_app(*load_settings(given=given))
        with TestClient(app, "http://127.0.0.1") as client:
            for number in range(conversations):
                body = {"model": "gpt-4o", "messages": history(number)}
                answer = client.post("/v1/chat/completions", json=body, headers=KEY)
                compacted += answer.headers.get("x-conspectus-compacted") == "true"
                upstream.requests.clear()
                if number + 1 == conversations // 2:
                    half = megabytes()
            end = megabytes()
    lost = conversations - compacted
    yield Row(f"endpoint, {conversations:,} conversations: not compacted", lost, 0)
    asked = 1.05 if conversations >= 2_000 else None
    yield Row("endpoint: memory at the end, at half time = 1", end / half, asked,
              detail=f"{half:.0f} and {end:.0f} MB")  # fmt: skip
