"""Describe a configuration in words and numbers."""

from __future__ import annotations

from conspectus._core.choices import names_embedded
from conspectus._core.policy import SUMMARY_SHARE
from conspectus._core.stale import OTHERS, OfTool, StaleResults
from conspectus.compactor.background import Background
from conspectus.config.checks import clause_of
from conspectus.config.schema import SummarizationConfig
from conspectus.config.values import Size

Row = tuple[str, str]  # A heading and its text

FAILURE = {
    "degrade": "the history stays as it is while it fits the window, and the embedded summariser "
    "writes when it does not",
    "keep": "the history stays as it is, and is tried again when it has grown by a tenth",
    "raise": "the step fails with the error",
}
RECALL = {
    "off": "nothing comes back by itself, and the agent has no tool to look things up",
    "tool": "the agent has a tool that finds originals again",
    "auto": "what a user's message needs is put before the model, and the agent has a tool",
}
CACHED = (
    "with the agent's last request and one instruction after it, where its own model summarises "
    "and all that leaves stands there as it is; elsewhere with no more than what leaves"
)
HISTORY = {
    "replace": "the messages in the state are replaced by the summary and what is kept",
    "preserve": "the state keeps every message; the model sees the summary in their place",
}


def meaning(config: SummarizationConfig, window: int | None, known: str) -> list[Row]:
    """Describe the settings row by row, without secrets.

    `window` is that of the answering model, in tokens, or None; `known` says how it is known, or
    why not.
    """
    if not config.enabled:
        rows = [("switch", "off: nothing is summarised; write 'enabled: true' to switch it on")]
        return [(name, config.source.hidden(text)) for name, text in rows + _subagents(config)]
    shown = f"{window:,} tokens, {known}" if window is not None else known
    rows = [
        ("switch", "on"),
        ("window", shown),
        ("when", _when(config, window)),
        ("frees", _frees(config)),
        ("keeps", f"the newest {_size(config.keep, window)}, and always the newest user message"),
        ("reads", _reads(config)),
        ("writes", _writes(config)),
        ("prompt", "our own" if config.summary_prompt is None else "the one in the file"),
        ("summary", _summary(config, window)),
        ("on failure", FAILURE[config.on_failure]),
        ("counts", _counts(config)),
        ("originals", _originals(config)),
        ("recall", _recall(config)),
        ("history", HISTORY[config.history]),
        ("skills", _skills(config)),
    ]
    if config.redact:
        rows.append(("redacts", _redacts(config)))
    if config.stale is not False:
        rows.append(("shortens", _shortens(config)))
    if config.background is not False:
        rows.append(("prepares", _prepares(config)))
    if config.summary_request == "cached":
        rows.append(("asks", CACHED))
    if config.pin is not None:
        rows.append(("pins", f"messages that {config.shown(('pin',))} marks stay in view"))
    return [(name, config.source.hidden(text)) for name, text in rows + _subagents(config)]


def _size(size: Size, window: int | None) -> str:
    if size.type != "fraction" or window is None:
        return str(size)
    return f"{max(1, int(window * size.value)):,} tokens ({size})"


def _when(config: SummarizationConfig, window: int | None) -> str:
    said = []
    for one in config.clauses:
        clause = clause_of(one)
        text = str(one)
        if clause.fraction is not None and window is not None:
            tokens = clause.threshold(window) or 0
            text += f", which is {tokens:,} tokens"
        said.append(f"at {text}")
    least = f"; also when a request does not fit the {window:,} tokens" if window else ""
    return " or ".join(said) + ", whichever comes first" * (len(said) > 1) + least


def _frees(config: SummarizationConfig) -> str:
    if not config.least_gain:
        return "anything: a summary is made whatever it frees"
    return (
        f"at least {config.least_gain:.4g} of the history, or no summary is made, unless a request "
        "does not fit the window"
    )


def _shortens(config: SummarizationConfig) -> str:
    how = StaleResults.build(config.stale) or StaleResults()
    tools = {OTHERS: OfTool()} if how.tools is None else how.tools
    names = ", ".join(_tool(name, own, alone=len(tools) == 1) for name, own in tools.items())
    names = names or "no tool"
    names += f" except {', '.join(sorted(how.exclude))}" if how.exclude else ""
    worth = f"{how.least:,} tokens" if how.least else "enough to reach half of the trigger"
    return (
        f"results of {names} of more than {how.over:,} tokens, but for the newest {how.newest}, "
        f"where that frees {worth}"
    )


def _tool(name: str, own: OfTool, *, alone: bool) -> str:
    differs = [f"of more than {own.over:,} tokens"] if own.over is not None else []
    differs += [f"but for its newest {own.newest}"] if own.newest is not None else []
    called = ("all tools" if alone else "all other tools") if name == OTHERS else name
    return called + (f" ({', '.join(differs)})" if differs else "")


def _prepares(config: SummarizationConfig) -> str:
    share = Background.of(config.ahead) or Background()
    return (
        f"the next summary beside the agent, from {share.prepare:.4g} of the trigger on; it is "
        "swapped in at the trigger, or as soon as it is finished while the messages fit the window"
    )


def _reads(config: SummarizationConfig) -> str:
    trim = config.trim_tokens_to_summarize
    most = (
        f"at most {trim:,} tokens a reading"
        if trim is not None
        else "as much a reading as the summariser's window takes"
    )
    return f"all that leaves, {most}, in as many readings as that takes"


def _writes(config: SummarizationConfig) -> str:
    if names_embedded(config.model_name):
        return "the embedded summariser, which extracts by rules and needs no model"
    first = config.shown(("model_name",)) if config.model_name else "the agent's own model"
    later = [config.shown(("fallback_models", i)) for i in range(len(config.fallback_models))]
    if config.model_name:
        later.append("the agent's own model")
    text = first + "".join(f"; if it fails, {name}" for name in later)
    if config.summarizer_timeout is not None:
        text += f"; {config.summarizer_timeout:g} seconds for each call"
    return text


def _summary(config: SummarizationConfig, window: int | None) -> str:
    if config.max_summary_tokens is not None:
        return f"at most {config.max_summary_tokens:,} tokens"
    if window is None:
        return "at most a third of the window, or of what the trigger waits for"
    most = max(256, (window - config.reserved_tokens) // SUMMARY_SHARE)
    return f"at most {most:,} tokens, a third of the room, or of what the trigger waits for"


def _counts(config: SummarizationConfig) -> str:
    if config.token_counter is None:
        return "trigger and keep by LangChain's approximation; the window by our own estimate"
    return f"all by {config.shown(('token_counter',))}"


def _originals(config: SummarizationConfig) -> str:
    if config.archive is None:
        return "the graph's own store; without one nothing can be recalled"
    if config.archive in ("memory:", ":memory:"):
        return "memory: gone when the process ends"
    return config.shown(("archive",))


def _recall(config: SummarizationConfig) -> str:
    said = RECALL[config.recall]
    return said + f": {config.recall_tokens:,} tokens" * (config.recall == "auto")


def _skills(config: SummarizationConfig) -> str:
    names = config.skill_file_read_tool_names
    if not names:
        return "no references are carried"
    tools = ", ".join(names)
    return f"what {tools} read of SKILL.md under {config.skills_folder}: a reference is carried"


def _subagents(config: SummarizationConfig) -> list[Row]:
    rows = []
    for name, own in config.subagents.items():
        where = ("subagents", name)
        differs = "; ".join(
            f"{key} {_set(config, (*where, key), getattr(own, key))}"
            for key in type(own).model_fields
            if key in own.model_fields_set
        )
        rows.append((name, f"(subagent) {differs or 'as the main agent'}"))
    return rows


def _set(config: SummarizationConfig, where: tuple[str | int, ...], value: object) -> str:
    if where in config.source.variables:
        return config.source.variables[where]
    if isinstance(value, list):
        return " or ".join(map(str, value)) or "none"
    return "null" if value is None else str(value)


def notes(config: SummarizationConfig, window: int | None) -> list[str]:
    """List legal settings that may be mistakes."""
    found: list[str] = []
    if not config.enabled:
        return found
    shares = [one for one in config.clauses if clause_of(one).fraction is not None]
    if window is None and (shares or config.keep.type == "fraction"):
        left = (
            "is left out"
            if len(shares) < len(config.clauses)
            else "is refused when the agent is built, as it is all that the trigger has"
        )
        if shares:
            found.append(f"nobody knows the window: a fraction of it {left}; set 'window'")
        if config.keep.type == "fraction":
            found.append("of a window that nobody knows, 20 messages are kept; set 'window'")
    if window is not None:
        for one in config.clauses:
            tokens = clause_of(one).tokens
            if tokens is not None and tokens > window:
                found.append(
                    f"the trigger of {one} is above the window of {window:,} tokens: only what "
                    "does not fit is summarised"
                )
    if config.recall != "off" and config.archive is None:
        found.append("recall needs an archive: set 'archive', unless the program gives a store")
    if config.archive in ("memory:", ":memory:"):
        found.append("originals in memory: are gone when the process ends; use sqlite:///FILE")
    if config.summary_request == "cached" and (why := _smallest(config)):
        found.append(f"summary_request: cached has no effect with '{why}'; leave one of them out")
    old = [key for key in config.model_fields_set if key.startswith("preserve_recent_skill")]
    for key in sorted(old):
        found.append(f"'{key}' has no effect: references to skill files are carried; leave it out")
    return found


def _smallest(config: SummarizationConfig) -> str:
    """Name the key with which no summary rides the cache; empty for none."""
    if names_embedded(config.model_name):
        return "model_name: embedded"
    return "redact" if config.redact else "summary_prompt" * (config.summary_prompt is not None)


def _redacts(config: SummarizationConfig) -> str:
    by = "common secrets" if config.redact in (True, "secrets") else config.shown(("redact",))
    return f"{by}: taken out of what is archived, summarised or told to hooks"
