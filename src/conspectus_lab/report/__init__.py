"""Render a replay or a measurement as one self-contained page: tables, charts, compactions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from conspectus.errors import InputError, install_command
from conspectus_lab.evaluate import Evaluation
from conspectus_lab.replay import Replay
from conspectus_lab.report.tables import evaluation_tables, percent, replay_tables

WIDTH, HEIGHT = 900, 240
"""Size of a line chart, in the units of its SVG."""

COLOURS = ("#2563eb", "#d97706", "#6b7280", "#059669", "#9333ea", "#dc2626")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Line:
    """One policy in a line chart: points as SVG writes them, and the places of compactions."""

    title: str
    colour: str
    points: str
    marks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label, its share of the width, and its number as text."""

    label: str
    colour: str
    share: float
    text: str


def replay_page(replays: Sequence[Replay]) -> str:
    """Render some replays as HTML that needs no other file, no program and no network.

    Args:
        replays: one for each transcript. Their texts are hostile input, and are escaped.

    Raises:
        InputError: the extra `report` is not installed.

    Example:
        >>> replay_page([]).startswith("<!doctype html>")
        True
    """
    charts = [{"title": one.name, "lines": _lines(one), "window": _window(one)} for one in replays]
    tables = list(replay_tables(replays)) if replays else []
    return _page("What each policy did to the window", tables, charts=charts, replays=replays)


def evaluation_page(found: Evaluation) -> str:
    """Render a measurement as HTML that needs no other file, no program and no network.

    Args:
        found: the measurement. Names in it are hostile input, and are escaped.

    Raises:
        InputError: the extra `report` is not installed.

    Example:
        >>> from conspectus_lab.evaluate import Settings
        >>> evaluation_page(Evaluation(Settings("messages:20", 512, 10_000), (), ()))[:15]
        '<!doctype html>'
    """
    colours = {one.name: COLOURS[0 if one.ours else 1] for one in found.results}
    bars = [
        {
            "title": title,
            "bars": [
                Bar(one.label, colours[one.name], value, percent(value))
                for one in found.results
                if (value := getattr(one, name)) is not None
            ],
        }
        for title, name in (("Quoted", "quoted"), ("Questions in view", "in_view"))
    ]
    return _page("What survives a compaction", list(evaluation_tables(found)), bars=bars)


def _most(replay: Replay) -> int:
    return max([replay.window, *(run.peak for run in replay.runs)], default=1) or 1


def _window(replay: Replay) -> float:
    """Return the height of the window's line."""
    return round(HEIGHT * (1 - replay.window / _most(replay)), 1)


def _lines(replay: Replay) -> list[Line]:
    """Draw the tokens of each request, policy by policy."""
    most, longest = _most(replay), max((len(run.steps) for run in replay.runs), default=1)
    lines = []
    for colour, run in zip(COLOURS * len(replay.runs), replay.runs, strict=False):
        places = [
            (
                round(WIDTH * step.number / max(1, longest), 1),
                round(HEIGHT * (1 - step.tokens / most), 1),
            )
            for step in run.steps
        ]
        marks = tuple(p for p, step in zip(places, run.steps, strict=True) if step.compacted)
        lines.append(Line(run.title, colour, " ".join(f"{x},{y}" for x, y in places), marks))
    return lines


def check_installed() -> None:
    """Raise an `InputError` that says what to install where the extra `report` is missing."""
    _environment()


def _page(title: str, tables: Iterable[Any], **more: Any) -> str:
    known = {"title": title, "tables": tables, "width": WIDTH, "height": HEIGHT, "percent": percent}
    text: str = _environment().get_template("page.html").render(**known, **more)
    return text


def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise InputError(f"a page needs Jinja: {install_command('report')}") from error

    return Environment(
        loader=PackageLoader("conspectus_lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_writable,
    )


def _writable(value: Any) -> Any:
    """Replace what no file holds, control characters and half characters, in plain texts."""
    if type(value) is not str:
        return value
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", whole)
