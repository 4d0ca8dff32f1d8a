"""The frame of a page: one file that loads nothing, in light and dark, on any width."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#eceff3;--line:#c9d0d9;
--bad:#b3261e;--c0:#2563a8;--c1:#b4690e;--c2:#2e7d4f;--c3:#8b3fa0;--c4:#a33a4a;--c5:#5a6472}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--paper:#15181c;--soft:#252a31;
--line:#3d4550;--bad:#ff8a80;--c0:#6ea8e6;--c1:#e0a04f;--c2:#6fc08f;--c3:#c58ad6;--c4:#e58593;--c5:#a3adba}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;
padding:1rem;max-width:60rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .25rem}p{max-width:45rem;margin:.5rem 0}
figure{margin:1.5rem 0;max-width:36rem}figcaption{font-weight:600;margin-bottom:.5rem}
figure>svg{width:100%;height:auto;display:block}svg text{font-size:11px;fill:var(--ink)}
svg .group{font-weight:600;font-size:12px}
svg .value{text-anchor:end;font-variant-numeric:tabular-nums}
.back{fill:var(--soft)}.whisker{stroke:var(--ink);stroke-width:1;fill:none}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}
.c5{fill:var(--c5)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th:first-child,td:last-child:nth-child(7){text-align:left}th{font-weight:600;overflow-wrap:anywhere}
.bad{color:var(--bad);font-weight:700}summary{cursor:pointer;font-weight:600;margin-top:2rem}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load for the page, should anything in it ask: nothing but its own style."""


def page(title: str, body: str, *, style: str = "", scripts: Sequence[str] = ()) -> str:
    """A whole page.

    Args:
        title: its title, as text.
        body: what stands in it, as HTML.
        style: CSS beyond that of every page.
        scripts: programs at its end. The browser runs these and no other, to the letter, whatever
            a transcript may hold. None may hold `</script` or `<!--`.
    """
    policy = POLICY
    if scripts:
        policy += "; script-src " + " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    ends = "".join(f"<script>{script}</script>\n" for script in scripts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n"
        f"{ends}</body>\n</html>\n"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
