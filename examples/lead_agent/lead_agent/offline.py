"""A model without a provider: it does what a few plain words ask, so that all of it can be seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from lead_agent.title import REQUEST

WINDOW = 6_000
"""Its input limit, in tokens: small, so that summaries are soon needed."""

COMMANDS = {
    r"write (?P<path>\S+?):? (?P<content>.+)": "write_file",
    r"read (?P<path>\S+)": "read_file",
    r"list(?: (?P<path>\S+))?": "list_files",
    r"run (?P<command>.+)": "shell",
    r"ask (?P<question>.+)": "ask_clarification",
    r"recall (?P<query>.+)": "recall",
}
HELP = "write FILE TEXT, read FILE, list, ask QUESTION, recall WORDS; run COMMAND with a shell"


class OfflineModel(BaseChatModel):
    """Answers commands by tools, requests for a title or a summary by rules.

    Subclasses say in `acted` what the agent does.
    """

    model_name: str = "gpt-4o"
    """Says which tokenizer to estimate for."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """Tools go along with each request."""
        return self.bind(tools=list(tools), **options)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        tools = [str(getattr(each, "name", "")) for each in options.get("tools", ())]
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages, tools))])

    def answer(self, messages: list[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """A step of the agent if the request has tools, else a title or a summary."""
        text = str(messages[-1].text)
        if tools:
            return self.acted(messages, tools)
        if text.startswith(REQUEST):
            return AIMessage(titled(text))
        return AIMessage(self.summarised(messages))

    def acted(self, messages: list[BaseMessage], tools: Sequence[str]) -> AIMessage:
        """One step of the agent: the tool that the newest message of the user asks for, once."""
        newest, since = newest_turn(messages)
        asked = str(newest.text).strip()
        if since:
            return AIMessage(str(messages[-1].text))
        for pattern, name in COMMANDS.items():
            found = re.fullmatch(pattern, asked, re.DOTALL | re.IGNORECASE)
            if found and name in tools:
                args = {key: value for key, value in found.groupdict().items() if value}
                return calling(name, f"call-{newest.id}", **args)
        return AIMessage(f"I follow a script, and know these words: {HELP}.")

    def summarised(self, messages: list[BaseMessage]) -> str:
        """A summary; the user's words and the calls stand beside it in any case."""
        shown = re.search(r'<message id="([^"]+)"', str(messages[-1].text))
        source = f" [{shown[1]}]" if shown else ""
        return f"## Goal\n- The user has files written and read, one after the other.{source}"


def calling(name: str, call_id: str, **args: Any) -> AIMessage:
    """A message that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id}])


def newest_turn(messages: Sequence[BaseMessage]) -> tuple[BaseMessage, int]:
    """The newest message of the user, and how many came after it."""
    for place in range(len(messages) - 1, -1, -1):
        if isinstance(messages[place], HumanMessage):
            return messages[place], len(messages) - place - 1
    return messages[-1], 0


def titled(text: str) -> str:
    """The first words of what the user said."""
    said = text.partition("User: ")[2].partition("\n\nAgent:")[0]
    return " ".join(said.split()[:6]).rstrip(".,:;!?")


def offline_model() -> OfflineModel:
    """The model that `model: scripted` names."""
    return OfflineModel(profile={"max_input_tokens": WINDOW})
