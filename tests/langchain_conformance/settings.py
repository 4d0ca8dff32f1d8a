"""Everything that can be given when the middleware is built."""

import inspect
from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from langchain_conformance.behaviour import (
    LangChains,
    Side,
    add,
    behaviour,
    build_outcome,
    count_kept,
    first_step,
    kept_ids,
    talk,
    ten_tokens_each,
    warnings_into,
    writer,
)

TRIGGER = "Trigger"
KEEP = "Keep"
STRICT = (
    "a number of tokens or messages is a whole number in both forms, as LangChain's own dict form "
    "has it"
)
CLEAR = "a `ValueError` that shows the right form"

# Trigger: when is a growing history summarised first?

FORMS: dict[str, tuple[Any, int | None]] = {
    '("messages", 7)': (("messages", 7), None),
    '("tokens", 70), ten tokens a message': (("tokens", 70), None),
    '("fraction", 0.5) of 140 tokens': (("fraction", 0.5), 140),
    '("fraction", 0.33) of 140 tokens, rounded down': (("fraction", 0.33), 140),
    '{"tokens": 60, "messages": 9}, both': ({"tokens": 60, "messages": 9}, None),
    '[("tokens", 120), ("messages", 9)], either': ([("tokens", 120), ("messages", 9)], None),
    '[{"tokens": 120, "messages": 3}, {"tokens": 60, "messages": 8}]': (
        [{"tokens": 120, "messages": 3}, {"tokens": 60, "messages": 8}],
        None,
    ),
    "None": (None, None),
    "[], an empty list": ([], None),
}
for name, (setting, limit) in FORMS.items():
    model = None if limit is None else writer(limit)
    add(
        TRIGGER,
        f"`{name}`: first history summarised, in messages",
        partial(
            first_step,
            model=model,
            summarizer=writer(),
            trigger=setting,
            token_counter=ten_tokens_each,
        ),
    )

WRONG: dict[str, tuple[Any, str]] = {
    '("words", 7)': (("words", 7), ""),
    '{"words": 7}': ({"words": 7}, ""),
    "{}": ({}, ""),
    '("tokens", 0)': (("tokens", 0), ""),
    '{"messages": -1}': ({"messages": -1}, ""),
    '("fraction", 0)': (("fraction", 0), ""),
    '{"tokens": True}': ({"tokens": True}, ""),
    '("tokens", 1.5)': (("tokens", 1.5), STRICT),
    '("tokens", True)': (("tokens", True), STRICT),
    '("tokens", "70")': (("tokens", "70"), f"{CLEAR}, instead of Python's own"),
    '("tokens",)': (("tokens",), f"{CLEAR}, instead of Python's own"),
    "7": (7, CLEAR),
    '"tokens"': ("tokens", CLEAR),
    "[7]": ([7], CLEAR),
}
for name, (setting, why) in WRONG.items():
    add(TRIGGER, f"`{name}`", build_outcome({"trigger": setting}, lambda: writer(1000)), why)


@behaviour(TRIGGER, "a list that its owner changes afterwards")
def _(side: Side) -> Any:
    trigger: list[Any] = [{"messages": 9}]
    middleware = side.make(trigger=trigger, keep=("messages", 2))
    trigger[0]["messages"] = 1
    trigger.append(("messages", 1))
    return middleware.trigger, middleware.before_model({"messages": talk(5)}, None) is None


add(
    KEEP,
    "nothing said: messages kept of 40",
    lambda side: count_kept(side.step(talk(40), trigger=("messages", 30))),
)

for name, setting, why in (
    ('("words", 7)', ("words", 7), ""),
    ('("tokens", 0)', ("tokens", 0), ""),
    ('("messages", -1)', ("messages", -1), ""),
    ('("fraction", 0)', ("fraction", 0), ""),
    ('("fraction", 1.01)', ("fraction", 1.01), ""),
    ('("messages", 2.5)', ("messages", 2.5), STRICT),
    ('("messages", True)', ("messages", True), STRICT),
    ('{"messages": 5}', {"messages": 5}, f"{CLEAR}, instead of Python's own"),
    ("5", 5, f"{CLEAR}; `TypeError` would hide it from whoever catches settings that are wrong"),
    ("None", None, "None is the default, 20 messages"),
):
    add(KEEP, f"`{name}`", build_outcome({"keep": setting}, lambda: writer(1000)), why)


@behaviour(
    KEEP,
    "`keep` as large as the trigger: warnings when built",
    "such a setting asks for a summary at every step; LangChain does that without a word",
)
def _(side: Side) -> Any:
    warnings_told: list[str] = []
    with warnings_into(warnings_told):
        side.make(trigger=("messages", 10), keep=("messages", 10))
    return warnings_told


OLD = "Deprecated names"
for name, settings in {
    "`max_tokens_before_summary=70`": {"max_tokens_before_summary": 70},
    "`max_tokens_before_summary=70` beside a trigger": {
        "max_tokens_before_summary": 70,
        "trigger": ("messages", 32),
    },
    "`messages_to_keep=3`": {"messages_to_keep": 3, "trigger": ("messages", 9)},
    "both": {"messages_to_keep": 3, "max_tokens_before_summary": 70},
}.items():

    def observe(side: Side, settings: Any = settings) -> Any:
        warnings_told: list[str] = []
        with warnings_into(warnings_told):
            middleware = side.make(token_counter=ten_tokens_each, **settings)
        return middleware.trigger, middleware.keep, warnings_told

    add(OLD, name, observe)


CALL = "Parameters and attributes"


@behaviour(CALL, "every parameter of LangChain's is there, in the same way")
def _(side: Side) -> Any:
    their_parameters = inspect.signature(LangChains.__init__).parameters
    our_parameters = inspect.signature(side.cls.__init__).parameters
    return [
        (name, str(our_parameters[name].kind))
        for name in their_parameters
        if name in our_parameters
    ]


add(
    CALL,
    "a parameter that does not exist",
    build_outcome({"tirgger": ("messages", 5)}),
    "LangChain takes any name and ignores it; a slip would switch summaries off unnoticed",
)


@behaviour(CALL, "`model`, `keep`, `trigger` can be read back")
def _(side: Side) -> Any:
    model = writer(1000)
    middleware = side.make(model, trigger=[("tokens", 50), {"messages": 9}], keep=("fraction", 0.5))
    return middleware.model is model, middleware.trigger, middleware.keep


LATER: dict[str, tuple[Any, str]] = {
    "keep": (("messages", 5), ""),
    "token_counter": (lambda messages: 0, ""),
    "trigger": (
        ("messages", 40),
        "what is set later counts from the next step on; LangChain goes on with the trigger that "
        "it was built with",
    ),
    "trim_tokens_to_summarize": (None, ""),
}
for name, (value, why) in LATER.items():

    def later(side: Side, name: str = name, value: Any = value) -> Any:
        middleware = side.make(
            trigger=("tokens", 30), keep=("messages", 3), token_counter=ten_tokens_each
        )
        kept_before = kept_ids(middleware.before_model({"messages": talk(8)}, Runtime()))
        setattr(middleware, name, value)
        return kept_before, kept_ids(middleware.before_model({"messages": talk(8)}, Runtime()))

    add(CALL, f"`{name}` is set later: messages kept before and after", later, why)
