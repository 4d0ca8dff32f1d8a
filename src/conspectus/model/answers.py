"""What a summariser answers: whether it is a summary, and what its findings say.

Structure and size decide, and no phrase does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.harmless import as_notes
from conspectus.messages.users import is_by_user
from conspectus.model.base import SummaryRequest
from conspectus.model.prompts import TEXTS
from conspectus.notes.data import Answer

LEAST_TOKENS = 60
"""Tokens of a text that cites no message. Refusals of models and errors of gateways are shorter."""

REPLACED_DIVISOR = 40
"""A whole text without citations may be shorter: one part in so many of the tokens that it
replaces."""

LIMIT_DIVISOR = 3
"""It never needs more than one part in so many of the limit that it was given."""

SHORT = "it is short"
"""Part of each reason that `min_tokens` of a summariser would lift."""

LONGEST_ANSWER = 100_000
"""Characters that any answer may have."""

CHARACTERS_PER_TOKEN = 32
"""Characters that an answer may have for each token that was asked for, if those are more."""

SENTENCE_OF_A_PROMPT = 60
"""Characters from which on a sentence of our prompts is long enough to be known again."""

SECTIONS = ("goal", "next", "binding", "found")
"""How our headings begin, in small letters. Text under any other heading counts as found."""

MOST_BINDING = 5
"""Statements of the user that an answer may quote as binding."""

BINDING_TRIES = 4 * MOST_BINDING
"""Lines that are looked up among the user's words, as each look-up reads a whole message."""

LONGEST_HEADING = 60
"""Characters of a line that may be a heading."""

WORDLESS_TOKENS = 3
"""Tokens up to which a line without a source says nothing, such as "None."."""

_PROMPT_SENTENCES = [
    sentence
    for text in TEXTS
    for sentence in " ".join(text.split()).split(". ")
    if len(sentence) > SENTENCE_OF_A_PROMPT
]
_PROMPT_MARKS = [*_PROMPT_SENTENCES, "<message id=", "</messages>"]
"""Tags and sentences of our prompts. A text that repeats one of them is no summary."""

_DASH = re.compile(r"(?:[-*•+–—]|\d{1,2}[.)])\s+")
_GROUP = re.compile(r"[\[(【（]([^\[\]()【】（）\n]{1,200})[\])】）]")
_NOTES_CITATION = re.compile(r"\[([^\[\]\n]{1,200})\]\s*$")  # as the notes write it
_SEPARATORS = str.maketrans(dict.fromkeys(",;&、，；", " "))
_QUOTES = "\"'“”„«»「」『』‘’"
_BETWEEN_GROUPS = " .;,。"


class Statement(NamedTuple):
    """One line of an answer."""

    text: str
    ids: tuple[str, ...]  # of the messages that it cites
    is_listed: bool  # it begins with a dash or a number


def rejection_reason(
    text: str,
    request: SummaryRequest,
    *,
    min_tokens: int | None = None,
    leaving: int | None = None,
    cut: bool = False,
) -> str:
    """Say in a short sentence why a text is no summary; return an empty text if it is one.

    A text that cites a message may be short. Findings that cite none need `LEAST_TOKENS`. A whole
    text that cites none needs one part in `REPLACED_DIVISOR` of the tokens that it replaces, if
    those are fewer. So do findings that are `cut`, as their citations often stand at their end.

    Args:
        text: the answer.
        request: what was asked.
        min_tokens: tokens that make any text a summary; 0 admits every text that is not empty.
        leaving: tokens that the text replaces; None for those of the request's entries.
        cut: the end of the answer is missing.
    """
    longest = max(LONGEST_ANSWER, request.limit * CHARACTERS_PER_TOKEN)
    if len(text) > longest:
        return f"it has {len(text):,} characters, which is more than anybody reads"
    text = text.strip()
    if not any(char.isalnum() for char in text):
        return "it is empty"
    if _repeats_prompt(text):
        return "it repeats the prompt"
    is_document = (text[0] + text[-1]) in ("{}", "<>")
    size = _size_as_summary(text, request, is_document=is_document)
    if min_tokens is not None:
        return f"it has fewer than {min_tokens:,} tokens" if size < min_tokens else ""
    has_findings = request.form == "findings"
    if has_findings and is_document:
        return "it is one JSON or markup document, not lines with their sources"
    counts_messages_only = not request.count(text)  # such a counter says nothing of a text
    if size >= LEAST_TOKENS or counts_messages_only or cites(text, request):
        return ""
    if has_findings and request.entries and not cut:
        return f"no line of it cites a message that it was given, and {SHORT}"
    if leaving is None:
        leaving = sum(request.count(entry.reading) for entry in request.entries)
    least = min(LEAST_TOKENS, leaving // REPLACED_DIVISOR, request.limit // LIMIT_DIVISOR)
    return f"{SHORT} for what it stands for: {size} tokens of {least}" if size < least else ""


def _repeats_prompt(text: str) -> bool:
    words = " ".join(text.split())
    return any(mark in words for mark in _PROMPT_MARKS)


def _size_as_summary(text: str, request: SummaryRequest, *, is_document: bool) -> int:
    """Return the tokens of a text as far as it can be a summary.

    Half of a JSON or markup document is syntax. A gateway's page is no summary at all.
    """
    is_page = text[:15].lower().startswith(("<!doctype html", "<html"))
    if is_page:
        return 0
    return request.count(text) // (2 if is_document else 1)


def answer_of(text: str, request: SummaryRequest) -> Answer:
    """Return what an answer in the form `"findings"` says.

    Remarks are left out: text before the first heading, and lines with neither a dash nor a source.
    The answer to an agent's last request sets no goal and no next step, as any text in that request
    may have ordered one. Such lines count as findings.
    """
    sections = _statements(text, request)
    found = [line for line in sections["found"] if _says_something(line, request)]
    if any(line.ids for lines in sections.values() for line in lines):
        # A model that cites nothing may write no list either.
        found = [line for line in found if line.ids or line.is_listed]
    goal = sections["goal"]
    next_step = sections["next"]
    if request.last is not None:
        found = [*goal, *found, *next_step]
        goal = []
        next_step = []
    return Answer(
        found=[(line.text, line.ids) for line in found],
        goal=[line.text for line in goal],
        next=[line.text for line in next_step],
        binding=_binding(sections["binding"], request),
    )


def cites(text: str, request: SummaryRequest) -> bool:
    """Tell whether a line cites a message that leaves, or one that the notes so far cite."""
    return any(line.ids for lines in _statements(text, request).values() for line in lines)


def _says_something(line: Statement, request: SummaryRequest) -> bool:
    return bool(line.ids) or request.count(line.text) > WORDLESS_TOKENS


def _binding(lines: list[Statement], request: SummaryRequest) -> list[tuple[str, str]]:
    """Return the statements that stand in a cited message of the user, each with its id."""
    entries = {entry.cite: entry for entry in request.entries}
    quotations = (
        (_quoted(line.text, entries.get(cite)), cite)
        for line in lines[:BINDING_TRIES]
        for cite in line.ids
    )
    distinct = dict.fromkeys(quotations)
    return [(words, cite) for words, cite in distinct if words][:MOST_BINDING]


def _quoted(statement: str, entry: Message | None) -> str:
    """Return a statement as it stands in a message of the user; empty where it does not."""
    # Without spaces, as a line may be broken elsewhere.
    sought = "".join(statement.strip().strip(_QUOTES).split())
    if entry is None or not is_by_user(entry) or not sought:
        return ""
    positions = [position for position, char in enumerate(entry.own) if not char.isspace()]
    start = "".join(entry.own.split()).find(sought)
    if start < 0:
        return ""
    end = start + len(sought) - 1
    return entry.own[positions[start] : positions[end] + 1]


def _statements(text: str, request: SummaryRequest) -> dict[str, list[Statement]]:
    """Return the lines of an answer by the section under which they stand."""
    names = _names(request)
    return {
        section: [_statement(line, is_listed, names) for line, is_listed in lines]
        for section, lines in _sections(text).items()
    }


def _sections(text: str) -> dict[str, list[tuple[str, bool]]]:
    """Divide an answer into lines under our headings, each with whether a dash begins it.

    An indented line goes on from the one before. Text before the first heading is left out.
    """
    sections: dict[str, list[tuple[str, bool]]] = {name: [] for name in SECTIONS}
    current = sections["found"]
    has_heading = False
    for line in text.strip().removeprefix(SUMMARY_LINE).splitlines():
        bare = line.strip()
        dash = _DASH.match(bare)
        heading = _heading(bare)
        if heading:
            if not has_heading:
                current.clear()
            has_heading = True
            section = next((name for name in SECTIONS if heading.startswith(name)), "found")
            current = sections[section]
        elif current and bare and not dash and line.startswith("  "):
            beginning, is_listed = current[-1]
            current[-1] = (f"{beginning} {as_notes(bare)}", is_listed)
        elif bare and not bare.startswith("```"):
            current.append((as_notes(bare[dash.end() :] if dash else bare), bool(dash)))
    return sections


def _heading(line: str) -> str:
    """Return the words of a heading, in small letters; empty for other lines."""
    has_number_signs = line.startswith("#") and line.lstrip("#")[:1] == " "
    is_bold = line.startswith("**") and line.rstrip(": ").endswith("**")
    is_heading = len(line) <= LONGEST_HEADING and (has_number_signs or is_bold)
    return line.strip("#*: ").casefold() if is_heading else ""


def _names(request: SummaryRequest) -> dict[str, str]:
    """Return what an answer may cite, by each name that models write for it."""
    names = dict[str, str]()
    for line in request.summary_so_far.splitlines():
        citation = _NOTES_CITATION.search(line)
        if citation:
            names |= {name: name for name in _words(citation)}
    for entry in (*request.entries, *request.kept[: request.kept_before_last_evicted]):
        names |= dict.fromkeys((entry.key, entry.id, entry.cite), entry.cite)
    return names


def _statement(line: str, is_listed: bool, names: Mapping[str, str]) -> Statement:
    """Take the citations out of a line, and the brackets at its end that hold them."""
    ids = list[str]()
    end = len(line)
    for group in reversed([*_GROUP.finditer(line)]):
        is_last = not line[group.end() : end].strip(_BETWEEN_GROUPS)
        words = _words(group)
        is_citation = is_last and group[0][0] in "[【"
        if not is_citation:  # a number in parentheses is a number
            words = [word for word in words if not word.isdecimal()]
        cited = [names[name] for word in words for name in _cited_names(word, names)]
        ids[:0] = cited
        if is_last and cited:
            end = group.start()
    return Statement(line[:end].rstrip(), tuple(dict.fromkeys(ids)), is_listed)


def _cited_names(word: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a name, or both ends of a range such as `m3-m7`; nothing for other words."""
    return next((cited for cited in _readings_of(word) if all(map(names.__contains__, cited))), ())


def _readings_of(word: str) -> Iterator[tuple[str, ...]]:
    yield (word,)
    for position, char in enumerate(word):
        if char in "-–—":
            yield word[:position], word[position + 1 :]


def _words(group: re.Match[str]) -> list[str]:
    return group[1].translate(_SEPARATORS).split()
