"""The first tasks: the rules, an overview, a new kind of identifier, a quiet option."""

from __future__ import annotations

import re
from collections import Counter

from demo_recorder import scripts
from demo_recorder.session import Gone, Hit, Session, apart, failures, first, hits, pairs, verdict

FACTS = "src/conspectus/ledger/identifiers.py"
URL_ENTRY = r'^\s+\("url", re\.compile\(.*\)\),$'


def overview(s: Session) -> None:
    """The user's rules, and a first look round."""
    s.user(
        "We are getting the lower layers of Conspectus ready for people outside the team. Some "
        "rules for this whole session:\n"
        "- Never edit files under tests/ without asking me first.\n"
        "- Public functions must always keep their docstrings.\n"
        "- A function may have at most 40 lines.\n"
        "- Prefer full words in names: message_count, not msg_cnt.\n"
        "- The deadline for this branch is Friday at 17:00.\n"
        "To begin with, get an overview: which modules are there, where is most of the code, and "
        "which functions break the line rule today? Change nothing yet."
    )
    s.call("list_files", "The layout first.", path="src/conspectus")
    s.call(
        "search",
        "Now every definition, to see where the code is.",
        pattern="^ *(def|class (",
        path="src/conspectus",
    )
    s.say(
        "My pattern opened two groups and closed one, so the search refused it. That is my "
        "mistake and has nothing to do with the code. I search for plain alternatives instead."
    )
    found = s.find("^ *(def|class) ")
    share = Counter(hit.path for hit in found).most_common(6)
    for pair in pairs([Hit(path, 1, "") for path, _ in share]):
        s.read_pair(pair, 0, 23, "What these say about themselves.")
    long = s.python(
        scripts.LONG_FUNCTIONS.format(cap=40),
        "Counting lines by eye is error-prone; the syntax tree knows.",
    )
    for hit in hits(long)[:4]:
        s.around(hit, 1, 44, "One that is over the line rule; I want to see whether it can split.")
    bare = s.python(scripts.BARE_FUNCTIONS, "And the docstring rule: does it hold today?")
    over = ", ".join(f"{h.text.split()[0]} ({h.text.split()[1]} lines)" for h in hits(long))
    most = ", ".join(f"{path.rpartition('/')[2]} {count}" for path, count in share[:4])
    s.say(
        f"Overview. Most definitions: {most}. {verdict(bare)}.\n"
        f"Over the line rule: {over or 'none'}.\n"
        "I decided to split none of them for now, because two of them are over by a single line "
        "and cutting a function there would scatter one idea over two names.\n"
        "Pending: the functions over the line rule. Nothing has been changed."
    )


def merge_requests_asked(s: Session) -> None:
    """A new pattern is asked for; the agent looks and asks for permission."""
    s.user(
        "Good. First real task. Our people write merge requests as `!482`, and the ledger loses "
        "them: nothing of that form is in the facts after a compaction. Please make `!482` an "
        "identifier of the kind id. Tell me your plan before you touch anything."
    )
    s.python(
        scripts.KINDS_OF.format(texts=["merged in !482 today", "see !7", "what!482nd", "wow!"]),
        "What happens to them now?",
    )
    entry = first(s.find(r"_IDENTIFIERS\b"), "the table of patterns")
    s.around(entry, 6, 46, "The table of patterns, with the code that walks through it.")
    walk = first(s.find(r"def identifiers\("), "the function that applies the patterns")
    s.around(walk, 2, 20, "How an earlier pattern keeps a later one from the same characters.")
    callers = s.find(r"\b(identifiers|facts_of)\(", why="Who depends on what it yields?")
    for hit in apart([h for h in callers if ">>>" not in h.text], 12)[:4]:
        s.around(hit, 3, 8)
    s.call("list_files", "Which tests are there already?", path="tests")
    tests = s.find(r"^def test_", "tests")
    s.read(tests[0].path if tests else "tests", 1, 30, "The style of the tests here.")
    s.say(
        f"Plan: one more entry in the table in {FACTS}, then tests for it. The existing tests "
        "cover rules and the token estimate and say nothing on identifiers, so I would add a new "
        "file, tests/test_merge_requests.py. Your rule says to ask first: may I?"
    )


_MERGE_TESTS = '''"""Merge requests such as !482 are identifiers."""

import pytest

from conspectus.ledger import identifiers


def found(text):
    return [(kind, value) for kind, value, _ in identifiers(text)]


@pytest.mark.parametrize("text", ["merged in !482 today", "!482", "(!482)", "see !482."])
def test_a_merge_request_is_an_id(text):
    assert found(text) == [("id", "!482")]


@pytest.mark.parametrize("text", ["what!482nd", "wow!", "a != b", "hello!12"])
def test_an_exclamation_mark_is_none(text):
    assert not [value for kind, value in found(text) if kind == "id"]


def test_inside_an_address_it_belongs_to_the_address():
    address = "https://git.example.com/app/-/requests/!482"
    assert found("see " + address) == [("url", address)]
'''


def merge_requests_done(s: Session) -> None:
    """Permission, failing tests, three tries."""
    s.user(
        "Yes, go on. And to save us the question: for each task you may add one new test file of "
        "its own; the existing ones stay as they are unless I say so."
    )
    path = "tests/test_merge_requests.py"
    s.edit(path, "", _MERGE_TESTS, "Tests before code.")
    out = s.test(path, "They should fail now, and for the right reason.")
    s.say(
        f"{verdict(out)}: the id is missing, as reported, and the address is left whole. "
        "Now the entry."
    )
    guess = '("url", re.compile(r"https?://\\S+")),'
    entry = '    ("id", re.compile(r"\\b!\\d{1,6}\\b")),'
    s.edit(FACTS, guess, f"{entry}\n    {guess}", "In front of the first entry of the table.")
    s.say("I wrote the first entry down from memory. Reading it is cheaper than guessing again.")
    line = first(s.find(URL_ENTRY, FACTS), "an entry for addresses on one line").text
    s.around(first(s.find(r"^_IDENTIFIERS", FACTS), "the table of patterns"), 1, 12)
    s.edit(FACTS, line, f"{entry}\n{line}", "The same edit with the exact text.")
    out = s.test(path)
    s.say(
        f"{verdict(out)}. The cause is the word boundary in front of the mark: `\\b` wants a word "
        "character on one side, and a space followed by `!` has none. So the pattern matched "
        "exactly where it should not, inside a word, and nowhere else."
    )
    better = '    ("id", re.compile(r"(?<!\\w)!\\d{1,6}\\b")),'
    s.edit(FACTS, entry, better, "A look-behind says what I mean: no word character before it.")
    out = s.test(path)
    for reason in failures(out)[:1]:
        s.say(
            "Better, and one test still fails: an address that ends in a merge request is torn "
            f"apart, because my entry comes before the one for addresses. Pytest says: {reason}"
        )
    s.edit(FACTS, f"{better}\n{line}", f"{line}\n{better}", "Addresses go first.")
    out = s.test(path)
    everything = s.test("tests", "And all the others.")
    s.python(
        scripts.KINDS_OF.format(texts=["merged in !482 today", "see !7", "what!482nd", "wow!"]),
        "The first measurement again.",
    )
    s.say(
        f"Done: {verdict(out)} in the new file, {verdict(everything)} in all. I decided to put "
        "the merge-request entry directly after the one for addresses, because an address that "
        "ends in a merge request has to be claimed whole before anything looks at its parts."
    )


_QUIET_TESTS = '''"""A summary message without its note."""

from conspectus.messages import SUMMARY_LINE, is_summary_message, summary_text


def test_a_quiet_one_has_the_body_and_no_note():
    text = summary_text("all went well", archived=True, quiet=True)
    assert text.endswith("all went well")
    assert "Notes on earlier messages" not in text


def test_a_quiet_one_is_still_known_as_a_summary():
    text = summary_text("all went well", archived=False, quiet=True)
    assert is_summary_message({"role": "user", "content": text})


def test_without_the_option_nothing_changes():
    text = summary_text("all went well", archived=True)
    assert text.startswith(SUMMARY_LINE)
    assert "Ids in [brackets]" in text
'''


def quiet_summaries(s: Session) -> None:
    """An option for a helper; the first version is not recognised any more."""
    s.user(
        "Next: people who print summaries to a terminal find the note under the first line noisy. "
        "Give summary_text a keyword `quiet`, off by default, that leaves the note out. Nothing "
        "may change for those who do not ask for it."
    )
    place = first(s.find(r"def summary_text\("), "summary_text")
    text = s.around(place, 8, 14, "The function and the constants that it uses.")
    uses = s.find(r"\b(summary_text|summary_body|is_summary_message)\b", why="Who else knows it?")
    for hit in apart([h for h in uses if h.path != place.path], 12)[:3]:
        s.around(hit, 6, 14)
    known = first(s.find(r"def is_summary_message\(", place.path), "is_summary_message")
    s.around(known, 1, 18, "How such a message is known again; a quiet one must be known too.")
    signature = re.search(r"^def summary_text\(.*archived: bool\) -> str:$", text, re.MULTILINE)
    note = re.search(r"^    note = .*$", text, re.MULTILINE)
    described = re.search(r"^        archived: .*$", text, re.MULTILINE)
    if not (signature and note and described):
        raise Gone("summary_text in the form that I know")
    path = "tests/test_quiet_summaries.py"
    s.edit(path, "", _QUIET_TESTS, "One new test file for this task, as agreed.")
    s.test(path, "Red first.")
    wanted = signature[0].replace("archived: bool)", "archived: bool, quiet: bool = False)")
    s.edit(place.path, signature[0], wanted)
    told = f"{described[0]}\n        quiet: leave out the note on what a summary is."
    s.edit(place.path, described[0], told, "The docstring has to keep up with the signature.")
    bare = f"    if quiet:\n        return body\n{note[0]}"
    s.edit(place.path, note[0], bare)
    out = s.test(path)
    s.say(
        f"{verdict(out)}. The cause: a message in dict form has no field for a mark, so it is "
        "known by its first line alone, and my quiet version dropped that line with the note."
    )
    s.around(place, 0, 18, "What the function looks like now.")
    kept = bare.replace("return body", 'return f"{SUMMARY_LINE}\\n\\n{body}"')
    s.edit(place.path, bare, kept, "The first line stays; only the note goes.")
    s.test(path)
    out = s.test("tests")
    s.say(
        f"{verdict(out)}. I decided to keep the first line in quiet summaries, because without it "
        "a second compaction would take the summary for an ordinary message and summarise it again."
    )
