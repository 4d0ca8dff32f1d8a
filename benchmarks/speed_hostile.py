"""What the scans of foreign text cost for hostile texts, plain prose of the same size = 1.

A scan that leaves prose at a first glance, as it holds no sign that could matter, is compared with
the cost of finding the words of that prose, if that is more: that is the plainest pass over a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tables import KINDS, Row, cpu, prose

from conspectus.archive.passages import original_of
from conspectus.messages import read_messages
from conspectus.messages.framing import is_recalled_text, signature_of, summary_text
from conspectus.messages.harmless import as_notes
from conspectus.messages.message import sendable
from conspectus.messages.shortening import clip_message
from conspectus.model.base import SummaryRequest
from conspectus.model.gate import LONGEST_ANSWER_CHARACTERS, reason_not_a_summary
from conspectus.notes.extraction import extract_notes
from conspectus.recall.hits import Hit
from conspectus.recall.packing import Packing
from conspectus.recall.query_terms import exact_phrases, weighted_terms
from conspectus.rules import find_rules
from conspectus.tokens import TokenMeter
from conspectus_secrets import SecretRedactor

SIZE, SCREENED, QUICK = 1_000_000, 40_000, 100_000
"""Bytes of the texts that are compared; of those by which the worst kinds are chosen; and of the
former in a quick run."""

WORST = 6  # kinds of each scan that are compared in full
MOST = 10  # times the processor's time for prose
_WORD = re.compile(r"\w+")

REDACTOR, METER = SecretRedactor(), TokenMeter(model="gpt-4o")


def redact(text: str) -> None:
    REDACTOR.redact(text)


def index(text: str) -> None:
    """Read a message, and take it apart for the index of words."""
    [entry] = read_messages([{"role": "user", "content": text}])
    original_of(entry, b"")


def ask(text: str) -> None:
    """Read a question, and show a found message."""
    weighted_terms(text)
    exact_phrases(text)
    hit = Hit("m1", "m1", "k", "user", None, None, text, whole=len(text))
    packing = Packing(2_000, METER.count_text)
    packing.offer_found(hit)
    packing.result()


def take_notes(text: str) -> None:
    """Read a message of the user, a call and its result as lines of the notes."""
    function = {"name": "run", "arguments": text}
    call = {"id": "c", "type": "function", "function": function}
    history = [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": text},
    ]
    extract_notes(read_messages(history))


def frame(text: str) -> None:
    """Make a text harmless, and look for our own marks in it."""
    is_recalled_text(text)
    signature_of(summary_text(as_notes(sendable(text)), archived=True))


def measure(text: str) -> None:
    """Measure a message, and shorten it."""
    [entry] = read_messages([{"role": "user", "content": text}])
    clip_message(entry, 500, METER.count_message)


def judge(text: str) -> None:
    """Judge whether the longest text that is read as a summary tells of a message."""
    entries = read_messages([{"role": "user", "content": text}])
    request = SummaryRequest(entries, "", limit=4_000, count=METER.count_text)
    reason_not_a_summary(text[:LONGEST_ANSWER_CHARACTERS], request)


SCANS: dict[str, Callable[[str], None]] = {
    "redaction": redact,
    "recall, messages": index,
    "recall, questions": ask,
    "notes": take_notes,
    "rules": find_rules,
    "framing": frame,
    "tokens": measure,
    "summaries": judge,
}


def rows(quick: bool) -> Iterator[Row]:
    """Compare each scan of the kinds that are worst for it with that of prose."""
    size = QUICK if quick else SIZE
    plain = prose(size)
    plain_pass = _least(lambda text: _WORD.findall(text), plain, 3)
    screened = {name: of_bytes(make(SCREENED), SCREENED) for name, make in KINDS.items()}
    for scan, run in SCANS.items():
        run(plain[:1_000])
        costs = {name: _least(run, text, 1) for name, text in screened.items()}
        worst = sorted(costs, key=costs.__getitem__, reverse=True)[:WORST]
        of_prose = _least(run, plain, 3)
        spent = {name: _least(run, of_bytes(KINDS[name](size), size), 2) for name in worst}
        name = max(spent, key=spent.__getitem__)
        base = max(of_prose, plain_pass)
        detail = f"{name}: {spent[name]:,.0f} ms; prose {of_prose:,.1f} ms"
        if plain_pass > of_prose:
            detail += f", to find its words {plain_pass:,.1f} ms"
        title = f"{scan} of hostile texts of {size:,} bytes, the worst kind, prose = 1"
        yield Row(title, spent[name] / base, MOST, "x", f"{detail}; {len(KINDS)} kinds")


def of_bytes(text: str, size: int) -> str:
    """Return as much of a text as takes so many bytes."""
    encoded = text.encode("utf-8", "surrogatepass")[:size]
    while encoded:
        try:
            return encoded.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # it ends within a character
            encoded = encoded[:-1]
    return ""


def _least(run: Callable[[str], object], text: str, times: int) -> float:
    return min(cpu(lambda: run(text)) for _ in range(times))
