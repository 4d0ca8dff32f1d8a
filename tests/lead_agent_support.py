"""Lead agents for tests: a configuration in a folder, and the offline model with a script."""

import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from lead_agent import LeadAgent
from lead_agent.offline import OfflineModel
from scripted_models import RecordedCall

CONFIG = """
lead_agent:
  checkpointer: '{checkpointer}'
  sandbox: {{shell: {shell}, seconds: 2, output: 2000}}
  title: {{by: {title}}}
summarization:
  enabled: {enabled}
  trigger: {{type: messages, value: {trigger}}}
  keep: {{type: messages, value: 4}}
"""


class Model(OfflineModel):
    """The offline model; `script` takes its place for a step where it returns something."""

    script: Any = None
    calls: list[RecordedCall] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> Any:
        self.calls.append(RecordedCall(tuple(messages), options=options))
        return super()._generate(messages, *rest, **options)

    def acted(self, messages: list[BaseMessage], tools: Sequence[str]) -> AIMessage:
        answer = self.script(messages) if self.script else None
        if isinstance(answer, BaseException):
            raise answer
        return answer or super().acted(messages, tools)


def model(kind: type[Model] = Model, **more: Any) -> Model:
    """A model with a window of 6,000 tokens."""
    return kind(profile={"max_input_tokens": 6_000}, **more)


def configured(folder: Path, **changed: Any) -> Path:
    """A `config.yaml` in a folder."""
    given: dict[str, Any] = {
        "checkpointer": "sqlite:///data/checkpoints.sqlite",
        "shell": "false",
        "title": "model",
        "enabled": "true",
        "trigger": 200,
        **changed,
    }
    file = folder / "config.yaml"
    file.write_text(textwrap.dedent(CONFIG).format(**given), encoding="utf-8")
    return file


def opened(folder: Path, own: Model | None = None, **changed: Any) -> LeadAgent:
    """An agent in a folder; opened again, it is what a new process would make."""
    return LeadAgent(configured(folder, **changed), model=own or model())


def sent(own: Any) -> list[Any]:
    """The newest request with tools."""
    return next(list(c.messages) for c in reversed(own.calls) if c.options.get("tools"))


class Held:
    """Keeps a model in the midst of its answer until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, messages: list[BaseMessage]) -> None:
        self.begun.set()
        assert self.go_on.wait(60)


def beside(work: Callable[[], Any]) -> threading.Thread:
    """Some work in a thread of its own."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread
