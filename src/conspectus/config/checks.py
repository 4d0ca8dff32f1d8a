"""Find settings that contradict each other, and texts that name nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from conspectus._core.sizes import TriggerClause
from conspectus.config.schema import SubagentSettings, SummarizationConfig
from conspectus.config.source import Path_
from conspectus.config.values import AllOf, Size
from conspectus.errors import PolicyError

Found = tuple[Path_, str]  # The place of a mistake, and a text with its cause and remedy

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?::|\.)[A-Za-z_]\w*")

COUNTERS = "write tiktoken:o200k_base, tokenizers:FILE, or package.module:function"
ARCHIVES = "write sqlite:///FILE, postgresql://..., or memory:"


def contradictions(config: SummarizationConfig) -> list[Found]:
    """Find contradictions in a section and in each of its subagents' settings."""
    found = [*_archive(config), *_of(config)]
    known = {text for _, text in found}
    for name, own in config.subagents.items():
        for where, text in _of(config.for_subagent(name)):
            if where and where[0] in own.model_fields_set:
                found.append((("subagents", name, *where), text))
            elif text not in known:
                found.append((("subagents", name), f"for '{name}': {text}"))
    return found


def _of(config: SubagentSettings) -> Iterator[Found]:
    yield from _trigger(config)
    yield from _window(config)
    yield from _texts(config)
    named = config.model_name
    for i, other in enumerate(config.fallback_models):
        if other == named or other in config.fallback_models[:i]:
            yield ("fallback_models", i), f"'{other}' has been tried before; name another model"


def _trigger(config: SubagentSettings) -> Iterator[Found]:
    clauses = config.clauses
    if config.enabled and not clauses:
        yield (
            ("trigger",) if config.trigger is not None else ("enabled",),
            "enabled without a trigger never summarises; add 'trigger: {type: tokens, value: "
            "6000}', or messages, or fraction",
        )
    kind, amount = config.keep.pair
    limit = config.window
    share = kind == "fraction" or any(c.fraction is not None for c in map(clause_of, clauses))
    for i, one in enumerate(clauses):
        where = ("trigger", i) if isinstance(config.trigger, list) else ("trigger",)
        clause = clause_of(one)
        if isinstance(one, AllOf) and not one.sizes:
            yield where, "names no size; write tokens, messages or fraction"
        bound = getattr(clause, kind)
        if limit is not None and share and kind != "messages" and bound is None:
            bound = clause.threshold(limit)
            amount_ = amount if kind == "tokens" else int(limit * amount)
        else:
            amount_ = amount
        # If several conditions must hold, another one may end first.
        alone = not isinstance(one, AllOf) or len(one.sizes) == 1
        if bound is not None and amount_ >= bound and alone:
            said = "keep" in config.model_fields_set
            yield (
                ("keep",) if said else where,
                f"keeping {config.keep}{'' if said else ', which is the default of keep,'} can "
                f"never get below the trigger of {one}: every summary would be followed by another "
                f"one; {'lower' if said else 'write a lower'} keep, or raise the trigger",
            )
        most = config.max_summary_tokens
        if most is not None and clause.tokens is not None and most >= clause.tokens:
            yield (
                ("max_summary_tokens",),
                f"a summary of {most:,} tokens alone reaches the trigger of {one}; lower it",
            )


def _window(config: SubagentSettings) -> Iterator[Found]:
    limit, reserved = config.window, config.reserved_tokens
    if limit is None:
        return
    if reserved >= limit:
        yield (
            ("reserved_tokens",),
            f"reserving {reserved:,} tokens leaves nothing of the window of {limit:,}; lower it",
        )
        return
    less = f" less {reserved:,} reserved" if reserved else ""
    for i, one in enumerate(config.clauses):
        where: Path_ = ("trigger", i) if isinstance(config.trigger, list) else ("trigger",)
        tokens = clause_of(one).tokens
        if tokens is not None and tokens > limit - reserved:
            yield (
                where,
                f"a trigger of {one} is never reached in a window of {limit:,} tokens{less}; lower "
                "it, or use a fraction",
            )
    if config.keep.type == "tokens" and config.keep.value >= limit - reserved:
        yield (
            ("keep",),
            f"keeping {config.keep} leaves no room in the window of {limit:,} tokens; lower it",
        )


def _texts(config: SubagentSettings) -> Iterator[Found]:
    if config.summary_prompt is not None:
        from conspectus.model.prompts import Template

        try:
            Template(config.summary_prompt)
        except PolicyError as error:
            yield ("summary_prompt",), f"summary_{error}"
    spec = config.token_counter
    if spec is not None and not spec.startswith(("tiktoken:", "tokenizers:")):
        if not _DOTTED.fullmatch(spec):
            yield ("token_counter",), f"'{spec}' names no counter; {COUNTERS}"
    elif spec is not None and not spec.partition(":")[2].strip():
        yield ("token_counter",), f"'{spec}' names no vocabulary; {COUNTERS}"
    if config.pin is not None and ":" in config.pin and not _DOTTED.fullmatch(config.pin):
        yield (
            ("pin",),
            "write the name of a marker in additional_kwargs, or package.module:function",
        )
    hook = config.redact
    if isinstance(hook, str) and hook != "secrets" and not _DOTTED.fullmatch(hook):
        yield ("redact",), "write true, secrets, false, or package.module:function"


def _archive(config: SummarizationConfig) -> Iterator[Found]:
    where = config.archive
    if where is None or where in ("memory:", ":memory:"):
        return
    if re.search(r"\$(?:\{|[A-Z_][A-Z0-9_]{2,})", where):
        yield (("archive",), "a variable stands for a whole value; put the whole address into one")
        return
    scheme, mark, rest = where.partition("://")
    if mark:
        known = scheme in ("postgresql", "postgres") and rest
        file = scheme == "sqlite" and rest.startswith("/") and len(rest) > 1
        if not known and not file:
            # The rest may hold a password.
            yield ("archive",), f"'{scheme}://...' names no archive; {ARCHIVES}"
    elif ":" in where:
        yield ("archive",), f"'{where.partition(':')[0]}:...' names no archive; {ARCHIVES}"


def clause_of(one: Size | AllOf) -> TriggerClause:
    """Turn a clause of the trigger into the core's form."""
    given: Mapping[str, Any] = one.sizes if isinstance(one, AllOf) else dict([one.pair])
    return TriggerClause(**given)
