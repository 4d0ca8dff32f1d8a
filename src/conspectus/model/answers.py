"""What a summariser answers: whether it is a summary, and findings taken apart.

No phrase decides, only structure and size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from conspectus.messages import SUMMARY_LINE, Message
from conspectus.messages.framing import as_notes
from conspectus.messages.requests import is_users
from conspectus.model.base import SummaryRequest
from conspectus.model.prompts import TEXTS
from conspectus.notes.segment import Answer

# A text that cites nothing has at least `LEAST_TOKENS`, which is more than gateways and models
# mostly say instead of a summary; a whole one has one in `ONE_IN` of what leaves, if that is less.
LEAST_TOKENS, ONE_IN = 60, 40

SHORT = "it is short"  # in what is wrong with one that `min_tokens` would admit

# Characters that any text may have, and for each token asked for
LONGEST_ANSWER, PER_TOKEN = 100_000, 32

# Tags and sentences of our prompts: a text that repeats one is no summary
_OURS = [one for text in TEXTS for one in " ".join(text.split()).split(". ") if len(one) > 60]
_OURS += ["<message id=", "</messages>"]

# How our headings begin, in small letters; what stands under any other one was found
SECTIONS = ("goal", "next", "binding", "found")
MOST_BINDING = 5
LONGEST_HEADING = 60
WORDLESS = 3  # tokens up to which a line without a source says nothing, such as "None."

_DASH = re.compile(r"(?:[-*•+–—]|\d{1,2}[.)])\s+")
_GROUP = re.compile(r"[\[(【（]([^\[\]()【】（）\n]{1,200})[\])】）]")
_CITED = re.compile(r"\[([^\[\]\n]{1,200})\]\s*$")  # as the notes do
_SEPARATORS = str.maketrans(dict.fromkeys(",;&、，；", " "))
_QUOTES = "\"'“”„«»「」『』‘’"

Statement = tuple[str, tuple[str, ...], bool]  # text, ids, whether it begins with a dash


def wrong_with(
    text: str,
    request: SummaryRequest,
    *,
    min_tokens: int | None = None,
    leaving: int = 0,
    cut: bool = False,
) -> str:
    """Say why a text is no summary in a short sentence; empty if it is one.

    A text that cites messages may be short. Findings that cite none need `LEAST_TOKENS`. A whole
    text that cites none needs fewer where it replaces little: `leaving` tokens, or with 0 those of
    the entries. So do findings of which the end is `cut` off, as their sources often stand there.
    `min_tokens` alone decides where it is given; 0 admits all that is not empty.
    """
    if len(text) > max(LONGEST_ANSWER, request.limit * PER_TOKEN):
        return f"it has {len(text):,} characters, which is more than anybody reads"
    text = text.strip()
    if not any(char.isalnum() for char in text):
        return "it is empty"
    document, findings = (text[0] + text[-1]) in ("{}", "<>"), request.form == "findings"
    page = text[:15].lower().startswith(("<!doctype html", "<html"))  # as of a gateway
    size = 0 if page else request.count(text) // (2 if document else 1)
    said = " ".join(text.split())
    if any(ours in said for ours in _OURS):
        return "it repeats the prompt"
    if min_tokens is not None:
        return f"it has fewer than {min_tokens:,} tokens" if size < min_tokens else ""
    if findings and document:
        return "it is one JSON or markup document, not lines with their sources"
    # A counter of messages says nothing of a text.
    if size >= LEAST_TOKENS or not request.count(text) or cites(text, request):
        return ""
    if findings and request.entries and not cut:
        return f"no line of it cites a message that it was given, and {SHORT}"
    leaving = leaving or sum(request.count(entry.reading) for entry in request.entries)
    # A third of the limit can be written within it.
    least = min(LEAST_TOKENS, leaving // ONE_IN, request.limit // 3)
    short = f"{SHORT} for what it stands for: {size} tokens of {least}"
    return short if size < least else ""


def answer_of(text: str, request: SummaryRequest) -> Answer:
    """Return what an answer in the form `"findings"` says to a request.

    Remarks are left out: text before the first heading, lines with neither a dash nor a source. An
    answer to the agent's last request sets no goal and no next step, as any text in that may have
    given the model orders: those lines count as findings.
    """
    lines, count = _lines(text, request), request.count
    by_cite = {entry.cite: entry for entry in request.entries}
    some = lines["binding"][: 4 * MOST_BINDING]  # looking for each takes time
    named = ((_quoted(said, by_cite.get(i)), i) for said, ids, _ in some for i in ids)
    binding = [(said, i) for said, i in dict.fromkeys(named) if said][:MOST_BINDING]
    goal, then = ([said for said, *_ in lines[name]] for name in ("goal", "next"))
    some = [line for line in lines["found"] if line[1] or count(line[0]) > WORDLESS]
    found = [line for line in some if line[1] or line[2]]
    if not any(any(ids for _, ids, _ in part) for part in lines.values()):
        found = some  # a model that cites nothing may write no list either
    if request.last is not None:
        found, goal, then = [*lines["goal"], *found, *lines["next"]], [], []
    return Answer([(said, ids) for said, ids, _ in found], goal, then, binding)


def cites(text: str, request: SummaryRequest) -> bool:
    """Whether a line cites a message that leaves, or one that the notes so far cite."""
    return any(ids for lines in _lines(text, request).values() for _, ids, _ in lines)


def _lines(text: str, request: SummaryRequest) -> dict[str, list[Statement]]:
    sections: dict[str, list[tuple[str, bool]]] = {name: [] for name in SECTIONS}
    at, headed = sections["found"], False
    for line in text.strip().removeprefix(SUMMARY_LINE).splitlines():
        bare = line.strip()
        mark = _DASH.match(bare)
        if heading := _heading(bare):
            if not headed:
                at.clear()
            headed = True
            at = sections[next((n for n in SECTIONS if heading.startswith(n)), "found")]
        elif at and bare and not mark and line.startswith("  "):
            at[-1] = (f"{at[-1][0]} {as_notes(bare)}", at[-1][1])
        elif bare and not bare.startswith("```"):
            at.append((as_notes(bare[mark.end() :] if mark else bare), bool(mark)))
    names = _names(request)
    return {
        name: [(*_split(said, names), dash) for said, dash in at] for name, at in sections.items()
    }


def _heading(line: str) -> str:
    marked = line.startswith("#") and line.lstrip("#")[:1] == " "
    bold = line.startswith("**") and line.rstrip(": ").endswith("**")
    return line.strip("#*: ").casefold() if len(line) <= LONGEST_HEADING and marked | bold else ""


def _quoted(statement: str, entry: Message | None) -> str:
    """Return a statement as it stands in a message of the user; empty where it does not."""
    wanted = "".join(statement.strip().strip(_QUOTES).split())  # a line may be broken elsewhere
    if entry is None or not is_users(entry) or not wanted:
        return ""
    places = [place for place, char in enumerate(entry.own) if not char.isspace()]
    at = "".join(entry.own.split()).find(wanted)
    return entry.own[places[at] : places[at + len(wanted) - 1] + 1] if at >= 0 else ""


def _names(request: SummaryRequest) -> dict[str, str]:
    """Return what an answer may cite, by the names that models write for it."""
    entries = [*request.entries, *request.kept[: request.ahead]]
    names = {name: e.cite for e in entries for name in (e.key, e.id, e.cite)}
    cited = filter(None, map(_CITED.search, request.notes.splitlines()))
    return {name: name for group in cited for name in _words(group)} | names


def _split(line: str, names: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return a line and its ids, without brackets at its end that hold them."""
    ids, end = list[str](), len(line)
    for group in reversed([*_GROUP.finditer(line)]):
        last, words = not line[group.end() : end].strip(" .;,。"), _words(group)
        if not (last and group[0][0] in "[【"):  # a number in parentheses is a number
            words = [word for word in words if not word.isdecimal()]
        cited = [names[name] for word in words for name in _ends(word, names)]
        ids[:0] = cited
        if last and cited:
            end = group.start()
    return line[:end].rstrip(), tuple(dict.fromkeys(ids))


def _ends(word: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a name, or both ends of a range; nothing for other words."""
    cuts = (place for place, char in enumerate(word) if char in "-–—")
    ways = ((word,), *((word[:cut], word[cut + 1 :]) for cut in cuts))
    return next((way for way in ways if all(name in names for name in way)), ())


def _words(group: re.Match[str]) -> list[str]:
    return group[1].translate(_SEPARATORS).split()
