"""Every regular expression in src/ takes time in proportion to the text, whoever wrote the text.

The texts are made from what a pattern names: runs of its signs and words, behind each of its words,
with and without an end. A pattern that takes quadratic time needs seconds of a processor for 64,000
characters, one that is linear some milliseconds.
"""

import ast
import importlib
import re
import time
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGES = sorted(path.name for path in SRC.iterdir() if (path / "__init__.py").is_file())

SIZES = ((4_000, 0.002), (16_000, 0.02), (64_000, 0.9))
"""Characters, and seconds of a processor that a pattern of quadratic time takes at least for them,
with some eight million steps for the shortest text: where one takes less, it is linear."""

ANCHORED = {"match", "fullmatch"}
CALLS = {"search", "split", "sub", "subn", "findall", "finditer", *ANCHORED}

ALWAYS = (" ", "\n", "a", "A", "7", "-", ".", "<", "é")
"""Runs that are tried with each pattern: one of each class that patterns name."""


def hostile(source: str) -> Iterator[tuple[str, str, str]]:
    """Yield beginnings, what is repeated, and ends, for a pattern's source."""
    without_groups = re.sub(
        r"\(\?(?:P<\w+>|[a-zA-Z-]*:|[=!<]{1,2})|\\[bBAZdDwWsS]|[{}\d,]+(?=\})", " ", source
    )
    words = list(dict.fromkeys(re.findall(r"[A-Za-z_]{2,20}|[^\w\s]{2,8}", without_groups)))[:12]
    signs = list(dict.fromkeys([*ALWAYS, *re.findall(r"[^\w\s]", without_groups)]))[:24]
    for beginning in ("", *words):
        yield from ((beginning, sign, end) for sign in signs for end in ("", "\0"))
    units = [*words, *(word + " " for word in words), *(word + "=" for word in words)]
    yield from (("", unit, "\0") for unit in units)
    yield from (("", first + second, "\0") for first, second in pairwise([*signs, *words]))
    yield from (("", word + sign, "\0") for word in words for sign in signs)


def slowness(pattern: re.Pattern[Any], anchored: bool) -> str:
    """Say for which text a pattern takes more than its share of time; empty if for none."""
    is_bytes = isinstance(pattern.pattern, bytes)
    source = pattern.pattern.decode("latin-1") if is_bytes else pattern.pattern
    for beginning, unit, end in hostile(source):
        for size, seconds_if_quadratic in SIZES:
            text: Any = beginning + unit * (size // len(unit)) + end
            text = text.encode() if is_bytes else text
            # Only what is slow each time is slow: the machine may do other things, too.
            if any(
                (seconds := processor_seconds(pattern, text, anchored)) < seconds_if_quadratic
                for _ in range(3)
            ):
                break
            if seconds > 1 or size == SIZES[-1][0]:
                return (
                    f"{seconds:.1f} s for {size:,} characters of {beginning!r}, {unit!r}, {end!r}"
                )
    return ""


def processor_seconds(pattern: re.Pattern[Any], text: Any, anchored: bool) -> float:
    """Seconds of a processor that a pattern takes for a text."""
    began = time.process_time()
    if anchored:
        pattern.match(text), pattern.fullmatch(text)
    else:
        sum(1 for _ in pattern.finditer(text))
    return time.process_time() - began


@cache
def patterns_of(package: str) -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Find a package's patterns by their place: those of modules, and those in calls of `re`."""
    pattern_by_place: dict[str, tuple[re.Pattern[Any], bool]] = {}
    for path in sorted((SRC / package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and (node.func.value.id, node.func.attr in CALLS) == ("re", True)
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                pattern_name = f"{path.relative_to(SRC)} re.{node.func.attr} {node.args[0].value!r}"
                pattern_by_place[pattern_name] = (
                    re.compile(node.args[0].value),
                    node.func.attr in ANCHORED,
                )
        if "re.compile(" in source:
            name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
            for variable, value in vars(importlib.import_module(name)).items():
                for number, pattern in enumerate(patterns_in(value)):
                    anchored = only_matched(variable, source)
                    pattern_by_place[f"{name} {variable} {number}"] = pattern, anchored
    return {
        pattern_name: compiled
        for compiled, pattern_name in {
            compiled: pattern_name for pattern_name, compiled in pattern_by_place.items()
        }.items()
    }


def only_matched(name: str, source: str) -> bool:
    """Tell whether a module uses a pattern of its own at the start of texts only."""
    uses = re.findall(rf"(?<!\n)\b{name}\b(?:\.(?:match|fullmatch)\(([^(),]*[,)]))?", source)
    return name.startswith("_") and all(use and not use.endswith(",") for use in uses)


def patterns_in(value: Any, depth: int = 2) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    parts = value.values() if isinstance(value, dict) else value
    if depth and isinstance(value, (dict, list, tuple, set, frozenset)):
        for part in parts:
            yield from patterns_in(part, depth - 1)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_pattern_is_linear(package):
    slow_patterns = {
        pattern_name: problem
        for pattern_name, compiled in patterns_of(package).items()
        if (problem := slowness(*compiled))
    }
    assert not slow_patterns, "\n".join(
        f"{pattern_name}: {problem}" for pattern_name, problem in slow_patterns.items()
    )
