"""Types of values in the `summarization:` section."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from conspectus._core.policy import SMALLEST_SUMMARY
from conspectus._core.sizes import KINDS, Unit
from conspectus._core.stale import LEAST_OVER
from conspectus.compactor.background import PREPARE
from conspectus.config.source import Secret
from conspectus.config.words import nearest
from conspectus.messages.recalled import LEAST_RECALL

_PLAIN = re.compile(r"true|false|[-+]?(?:\d+|\d*\.\d+)", re.IGNORECASE)


def unwrapped(value: Any) -> Any:
    """Turn a variable's text into the number or truth value in it."""
    if not isinstance(value, Secret) or not _PLAIN.fullmatch(text := value.strip()):
        return value
    if text[-1].isalpha():
        return text.lower() == "true"
    return float(text) if "." in text else int(text)


Unwrapped = BeforeValidator(unwrapped)


def _kept(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Check a text; a secret stays one."""
    checked = check(value)
    return value if isinstance(value, Secret) else checked


LONGEST = 86_400  # Most seconds of one call: a day; clocks overflow far above
MOST = 10**12  # More tokens than any window has; fractions overflow far above
Whole = Annotated[int, Field(ge=1, le=MOST), Unwrapped]  # A whole number above 0

LeastSummary = Annotated[int, Field(ge=SMALLEST_SUMMARY, le=MOST), Unwrapped]
LeastRecall = Annotated[int, Field(ge=LEAST_RECALL, le=MOST), Unwrapped]
Reserve = Annotated[int, Field(ge=0, le=MOST), Unwrapped]
Seconds = Annotated[float, Field(gt=0, le=LONGEST), Unwrapped]

Newest = Annotated[int, Field(ge=0), Unwrapped]
Over = Annotated[int, Field(ge=LEAST_OVER), Unwrapped]
Share = Annotated[float, Field(ge=0, lt=1), Unwrapped]

_named = BeforeValidator(lambda given: "off" if given is False else given)  # YAML's bare `off`
Recalls = Annotated[Literal["off", "tool", "auto"], _named]
Flag = Annotated[bool, Unwrapped]
Text = Annotated[str, Field(min_length=1), WrapValidator(_kept)]


class Plain(BaseModel):
    """A part of the section: no unknown keys, no conversions."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, protected_namespaces=()
    )


class Size(Plain):
    """A size: a number of tokens, of messages, or a share of the model's window."""

    type: Unit = Field(description="tokens, messages, or fraction of the answering model's window")
    value: Annotated[int | float, Unwrapped] = Field(
        description="a whole number above 0; for a fraction, above 0 and at most 1"
    )

    @field_validator("value")
    @classmethod
    def _means_something(cls, value: float, info: ValidationInfo) -> float:
        return _amount(info.data.get("type"), value)

    @property
    def pair(self) -> tuple[Unit, int | float]:
        """The size in the middleware's form."""
        return self.type, self.value

    def __str__(self) -> str:
        return in_words(self.type, self.value)


class AllOf(Plain):
    """Sizes that must all be reached."""

    tokens: Whole | None = Field(None, description="a whole number above 0")
    messages: Whole | None = Field(None, description="a whole number above 0")
    fraction: Annotated[float, Unwrapped] | None = Field(None, description="above 0 and at most 1")

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

    prepare: Annotated[float, Field(gt=0, le=1), Unwrapped] = Field(
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
