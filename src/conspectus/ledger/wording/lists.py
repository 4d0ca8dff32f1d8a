"""What one language tells the ledger: lists of phrases, each for one purpose."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Wording:
    """The phrases of one language; several on a line are divided by ` / `.

    Attributes:
        rule: a sentence with one of them sets a rule or a limit.
        often: words such as "always", which set a rule only in an order.
        order: words that make an order of a sentence.
        not_rule: the same words where they set none: politeness, tales, guesses.
        preference: it says what somebody likes better.
        not_preference: the same words where they say no such thing.
        decision: it says what was decided, or what was found to be the cause.
        not_decision: the same words where nothing is decided.
        task: it says what is still to be done.
        done: it says that something has been done.
        not_done: the same words where it has not been.
        unreal: it tells what is not so: a wish, a guess, what is not decided yet.
        change: it says that something takes the place of something else.
        not_change: the same words where nothing is replaced.
        mixed: it warns of taking one thing for another, so that nothing is replaced.
        cause: it says plainly what something comes from.
        because: words that give a reason; of something wrong or chosen they make a decision.
        grounds: words that give a reason only of what is chosen.
        not_task: words of the list `task` where nothing is to be done.
        trouble: what goes wrong, so that its reason is worth keeping.
        choice: what is kept, taken or left, so that its reason is worth keeping.
        not_cause: a reason that tells of feelings or manners, and of no work.
        duty: somebody must do something: work, unless it is to be done always.
        not_duty: the same words where nothing is to be done.
        standing: words by which a duty holds for good, not once.
        idle: idioms, habits and wishes, which make no rule of the words of rules in them.
        allow: it says that so much is allowed, or enough.
        told: it passes on what somebody else says, or what is new.
        reason: how a sentence begins or ends that gives the reason of the one before.
        heading_rule: a heading above a list of rules.
        heading_task: a heading above a list of open work.
        heading_done: a heading above a list of finished work.
        filler: words that say nothing about what a statement is about.
        alike: words for one thing, a group on each line: statements that differ in these are
            about the same.
        months: names and short forms of the months, in order, a month on each line.
        weekdays: names and short forms of the days.
        languages: names of languages, as one would say in which to answer.
        units: words that may follow a number as its unit.
    """

    rule: str = ""
    often: str = ""
    order: str = ""
    not_rule: str = ""
    preference: str = ""
    not_preference: str = ""
    decision: str = ""
    not_decision: str = ""
    task: str = ""
    done: str = ""
    not_done: str = ""
    unreal: str = ""
    change: str = ""
    not_change: str = ""
    mixed: str = ""
    cause: str = ""
    because: str = ""
    grounds: str = ""
    not_task: str = ""
    trouble: str = ""
    choice: str = ""
    not_cause: str = ""
    duty: str = ""
    not_duty: str = ""
    standing: str = ""
    idle: str = ""
    allow: str = ""
    told: str = ""
    reason: str = ""
    heading_rule: str = ""
    heading_task: str = ""
    heading_done: str = ""
    filler: str = ""
    alike: str = field(default="")
    months: str = ""
    weekdays: str = ""
    languages: str = ""
    units: str = ""
