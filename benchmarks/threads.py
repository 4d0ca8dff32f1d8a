"""Conversations of any length, in a chat's and in an agent's shape, of text that people wrote.

The text is taken from the sources of Python and of the installed packages: paragraphs of code and
of documentation, each of them once. The same installation gives the same conversations.
"""

from __future__ import annotations

import functools
import json
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

Message = dict[str, Any]
_PROSE = re.compile(r"[A-Z][^=(){}\[\]<>|]{80,}[.:!?]")


def _paragraphs() -> Iterator[str]:
    """Read paragraphs of the sources, the standard library's before those of packages."""
    seen = set[int]()
    for folder in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_path(folder)).rglob("*.py")):
            if folder == "stdlib" and "-packages" in str(path):
                continue
            for text in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
                text = text.strip()
                if 60 <= len(text) <= 2_000 and hash(text) not in seen:
                    seen.add(hash(text))
                    yield text


@functools.lru_cache(maxsize=4)
def texts(count: int) -> Sequence[str]:
    """Return paragraphs in an order by chance, always the same.

    Raises:
        ValueError: the installation holds fewer.
    """
    taken = list(islice(_paragraphs(), count))
    if len(taken) < count:
        raise ValueError(f"there are only {len(taken):,} paragraphs, not {count:,}")
    random.Random(7).shuffle(taken)
    return taken


@functools.lru_cache(maxsize=1)
def _prose() -> Sequence[str]:
    return [" ".join(text.split()) for text in texts(20_000) if _PROSE.fullmatch(text)]


def chat(count: int, seed: int = 1) -> list[Message]:
    """Make a talk of so many messages, the user's and the assistant's in turn."""
    draw = random.Random(seed)
    prose = _prose()

    def said(at: int) -> tuple[str, str]:
        if at % 2:
            return "assistant", " ".join(draw.choices(prose, k=4))
        return "user", draw.choice(prose)[:200]

    talk = ((at, *said(at)) for at in range(count))
    return [{"role": who, "content": f"{what} ({at})", "id": f"m{at}"} for at, who, what in talk]


def agent(count: int, seed: int = 1) -> list[Message]:
    """Make an agent's run: one request of the user, then calls of a tool and their results."""
    draw = random.Random(seed)
    pieces = texts(20_000)
    made: list[Message] = [
        {"role": "user", "content": "Read every module. Never push to main.", "id": "m0"}
    ]
    for at in range(1, count, 2):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/part_{at}.py"})}
        calls = [{"id": f"c{at}", "type": "function", "function": call}]
        result = "\n\n".join(draw.choices(pieces, k=draw.randint(1, 6)))
        made += [
            {
                "role": "assistant",
                "content": f"Part {at} is next.",
                "tool_calls": calls,
                "id": f"m{at}",
            },
            {"role": "tool", "tool_call_id": f"c{at}", "content": result, "id": f"m{at + 1}"},
        ]
    return made[:count] if count % 2 else made[: count - 1]


SHAPES = {"chat": chat, "agent": agent}


def objects(messages: Sequence[Message]) -> list[BaseMessage]:
    """Convert to LangChain messages, with their ids; new objects each time."""
    return convert_to_messages(messages)
