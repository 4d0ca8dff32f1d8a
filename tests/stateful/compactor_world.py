"""A world around `Compactor`: people talk, tools answer late, histories are edited and rewound,
summarisers behave as they like, the archive fails, the process restarts.

It keeps all that was ever said in lists of its own, and hands each look to a promise to judge.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conspectus import CompactionResult, Compactor
from conspectus.archive import Archive
from conspectus.errors import ConspectusError
from stateful.compactor_talk import HOW, NAMES, Conversation, How, Moment, Talk
from stateful.looks import Look, counted, lines_of
from stateful.messages import FORMS, WRITTEN
from stateful.oracle import plain, role_of
from stateful.summarizers import GOOD, KINDS

SETTINGS = st.fixed_dictionaries(
    {
        "window": st.sampled_from([None, 400, 700, 1_000, 1_500, 3_000]),
        "keep": st.one_of(
            st.tuples(st.just("messages"), st.integers(1, 8)),
            st.tuples(st.just("tokens"), st.integers(50, 600)),
        ),
        "trigger": st.sampled_from(
            [
                None,
                ("messages", 6),
                ("messages", 12),
                ("tokens", 300),
                {"tokens": 200, "messages": 4},
            ]
        ),
        "stale_results": st.sampled_from([False, {"over": 250, "newest": 0}, True]),
        "on_failure": st.sampled_from(["degrade", "degrade", "keep", "raise"]),
    }
)
Ways = tuple[bool, bool, int]
WAYS = st.tuples(st.booleans(), st.booleans(), st.integers(0, 5))
"""Messages have ids, some are broken, there is an archive unless it is 0."""


class CompactorWorld(Talk):
    """The world; a promise is a subclass with `judge`, and with rules of its own."""

    steps = 10
    broken_too = True
    archives = True
    settings_of: Mapping[str, Any] = {}
    summarizer_kinds: Sequence[str] = ("protocol", "protocol", "model", "side by side", "embedded")
    forms: Sequence[str] = FORMS

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []
        self.all: dict[tuple[str, str, str], Conversation] = {}
        self.at = self.conversation(NAMES[0])

    def conversation(self, name: tuple[str, str, str]) -> Conversation:
        return self.all.setdefault(name, Conversation(name))

    @initialize(settings=SETTINGS, form=st.sampled_from(FORMS), ways=WAYS, summarizer=st.data())
    def begins(
        self, settings: dict[str, Any], form: str, ways: Ways, summarizer: st.DataObject
    ) -> None:
        named, broken, archived = ways
        self.form = form if form in self.forms else self.forms[0]
        self.named = named
        self.broken = broken and self.broken_too
        self.has_archive = archived > 0 or not self.archives
        self.settings = {**settings, **self.settings_of}
        self.kind = summarizer.draw(st.sampled_from(self.summarizer_kinds))
        self.builds()
        self.ready = True

    def builds(self) -> None:
        """A new compactor on what is kept, as a new process would have it."""
        settings = dict(self.settings)
        if settings["window"] is None and settings["trigger"] is None:
            settings["trigger"] = ("messages", 10)
        keep = settings["keep"]
        trigger = settings["trigger"]
        if isinstance(trigger, tuple) and trigger[0] == keep[0] and keep[1] >= trigger[1]:
            settings["keep"] = (keep[0], max(1, trigger[1] // 2))
        if isinstance(trigger, dict) and keep[1] >= trigger.get(keep[0], 10**9):
            settings["keep"] = (keep[0], max(1, trigger[keep[0]] // 2))
        self.archive = Archive(self.store) if self.has_archive else None
        self.compactor = Compactor(
            self.moods.made(self.kind),
            archive=self.archive,
            summarizer_timeout=600,
            on_event=lambda name, data: self.events.append((name, dict(data))),
            alternate_roles="off",  # each message is looked for by itself
            **settings,
        )

    # What else happens

    @rule(kinds=st.lists(st.sampled_from([*KINDS, *GOOD]), min_size=1, max_size=4), how=HOW)
    def summarisers_behave(self, kinds: list[str], how: How) -> None:
        self.moods.kinds[:] = kinds
        self.disturbed()
        self.the_talk_goes_on(4, 60)
        self.look(*how)

    @precondition(lambda self: self.ready and self.has_archive)
    @rule(after=st.integers(0, 8), times=st.integers(1, 4), how=HOW)
    def the_archive_is_in_trouble(self, after: int, times: int, how: How) -> None:
        self.store.fails(after, times)
        self.disturbed()
        self.the_talk_goes_on(4, 60)
        self.look(*how)

    @rule()
    def the_process_restarts(self) -> None:
        if self.has_archive:
            self.builds()
            self.disturbed()

    def disturbed(self) -> None:
        for one in self.all.values():
            one.quiet = False

    @rule(name=st.sampled_from(NAMES))
    def another_conversation_goes_on(self, name: tuple[str, str, str]) -> None:
        self.at = self.conversation(name)

    @rule(place=st.integers(0, 1_000), text=WRITTEN)
    def a_message_is_edited(self, place: int, text: str) -> None:
        at = self.at
        if not at.whole:
            return
        place %= len(at.whole)
        old = at.whole[place]
        content = self.text(text)
        if self.form == "langchain":
            new = old.model_copy(update={"content": content})
        elif isinstance(old["content"], str):
            new = {**old, "content": content}
        else:
            return
        at.whole[place] = new
        shown = [n for n, message in enumerate(at.view) if message is old]
        if place < at.seen:
            at.same = False
            at.quiet = False
            at.back = None
            if len(shown) == 1 and not at.whole_only:
                at.view = [new if message is old else message for message in at.view]
            else:
                at.whole_only = True

    @rule(which=st.integers(0, 1_000), how=HOW, further=st.booleans())
    def somebody_goes_to_another_moment(self, which: int, how: How, further: bool) -> None:
        """Back, forward again, or over to another branch; and perhaps on from there."""
        at = self.at
        if not at.moments:
            return
        moment = at.moments[which % len(at.moments)]
        at.whole = list(moment.whole)
        at.view = list(moment.view)
        at.seen = len(moment.whole)
        at.back = moment
        at.same = False
        at.whole_only = False
        at.pending = []
        at.quiet = False
        if further:
            self.the_talk_goes_on(2, 30)
        self.look(*how)

    @rule(left=st.integers(0, 1_000))
    def the_history_is_cut_short(self, left: int) -> None:
        self.cut(left % (len(self.at.whole) + 1))

    @rule(which=st.integers(0, 1_000), how=HOW)
    def a_client_asks_again(self, which: int, how: How) -> None:
        """What a user has said is sent once more, without all that came of it."""
        said = [n for n, m in enumerate(self.at.whole) if role_of(m) == "user"]
        if said:
            self.cut(said[which % len(said)] + 1)
            self.look(*how)

    def cut(self, left: int) -> None:
        at = self.at
        del at.whole[left:]
        at.pending = []
        if len(at.whole) < at.seen:
            at.same = False
            at.whole_only = True
            at.back = None
            at.quiet = False

    # Looks

    @rule(force=st.booleans(), whole=st.booleans(), on_a_loop=st.booleans())
    def somebody_looks(self, force: bool, whole: bool, on_a_loop: bool) -> None:
        self.look(force, whole, on_a_loop)

    @rule(turns=st.integers(1, 4), whole=st.booleans(), on_a_loop=st.booleans())
    def the_talk_goes_on_with_looks(self, turns: int, whole: bool, on_a_loop: bool) -> None:
        for _ in range(turns):
            self.the_talk_goes_on(3, 30)
            self.look(False, whole, on_a_loop)
        self.look(False, False, on_a_loop)

    def sends(self, whole: bool) -> list[Any]:
        at = self.at
        if whole or at.whole_only or not at.view:
            return list(at.whole)
        return [*at.view, *at.whole[at.seen :]]

    def ask(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        """What the compactor answers."""
        where = self.at.where
        if on_a_loop:
            asked = self.compactor.acompact(messages, force=force, **where)
            return self.loop.run(self.moods.watched(asked))
        return self.compactor.compact(messages, force=force, **where)

    def tried(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        """The same, or what was raised."""
        try:
            return self.ask(messages, force, on_a_loop)
        except (ConspectusError, KeyboardInterrupt, asyncio.CancelledError) as error:
            return error

    def look(self, force: bool, whole: bool, on_a_loop: bool) -> Look:
        at = self.at
        messages = self.sends(whole)
        before = [plain(message) for message in messages]
        records = self.store.held("records")
        head = self.in_force()
        drafts = self.store.held("drafts")
        read = len(self.moods.readings)
        prompted = len(self.moods.prompts)
        failed = self.store.failed
        sees_same = at.same and not at.whole_only
        unchanged = None
        if sees_same or (at.back is not None and not whole):
            unchanged = [plain(m) for m in [*at.view, *at.whole[at.seen :]]]
        answer = self.tried(messages, force, on_a_loop)
        now = self.moods.readings[read:]
        by = answer.record.by if isinstance(answer, CompactionResult) and answer.record else ""
        if by or self.store.held("drafts") != drafts:
            at.readings += [one for one in now if not by or one.by == by.partition(":")[0]]
        error = answer if isinstance(answer, BaseException) else None
        self.store.recovers()
        look = Look(
            whole=list(at.whole),
            shown=messages if error is not None else list(answer.messages),
            readings=at.readings,
            fresh=now,
            prompts=self.moods.prompts[prompted:],
            unchanged=unchanged if sees_same or not whole else None,
            records=(records, self.store.held("records")),
            heads=(head, self.in_force()),
            same=sees_same,
            error=error,
            failed=error is not None or self.store.failed > failed,
            trouble=self.store.failed > failed,
            calls=len(now),
            forced=force,
            asked_again=at.quiet and not whole,
            came=before,
            back=(at.back.reach, [plain(m) for m in at.back.view]) if at.back else None,
            broken=self.broken,
        )
        if error is None:
            look.outcome = answer.outcome
            look.budget = self.settings["window"] or answer.budget
            look.numbers = (answer.tokens_after, answer.needed)
            look.committed = answer.record is not None
            look.failed = look.failed or answer.failed is not None
            look.summary = answer.summary
            look.archived = answer.archived
        if self.archive is not None:
            self.reached(look)
        self.sent = messages
        self.answer = answer
        self.judge(look)
        if error is None:
            at.view = look.shown
            at.seen = len(at.whole)
            at.same = True
            at.whole_only = False
            # what the archive refused is tried again
            at.back = None
            at.quiet = not look.trouble
            if not look.failed:  # what failed may be made good by whoever comes back to it
                reach = counted(look.reach or [])
                at.moments.append(Moment(list(at.whole), list(at.view), reach))
        return look

    def in_force(self) -> Any:
        kept = self.store.held("head")
        places = ("conspectus", *self.at.scope.hashes, "head")
        return next((v for k, v in kept.items() if k[: len(places)] == places), None)

    def reached(self, look: Look) -> None:
        """What the archive holds of it; asked for while it works."""
        scope = self.at.scope
        chain = self.archive.chain(scope)
        gone = {key for record in chain for key in record.covers}
        # Those that are only truncated stand between them where the archive knows their place.
        rows = sorted((r["key"] for r in self.archive.export(scope)), key=lambda k: k not in gone)
        look.reach = [one.message for one in self.archive.get(scope, rows)]
        look.covered = sum(len(record.covers) for record in chain)
        look.lines = lines_of(chain)

    def judge(self, look: Look) -> None:
        """What a promise says of a look."""
        raise NotImplementedError
