"""A behaviour, the two sides that show it, and what counts as the same."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware as LangChains
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from packaging.version import Version

from conspectus.langchain import SummarizationMiddleware as Ours
from scripted_models import ScriptedChatModel


@dataclass(frozen=True)
class Raised:
    """An error: what it can be caught as, and its first sentence."""

    kinds: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.kinds[0] if self.kinds else 'Exception'}: {self.text}"


@dataclass(frozen=True)
class Side:
    """One of the two classes."""

    cls: Any  # the class
    model: type[ScriptedChatModel] = ScriptedChatModel  # of its model
    # settings with which the summariser's text stands alone in the summary
    text_alone: Mapping[str, Any] = field(default_factory=dict)

    def make(self, model: Any = None, **settings: Any) -> Any:
        """An instance; without `model`, one whose summaries say the same each time."""
        return self.cls(writer() if model is None else model, **settings)

    def step(self, messages: Sequence[AnyMessage], model: Any = None, **settings: Any) -> Any:
        """The update after one step by hand."""
        return self.make(model, **settings).before_model({"messages": list(messages)}, Runtime())


THEIRS = Side(LangChains)
OURS = Side(Ours, text_alone={"notes": False})

SUMMARY = "- the module was looked at"


def writer(limit: int | None = None, **options: Any) -> ScriptedChatModel:
    """A model that writes summaries; with `limit`, its profile says so."""
    profile = {"max_input_tokens": limit} if limit is not None else None
    return ScriptedChatModel(answers=lambda _: SUMMARY, profile=profile, **options)


def ten_tokens_each(messages: Sequence[Any]) -> int:
    """Ten tokens a message."""
    return 10 * len(list(messages))


def talk(count: int) -> list[AnyMessage]:
    """Questions and answers in turn, the newest of them a question."""
    return [
        HumanMessage(f"What does part {n} do?", id=f"m{n}")
        if (count - n) % 2
        else AIMessage(f"Part {n} reads.", id=f"m{n}")
        for n in range(count)
    ]


def work(steps: int) -> list[AnyMessage]:
    """One request, then calls of a tool with their results."""
    messages: list[AnyMessage] = [HumanMessage("Look at every part.", id="ask")]
    for n in range(steps):
        call = {"name": "look", "args": {"part": n}, "id": f"c{n}"}
        messages.append(AIMessage("", tool_calls=[call], id=f"a{n}"))
        messages.append(ToolMessage(f"part {n} reads", tool_call_id=f"c{n}", id=f"t{n}"))
    return [*messages, HumanMessage("Go on.", id="more")]


def kept_ids(update: Any) -> Any:
    """Ids of what an update keeps; None for no update."""
    if update is None:
        return None
    summary_mark = "lc_source"
    return [m.id for m in update["messages"][1:] if summary_mark not in m.additional_kwargs]


def count_kept(update: Any) -> Any:
    """How many messages an update keeps; None for no update."""
    return None if update is None else len(update["messages"]) - 2


def first_step(side: Side, longest: int = 30, model: Any = None, **settings: Any) -> int | None:
    """The length of the first history that is summarised; None if none up to `longest` is."""
    settings.setdefault("keep", ("messages", 2))
    for count in range(1, longest + 1):
        if side.step(talk(count), model, **settings) is not None:
            return count
    return None


def result_or_error(action: Callable[[], Any]) -> Any:
    """What an action returns or raises."""
    try:
        return action()
    except Exception as error:
        kinds = [k.__name__ for k in (ValueError, TypeError, KeyError) if isinstance(error, k)]
        return Raised(tuple(kinds), _sentence(str(error)))


def build_outcome(settings: dict[str, Any], model: Any = None) -> Callable[[Side], Any]:
    """Builds one: `accepted`, or the error."""

    def observe(side: Side) -> Any:
        result = result_or_error(lambda: side.make(model() if model else None, **settings))
        return result if isinstance(result, Raised) else "accepted"

    return observe


@contextmanager
def warnings_into(into: list[str]) -> Iterator[None]:
    """Collects warnings with the file that they point to."""
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        yield
    for warning in caught_warnings:
        shown_file = "tests" if "langchain_conformance" in warning.filename else warning.filename
        into.append(
            f"{warning.category.__name__} in {shown_file}: {_sentence(str(warning.message))}"
        )


def _sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"(?<=[a-z\d)'])\.(?:\s|$)", " ".join(text.split()), maxsplit=1)[0]


@dataclass(frozen=True)
class Behaviour:
    """One public behaviour."""

    section: str  # where it stands on the page
    name: str  # what is looked at
    # runs it on one side, and returns what came out as plain data
    observe: Callable[[Side], Any] = field(compare=False)
    differs: str = ""  # why ours differs, and must; empty for the same
    # the version of LangChain from which on it does as ours does; empty for none so far
    until: str = ""

    @property
    def must_differ(self) -> bool:
        """Whether it must come out differently with the LangChain that is installed."""
        reason_is_gone = self.until and Version(version("langchain")) >= Version(self.until)
        return bool(self.differs) and not reason_is_gone

    def same(self, theirs: Any, ours: Any) -> bool:
        """Whether what came out is the same. Our error may say more than theirs, never less."""
        if isinstance(theirs, Raised) and isinstance(ours, Raised):
            return set(theirs.kinds) <= set(ours.kinds) and theirs.text in ours.text
        return bool(theirs == ours)


BEHAVIOURS: list[Behaviour] = []


def add(
    section: str, name: str, observe: Callable[[Side], Any], differs: str = "", until: str = ""
) -> None:
    """Put a behaviour on the list."""
    assert all(
        behaviour.name != name or behaviour.section != section for behaviour in BEHAVIOURS
    ), name
    BEHAVIOURS.append(Behaviour(section, name, observe, differs, until))


def behaviour(
    section: str, name: str, differs: str = "", until: str = ""
) -> Callable[[Callable[[Side], Any]], Callable[[Side], Any]]:
    """`add` for a function that takes more than a line."""

    def put(observe: Callable[[Side], Any]) -> Callable[[Side], Any]:
        add(section, name, observe, differs, until)
        return observe

    return put
