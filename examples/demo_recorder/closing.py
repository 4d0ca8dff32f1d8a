"""The last tasks: error messages, a page of limits, a question, a moved deadline, the end."""

from __future__ import annotations

import re

from demo_recorder import scripts
from demo_recorder.session import Hit, Session, apart, failures, first, hits, pairs, verdict

WIDE = r"def |class |return|raise|import|yield|assert|for | if "

_ERROR_TESTS = '''"""Errors about archived messages say what to do next."""

import pytest

from conspectus.errors import MessageError
from conspectus.messages import decode


@pytest.mark.parametrize("text", ["no JSON at all", "{}", "[1, 2]"])
def test_a_damaged_message_names_the_way_out(text):
    with pytest.raises(MessageError, match="archive it again"):
        decode("langchain", text, None)
'''


def error_messages(s: Session) -> None:
    """A review of every raise; it starts with a search that is far too wide."""
    s.user(
        "Now the error messages. Every error we raise should tell the reader what to do next. "
        "Check all of them in these layers and mend the worst one. Look as widely as you like."
    )
    wide = s.call(
        "search",
        "Everything that defines, raises, returns or checks, to have it side by side.",
        pattern=WIDE,
        path="src/conspectus",
    )
    s.say(
        f"That was too wide: {len(hits(wide)):,} lines, most of them of no use here. What matters "
        "is the text behind each raise, so I ask for those alone."
    )
    found = s.find(r"raise \w+(Error|Rejected|Timeout|Overflow|Unconfirmed)\(")
    for pair in pairs(apart(found))[:9]:
        s.read_pair(pair, 5, 7)
    weak = hits(s.python(scripts.RAISED, "Those with neither a `must` nor advice after it:"))
    s.say(
        f"{len(found)} places raise an error of ours; {len(weak)} of them say what is wrong and "
        "not what to do. The one about archived messages is the worst, because whoever reads it "
        "has just failed to get back something that we promised to keep."
    )
    target = first(s.find(r"cannot be read: \{error\}"), "the error about archived messages")
    s.around(target, 14, 6)
    path = "tests/test_archived_message_errors.py"
    s.edit(path, "", _ERROR_TESTS, "The test of this task.")
    s.test(path)
    better = target.text.replace(
        "cannot be read: {error}",
        "cannot be read: {error}; archive it again",
    )
    s.edit(target.path, target.text, better)
    out = s.test(path)
    reasons = failures(out)
    s.say(
        f"{verdict(out)}. "
        + (
            f"What is left: {reasons[0]}. The test asks for more than this place can give: "
            "a text that is valid JSON of another shape takes another way through the function."
            if reasons
            else "All three damaged texts lead to the advice."
        )
    )
    out = s.test("tests")
    s.say(
        f"{verdict(out)}. I decided to mend this one only, because the others are raised while a "
        "policy or a message is being written, where the fault is in front of the reader's eyes. "
        f"Pending: advice for the other {max(0, len(weak) - 1)}."
    )


def limits_page(s: Session) -> None:
    """A page for the docs, made from the code and checked against it."""
    s.user(
        "Docs: please write docs/limits.md, a table of the module constants that are plain "
        "numbers, with value, file and one short line each. Check the page against the code by a "
        "script, so that nobody has to trust either of us."
    )
    constants = [
        hit
        for hit in s.find(r"^[A-Z][A-Z_]+ = [\d._]+( / \d+)?$", why="Constants that are numbers:")
        if hit.path.startswith("src/")
    ]
    first(constants, "constants that are numbers")
    rows = []
    for pair in pairs(constants):
        texts = s.read_pair(pair, 4, 8)
        rows += [_row(hit, text) for hit, text in zip(pair, texts, strict=True)]
    page = (
        "# Limits\n\nNumbers that the code decides by. They are no settings.\n\n"
        "| name | value | file | what it is |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )
    s.edit("docs/limits.md", "", page, "One row for each, in the order of the search.")
    out = s.python(scripts.DOCUMENTED_LITERALS, "Are the values on the page readable as Python?")
    if "Error" in out:
        s.say(
            "One value is written as a division, and a literal parser takes no operators. The "
            "page is right and my check too strict: I compare with the imported modules instead."
        )
    out = s.python(scripts.DOCUMENTED_VALUES)
    s.read("docs/limits.md", 1, 30, "The page as it stands.")
    s.say(
        f"docs/limits.md is written; {verdict(out)}. I decided to take the values from the search "
        "result and not to type them, because a typed number is wrong sooner or later."
    )


def _row(hit: Hit, text: str) -> str:
    """A row of the table, with the first words of the note below the constant, if it has one."""
    name, _, value = hit.text.partition(" = ")
    below = "\n".join(line for line in text.split("\n") if int(line[:5]) == hit.line + 1)
    told = re.search(r'^ *\d+ "{3}(.+?)(?:[.:;]|"{3}|$)', below)
    return f"| `{name}` | `{value}` | `{hit.path}` | {told[1] if told else 'see the code'} |"


def pure_core(s: Session) -> None:
    """An audit question and a question for the docs."""
    s.user(
        "Two questions, no changes. Where in src/conspectus/_core do we depend on a clock, on "
        "randomness or on the order of a set? And in two or three sentences for the docs: how do "
        "the answers of a plan differ?"
    )
    core = "src/conspectus/_core"
    _, imported, _ = s.together(
        [
            ("search", {"pattern": r"\b(time|random|uuid|secrets|datetime)\b", "path": core}),
            ("search", {"pattern": r"^(import|from) ", "path": core}),
            ("search", {"pattern": r"\b(frozenset|set)\(|\{\w+ for ", "path": core}),
        ],
        "Three searches at once: clocks and dice, imports, sets.",
    )
    sets = s.find(r"for \w+ in (sorted\()?(frozenset|set|\{)|\{\w+ for ", core)
    for hit in sets[:5]:
        s.around(hit, 3, 6, "Is this set walked in its own order anywhere?")
    answers = s.find(r"^class (Keep|Compact|Stuck|Clip)\b|^Plan = ", core, "And the answers:")
    for hit in answers[:4]:
        s.around(hit, 2, 16)
    given = s.find(r"return (Keep|Compact|Stuck)\(", core, "Where each is given:")
    for hit in apart(given)[:4]:
        s.around(hit, 6, 10)
    tainted = [
        hit
        for hit in hits(imported)
        if re.match(r"(from|import) (time|random|uuid|secrets|datetime)\b", hit.text)
    ]
    who = ", ".join(hit.path for hit in tainted) or f"nothing in {core}"
    s.say(
        f"Clock and randomness: {who} imports either, and the waiting "
        "times there are data that a driver acts on. Sets are used for membership; where one is "
        "walked and the order could show, it is sorted first.\n"
        "For the docs: `Keep` leaves the history as it is and gives the reason. `Compact` names "
        "the spans that leave and the messages shown short, and promises a size that it stays "
        "under. `Stuck` means that what has to stay is larger than the room, and carries both "
        "numbers."
    )


def moved_deadline(s: Session) -> None:
    """The deadline moves; the agent gives its state."""
    s.user(
        "News: the deadline for this branch has moved to Monday at 12:00. Before I tell the "
        "others: does the whole set of tests pass, are the older test files untouched, and what is "
        "still pending?"
    )
    out = s.test("tests", "All tests, from a clean start.")
    s.python(
        "import hashlib, pathlib\n"
        "for file in sorted(pathlib.Path('tests').glob('test_*.py')):\n"
        "    print(file.as_posix(), hashlib.sha256(file.read_bytes()).hexdigest()[:12])",
        "Fingerprints of the test files.",
    )
    s.python(scripts.LONG_FUNCTIONS.format(cap=60), "The cap that is in force now.")
    s.say(
        f"All tests: {verdict(out)}. I have not edited the two older test files. Pending: "
        "splitting the function in the clipping code that is over the cap, after the release; "
        "advice in the other error messages. The new deadline is noted."
    )


def last_look(s: Session) -> None:
    """The last turn, whose results are small."""
    s.user(
        "Good. One last thing for today: check that no public function lost its docstring in all "
        "of this, and that `!482` and 2031/05/01 are still recognised in one and the same sentence."
    )
    bare = s.python(scripts.BARE_FUNCTIONS, "Docstrings, by the syntax tree as at the start.")
    kinds = s.python(
        scripts.KINDS_OF.format(texts=["!482 is due 2031/05/01, see docs/limits.md"]),
        "All the patterns of today in one line.",
    )
    s.find(r"^def test_", "tests", "And the tests by name, for the hand-over.")
    out = s.test("merge_request or slash or quiet or half_width", "The new tests by name.")
    good = " 0 without" in bare and "('id', '!482')" in kinds and "('number', '2031" in kinds
    s.say(
        f"{'Both hold' if good else 'Not both hold'}: {verdict(bare)}; the identifiers in the "
        f"sentence are {kinds.partition('[')[2].rstrip(']')}. "
        f"The new tests: {verdict(out)}. Next: the advice in the remaining error messages."
    )
