"""Look for evidence in view, or one recall away, after a whole run in a window.

A transcript is run step by step in a window smaller than it is, as an agent would, and
compacted once more at its end. Then the final request is searched for the evidence of questions
that must stay answerable, and for statements of a user that were planted on the way. Evidence
is text, so a figure is a floor: read some views as well.
"""

from __future__ import annotations

import random
import re
import statistics
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conspectus.archive import Archive
from conspectus.compactor import Compactor
from conspectus.errors import InputError
from conspectus.messages import is_summary_message
from conspectus_lab.evaluate.conspectus_system import THREAD, ConspectusSystem, recalled
from conspectus_lab.evaluate.exams import Asked, Planted
from conspectus_lab.evaluate.results import GoingOn, Lost, Share
from conspectus_lab.evaluate.systems import System
from conspectus_lab.evaluate.texts import TokenCount
from conspectus_lab.evaluate.transcripts import Transcript

RECALL = 512
"""Default tokens that a question may recall."""

PLANTED_UP_TO = 0.7
"""Share of a transcript that gets planted statements, so that they leave before its end."""

TAIL = 0.85
"""Share of the window that plain truncation fills."""

CACHED = 0.1
"""Price of a repeated token, relative to a new one, at OpenAI and Anthropic (2026)."""

Evidence = Sequence[Sequence[str]]
"""Groups of texts; one of each must stand."""

_MARKS = re.compile(r"\\[nt]|[\\\"'`*]+")
_PAIRS = re.compile(r"(?<=\w)\s*[=:]\s*(?=\S)")


@dataclass(slots=True)
class _Run:
    """One transcript run in a window.

    Attributes:
        view: the last request.
        sizes: tokens of each request.
        same: tokens of each that repeat the start of the one before.
        over: requests larger than the window.
        rounds: compactions.
        noted: numbers of the evidence that stood in the notes after some compaction.
    """

    view: list[BaseMessage] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    same: list[int] = field(default_factory=list)
    over: int = 0
    rounds: int = 0
    noted: set[int] = field(default_factory=set)

    def look(self, notes: str, evidence: Sequence[Evidence]) -> None:
        """Count a compaction and the evidence in its notes."""
        self.rounds += 1
        text = plain(notes)
        self.noted |= {n for n, one in enumerate(evidence) if holds(text, one)}


class _Compacted:
    """One conversation under our compactor, in a window."""

    def __init__(self, system: ConspectusSystem, window: int) -> None:
        settings = {"keep": system.keep, **system.settings, "window": window}
        if system.sizes is not None and len(system.sizes) == 1:
            settings["max_summary_tokens"] = system.sizes[0]
        self._archive = Archive.open("memory:")
        self._compactor = Compactor(archive=self._archive, token_counter=system.count, **settings)
        self._view: list[BaseMessage] = []

    def send(self, messages: Sequence[BaseMessage], *, last: bool = False) -> list[BaseMessage]:
        result = self._compactor.compact([*self._view, *messages], thread_id=THREAD, force=last)
        self._view = list(result.messages)
        return self._view

    def recall(self, query: str, tokens: int) -> str:
        return recalled(self._compactor, query, tokens)


class _Tail:
    """The newest whole steps that fit."""

    def __init__(self, window: int, count: TokenCount) -> None:
        self._room, self._count, self._all = int(TAIL * window), count, list[BaseMessage]()

    def send(self, messages: Sequence[BaseMessage], *, last: bool = False) -> list[BaseMessage]:
        self._all += messages
        kept: list[BaseMessage] = []
        for step in reversed(list(steps_of(self._all))):
            if kept and self._count([*step, *kept]) > self._room:
                break
            kept = [*step, *kept]
        return kept

    def recall(self, query: str, tokens: int) -> str:
        return ""


def measure_going_on(
    transcripts: Sequence[Transcript],
    exams: Mapping[str, Sequence[Asked]],
    planted: Sequence[Planted],
    system: System,
    window: int,
    count: TokenCount,
    *,
    recall_tokens: int = RECALL,
    seed: int = 1,
) -> GoingOn:
    """Run each transcript larger than the window, and look for the evidence.

    Args:
        exams: questions of each transcript, by its name.
        planted: statements, dealt evenly; one that replaces another stands behind it, and only the
            newest must stand at the end.
        system: our compactor with its settings, or any other system for plain truncation.
        window: tokens.
        recall_tokens: tokens that each question may recall.
        seed: the same seed plants in the same places.

    Raises:
        InputError: no transcript is larger than the window.
    """
    large = [t for t in transcripts if count(list(t.messages)) > window]
    if not large:
        raise InputError(f"no transcript is larger than a window of {window:,} tokens; lower it")
    chance = random.Random(seed)
    runs: list[_Run] = []
    looked: list[_Looked] = []
    for transcript, batch in zip(large, _batches(planted, len(large), chance), strict=True):
        thread = (
            _Compacted(system, window)
            if isinstance(system, ConspectusSystem)
            else _Tail(window, count)
        )
        messages, places = _with(transcript.messages, batch, chance)
        replaced = {one.replaces for one in batch}
        wanted: list[Asked | Planted] = [
            *exams.get(transcript.name, ()),
            *(one for one in batch if one.id not in replaced),
        ]
        run = _run(thread, messages, window, count, [one.evidence for one in wanted])
        runs.append(run)
        text = plain(text_of(run.view))
        for number, thing in enumerate(wanted):
            seen = _looked(thread, text, transcript.name, thing, places, recall_tokens)
            looked.append(replace(seen, noted=number in run.noted))
    asked = [one for one in looked if one.found.what == "question"]
    said = [one for one in looked if one.found.what == "statement"]
    kinds: dict[str, list[_Looked]] = defaultdict(list)
    for one in looked:
        kinds[one.found.kind].append(one)
    sizes = [count(run.view) for run in runs]
    total, same = sum(sum(r.sizes) for r in runs), sum(sum(r.same) for r in runs)
    requests = sum(len(run.sizes) for run in runs)
    return GoingOn(
        system.name,
        window,
        transcripts=len(large),
        in_view=_share(asked),
        with_recall=Share(sum(one.held or one.found.recalled for one in asked), len(asked)),
        statements=_share(said),
        stale=sum(one.stale for one in said),
        lasting=_share([one for one in looked if one.noted]),
        rounds=statistics.fmean(run.rounds for run in runs),
        by_kind={kind: _share(some) for kind, some in sorted(kinds.items())},
        tokens=statistics.median(sizes),
        fullest=max(sizes) / window,
        over=sum(run.over for run in runs),
        requests=requests,
        cached=same / total if total else 0.0,
        cost=(total - (1 - CACHED) * same) / requests if requests else 0.0,
        lost=tuple(one.found for one in looked if not one.held),
    )


@dataclass(frozen=True, slots=True)
class _Looked:
    """The search for one question or statement at the end of a run.

    Attributes:
        held: its evidence stands in view.
        stale: a value that it replaces stands behind it, or without it.
        noted: its evidence stood in the notes after some compaction.
    """

    found: Lost
    held: bool
    stale: bool = False
    noted: bool = False


def _looked(
    thread: _Compacted | _Tail,
    text: str,
    name: str,
    one: Asked | Planted,
    places: Mapping[str, str],
    tokens: int,
) -> _Looked:
    """Search the view, and then the recall of its own words."""
    held = holds(text, one.evidence)
    if isinstance(one, Asked):
        recalled = "" if held else thread.recall(one.question, tokens)
        again = not held and holds(f"{text} {plain(recalled)}", one.evidence)
        gone = tuple(group[0] for group in one.evidence if not holds(text, [group]))
        return _Looked(Lost(name, "question", one.kind, one.question, gone, again), held)
    newest = max((text.rfind(plain(a)) for group in one.evidence for a in group), default=-1)
    stale = any(text.rfind(plain(old)) > newest for old in one.stale)
    again = not held and one.text in thread.recall(one.text, tokens)
    return _Looked(
        Lost(name, "statement", one.kind, one.text, (places[one.id],), again), held, stale
    )


def _share(looked: Sequence[_Looked]) -> Share:
    return Share(sum(one.held for one in looked), len(looked))


def _run(
    thread: _Compacted | _Tail,
    messages: Sequence[BaseMessage],
    window: int,
    count: TokenCount,
    evidence: Sequence[Evidence],
) -> _Run:
    run, before, notes = _Run(), list[BaseMessage](), ""
    for step in (*steps_of(messages), ()):
        view = thread.send(step, last=not step)
        if (now := text_of(list(filter(is_summary_message, view)))) != notes:
            run.look(notes := now, evidence)
        if not step:
            break
        if isinstance(step[-1], AIMessage):
            continue  # a model is asked nothing after its own answer
        run.sizes.append(count(view))
        run.same.append(repeated(before, view, count))
        run.over += run.sizes[-1] > window
        before = view
    run.view = view
    run.over += count(view) > window
    return run


def repeated(before: Sequence[BaseMessage], now: Sequence[BaseMessage], count: TokenCount) -> int:
    """Count the tokens of a request that repeat the start of the one before."""
    same = 0
    for old, new in zip(before, now, strict=False):
        if text_of([old]) != text_of([new]) or old.type != new.type:
            break
        same += 1
    tokens = count(list(now[:same]))
    if same < min(len(before), len(now)) and before[same].type == now[same].type:
        pairs = zip(text_of([before[same]]), text_of([now[same]]), strict=False)
        start = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        tokens += count([HumanMessage(start)])
    return tokens


def steps_of(messages: Sequence[BaseMessage]) -> Iterator[list[BaseMessage]]:
    """Group each message with the results of its calls."""
    starts = [n for n, one in enumerate(messages) if n == 0 or not isinstance(one, ToolMessage)]
    for start, end in pairwise([*starts, len(messages)]):
        yield list(messages[start:end])


def text_of(messages: Sequence[BaseMessage]) -> str:
    """Join the texts of messages, calls included."""
    parts: list[str] = []
    for one in messages:
        parts.append(one.text)
        for call in one.tool_calls if isinstance(one, AIMessage) else ():
            parts.append(f"{call['name']} {' '.join(f'{k}={v}' for k, v in call['args'].items())}")
    return "\n".join(parts)


def plain(text: str) -> str:
    """Strip case, marks of JSON and Markdown, and signs between pairs.

    Example:
        >>> plain('{"Seat": "4A",  x}') == plain("{seat=4A, x}")
        True
    """
    text = _MARKS.sub("", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_PAIRS.sub(" ", text).split())


def holds(text: str, evidence: Evidence) -> bool:
    """Return whether a plain text has one whole text of each group.

    Example:
        >>> holds("the key is k-77", [["K-77", "K77"]]), holds("k-775", [["K-77"]])
        (True, False)
    """
    return all(any(_stands(plain(one), text) for one in group) for group in evidence)


def _stands(wanted: str, text: str) -> bool:
    start = r"(?<![a-z0-9])" if re.match(r"[a-z0-9]", wanted) else ""
    end = r"(?![a-z0-9])" if re.search(r"[a-z0-9]$", wanted) else ""
    return re.search(start + re.escape(wanted) + end, text) is not None


def _batches(planted: Sequence[Planted], count: int, chance: random.Random) -> list[list[Planted]]:
    """Deal the statements to the transcripts, each with its replacements behind it."""
    later = {one.replaces: one for one in planted if one.replaces}
    known = {one.id for one in planted}
    first = [one for one in planted if one.replaces not in known]
    chance.shuffle(first)
    batches: list[list[Planted]] = [[] for _ in range(count)]
    for place, one in enumerate(first):
        batch: list[Planted] = batches[place % count]
        while one not in batch:
            batch.append(one)
            one = later.get(one.id, one)
    return batches


def _with(
    messages: Sequence[BaseMessage], planted: Sequence[Planted], chance: random.Random
) -> tuple[list[BaseMessage], dict[str, str]]:
    """Plant statements between steps, and return the ids of their messages too."""
    steps = list(steps_of(messages))
    last = max(1, int(PLANTED_UP_TO * len(steps)))
    at = sorted(chance.choices(range(last), k=len(planted)))
    out: list[BaseMessage] = []
    ids: dict[str, str] = {}
    rest = list(zip(at, planted, strict=True))
    for place, step in enumerate(steps):
        out += step
        while rest and rest[0][0] <= place:
            _, one = rest.pop(0)
            ids[one.id] = f"planted-{one.id}"
            out.append(HumanMessage(one.text, id=ids[one.id]))
            out.append(AIMessage("Understood.", id=f"noted-{one.id}"))
    return out, ids
