"""Read and write JSON so that a number keeps its text.

Python reads `1e999` as infinity and writes that as `Infinity`, which no other reader takes. It
writes `1e3` as `1000.0`, and refuses an integer of many digits.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping
from typing import Any

from conspectus_serve.protocols import Refusal

MOST_DIGITS = 4_000  # of an integer that Python reads and writes; it refuses 4,300
OVER = {math.inf: "1e999", -math.inf: "-1e999"}  # JSON for numbers that a float cannot hold

_FENCE = secrets.token_hex(16)  # around the text of a number in a text that stands for it
_FENCED = re.compile(f'"{_FENCE}([^"]*)"')


class Number(float):
    """A number whose text Python would write in another way."""

    text: str

    @classmethod
    def of(cls, text: str) -> Number:
        """Read a number, and keep its text."""
        number = cls(text)
        number.text = text
        return number


class Reader:
    """Read JSON; `odd` says whether there was a number that Python would write in another way."""

    def __init__(self) -> None:
        self.odd = False
        decoder = json.JSONDecoder(
            parse_float=self._read_float,
            parse_int=self._read_integer,
            parse_constant=self._read_odd,
        )
        self.decode, self.raw_decode = decoder.decode, decoder.raw_decode

    def _read_float(self, text: str) -> float:
        number = float(text)
        return number if repr(number) == text else self._read_odd(text)

    def _read_integer(self, text: str) -> int | float:
        return self._read_odd(text) if text == "-0" or len(text) > MOST_DIGITS else int(text)

    def _read_odd(self, text: str) -> Number:
        self.odd = True
        return Number.of(text)


def written(value: Any, *, odd: bool) -> bytes:
    """Write JSON; `odd` as of the `Reader`. Raises Refusal for what JSON has no number for."""
    if not odd:
        try:
            return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        except ValueError:  # a number of a history that was held, without its text
            pass
    text = json.dumps(_fenced(value), separators=(",", ":"))
    return _FENCED.sub(r"\1", text).encode()


def _fenced(value: Any) -> Any:
    """Return a value with texts in the place of numbers that Python would write wrongly."""
    if isinstance(value, Mapping):
        return {name: _fenced(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_fenced(part) for part in value]
    if not isinstance(value, float):
        return value
    text = value.text if isinstance(value, Number) else OVER.get(value, repr(value))
    if not text.lstrip("-")[:1].isdigit():
        raise Refusal(400, f"the body holds {text}, which is no JSON; send a number or null")
    return f"{_FENCE}{text}"
