"""Real clients of both protocols on one fault server, and a loop for them."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from fault_server import FaultServer

PROTOCOLS = ("openai", "anthropic")


@dataclass
class Wires:
    """A server, and the clients that talk to it; made once, as making clients takes long."""

    server: FaultServer
    runner: asyncio.Runner
    _models: dict[tuple[str, str, bool], BaseChatModel] = field(default_factory=dict)

    def model(self, protocol: str, name: str = "m", streaming: bool = False) -> Any:
        """A client that tries nothing again by itself."""
        key = (protocol, name, streaming)
        if key not in self._models:
            more: Any = {"api_key": "none", "max_retries": 0, "streaming": streaming, "profile": {}}
            self._models[key] = (
                ChatOpenAI(model=name, base_url=self.server.openai_url, stream_usage=True, **more)
                if protocol == "openai"
                else ChatAnthropic(
                    model=name, base_url=self.server.anthropic_url, max_tokens=200, **more
                )
            )
        return self._models[key]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """On the one loop that the connections of the clients belong to."""
        return self.runner.run(work)


@contextmanager
def wired() -> Iterator[Wires]:
    """The server and its clients."""
    with FaultServer([]) as server, asyncio.Runner() as runner:
        yield Wires(server, runner)
