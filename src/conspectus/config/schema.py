"""The `summarization:` section: its keys, and the values of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from conspectus._core.policy import LEAST_GAIN
from conspectus.archive import without_password
from conspectus.config.source import Path_, Read, Secret, Source
from conspectus.config.values import (
    Ahead,
    AllOf,
    Flag,
    LeastRecall,
    LeastSummary,
    Plain,
    Recalls,
    Reserve,
    Seconds,
    Share,
    Size,
    Stale,
    Text,
    Trigger,
    Unwrapped,
    Whole,
)
from conspectus.notes.skills import FOLDER

SKILL_TOOLS = ("read_file", "read", "view", "cat")  # Default names of tools that read skill files


def _shown(value: Any) -> Any:
    """Replace secrets by the names of their variables, and hide passwords."""
    if isinstance(value, (list, tuple)):
        return [_shown(one) for one in value]
    if isinstance(value, Secret):
        return value.shown
    return without_password(value) if isinstance(value, str) else value


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
    notes: Annotated[bool, Unwrapped] = Field(
        True,
        description="whether the user's words and one line a call are written beside the summary; "
        "false for the summary alone",
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
    redact: Annotated[bool, Unwrapped] | Text = Field(
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
