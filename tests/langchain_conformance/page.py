"""The page that says how every behaviour came out: `docs/langchain_conformance.md`."""

import logging
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_conformance.behaviour import BEHAVIOURS, OURS, THEIRS, Behaviour

PAGE = Path(__file__).parents[2] / "docs" / "langchain_conformance.md"
LONGEST = 160
"""Characters of an outcome that are shown."""

for _part in ("settings", "counting", "effect", "summariser", "agent"):
    import_module(f"langchain_conformance.{_part}")


@dataclass(frozen=True)
class Outcome:
    """How one behaviour came out on both sides."""

    theirs: Any
    ours: Any
    same: bool

    @property
    def shown(self) -> tuple[str, str]:
        return _shown(self.theirs), _shown(self.ours)


@cache
def outcome(behaviour: Behaviour) -> Outcome:
    """Run a behaviour on both sides, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = behaviour.observe(THEIRS)
        ours = behaviour.observe(OURS)
    return Outcome(theirs, ours, behaviour.same(theirs, ours))


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return "`` " + text.replace("|", "\\|") + " ``" if text else "nothing"


def _since(behaviour: Behaviour) -> str:
    return f"; LangChain does so, too, from {behaviour.until} on" if behaviour.until else ""


def page() -> str:
    """The whole page."""
    outcomes = [(behaviour, outcome(behaviour)) for behaviour in BEHAVIOURS]
    stated = sum(bool(behaviour.differs) for behaviour, _ in outcomes)
    same_count = len(outcomes) - stated
    lines = [
        "# The same as LangChain's middleware, and where it is not",
        "",
        "`conspectus.langchain.SummarizationMiddleware` takes the place of",
        f"`langchain.agents.middleware.SummarizationMiddleware` ({version('langchain')}).",
        "This page is written by a test, which runs each public behaviour on both classes: "
        "`tests/test_langchain_conformance.py`",
        "fails when something comes out differently that is not stated here, when a stated",
        "difference is gone, and when this page is not what it writes. `make conformance` writes "
        "it anew. `make versions` runs the same with the lowest and the newest versions of "
        "LangChain, LangGraph and Deep Agents that are admitted; where LangChain has changed "
        "meanwhile, the line says so.",
        "",
        f"**{len(outcomes)} behaviours: {same_count} the same, {stated} different for a "
        "stated reason.** An error is the same when ours can be caught as theirs is, and says what "
        "theirs says in its first sentence; ours then goes on to show the right form.",
        "",
        "No archive is given in any of these runs, and nothing beyond LangChain's own parameters, "
        "unless a line says so. Where a line shows what a summary says, ours has `notes=False`, "
        "with which the summariser's text stands alone; our first and last line are left out.",
    ]
    for section in dict.fromkeys(behaviour.section for behaviour in BEHAVIOURS):
        rows = [
            (behaviour, result) for behaviour, result in outcomes if behaviour.section == section
        ]
        lines += ["", f"## {section}"]
        same = [
            f"| {behaviour.name} | {result.shown[0]} |"
            for behaviour, result in rows
            if not behaviour.differs
        ]
        if same:
            lines += ["", "| the same | both |", "|---|---|", *same]
        different = [
            f"| {behaviour.name} | {result.shown[0]} | {result.shown[1]} "
            f"| {behaviour.differs}{_since(behaviour)} |"
            for behaviour, result in rows
            if behaviour.differs
        ]
        if different:
            lines += [
                "",
                "| different | LangChain | Conspectus | why |",
                "|---|---|---|---|",
                *different,
            ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    logging.disable()
    not_as_stated = [
        behaviour for behaviour in BEHAVIOURS if outcome(behaviour).same == behaviour.must_differ
    ]
    PAGE.write_text(page(), encoding="utf-8")
    for behaviour in not_as_stated:
        theirs, ours = outcome(behaviour).shown
        print(
            f"{behaviour.section}: {behaviour.name}\n  LangChain   {theirs}\n  Conspectus  {ours}"
        )
    print(f"{PAGE}: {len(BEHAVIOURS)} behaviours, {len(not_as_stated)} not as stated")
    sys.exit(bool(not_as_stated))


if __name__ == "__main__":
    main()
