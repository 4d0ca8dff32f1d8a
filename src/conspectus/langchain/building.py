"""Build the parts of the middleware from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from conspectus.core.policy import Arguments, Policy
from conspectus.engine.settings import EngineSettings, window_of
from conspectus.errors import PolicyError
from conspectus.langchain.counting import Counting, meter_for
from conspectus.langchain.graph import KEPT, GraphEngine
from conspectus.langchain.models import model_name
from conspectus.langchain.planner import Planner
from conspectus.langchain.preview import asked_of
from conspectus.langchain.recalling import TurnRecall
from conspectus.langchain.settings import built_model, copied, read_recall, read_summarizer
from conspectus.model.calls import profile_window

FIXED = ("archive", "history", "recall", "recall_tokens", "compact_tool")
"""Settings that states and agents depend on, so that they cannot change."""


@dataclass(frozen=True, slots=True)
class Built:
    """The parts that one set of settings makes.

    Attributes:
        shown: settings that are read back in another form than they were given.
        trigger: the trigger as it was read; `shown` has a copy that its owner may change.
    """

    given: Mapping[str, Any]
    shown: Mapping[str, Any]
    trigger: Any
    planner: Planner
    turn_recall: TurnRecall | None

    def read(self, name: str) -> Any:
        return self.shown[name] if name in self.shown else self.given[name]

    def with_setting(self, name: str, value: Any) -> Built:
        """Build anew with another value of one setting, which must not be in `FIXED`."""
        if name in FIXED:
            raise PolicyError(
                f"{name} cannot change once the middleware is built, as agents and their states go "
                "by it; build the middleware and the agent anew"
            )
        made = built({**self.given, name: value})
        graph, before = made.planner.graph, self.planner.graph
        graph.written, graph.keeps = before.written, before.keeps
        return made


def built(given: Mapping[str, Any]) -> Built:
    """Build the parts from all parameters of `SummarizationMiddleware`, by name."""
    model, trigger = built_model(given["model"]), copied(given["trigger"])
    counting = Counting(given["token_counter"], model)
    # Thresholds and cuts are those that LangChain's users have chosen: nothing is clipped, and
    # nothing more is cut than asked, as long as that fits the window with room to grow.
    policy = Policy.build(
        trigger=None if trigger == [] else trigger,
        keep=given["keep"],
        max_summary_tokens=given["max_summary_tokens"],
        keep_first=True,
        stale_results=given["stale_results"],
    )
    policy = replace(
        policy, keep_base=counting.base, arguments=Arguments.build(given["truncate_args_settings"])
    )
    window, history = given["window"], given["history"]
    known = window if window is not None else profile_window(model)
    if policy.needs_window and known is None:
        raise PolicyError(
            "Model profile information is required to use fractional token limits, and is "
            "unavailable for the specified model: pass window=<its input limit in tokens> or "
            'a model with profile={"max_input_tokens": ...}, or use tokens or messages'
        )
    if history not in ("replace", "preserve"):
        raise PolicyError(f'history must be "replace" or "preserve", not {history!r}')
    recall, recall_tokens = given["recall"], given["recall_tokens"]
    read_recall(recall, recall_tokens)
    settings = EngineSettings.of({**given, "model": model})
    meter = meter_for(given["token_counter"], model)
    engine = replace(
        settings.engine(policy, meter),
        preview=asked_of(given["preview"]),
        sizes=counting.message,
    )
    graph = GraphEngine(
        engine,
        given["tenant"],
        window_of(known, given["reserved_tokens"]),
        model_name(model) if window is None else "",
        keeps=(lambda scope: KEPT) if history == "preserve" else None,
    )
    shown = recall_tokens if recall == "auto" else 0
    planner = Planner(graph, counting, history == "preserve", shown)
    return Built(
        given={**given, "model": model, "trigger": trigger, "archive": engine.archive},
        shown={
            "trigger": copied(trigger),
            "token_counter": counting.whole,
            "summarizer": read_summarizer(given["summarizer"]),
        },
        trigger=trigger,
        planner=planner,
        turn_recall=TurnRecall(planner) if shown else None,
    )
