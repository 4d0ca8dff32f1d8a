"""The `summarization:` section: its keys and their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError

from conspectus.config.reading import SECTION, Location, Source
from conspectus.core.policy import SMALLEST_SUMMARY, StaleResults
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.model.prompts import Template
from conspectus.notes.skills import FOLDER

MOST = 10**12  # More tokens than any window has
DAY = 86_400  # Seconds; clocks overflow far above
ARCHIVES = ("sqlite:///", "postgresql://", "postgres://", "memory:", ":memory:")
EARLIER = "Taken for files of earlier versions of DeerFlow; without effect."

Kind = Literal["tokens", "messages", "fraction"]
Sizes = dict[Kind, int | float]  # Sizes that must all be reached


def _number(value: Any) -> Any:
    """Read `'4000'`, `4000.0` and `1e4`, which YAML takes for a text, as the numbers they are."""
    if isinstance(value, bool) or (isinstance(value, int) and value > MOST):
        raise ValueError(f"should be a number up to {MOST:,}")
    with suppress(ValueError, TypeError):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value


def _amount(kind: object, value: float) -> float:
    """Check that a number suits its kind, or raise the remedy."""
    if kind == "fraction" and not 0 < value <= 1:
        meant = f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""
        raise ValueError(f"a fraction is above 0 and at most 1, not {value:g}{meant}")
    if kind in ("tokens", "messages") and not (isinstance(value, int) and 1 <= value <= MOST):
        meant = "; did you mean 'type: fraction'?" if 0 < value < 1 else ""
        raise ValueError(f"a number of {kind} is a whole number above 0, not {value:g}{meant}")
    return value


def _amounts(sizes: Sizes) -> None:
    for kind, value in sizes.items():
        _amount(kind, value)


def _address(value: str) -> None:
    if re.search(r"\$(?:\{|[A-Z_][A-Z0-9_]{2,})", value):
        raise ValueError("a variable stands for a whole value; put the whole address into one")
    if ":" in value and not value.startswith(ARCHIVES):
        known = "write sqlite:///FILE, postgresql://..., or memory:"
        raise ValueError(f"'{value.partition(':')[0]}:...' names no archive; {known}")


def _checked(check: Callable[[Any], Any]) -> AfterValidator:
    """Make a validator of a function that raises `ValueError`, and keep the value as it is."""
    return AfterValidator(lambda value: (check(value), value)[1])


def in_words(sizes: Sizes) -> str:
    """Write sizes as `4,000 tokens and 10 messages`."""
    return " and ".join(
        f"{value:.4g} of the window" if kind == "fraction" else f"{value:,} {kind}"
        for kind, value in sizes.items()
    )


Number = BeforeValidator(_number)
Amount = Annotated[int | float, Number]
Whole = Annotated[int, Field(ge=1, le=MOST), Number]
Text = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """A mapping of the section: its keys are known, and its values are read as DeerFlow's are."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )


class Size(Part):
    """A number of tokens, of messages, or a share of the model's window."""

    type: Kind
    """tokens, messages, or fraction of the answering model's window"""
    value: Amount
    """a whole number above 0; for a fraction, above 0 and at most 1"""

    @field_validator("value")
    @classmethod
    def _suits(cls, value: float, info: ValidationInfo) -> float:
        return _amount(info.data.get("type"), value)

    @property
    def pair(self) -> tuple[Kind, int | float]:
        """The size in the middleware's form."""
        return self.type, self.value

    def __str__(self) -> str:
        return in_words({self.type: self.value})


def _form(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "list"
    sizes = isinstance(value, Mapping) and value and not {"type", "value"} & set(value)
    return "all" if sizes else "size"


OneSize = Annotated[Size, Tag("size")]
AllOf = Annotated[dict[Kind, Amount], _checked(_amounts), Tag("all")]
Condition = Annotated[OneSize | AllOf, Discriminator(_form)]
Trigger = Annotated[OneSize | AllOf | Annotated[list[Condition], Tag("list")], Discriminator(_form)]


class SubagentSettings(Part):
    """Settings of any agent; for a subagent, those that differ from the main agent's."""

    enabled: bool = False
    """whether anything is summarised"""
    model_name: Text | None = None
    """the model that writes summaries, of `models` or as provider:model; null for the agent's own,
    embedded for the summariser that needs none"""
    trigger: Trigger | None = None
    """when to summarise: one size such as {type: tokens, value: 6000}, a list of which any is
    enough, or a mapping such as {tokens: 4000, messages: 10} of which all must hold"""
    keep: Size = Size(type="messages", value=20)
    """how much of the newest history stays in view, such as {type: messages, value: 20}"""
    trim_tokens_to_summarize: Whole | None = 4000
    """tokens of one reading; more is read in further calls; null for no limit"""
    summary_prompt: Annotated[Text, _checked(Template)] | None = None
    """instructions for the model, with {messages} where they go"""
    skill_file_read_tool_names: list[Text] = ["read_file", "read", "view", "cat"]
    """tools that read skill files; [] for none"""
    skills_path: Text | None = None
    """the folder of skills; null for skills.container_path, else /mnt/skills"""
    token_counter: Text | None = None
    """tiktoken:o200k_base, tokenizers:FILE or package.module:function; null for LangChain's
    approximation"""
    max_summary_tokens: Annotated[int, Field(ge=SMALLEST_SUMMARY, le=MOST), Number] | None = None
    """the most that the text of a summary takes, in tokens"""
    notes: bool = True
    """whether the user's words and one line a call stand beside the summary"""
    summarizer_timeout: Annotated[float, Field(gt=0, le=DAY), Number] | None = 120
    """seconds for one call of a summariser; null for no limit"""
    fallback_models: list[Text] = []
    """models to try in turn when the first one fails"""
    on_failure: Literal["degrade", "keep", "raise"] = "degrade"
    """when no summary can be made: degrade keeps the history while it fits, and uses the embedded
    summariser when it does not"""
    recall: Annotated[
        Literal["off", "tool", "auto"], BeforeValidator(lambda one: "off" if one is False else one)
    ] = "off"
    """how what has left comes back: off, a tool, or by itself (auto)"""
    recall_tokens: Annotated[int, Field(ge=LEAST_RECALL, le=MOST), Number] = 512
    """the most that is recalled for a turn, in tokens"""
    history: Literal["replace", "preserve"] = "replace"
    """whether the messages in the state are rewritten, or all stay there"""
    redact: Annotated[bool | Text, Field(union_mode="left_to_right")] = False
    """takes secrets out of what is archived or summarised: true for common ones, or
    package.module:function from text to text"""
    pin: Text | None = None
    """a marker in the additional_kwargs of messages that stay, or package.module:function"""
    window: Whole | None = None
    """input limit of the answering model, in tokens; null for its profile's"""
    reserved_tokens: Annotated[int, Field(ge=0, le=MOST), Number] = 0
    """tokens of the window that messages cannot have"""
    stale_results: Annotated[bool | dict[str, Any], _checked(StaleResults.build)] = False
    """shows stale results of tools short before anything is summarised: true, or a mapping with
    some of over, newest, least, tools, exclude, arguments"""
    background: bool | dict[Literal["prepare"], Annotated[float, Field(gt=0, le=1), Number]] = False
    """prepares the next summary beside the agent: true, or {prepare: 0.5} from that share of the
    trigger on"""
    summary_request: Literal["smallest", "cached"] = "smallest"
    """what a model is sent for a summary: only what leaves, or the agent's last request with one
    instruction after it, which its provider has just read"""
    preserve_recent_skill_count: Any = Field(None, exclude=True, description=EARLIER)
    preserve_recent_skill_tokens: Any = Field(None, exclude=True, description=EARLIER)
    preserve_recent_skill_tokens_per_skill: Any = Field(None, exclude=True, description=EARLIER)

    _source: Source = PrivateAttr(default_factory=Source)

    @property
    def source(self) -> Source:
        """The file's lines and secrets; empty for a configuration made in Python."""
        return self._source

    @property
    def conditions(self) -> list[Sizes]:
        """The trigger as alternatives, each of sizes that must all be reached."""
        listed = self.trigger if isinstance(self.trigger, list) else [self.trigger]
        sizes = ({one.type: one.value} if isinstance(one, Size) else one for one in listed)
        return [one for one in sizes if one is not None]

    def plain(self) -> dict[str, Any]:
        """Return all settings as plain values, without secrets; of subagents those they set."""
        return {**self._source.hidden(self.model_dump(mode="json")), **dict(self.__repr_args__())}

    def __repr_args__(self) -> list[tuple[str, Any]]:
        written = self.model_dump(mode="json", exclude_unset=True)
        return list(self._source.hidden(written).items())


class SummarizationConfig(SubagentSettings):
    """The `summarization:` section of a configuration file; `load_config` reads one.

    Attributes are the keys of the section; `docs/config.md` explains each.

    Raises:
        pydantic.ValidationError: an unknown key or an invalid value.

    Example:
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": "6000"})
        >>> config.conditions, str(config.keep)
        ([{'tokens': 6000}], '20 messages')
    """

    archive: Annotated[Text, _checked(_address)] | None = None
    """where originals go: sqlite:///FILE, postgresql://... or memory:; null for the graph's own
    store"""
    subagents: dict[Text, SubagentSettings] = {}
    """settings of subagents that differ, by their names"""

    @model_validator(mode="after")
    def _is_consistent(self) -> SummarizationConfig:
        problems = list(_contradictions(self))
        for name in self.subagents:
            of_name = _contradictions(self.for_subagent(name))
            problems += [(("subagents", name, *at), text) for at, text in of_name]
        if problems:
            unique = {text: (at, text) for at, text in reversed(problems)}
            context = {"text": "; ".join(reversed(unique)), "all": list(unique.values())}
            raise PydanticCustomError("contradictions", "{text}", context)
        return self

    @property
    def skills_folder(self) -> str:
        """The folder of skills: as set, from `skills:` of the file, or the default."""
        section = self._source.sections.get("skills")
        named = section.get("container_path") if isinstance(section, dict) else None
        return str(self.skills_path or named or FOLDER)

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
        made._source = self._source.within(("subagents", name))
        return made


def _contradictions(config: SummarizationConfig) -> Iterator[tuple[Location, str]]:
    """Yield the settings of an agent that contradict each other; none while it is off."""
    limit, reserved, keep = config.window, config.reserved_tokens, config.keep
    if config.enabled and not config.conditions:
        where: Location = ("enabled",) if config.trigger is None else ("trigger",)
        text = "enabled without a trigger never summarises; add 'trigger: {type: tokens, value: "
        yield where, text + "6000}', or messages, or fraction"
    for i, sizes in enumerate(config.conditions if config.enabled else ()):
        where = ("trigger", i) if isinstance(config.trigger, list) else ("trigger",)
        said, tokens = in_words(sizes), sizes.get("tokens", 0)
        # Where several must hold, another one may end first.
        if len(sizes) == 1 and keep.value >= sizes.get(keep.type, MOST + 1):
            own = "keep" in config.model_fields_set
            default = "" if own else ", which is the default of keep,"
            text = f"keeping {keep}{default} can never get below the trigger of {said}: every "
            text += "summary would be followed by another one; lower keep, or raise the trigger"
            yield ("keep",) if own else where, text
        if tokens and config.max_summary_tokens and config.max_summary_tokens >= tokens:
            text = f"a summary of {config.max_summary_tokens:,} tokens alone reaches the trigger"
            yield ("max_summary_tokens",), f"{text} of {said}; lower it"
        if limit is not None and reserved < limit < tokens + reserved:
            less = f" less {reserved:,} reserved" if reserved else ""
            text = f"a trigger of {said} is never reached in a window of {limit:,} tokens{less}"
            yield where, f"{text}; lower it, or use a fraction"
    if config.enabled and limit is not None and reserved >= limit:
        text = f"reserving {reserved:,} tokens leaves nothing of the window of {limit:,}; lower it"
        yield ("reserved_tokens",), text


class _Schema(GenerateJsonSchema):
    """Takes an environment variable wherever a number, a truth value or a word may stand."""

    def generate_inner(self, schema: Any) -> Any:
        made = super().generate_inner(schema)
        if schema["type"] not in ("int", "float", "bool", "literal"):
            return made
        return {"anyOf": [made, {"type": "string", "pattern": r"^\$(\w+|\{\w+\})$"}]}


def json_schema() -> dict[str, Any]:
    """Make the JSON Schema of a file with our section, for editors; others may hold anything."""
    section = SummarizationConfig.model_json_schema(schema_generator=_Schema)
    defined = section.pop("$defs")
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "type": "object",
        "properties": {SECTION: {"anyOf": [section, {"type": "null"}]}},
        "$defs": defined,
    }
