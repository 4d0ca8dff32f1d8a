"""Render pages from templates: one file that loads nothing, light and dark, any width."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conspectus.errors import InputError, install_command

if TYPE_CHECKING:
    from jinja2 import Environment

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load for the page: only its own style."""

_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
"""Characters that HTML or UTF-8 cannot hold, and invisible turns of direction."""


def templates() -> Environment:
    """Load the templates of pages.

    Every value in them is escaped, and characters that a page cannot hold are written as codes.

    Raises:
        InputError: the extra `report` is not installed; says how to install it.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        text = f"a page needs Jinja, which is not installed: {install_command('report')}"
        raise InputError(text) from error
    made = Environment(
        loader=PackageLoader("conspectus_lab.report"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["commas"] = "{:,}".format
    return made


def page(name: str, styles: Sequence[str], scripts: Sequence[str] = (), **values: Any) -> str:
    """Render a whole page.

    Args:
        name: of its template.
        styles: files of CSS, in order.
        scripts: files of programs at its end, the only ones that the browser runs. None may hold
            `</script` or `<!--`.
        values: for the template: hostile input, which is escaped.

    Raises:
        InputError: the extra `report` is not installed.
    """
    made = templates()
    from markupsafe import Markup

    here = files("conspectus_lab.report") / "templates"
    style = "".join((here / name).read_text(encoding="utf-8") for name in styles)
    programs = [(here / name).read_text(encoding="utf-8") for name in scripts]
    policy = POLICY
    if programs:
        policy += "; script-src " + " ".join(f"'sha256-{_digest(one)}'" for one in programs)
    return made.get_template(name).render(
        values, policy=policy, style=Markup(style), scripts=[Markup(one) for one in programs]
    )


def visible(text: str) -> str:
    """Write characters that no page can show as their codes.

    Example:
        >>> visible("<b>\\x00")
        '<b>\\\\x00'
    """
    return _UNSEEN.sub(lambda found: _code(found[0]), text)


def _visible(value: Any) -> Any:
    return visible(value) if type(value) is str else value


def _code(c: str) -> str:
    return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
