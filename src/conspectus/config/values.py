"""Types of values in the `summarization:` section."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from conspectus._core.policy import SMALLEST_SUMMARY
from conspectus._core.stale import LEAST_OVER
from conspectus.config.source import Secret
from conspectus.messages.recalled import LEAST_RECALL

_PLAIN = re.compile(r"true|false|[-+]?(?:\d+|\d*\.\d+)", re.IGNORECASE)


def unwrapped(value: Any) -> Any:
    """Turn a variable's text into the number or truth value in it."""
    if not isinstance(value, Secret) or not _PLAIN.fullmatch(text := value.strip()):
        return value
    if text[-1].isalpha():
        return text.lower() == "true"
    return float(text) if "." in text else int(text)


def _kept(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Check a text; a secret stays one."""
    checked = check(value)
    return value if isinstance(value, Secret) else checked


def _off(value: Any) -> Any:
    return "off" if value is False else value  # YAML reads a bare `off` as false


LONGEST = 86_400  # Most seconds of one call: a day; clocks overflow far above
MOST = 10**12  # More tokens than any window has; fractions overflow far above
Whole = Annotated[int, Field(ge=1, le=MOST), BeforeValidator(unwrapped)]  # A whole number above 0

LeastSummary = Annotated[int, Field(ge=SMALLEST_SUMMARY, le=MOST), BeforeValidator(unwrapped)]
LeastRecall = Annotated[int, Field(ge=LEAST_RECALL, le=MOST), BeforeValidator(unwrapped)]
Reserve = Annotated[int, Field(ge=0, le=MOST), BeforeValidator(unwrapped)]
Seconds = Annotated[float, Field(gt=0, le=LONGEST), BeforeValidator(unwrapped)]

Newest = Annotated[int, Field(ge=0), BeforeValidator(unwrapped)]
Over = Annotated[int, Field(ge=LEAST_OVER), BeforeValidator(unwrapped)]
Share = Annotated[float, Field(ge=0, lt=1), BeforeValidator(unwrapped)]

Recalls = Annotated[Literal["off", "tool", "auto"], BeforeValidator(_off)]
Flag = Annotated[bool, BeforeValidator(unwrapped)]
Text = Annotated[str, Field(min_length=1), WrapValidator(_kept)]
Kind = Literal["tokens", "messages", "fraction"]


class Plain(BaseModel):
    """A part of the section: no unknown keys, no conversions."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, protected_namespaces=()
    )
