"""Every regular expression in src/ takes time in proportion to the text, whoever wrote the text.

The texts are made from the pattern itself: runs of all that it repeats, behind all that may stand
before, with and without an end, and openings that are never closed. A pattern that takes quadratic
time needs seconds of a processor for 64,000 characters, one that is linear some milliseconds.
"""

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGES = sorted(path.name for path in SRC.iterdir() if (path / "__init__.py").is_file())

SHORT = 4_000
SIZES = ((SHORT, 0, 0.3), (16_000, 10, 0.1), (64_000, 64, 0.3))
"""Characters; to how much of the time for the shortest text that for a text may grow, in
proportion to 4 and to 16; and the seconds of a processor below which it is never too long."""

QUICK = 0.002
"""Seconds within which a pattern that takes quadratic time, eight million steps, cannot read the
shortest text: it needs not be tried with a longer one."""

MANY = 16  # Repeats of at most this number cannot add up
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
ANCHORED = {"match", "fullmatch"}
CALLS = {"compile", "search", "split", "sub", "subn", "findall", "finditer", *ANCHORED}

CASES = {
    sre.CATEGORY_SPACE: " ", sre.CATEGORY_DIGIT: "7", sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_SPACE: "a", sre.CATEGORY_NOT_DIGIT: "a", sre.CATEGORY_NOT_WORD: "-",
}  # fmt: skip


def member(items: Any) -> str:
    """Give a character of a class."""
    if items[0][0] is not sre.NEGATE:
        kind, value = items[0]
        if kind is sre.LITERAL:
            return chr(value)
        return chr(value[0]) if kind is sre.RANGE else CASES[value]
    bare = "[" + "".join(spelled(item) for item in items[1:]) + "]"
    return next(filter(lambda char: not re.match(bare, char), "a7 -.\n\"'é漢([{<\t"), "\u2192")


def spelled(item: Any) -> str:
    kind, value = item
    if kind is sre.LITERAL:
        return re.escape(chr(value))
    if kind is sre.RANGE:
        return "-".join(re.escape(chr(end)) for end in value)
    letter = str(value).rsplit("_", 1)[-1][0]
    return "\\" + (letter.upper() if "NOT" in str(value) else letter.lower())


def shortest(nodes: Any, groups: dict[int, str]) -> str:
    """Give a short text that the nodes match, but for what they look at around it."""
    text = ""
    for kind, value in nodes:
        if kind is sre.LITERAL:
            text += chr(value)
        elif kind is sre.NOT_LITERAL:
            text += "b" if value == ord("a") else "a"
        elif kind is sre.ANY:
            text += "a"
        elif kind is sre.IN:
            text += member(value)
        elif kind is sre.BRANCH:
            text += shortest(value[1][0], groups)
        elif kind is sre.SUBPATTERN:
            groups[value[0]] = shortest(value[3], groups)
            text += groups[value[0]]
        elif kind is sre.ATOMIC_GROUP:
            text += shortest(value, groups)
        elif kind is sre.GROUPREF:
            text += groups.get(value, "")
        elif kind in REPEATS:
            text += shortest(value[2], groups) * max(value[0], 1)
    return text


def repeated(nodes: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Find what may be repeated often: the text before it, and one repetition."""
    for node in nodes:
        kind, value = node
        if kind in REPEATS and value[1] > MANY:
            for branch in branches(value[2]):
                yield before, branch
        inner: list[Any] = []
        if kind in REPEATS:
            inner = [value[2]]
        elif kind is sre.SUBPATTERN:
            inner = [value[3]]
        elif kind is sre.ATOMIC_GROUP:
            inner = [value]
        elif kind is sre.BRANCH:
            inner = list(value[1])
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            inner = [value[1]]
        for part in inner:
            yield from repeated(part, before)
        before += shortest([node], {})


def branches(nodes: Any) -> Iterator[str]:
    """Give a short text for each way of one repetition."""
    parts = list(nodes)
    if len(parts) == 1 and parts[0][0] is sre.BRANCH:
        for branch in parts[0][1][1]:
            yield shortest(branch, {})
    elif len(parts) == 1 and parts[0][0] is sre.SUBPATTERN:
        yield from branches(parts[0][1][3])
    elif len(parts) == 1 and parts[0][0] is sre.IN:
        for item in parts[0][1]:
            yield member([item]) if item[0] is not sre.NEGATE else member(parts[0][1])
            if item[0] is sre.NEGATE:
                break
    else:
        yield shortest(nodes, {})


def hostile(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Make texts without an end, each a unit that is repeated, and what stands before and after."""
    source = pattern.pattern
    text = source.decode("latin-1") if isinstance(source, bytes) else source
    tree = _parser.parse(text, pattern.flags & ~re.UNICODE & ~re.DEBUG)
    units: dict[tuple[str, str, str], None] = {}
    whole = shortest(tree, {})
    found = dict.fromkeys(repeated(tree))
    for before, unit in found:
        units |= dict.fromkeys([("", unit, ""), (before, unit, "\0"), ("", before + unit, "\0")])
        units |= dict.fromkeys([("", before, ""), (before, unit + "\n", ""), ("", unit + " ", "")])
    runs = list(dict.fromkeys(unit for _, unit in found))
    for one, other in pairwise(runs):
        units["", one + other, "\0"] = None
    units["", whole, "\0"] = units["", whole[:-1], ""] = units["", whole[:1], ""] = None
    for before, unit, after in units:
        if unit:
            yield f"{before}\1{unit}\1{after}"


def text_of(recipe: str, size: int) -> str:
    before, unit, after = recipe.split("\1")
    return before + unit * (size // len(unit)) + after


def seconds(use: Callable[[Any], object], text: Any) -> float:
    began = time.process_time()
    use(text)
    return time.process_time() - began


def slow(pattern: re.Pattern[Any], anchored: bool) -> str:
    """Say for which text a pattern takes more than its share of time; empty if for none."""

    def use(text: Any) -> object:
        if anchored:
            return pattern.match(text), pattern.fullmatch(text)
        return sum(1 for _ in pattern.finditer(text))

    for recipe in hostile(pattern):
        if len(recipe) > SHORT // 4:
            continue
        took = []
        for size, growth, least in SIZES:
            text: Any = text_of(recipe, size)
            text = text.encode() if isinstance(pattern.pattern, bytes) else text
            took.append(seconds(use, text))
            if took[-1] > least and took[-1] > growth * (took[0] if len(took) > 1 else 0):
                return f"{took[-1]:.1f} s for {len(text):,} characters of {recipe!r:.80}"
            if took[0] < QUICK:
                break
    return ""


@cache
def written(package: str) -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Find a package's patterns by their place: those of modules, and those in calls of `re`."""
    places: dict[str, tuple[re.Pattern[Any], bool]] = {}
    for path in sorted((SRC / package).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in CALLS - {"compile"}
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                place = f"{path.relative_to(SRC)} re.{node.func.attr} {node.args[0].value!r}"
                places[place] = re.compile(node.args[0].value), node.func.attr in ANCHORED
    for module in modules(package):
        for name, value in vars(module).items():
            for number, pattern in enumerate(patterns_in(value)):
                anchored = only_matched(name, Path(module.__file__).read_text(encoding="utf-8"))
                where = f"{module.__name__} {name}"
                places[f"{where} {number}" if number else where] = pattern, anchored
    seen: set[tuple[re.Pattern[Any], bool]] = set()
    return {
        place: made for place, made in places.items() if made not in seen and not seen.add(made)
    }


def only_matched(name: str, source: str) -> bool:
    """Tell whether a module uses a pattern of its own at the start of texts only."""
    uses = re.findall(rf"(?<!\n)\b{name}\b(?:\.(?:match|fullmatch)\(([^(),]*[,)]))?", source)
    return name.startswith("_") and all(use and not use.endswith(",") for use in uses)


def modules(package: str) -> Iterator[Any]:
    for path in sorted((SRC / package).rglob("*.py")):
        if "re.compile(" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SRC).with_suffix("").parts
            yield importlib.import_module(".".join(parts).removesuffix(".__init__"))


def patterns_in(value: Any, depth: int = 2) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from patterns_in(part, depth - 1)
    elif depth and isinstance(value, dict):
        yield from patterns_in(list(value.values()), depth)


def test_there_are_patterns_to_try():
    found = written("conspectus")
    assert len(found) > 20
    assert any(anchored for _, anchored in found.values())


@pytest.mark.parametrize(
    ("pattern", "anchored"),
    [(r"\s*x", False), (r"\w+=", False), (r"a*a*b", True), (r"<.*>", False)],
)
def test_patterns_that_are_not_linear_are_noticed(pattern, anchored):
    assert slow(re.compile(pattern), anchored)


@pytest.mark.parametrize(
    "package",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "conspectus_secrets" else [])
        for name in PACKAGES
    ],
)
def test_every_pattern_is_linear(package):
    wrong = {place: said for place, made in written(package).items() if (said := slow(*made))}
    assert not wrong, "\n".join(f"{place}: {said}" for place, said in wrong.items())
