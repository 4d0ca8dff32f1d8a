"""The `summarization:` section: its keys, and the values of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from conspectus._core.policy import LEAST_GAIN
from conspectus._core.sizes import KINDS
from conspectus.archive import without_password
from conspectus.compactor.background import PREPARE
from conspectus.config.source import Path_, Read, Secret, Source
from conspectus.config.values import (
    MOST,
    Flag,
    Kind,
    LeastRecall,
    LeastSummary,
    Newest,
    Over,
    Plain,
    Recalls,
    Reserve,
    Seconds,
    Share,
    Text,
    Whole,
    unwrapped,
)
from conspectus.config.words import nearest
from conspectus.ledger.skills import FOLDER
from conspectus.summarize.shares import Part

SKILL_TOOLS = ("read_file", "read", "view", "cat")  # Default names of tools that read skill files


class Size(Plain):
    """A size: a number of tokens, of messages, or a share of the model's window."""

    type: Kind = Field(description="tokens, messages, or fraction of the answering model's window")
    value: Annotated[int | float, BeforeValidator(unwrapped)] = Field(
        description="a whole number above 0; for a fraction, above 0 and at most 1"
    )

    @field_validator("value")
    @classmethod
    def _means_something(cls, value: float, info: ValidationInfo) -> float:
        return _amount(info.data.get("type"), value)

    @property
    def pair(self) -> tuple[Kind, int | float]:
        """The size in the middleware's form."""
        return self.type, self.value

    def __str__(self) -> str:
        return in_words(self.type, self.value)


class AllOf(Plain):
    """Sizes that must all be reached."""

    tokens: Whole | None = Field(None, description="a whole number above 0")
    messages: Whole | None = Field(None, description="a whole number above 0")
    fraction: Annotated[float, BeforeValidator(unwrapped)] | None = Field(
        None, description="above 0 and at most 1"
    )

    @field_validator("fraction")
    @classmethod
    def _is_a_share(cls, value: float | None) -> float | None:
        return value if value is None else _amount("fraction", value)

    @property
    def sizes(self) -> dict[str, int | float]:
        """The sizes in the middleware's form."""
        given = {"tokens": self.tokens, "messages": self.messages, "fraction": self.fraction}
        return {kind: value for kind, value in given.items() if value is not None}

    def __str__(self) -> str:
        return " and ".join(in_words(kind, value) for kind, value in self.sizes.items())


class Ahead(Plain):
    """The share of a trigger at which the next notes are prepared beside the agent."""

    prepare: Annotated[float, Field(gt=0, le=1), BeforeValidator(unwrapped)] = Field(
        PREPARE, description="share of each trigger from which on the next notes are prepared"
    )


class StaleOfTool(Plain):
    """Limits for stale results of one tool."""

    over: Over | None = Field(None, description="tokens above which a result is shortened")
    newest: Newest | None = Field(None, description="how many of its newest results stay whole")


class Stale(Plain):
    """Limits for stale results of tools, and when shortening them is worthwhile."""

    over: Over = Field(1000, description="tokens above which a result is shortened")
    newest: Newest = Field(3, description="how many of the newest results stay whole")
    least: Whole | None = Field(
        None,
        description="tokens that must be freed, or nothing is shortened; null for enough to reach "
        "half of the trigger",
    )
    tools: list[Text] | dict[Text, StaleOfTool | None] | None = Field(
        None,
        description="the only tools whose results are shortened, by name or with settings of their "
        "own, '*' for all others; null for all",
    )
    exclude: list[Text] = Field(
        default_factory=list, description="tools whose results stay as they are"
    )

    @property
    def plain(self) -> dict[str, Any]:
        """The settings in the middleware's form."""
        return self.model_dump()


def _shown(value: Any) -> Any:
    """Replace secrets by the names of their variables, and hide passwords."""
    if isinstance(value, (list, tuple)):
        return [_shown(one) for one in value]
    if isinstance(value, Secret):
        return value.shown
    return without_password(value) if isinstance(value, str) else value


def in_words(kind: str, value: float) -> str:
    """Write one size in words."""
    return f"{value:.4g} of the window" if kind == "fraction" else f"{value:,} {kind}"


def _amount(kind: object, value: float) -> float:
    """Check that a number suits its kind, or raise the remedy."""
    if MOST < value < float("inf"):
        raise _wrong(f"a number above {MOST:,} is more than anything has")
    if kind == "fraction":
        if not 0 < value <= 1:
            meant = f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""
            raise _wrong(f"a fraction is above 0 and at most 1, not {value:g}{meant}")
    elif kind in ("tokens", "messages"):
        if not isinstance(value, int):
            meant = "; did you mean 'type: fraction'?" if 0 < value <= 1 else ""
            raise _wrong(f"a number of {kind} is a whole number, not {value:g}{meant}")
        if value < 1:
            raise _wrong(f"a number of {kind} is above 0, not {value}")
    return value


def _wrong(text: str) -> PydanticCustomError:
    return PydanticCustomError("conspectus", "{text}", {"text": text})


def _clause_form(value: Any) -> str | None:
    if isinstance(value, Size):
        return "size"
    if isinstance(value, AllOf):
        return "all"
    if not isinstance(value, Mapping):
        return None
    if "type" in value or "value" in value or not value:
        return "size"
    return "all" if any(nearest(str(key), KINDS) for key in value) else "size"


def _trigger_form(value: Any) -> str | None:
    return "list" if isinstance(value, (list, tuple)) else _clause_form(value)


OneSize = Annotated[Size, Tag("size")]
OneAll = Annotated[AllOf, Tag("all")]
Clause = Annotated[OneSize | OneAll, Discriminator(_clause_form)]
Trigger = Annotated[
    OneSize | OneAll | Annotated[list[Clause], Tag("list")], Discriminator(_trigger_form)
]


class SubagentSettings(Plain):
    """Settings of any agent; for a subagent, its differences from the main agent."""

    enabled: Flag = Field(False, description="whether anything is summarised")
    model_name: Text | None = Field(
        None,
        description="the model that writes summaries; null for the agent's own, embedded for the "
        "summariser that extracts by rules and needs no model",
    )
    trigger: Trigger | None = Field(
        None,
        description="when to summarise: one {type, value}, a list of which any is enough, or a "
        "mapping such as {tokens: 4000, messages: 10} of which all must hold",
    )
    keep: Size = Field(
        default_factory=lambda: Size(type="messages", value=20),
        description="how much of the newest history stays in view",
    )
    trim_tokens_to_summarize: Whole | None = Field(
        4000,
        description="tokens of one reading; what is above it is read in further calls, nothing is "
        "left out; null for what the summariser's window takes",
    )
    summary_prompt: Text | None = Field(
        None, description="instructions for the model, with {messages} where they go"
    )
    skill_file_read_tool_names: list[Text] = Field(
        default_factory=lambda: list(SKILL_TOOLS),
        description="tools that read skill files, to which references are carried; [] for none",
    )
    skills_path: Text | None = Field(
        None, description=f"the folder of skills; null for skills.container_path, else {FOLDER}"
    )
    token_counter: Text | None = Field(
        None,
        description="tiktoken:o200k_base, tokenizers:FILE, or package.module:function; null for "
        "LangChain's approximation",
    )
    max_summary_tokens: LeastSummary | None = Field(
        None, description="the most that the text of a summary takes, in tokens"
    )
    notes: list[Part] | None = Field(
        None,
        description="the parts of the notes that are written: said, done, found, open, index; [] "
        "for the summary alone; null for all",
    )
    max_summarizer_tokens: Whole | None = Field(
        None, description="the most that one compaction may spend on a model, in tokens"
    )
    summarizer_timeout: Seconds | None = Field(
        120.0, description="seconds for one call of a summariser; null for no limit"
    )
    fallback_models: list[Text] = Field(
        default_factory=list, description="models to try in turn when the first one fails"
    )
    on_failure: Literal["degrade", "keep", "raise"] = Field(
        "degrade",
        description="when no summary can be made: degrade keeps the history while it fits, and "
        "uses the embedded summariser when it does not",
    )
    recall: Recalls = Field(
        "off", description="how what has left comes back: off, a tool, or by itself (auto)"
    )
    recall_tokens: LeastRecall = Field(
        512, description="the most that is recalled for a turn, in tokens"
    )
    history: Literal["replace", "preserve"] = Field(
        "replace", description="whether the messages in the state are rewritten, or all stay there"
    )
    redact: Annotated[bool, BeforeValidator(unwrapped)] | Text = Field(
        False,
        description="takes secrets out of what is archived or summarised: true for common ones, or "
        "package.module:function from text to text",
    )
    pin: Text | None = Field(
        None,
        description="a marker in the additional_kwargs of messages that must stay, or "
        "package.module:function",
    )
    window: Whole | None = Field(
        None, description="input limit of the answering model, in tokens; null for its profile's"
    )
    reserved_tokens: Reserve = Field(
        0, description="tokens of the window that messages cannot have"
    )
    least_gain: Share = Field(
        LEAST_GAIN,
        description="share of the history that a summary must free, unless the window asks for it; "
        "0 for any",
    )
    stale_results: Flag | Stale = Field(
        False,
        description="shows stale results of tools short before anything is summarised; a mapping "
        "says which, and when that is worthwhile",
    )
    background: Flag | Ahead = Field(
        False,
        description="prepares the next notes beside the agent, from seven tenths of the trigger "
        "on, or from the share that prepare says",
    )
    summary_request: Literal["smallest", "cached"] = Field(
        "smallest",
        description="what a model is sent for a summary: smallest for no more than what leaves; "
        "cached for the agent's last request with one instruction after it, where its own model "
        "summarises and its provider has just read that",
    )
    file_tokens: Whole | None = Field(
        None,
        description="tokens of a document or a recording that a message only names, by an id or an "
        "address; null for ten full pages of a PDF",
    )
    # Keys of earlier versions of DeerFlow: taken, so that their files load, and without effect.
    preserve_recent_skill_count: int | None = Field(None, deprecated=True, exclude=True)
    preserve_recent_skill_tokens: int | None = Field(None, deprecated=True, exclude=True)
    preserve_recent_skill_tokens_per_skill: int | None = Field(None, deprecated=True, exclude=True)

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return [
            (key, _shown(getattr(self, key)))
            for key in type(self).model_fields
            if key in self.model_fields_set
        ]

    @property
    def ahead(self) -> bool | dict[str, float]:
        """`background` in the middleware's form."""
        given = self.background
        return {"prepare": given.prepare} if isinstance(given, Ahead) else given

    @property
    def stale(self) -> bool | dict[str, Any]:
        """`stale_results` in the middleware's form."""
        given = self.stale_results
        return given.plain if isinstance(given, Stale) else given

    @property
    def clauses(self) -> list[Size | AllOf]:
        """The trigger as alternatives."""
        if self.trigger is None:
            return []
        return list(self.trigger) if isinstance(self.trigger, list) else [self.trigger]


class SummarizationConfig(SubagentSettings):
    """The `summarization:` section of a configuration file; `load_config` reads one.

    Attributes are the keys of the section; `docs/config.md` explains each.

    Raises:
        pydantic.ValidationError: an unknown key or an invalid value.

    Example:
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": 6000})
        >>> str(config.trigger), str(config.keep)
        ('6,000 tokens', '20 messages')
    """

    archive: Text | None = Field(
        None,
        description="where originals go: sqlite:///FILE, postgresql://..., memory:; null for the "
        "graph's own store",
    )
    subagents: dict[Text, SubagentSettings] = Field(
        default_factory=dict, description="settings of subagents that differ, by their names"
    )

    _read: Read | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _is_consistent(self) -> SummarizationConfig:
        from conspectus.config.checks import contradictions

        found = contradictions(self)
        if found:
            text = "; ".join(what for _, what in found)
            raise PydanticCustomError("contradictions", "{text}", {"text": text, "found": found})
        return self

    @property
    def source(self) -> Source:
        """The file's lines and secrets; empty for a configuration made in Python."""
        return self._read.source if self._read is not None else Source()

    @property
    def read(self) -> Read | None:
        """The rest of its file; None without a file."""
        return self._read

    @property
    def skills_folder(self) -> str:
        """The folder of skills: as set, from `skills:` of the file, or the default."""
        named = self._read.skills if self._read is not None else None
        return self.skills_path or named or FOLDER

    def for_subagent(self, name: str) -> SummarizationConfig:
        """Return the settings of one subagent: its own, else the main agent's.

        Example:
            >>> config = SummarizationConfig(subagents={"researcher": {"window": 32_000}})
            >>> config.for_subagent("researcher").window, config.for_subagent("writer").window
            (32000, None)
        """
        own = self.subagents.get(name)
        changed = {key: getattr(own, key) for key in own.model_fields_set} if own else {}
        made = self.model_copy(update={**changed, "subagents": {}})
        if self._read is not None:
            made._read = replace(self._read, source=self.source.within(("subagents", name)))
        return made

    def shown(self, where: Path_) -> str:
        """Return a value for printing, without secrets and passwords."""
        if where in self.source.variables:
            return self.source.variables[where]
        value: Any = self
        for step in where:
            value = value[step] if isinstance(step, int) else getattr(value, step)
        return without_password(value) if where == ("archive",) else str(value)

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        variables = {where[0] for where in self.source.variables if where}
        return [
            (key, "$..." if key in variables else value) for key, value in super().__repr_args__()
        ]


KEYS: tuple[str, ...] = tuple(
    key for key, field in SummarizationConfig.model_fields.items() if not field.deprecated
)
"""Keys of the section."""

SUBAGENT_KEYS = tuple(key for key in KEYS if key not in ("archive", "subagents"))
"""Keys of a subagent's settings."""
