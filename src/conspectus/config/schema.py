"""The `summarization:` section: its keys, their values, and the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema

from conspectus._arguments import meaning
from conspectus.config.reading import SECTION, ConfigSource, Location, read_section
from conspectus.core.policy import Policy, StaleResults, Unit, parse_trigger
from conspectus.engine.building import window_of
from conspectus.engine.settings import MOST_TOKENS, FileSettings, RequestKind
from conspectus.errors import ConfigError, did_you_mean
from conspectus.messages.alternation import AlternateRoles
from conspectus.model.prompts import Template
from conspectus.notes.skills import FOLDER, Skills
from conspectus.redaction import Redaction
from conspectus.tokens import TokenMeter

ARCHIVES = ("sqlite:///", "postgresql://", "postgres://", "memory:", ":memory:")
VOCABULARIES = ("tiktoken:", "tokenizers:")
DISABLED_VALUES = (
    "false",
    "no",
    "off",
    "n",
    "f",
    "0",
)  # values of `enabled`, as pydantic reads them
OBSOLETE_PREFIX = "preserve_recent_skill_"
"""Keys of earlier versions of DeerFlow, without effect."""

MISPLACED_KEYS = ("trigger", "keep", "trim_tokens_to_summarize", "summary_prompt")
"""Keys of the section that a user may have written outside of it. No other section has such a
name."""


def loaded(setting: Any) -> Any:
    """Import a function by `package.module:name`; return other values as they are.

    Raises:
        ValueError: it cannot be imported or called.
    """
    if not isinstance(setting, str) or ":" not in setting or setting.startswith(VOCABULARIES):
        return setting
    try:
        function = resolve_name(setting)
        if not callable(function):
            raise TypeError("it is not callable")
    except Exception as error:
        why = f"'{setting}' cannot be imported ({type(error).__name__}: {error!s:.200})"
        fix = "write package.module:function, of a package that is installed or on PYTHONPATH"
        raise ValueError(f"{why}; {fix}") from error
    return function


def _checked(check: Callable[[Any], Any]) -> AfterValidator:
    """Make a validator that keeps a value if `check` raises no `ValueError`."""

    def checked(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(checked)


def _check_sizes(sizes: Mapping[Unit, int | float]) -> None:
    """Raise `ValueError` for a number that is no size of its unit."""
    for unit, value in sizes.items():
        if unit == "fraction":
            is_valid = 0 < value <= 1
        else:
            is_valid = isinstance(value, int) and 1 <= value <= MOST_TOKENS
        if not is_valid:
            raise ValueError(
                "tokens and messages are whole numbers from 1 on, and a fraction is above 0 and at "
                f"most 1, such as 'type: fraction, value: 0.8', not {value}"
            )


def _archive(value: str, info: ValidationInfo) -> str:
    """Check an address; a path is relative to the folder of the configuration."""
    if "${" in value:
        raise ValueError("a variable stands for a whole value; put the whole address into one")
    if ":" in value and not value.startswith(ARCHIVES):
        fix = "write sqlite:///FILE, postgresql://..., or memory:"
        raise ValueError(f"'{value.partition(':')[0]}:...' names no archive; {fix}")
    path = value.removeprefix("sqlite:///")
    folder = (info.context or {}).get("folder")
    return f"sqlite:///{folder / path}" if folder and ":" not in path else value


def _counter(value: str, info: ValidationInfo) -> str:
    """Load a counter; a vocabulary may be a file in the folder of the configuration."""
    library, _, name = value.partition(":")
    folder = (info.context or {}).get("folder", Path())
    if library == "tokenizers" and (folder / name).is_file():
        value = f"tokenizers:{folder / name}"
    if ":" not in value:
        raise ValueError(f"'{value}' is no vocabulary and no function")
    TokenMeter(loaded(value))
    return value


def _rules(value: Any) -> None:
    """Refuse a text that names no function: sentences stand in a list."""
    if isinstance(value, str) and not callable(loaded(value)):
        raise ValueError(f"'{value:.60}' names no function; write a sentence into a list: ['...']")


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


def _on_and_off(value: Any) -> Any:
    """Return `on` or `off` for the booleans that YAML reads them as."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Amount = Annotated[
    int | float,
    Field(gt=0),
    BeforeValidator(_no_flag),
    AfterValidator(lambda number: number if number % 1 else int(number)),
]
Text = Annotated[str, Field(min_length=1)]
RedactorName = Annotated[
    bool | Text,
    Field(union_mode="left_to_right"),
    _checked(lambda value: Redaction.of(loaded(value))),
]
Recall = Annotated[
    Literal["off", "tool", "auto"],
    BeforeValidator(lambda value: "off" if value is False else value),
]


class SectionPart(
    BaseModel,
    frozen=True,
    extra="forbid",
    hide_input_in_errors=True,
    protected_namespaces=(),
    use_attribute_docstrings=True,
):
    """A mapping in the section, with known keys. Values are read as DeerFlow reads them."""


class SizeSetting(SectionPart, frozen=True):
    """A number of tokens, of messages, or a share of the model's window."""

    type: Unit
    """tokens, messages, or fraction of the answering model's window"""
    value: Amount
    """a whole number above 0; for a fraction, above 0 and at most 1"""

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        _check_sizes({self.type: self.value})
        return self

    @property
    def pair(self) -> tuple[Unit, int | float]:
        """The size in the middleware's form."""
        return self.type, self.value


def _form(value: Any) -> str:
    """Return the form of a condition: one size, or a mapping of sizes that must all be reached."""
    is_mapping = isinstance(value, Mapping) and bool(value)
    return "all" if is_mapping and not {"type", "value"} & set(value) else "size"


AllSizes = Annotated[dict[Unit, Amount], _checked(_check_sizes)]  # that must all be reached
OneSize = Annotated[SizeSetting, AfterValidator(lambda size: dict([size.pair]))]
Condition = Annotated[
    Annotated[OneSize, Tag("size")] | Annotated[AllSizes, Tag("all")], Discriminator(_form)
]
Trigger = Annotated[
    list[Condition],
    BeforeValidator(
        lambda value: value if isinstance(value, (list, tuple)) else [value],
        json_schema_input_type=Condition | list[Condition],
    ),
]


class SummarizationConfig(SectionPart, FileSettings, frozen=True):
    """The `summarization:` section of a configuration file; `load_config` reads one.

    Most of its keys are settings of the middleware. `docs/config.md` explains each key.

    Raises:
        pydantic.ValidationError: an unknown key or an invalid value.

    Example:
        >>> config = SummarizationConfig(enabled=True, trigger={"type": "tokens", "value": "6000"})
        >>> config.trigger, config.keep.pair
        ([{'tokens': 6000}], ('messages', 20))
    """

    enabled: bool = False
    """Whether anything is summarised."""
    model_name: Text | None = None
    """The model that writes the summaries: a name in `models`, `provider:model`, or `embedded` for
    no model. null: the agent's own model.
    """
    trigger: Trigger | None = None  # type: ignore[assignment]
    """A size such as {type: tokens, value: 6000}. A list of sizes: one of them is enough. A mapping
    such as {tokens: 4000, messages: 10}: all must be reached.
    """
    keep: SizeSetting = SizeSetting(type="messages", value=20)  # type: ignore[assignment]
    """A size such as {type: messages, value: 20}."""
    summary_prompt: Annotated[Text, _checked(Template)] | None = None
    """If it has no {messages}, the messages follow the prompt."""
    skill_file_read_tool_names: list[Text] = ["read_file", "read", "view", "cat"]
    """The names of the tools that read skill files; [] if there are none."""
    skills_path: Text | None = None
    """The folder of skills. null: `container_path` of the section `skills`, else /mnt/skills."""
    token_counter: Annotated[Text, AfterValidator(_counter)] | None = None
    """What counts the tokens for `trigger` and `keep`: tiktoken:o200k_base, tokenizers:FILE or
    package.module:function. null: LangChain's approximation.
    """
    fallback_models: list[Text] = []
    """Models to try, in this order, if the first one fails."""
    recall: Recall = "off"
    redact: RedactorName = False  # type: ignore[assignment]
    """true, or package.module:function, which takes a text and returns a text."""
    pin: Annotated[Text, _checked(loaded)] | None = None
    """A key of additional_kwargs, or package.module:function."""
    rules: Annotated[list[Text] | Text, _checked(_rules)] | None = None
    """A list of sentences, or package.module:function."""
    stale_results: Annotated[bool | dict[str, Any], _checked(StaleResults.build)] = False
    """true, or a mapping with some of over, newest, least, tools, exclude, arguments."""
    summary_request: RequestKind = "smallest"
    """smallest or cached."""
    alternate_roles: Annotated[AlternateRoles, BeforeValidator(_on_and_off)] = "auto"
    """on, off or auto."""
    archive: Annotated[Text, AfterValidator(_archive)] | None = None
    """sqlite:///FILE, a path, postgresql://... or memory:. null: the store of the graph."""
    _source: ConfigSource = PrivateAttr(default_factory=ConfigSource)

    @model_validator(mode="after")
    def _check_trigger(self) -> Self:
        if self.enabled and not self.trigger:
            fix = "add 'trigger: {type: tokens, value: 6000}', or messages, or fraction"
            raise ValueError(f"enabled without a trigger never summarises; {fix}")
        window_of(self.window, self.reserved_tokens)
        return self

    @property
    def source(self) -> ConfigSource:
        """The file's lines and secrets; empty for a configuration made in Python."""
        return self._source

    def with_source(self, source: ConfigSource) -> Self:
        """Return the configuration with the file that it was read from."""
        config = self.model_copy()
        config._source = source  # type: ignore[misc]
        return config

    def policy(self) -> Policy:
        """The trigger of the file, and how much is kept."""
        return Policy(parse_trigger(self.trigger or None), self.keep.pair)

    @property
    def skills(self) -> Skills | None:
        """The tools that read skill files; None if there are none."""
        tools = tuple(self.skill_file_read_tool_names)
        if not tools:
            return None
        section = self._source.sections.get("skills")
        container_path = section.get("container_path") if isinstance(section, dict) else None
        return Skills(tools, str(self.skills_path or container_path or FOLDER))

    def plain(self, *, only_set: bool = False) -> dict[str, Any]:
        """Return settings as plain values, without secrets: all, or those that were set."""
        values = self._source.hidden(self.model_dump(mode="json", exclude_unset=only_set))
        order = dict.fromkeys([*SummarizationConfig.__annotations__, *values])
        return {key: values[key] for key in order if key in values}

    def __repr_args__(self) -> list[tuple[str, Any]]:
        return list(self.plain(only_set=True).items())


def _describe_keys() -> None:
    """Describe each key: by its setting's meaning, then by the form of its value in a file."""
    for name, key in SummarizationConfig.model_fields.items():
        setting = meaning(FileSettings, name).replace("None", "null")
        key.description = " ".join(f"{setting} {key.description or ''}".split())
    SummarizationConfig.model_rebuild(force=True)


_describe_keys()


def load_config(
    path: str | Path,
    *,
    optional_variables: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> SummarizationConfig:
    """Read the `summarization:` section of a YAML file, and check all of it.

    If the file has no such section, nothing is summarised. A value such as `$ARCHIVE_URL` is read
    from that environment variable. Other sections are ignored, except for `models` and
    `skills.container_path`. If a file with `enabled: false` has mistakes, it is read as an empty
    file, and `config.source.notes` lists the mistakes.

    Args:
        path: the path of the file.
        optional_variables: keys whose environment variables may be missing.
        defaults: values for keys that are not in the file.

    Raises:
        ConfigError: the file cannot be read, or has mistakes. The error has each mistake with its
            line.

    Example:
        >>> made = Path("config.yaml").write_text('''
        ... summarization:
        ...   enabled: true
        ...   trigger: {type: tokens, value: 6000}
        ... ''')
        >>> load_config("config.yaml").trigger
        [{'tokens': 6000}]
    """
    given_path: object = path
    if not isinstance(given_path, (str, Path)):
        kind = type(given_path).__name__
        raise ConfigError(
            (
                f"a configuration is read from the path of a file, not from {kind}; write "
                "SummarizationConfig(**section) for a section",
            )
        )
    file = Path(path).expanduser()
    section, source = read_section(file)
    section = {} if section is None else section
    _check_form(section, source)
    keys = {key: value for key, value in section.items() if not key.startswith(OBSOLETE_PREFIX)}
    section = {**(defaults or {}), **keys}
    mistakes: dict[Location, str] = {}
    try:
        context = {"folder": file.absolute().parent}
        config = SummarizationConfig.model_validate(section, context=context)
    except ValidationError as error:
        mistakes = source.mistakes(error, SummarizationConfig, SizeSetting)
    for location, text in source.missing.items():
        if location[0] not in optional_variables:
            mistakes[location] = text
    notes = source.problems(mistakes)
    if notes:
        if str(section.get("enabled")).lower() not in DISABLED_VALUES:
            raise ConfigError(notes)
        config = SummarizationConfig()
    return config.with_source(replace(source, notes=notes))


def _check_form(section: Any, source: ConfigSource) -> None:
    """Check the form of the section, its name, and that its keys are inside it."""
    form = f"write '{SECTION}:' on a line of its own, and its keys below, two spaces further in"
    if not isinstance(section, dict):
        raise source.error((), f"'{SECTION}' holds keys such as 'enabled: true'; {form}")
    if section:
        return
    for location, line in source.lines.items():
        name = str(location[0])
        meant = did_you_mean(name, [SECTION]) if name != SECTION else ""
        if meant or name.strip() in MISPLACED_KEYS:  # a no-break space looks like indentation
            text = f"'{name.strip()}' is no section;{meant} {form}"
            raise ConfigError((f"{source.file}, line {line}: {text}",))


def json_schema() -> dict[str, Any]:
    """Make the JSON Schema of a file with our section, for editors; it allows other sections."""
    section: Any = {SECTION: (SummarizationConfig | None, None)}
    file = create_model("File", **section)
    return {"$schema": GenerateJsonSchema.schema_dialect, **file.model_json_schema()}
