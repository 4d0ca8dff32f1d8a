"""Read and write JSON so that a number keeps its text.

Python reads `1e999` as infinity and writes that as `Infinity`, which is no JSON. It writes `1e3` as
`1000.0`, and refuses an integer with many digits. Such numbers are called *odd* here.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping
from typing import Any

from conspectus_serve.protocols import HttpError

LONGEST_INTEGER = 4_000
"""The most digits of a number; Python refuses more than 4,300."""

TOO_LARGE = {
    math.inf: "1e999",
    -math.inf: "-1e999",
}  # JSON for numbers too large for a float

_FENCE = secrets.token_hex(16)  # begins a text that replaces a number; no client can know it
_FENCED_NUMBER = re.compile(f'"{_FENCE}([^"]*)"')


class OddNumber(float):
    """A number whose text Python would write in another way."""

    text: str

    @classmethod
    def of(cls, text: str) -> OddNumber:
        """Read a number, and keep its text."""
        number = cls(text)
        number.text = text
        return number


class JsonReader:
    """Read JSON, and notice numbers that Python would write in another way."""

    def __init__(self) -> None:
        self.has_odd_numbers = False
        decoder = json.JSONDecoder(
            parse_float=self._read_float,
            parse_int=self._read_integer,
            parse_constant=self._read_odd,
        )
        self.decode = decoder.decode
        self.raw_decode = decoder.raw_decode

    def _read_float(self, text: str) -> float:
        number = float(text)
        return number if repr(number) == text else self._read_odd(text)

    def _read_integer(self, text: str) -> int | float:
        is_odd = text == "-0" or len(text) > LONGEST_INTEGER
        return self._read_odd(text) if is_odd else int(text)

    def _read_odd(self, text: str) -> OddNumber:
        self.has_odd_numbers = True
        return OddNumber.of(text)


def to_json(value: Any, *, has_odd_numbers: bool) -> bytes:
    """Write JSON, with each odd number as it was read.

    `has_odd_numbers` is the attribute of the `JsonReader` that has read the value.

    Raises:
        HttpError: the value has a number that JSON does not have.
    """
    if not has_odd_numbers:
        try:
            return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        except ValueError:  # a number of a stored history, whose text is lost
            pass
    text = json.dumps(_with_fenced_numbers(value), separators=(",", ":"))
    return _FENCED_NUMBER.sub(r"\1", text).encode()


def _with_fenced_numbers(value: Any) -> Any:
    """Return a value with a text for each number that Python may write wrongly."""
    if isinstance(value, Mapping):
        return {name: _with_fenced_numbers(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_fenced_numbers(part) for part in value]
    if not isinstance(value, float):
        return value
    text = value.text if isinstance(value, OddNumber) else TOO_LARGE.get(value, repr(value))
    if not text.lstrip("-")[:1].isdigit():
        raise HttpError(400, f"the body holds {text}, which is no JSON; send a number or null")
    return f"{_FENCE}{text}"
