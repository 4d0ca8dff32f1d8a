"""Apply all measures to any number of systems and transcripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from langchain_core.messages.utils import count_tokens_approximately

from conspectus.errors import InputError
from conspectus_lab.evaluate.cases import Yardstick
from conspectus_lab.evaluate.conspectus_system import ConspectusSystem
from conspectus_lab.evaluate.exams import Asked, Planted
from conspectus_lab.evaluate.going_on import RECALL, measure_going_on
from conspectus_lab.evaluate.intervals import mean_of
from conspectus_lab.evaluate.langchain_system import LangChainSystem, TailSystem
from conspectus_lab.evaluate.measure import measure
from conspectus_lab.evaluate.results import Difference, Evaluation, Settings, SystemResult
from conspectus_lab.evaluate.rounds import measure_rounds
from conspectus_lab.evaluate.systems import Family, System, written
from conspectus_lab.evaluate.texts import TokenCount
from conspectus_lab.evaluate.transcripts import Transcript

SIZES = (512, 1024, 2048)
"""Default sizes of a summary, in tokens."""

KEEP = ("messages", 20)
MINIMUM = 10_000
"""Tokens of the smallest transcript whose future use is meaningful."""

Progress = Callable[[int, int, str], None]
"""Called with the steps done, all steps, and the name of the present one."""


def evaluate(
    transcripts: Sequence[Transcript],
    systems: Sequence[System] | None = None,
    *,
    summary_tokens: Sequence[int] = SIZES,
    keep: tuple[str, int] = KEEP,
    recall_tokens: int = 0,
    rounds: int = 0,
    minimum_tokens: int = MINIMUM,
    count: TokenCount = count_tokens_approximately,
    counter: str = "approximate",
    seed: int = 1,
    progress: Progress | None = None,
    window: int = 0,
    exams: Mapping[str, Sequence[Asked]] | None = None,
    planted: Sequence[Planted] = (),
) -> Evaluation:
    """Measure whether later needs survive a compaction; no model is asked.

    Args:
        transcripts: conversations, as `Transcript.of` gives them.
        systems: to compare; the first is compared with each of the others. Default: a
            `Compactor` with default settings, and LangChain's middleware.
        summary_tokens: sizes of a summary, in tokens, for systems that name none.
        keep: the tail that counts as near, `("messages", N)` or `("tokens", N)`; the default
            systems keep it too.
        recall_tokens: limit of recall for a question, in tokens; 0 for no recall.
        rounds: compactions of a growing thread; 0 for no such measure.
        minimum_tokens: transcripts smaller than this are left out of future use.
        count: counts the tokens of a list of messages. Default: LangChain's
            `count_tokens_approximately`.
        counter: its name in results.
        seed: the same seed gives the same intervals.
        progress: called at each step.
        window: also run each transcript step by step in a window of this size, in tokens, and look
            for the evidence of `exams` and `planted`; 0 for no such measure.
        exams: questions about transcripts, by their names; see `exams.Asked`.
        planted: statements of a user that are put into them; see `exams.Planted`.

    Returns:
        The findings. Only `seconds` differs from run to run.

    Raises:
        InputError: two transcripts or two systems have one name, or a number is invalid.
        PolicyError: the settings of a system are invalid.
        SummaryError: a model that a system names could not summarise.

    Example:
        >>> from conspectus_lab.evaluate import Question
        >>> talk = [{"role": "user", "content": "The key is K-77."}] * 30
        >>> asked = [Question("What is the key?", "K-77", ("m0",))]
        >>> found = evaluate([Transcript.of("talk", talk, asked)], summary_tokens=[128])
        >>> found.system("conspectus").answers.answers.value
        1.0
    """
    _check(transcripts, summary_tokens, recall_tokens, rounds, minimum_tokens)
    if systems is None:
        systems = (ConspectusSystem(keep=keep, count=count), LangChainSystem(keep, count=count))
    passes = [
        (system, size)
        for system in systems
        for size in dict.fromkeys(summary_tokens if system.sizes is None else system.sizes)
    ]
    _check_systems(passes)
    yardstick = Yardstick(keep, count, recall_tokens, minimum_tokens)
    progressed = progress or (lambda done, total, what: None)
    cases = []
    for number, transcript in enumerate(transcripts):
        progressed(number, len(transcripts), f"reading {transcript.name}")
        cases.append(yardstick.case(transcript))
    measurable = sum(bool(case.cuts or case.plain) for case in cases)
    cut = sum(bool(case.cuts) for case in cases)
    total = len(passes) * measurable + cut * sum(bool(rounds and size) for _, size in passes)
    done = 0

    def step(label: str) -> Callable[[str], None]:
        def one(name: str) -> None:
            nonlocal done
            progressed(done, total, f"{label}: {name}")
            done += 1

        return one

    results: list[SystemResult] = []
    shares: list[list[float]] = []
    for system, size in passes:
        label = f"{system.name} {size}" if size else system.name
        found, answered = measure(cases, system, size, yardstick, seed, step(label))
        if rounds and size:
            again = measure_rounds(cases, system, size, rounds, step(f"{label}, {rounds} rounds"))
            found = replace(found, rounds=again)
        results.append(found)
        shares.append(answered)
    # In a window, plain truncation stands for all systems of others.
    ours = [system for system in systems if isinstance(system, ConspectusSystem)]
    compared: list[System] = [*ours, TailSystem(keep, count)]
    return Evaluation(
        Settings(written(keep), recall_tokens, minimum_tokens, rounds, counter, seed),
        tuple(case.noted for case in cases),
        tuple(results),
        tuple(_differences(results, shares, seed)),
        tuple(
            measure_going_on(
                transcripts,
                exams or {},
                planted,
                one,
                window,
                count,
                recall_tokens=recall_tokens or RECALL,
                seed=seed,
            )
            for one in (compared if window else ())
        ),
    )


def beside(
    names: Sequence[Family], keep: tuple[str, int], count: TokenCount = count_tokens_approximately
) -> list[System]:
    """Make the systems of others, by name: `langchain` or `tail`.

    Raises:
        InputError: there is no system of that name.
    """
    known: dict[str, System] = {
        "langchain": LangChainSystem(keep, count=count),
        "tail": TailSystem(keep, count),
    }
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no system {name!r} to compare with; known are {', '.join(known)}"
            )
    return [known[name] for name in dict.fromkeys(names)]


def _differences(
    results: Sequence[SystemResult], shares: Sequence[Sequence[float]], seed: int
) -> list[Difference]:
    """Subtract each other system from the first, at the same size or at none."""
    found: list[Difference] = []
    for one, ours in zip(results, shares, strict=True):
        if one.name != results[0].name:
            continue
        for other, theirs in zip(results, shares, strict=True):
            if other.name == one.name or other.summary_tokens not in (0, one.summary_tokens):
                continue
            pairs: dict[str, list[float]] = {}
            if one.future_use is not None and other.future_use is not None:
                there = other.future_use.quoted_in
                pairs["quoted"] = [v - there[k] for k, v in one.future_use.quoted_in.items()]
            pairs["answers"] = [a - b for a, b in zip(ours, theirs, strict=True)]
            for name, values in pairs.items():
                if (mean := mean_of(values, seed)) is not None:
                    found.append(Difference(name, one.label, other.label, mean))
    return found


def _check(
    transcripts: Sequence[Transcript],
    summary_tokens: Sequence[int],
    recall_tokens: int,
    rounds: int,
    minimum_tokens: int,
) -> None:
    names = [transcript.name for transcript in transcripts]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"two transcripts are called {twice!r}; give each its own name")
    if not summary_tokens or min(summary_tokens) < 1:
        raise InputError("summary_tokens must name at least one size above 0")
    numbers = {"recall_tokens": recall_tokens, "rounds": rounds, "minimum_tokens": minimum_tokens}
    for name, number in numbers.items():
        if number < 0:
            raise InputError(f"{name} cannot be {number}; it must be 0 or more")


def _check_systems(passes: Sequence[tuple[System, int]]) -> None:
    labels = [(system.name, size) for system, size in passes]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError(f"two systems are called {twice[0]!r}; give each its own name")
    for system, size in passes:
        if isinstance(system, ConspectusSystem):
            system.compactor(size)
