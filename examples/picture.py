"""Draw the picture of the README: what the demo's compaction does, to scale.

    python examples/picture.py docs/before_after.svg

It compacts the recorded session as `make demo` does. One unit of width is the same number of tokens
in all bars. Tokens are rounded to hundreds, as ids are random and take a few.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from conspectus import Archive, Compactor
from conspectus.tokens import TokenMeter

TRANSCRIPT = Path(__file__).resolve().parent / "data" / "demo-transcript.json"
WINDOW = 8_000
WIDTH = 800  # of the bar of the whole session, in units of the picture
LEFT = 30

PICTURE = Template("""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 330" font-family="system-ui, sans-serif" \
font-size="14" role="img" aria-label="Before: $messages messages, $before tokens; the window of \
the model has $window. After: the system prompt, notes and the newest messages take $after tokens; \
$archived originals are in the archive and can be recalled.">
  <rect width="860" height="330" rx="10" fill="#f6f8fa"/>
  <g fill="#1f2933" font-size="16" font-weight="600">
    <text x="$left" y="36">Before: $messages messages, $before tokens</text>
    <text x="$left" y="186">After: $after tokens</text>
  </g>
  <rect x="$left" y="54" width="$width" height="46" fill="#e0a3a3"/>
  <rect x="$left" y="54" width="$window_width" height="46" fill="#8fb4de"/>
  <rect x="$left" y="206" width="$system_width" height="46" fill="#5c7fa8"/>
  <rect x="$summary_left" y="206" width="$summary_width" height="46" fill="#f0c36d"/>
  <rect x="$kept_left" y="206" width="$kept_width" height="46" fill="#8fb4de"/>
  <path d="M$window_right 46 V124 M$window_right 198 V260" stroke="#1f2933" \
stroke-width="2" stroke-dasharray="5 4"/>
  <g fill="#1f2933">
    <text x="$beside_window" y="122">window of the model: $window tokens</text>
    <text x="420" y="83" fill="#5b2020">does not fit: $times times the window</text>
    <text x="$left" y="292">system prompt, <tspan fill="#8a5a00">notes</tspan>, newest messages: \
$view messages in all</text>
    <text x="$left" y="312" fill="#52606d">all bars have one scale</text>
  </g>
  <g stroke="#1f2933" fill="#d7e3d4">
    <path d="M560 206 v70 a90 16 0 0 0 180 0 v-70"/>
    <ellipse cx="650" cy="206" rx="90" ry="16"/>
  </g>
  <g fill="#1f2933" text-anchor="middle">
    <text x="650" y="248" font-weight="600">archive</text>
    <text x="650" y="268">$archived originals</text>
    <text x="424" y="205">archive first, then replace</text>
    <text x="424" y="263">recall by words, id or range</text>
  </g>
  <g stroke="#1f2933" stroke-width="2" fill="none">
    <path d="M308 214 H546" marker-end="url(#tip)"/>
    <path d="M552 244 H314" marker-end="url(#tip)"/>
  </g>
  <defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">\
<path d="M0 0 L9 4 L0 8 z" fill="#1f2933"/></marker></defs>
</svg>
""")


def draw(transcript: Path = TRANSCRIPT) -> str:
    """Compact the session and return the picture."""
    messages = json.loads(transcript.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, Archive.open(f"{folder}/a.db") as archive:
        compactor = Compactor(window=WINDOW, keep=("messages", 20), archive=archive)
        result = compactor.compact(messages, thread_id="demo")
    view = result.messages
    after = result.tokens_after
    meter = TokenMeter()
    system, summary = meter.count_messages(view[:1]), meter.count_messages(view[1:2])

    def units(tokens: int) -> int:
        return round(tokens * WIDTH / result.tokens_before)

    return PICTURE.substitute(
        messages=f"{len(messages):,}",
        before=f"{round(result.tokens_before, -2):,}",
        after=f"{round(after, -2):,}",
        window=f"{WINDOW:,}",
        times=round(result.tokens_before / WINDOW),
        view=len(view),
        archived=f"{result.evicted:,}",
        left=LEFT,
        width=WIDTH,
        window_width=units(WINDOW),
        window_right=LEFT + units(WINDOW),
        beside_window=LEFT + units(WINDOW) + 6,
        system_width=units(system),
        summary_left=LEFT + units(system),
        summary_width=units(summary),
        kept_left=LEFT + units(system + summary),
        kept_width=units(after - system - summary),
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), encoding="utf-8")
