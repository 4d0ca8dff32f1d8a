"""The `summarization:` section: its keys, their values, and what contradicts what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
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
)
from pydantic.json_schema import GenerateJsonSchema

from conspectus.config.reading import SECTION, Location, Source
from conspectus.core.policy import (
    HOUR,
    SMALLEST_SUMMARY,
    Policy,
    StaleResults,
    parse_trigger,
)
from conspectus.engine.settings import Settings
from conspectus.messages.recalled import LEAST_RECALL
from conspectus.model.prompts import Template
from conspectus.notes.tools import FOLDER, Skills
from conspectus.redaction import Redaction
from conspectus.tokens import TokenMeter

MOST = 10**12  # more tokens than any window has
ARCHIVES = ("sqlite:///", "postgresql://", "postgres://", "memory:", ":memory:")
VOCABULARIES = ("tiktoken:", "tokenizers:")

Kind = Literal["tokens", "messages", "fraction"]


def imported(name: str) -> Any:
    """Import what `package.module:name` names; a dot may stand for the colon.

    Raises:
        ValueError: it cannot be imported or called.
    """
    try:
        value = resolve_name(name)
        if not callable(value):
            raise TypeError("it is not callable")
    except Exception as error:
        why = f"'{name}' cannot be imported ({type(error).__name__}: {error!s:.200})"
        fix = "write package.module:function, of a package that is installed or on PYTHONPATH"
        raise ValueError(f"{why}; {fix}") from error
    return value


def redactor(setting: Any) -> Any:
    """Return a redactor in the middleware's form."""
    made = imported(setting) if isinstance(setting, str) and setting != "secrets" else setting
    return made() if isinstance(made, type) else made


def _checked(check: Callable[[Any], Any]) -> AfterValidator:
    """Make a validator that keeps a value if `check` raises no `ValueError`."""
    return AfterValidator(lambda value: (check(value), value)[1])


def _no_switch(value: Any) -> Any:
    """Refuse `true` and `false` where a number is due: pydantic takes them for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"should be a number, not {str(value).lower()}")
    return value


def _amount(kind: object, value: float) -> int | float:
    """Return a size's number, a whole one as it is meant; refuse what is no size of this kind."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    if kind == "fraction" and not 0 < value <= 1:
        raise ValueError(f"a fraction is above 0 and at most 1, such as 0.8, not {value}")
    if kind != "fraction" and not (isinstance(value, int) and 1 <= value <= MOST):
        meant = "a share of the window is written 'type: fraction'"
        raise ValueError(f"{kind} are a whole number from 1 to {MOST:,}, not {value}; {meant}")
    return value


def _archive(value: str, info: ValidationInfo) -> str:
    """Check an address; a path is relative to the folder of the configuration."""
    if "${" in value:
        raise ValueError("a variable stands for a whole value; put the whole address into one")
    if ":" in value and not value.startswith(ARCHIVES):
        known = "write sqlite:///FILE, postgresql://..., or memory:"
        raise ValueError(f"'{value.partition(':')[0]}:...' names no archive; {known}")
    path, folder = value.removeprefix("sqlite:///"), (info.context or {}).get("folder")
    return f"sqlite:///{folder / path}" if folder and ":" not in path else value


def _counter(value: str, info: ValidationInfo) -> str:
    """Load a counter; a vocabulary may be a file beside the configuration."""
    library, _, name = value.partition(":")
    file = (info.context or {}).get("folder", Path()) / name
    value = f"tokenizers:{file}" if library == "tokenizers" and file.is_file() else value
    TokenMeter(value) if value.startswith(VOCABULARIES) else imported(value)
    return value


Number = BeforeValidator(_no_switch)
Whole = Annotated[int, Field(ge=1, le=MOST), Number]
Amount = Annotated[int | float, Number]
Text = Annotated[str, Field(min_length=1)]
Redact = Annotated[bool | Text, Field(union_mode="left_to_right")]
Recall = Literal["off", "tool", "auto"]
Share = Annotated[float, Field(gt=0, le=1), Number]
Sizes = dict[Kind, Amount]  # that must all be reached


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
        return _amount(info.data["type"], value) if "type" in info.data else value

    @property
    def pair(self) -> tuple[Kind, int | float]:
        """The size in the middleware's form."""
        return self.type, self.value


def _form(value: Any) -> str:
    sizes = isinstance(value, Mapping) and value and not {"type", "value"} & set(value)
    return "all" if sizes else "size"


AllOf = Annotated[Sizes, _checked(lambda sizes: [_amount(*one) for one in sizes.items()])]
Condition = Annotated[
    Annotated[Size, Tag("size")] | Annotated[AllOf, Tag("all")], Discriminator(_form)
]
Conditions = Annotated[
    list[Condition],
    BeforeValidator(
        lambda value: value if isinstance(value, (list, tuple)) else [value],
        json_schema_input_type=Condition | list[Condition],
    ),
]


class SummarizationConfig(Part):
    """The `summarization:` section of a configuration file; `load_config` reads one.

    Attributes are the keys of the section; `docs/config.md` explains each.

    Raises:
        pydantic.ValidationError: an unknown key or an invalid value.

    Example:
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": "6000"})
        >>> config.conditions, config.keep.pair
        ([{'tokens': 6000}], ('messages', 20))
    """

    enabled: bool = False
    """whether anything is summarised"""
    model_name: Text | None = None
    """the writer: of `models`, provider:model, embedded for none; null for the agent's own"""
    trigger: Conditions | None = None
    """when: {type: tokens, value: 6000}, a list of such, or all of {tokens: 4000, messages: 10}"""
    keep: Size = Size(type="messages", value=20)
    """how much of the newest history stays in view, such as {type: messages, value: 20}"""
    trim_tokens_to_summarize: Whole | None = None
    """tokens of one reading; more is read in further calls; null for no limit"""
    summary_prompt: Annotated[Text, _checked(Template)] | None = None
    """instructions for the model, with {messages} where they go"""
    skill_file_read_tool_names: list[Text] = ["read_file", "read", "view", "cat"]
    """tools that read skill files; [] for none"""
    skills_path: Text | None = None
    """the folder of skills; null for skills.container_path, else /mnt/skills"""
    token_counter: Annotated[Text, AfterValidator(_counter)] | None = None
    """tiktoken:o200k_base, tokenizers:FILE or package.module:function; null for an estimate"""
    max_summary_tokens: Annotated[int, Field(ge=SMALLEST_SUMMARY, le=MOST), Number] | None = None
    """the most that the text of a summary takes, in tokens"""
    notes: bool = Settings.notes
    """whether the user's words and one line a call stand beside the summary"""
    summarizer_timeout: Annotated[float, Field(gt=0, le=HOUR), Number] | None = (
        Settings.summarizer_timeout
    )
    """seconds for one call of a summariser; null for no limit"""
    fallback_models: list[Text] = []
    """models to try in turn when the first one fails"""
    on_failure: Literal["degrade", "keep", "raise"] = Settings.on_failure
    """without a summary: degrade (keep the history while it fits, then quote it), keep or raise"""
    recall: Annotated[Recall, BeforeValidator(lambda one: "off" if one is False else one)] = "off"
    """how originals come back: off, by a tool, or by themselves (auto)"""
    recall_tokens: Annotated[int, Field(ge=LEAST_RECALL, le=MOST), Number] = 512
    """the most that is recalled for a turn, in tokens"""
    history: Literal["replace", "preserve"] = "replace"
    """whether the messages in the state are rewritten, or all stay there"""
    redact: Annotated[Redact, _checked(lambda one: Redaction.of(redactor(one)))] = False
    """takes secrets out of what is kept: true, or package.module:function from text to text"""
    pin: Annotated[Text, _checked(lambda name: imported(name) if ":" in name else 0)] | None = None
    """a marker in the additional_kwargs of messages that stay, or package.module:function"""
    window: Whole | None = None
    """input limit of the answering model, in tokens; null for its profile's"""
    reserved_tokens: Annotated[int, Field(ge=0, le=MOST), Number] = 0
    """tokens of the window that messages cannot have"""
    stale_results: Annotated[bool | dict[str, Any], _checked(StaleResults.build)] = False
    """old results of tools are truncated: true, or some of over, newest, least, tools, exclude"""
    background: bool | dict[Literal["prepare"], Share] = False
    """prepares the next summary beside the agent: true, or {prepare: 0.5} of the trigger"""
    summary_request: Literal["smallest", "cached"] = "smallest"
    """what a model is sent: what leaves, or the agent's last request, which its provider has"""
    archive: Annotated[Text, AfterValidator(_archive)] | None = None
    """where originals go: sqlite:///FILE, postgresql://... or memory:; null for the graph's"""
    _source: Source = PrivateAttr(default_factory=Source)

    @property
    def source(self) -> Source:
        """The file's lines and secrets; empty for a configuration made in Python."""
        return self._source

    @property
    def conditions(self) -> list[Sizes]:
        """The trigger as alternatives, each of sizes that must all be reached."""
        listed = self.trigger or ()
        return [dict([one.pair]) if isinstance(one, Size) else one for one in listed]

    def __repr_args__(self) -> list[tuple[str, Any]]:
        written = self.model_dump(mode="json", exclude_unset=True)
        return list(self._source.hidden(written).items())

    @property
    def skills(self) -> Skills | None:
        """Which calls read skill files; None for none."""
        section = self._source.sections.get("skills")
        named = section.get("container_path") if isinstance(section, dict) else None
        tools = tuple(self.skill_file_read_tool_names)
        return Skills(tools, str(self.skills_path or named or FOLDER)) if tools else None

    def plain(self) -> dict[str, Any]:
        """Return all settings as plain values, without secrets."""
        settings: dict[str, Any] = self._source.hidden(self.model_dump(mode="json"))
        return settings


def contradictions(
    config: SummarizationConfig, window: int | None = None, *, answers: bool = False
) -> Iterator[tuple[Location, str]]:
    """Yield what contradicts itself in the settings of an agent; nothing while it is off.

    With `answers`, the window of the model that answers counts, too; None if nobody knows it.
    """
    conditions, own = config.conditions, config.window
    if not config.enabled:
        return
    if not conditions:
        text = "enabled without a trigger never summarises; add 'trigger: {type: tokens, value: "
        yield ("enabled",), text + "6000}', or messages, or fraction"
    if own and config.reserved_tokens >= own:
        text = f"that leaves nothing of the window of {own:,} tokens; lower it"
        yield ("reserved_tokens",), text
    share = any("fraction" in sizes for sizes in conditions)
    if answers and window is None and (share or config.keep.type == "fraction"):
        text = "a fraction means nothing, as the window of the answering model is unknown; write "
        text += "'window: <its input limit in tokens>', or use tokens or messages"
        yield ("trigger" if share else "keep",), text
    policy = Policy(parse_trigger(conditions or None), config.keep.pair)
    for text in policy.caveats(own):
        is_kept = text.startswith("keep") and "keep" in config.model_fields_set
        yield ("keep" if is_kept else "trigger",), text


def json_schema() -> dict[str, Any]:
    """Make the JSON Schema of a file with our section, for editors; others may hold anything."""
    section = SummarizationConfig.model_json_schema()
    defined = section.pop("$defs")
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "type": "object",
        "properties": {SECTION: {"anyOf": [section, {"type": "null"}]}},
        "$defs": defined,
    }
