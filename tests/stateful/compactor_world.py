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
from stateful.compactor_talk import (
    LOOK_OPTIONS,
    NAMES,
    CompactorTalk,
    Conversation,
    LookOptions,
    Moment,
)
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
Circumstances = tuple[bool, bool, int]
CIRCUMSTANCES = st.tuples(st.booleans(), st.booleans(), st.integers(0, 5))
"""Messages have ids, some are broken, there is an archive unless it is 0."""


class CompactorWorld(CompactorTalk):
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
        self.conversations: dict[tuple[str, str, str], Conversation] = {}
        self.current = self.conversation(NAMES[0])

    def conversation(self, name: tuple[str, str, str]) -> Conversation:
        return self.conversations.setdefault(name, Conversation(name))

    @initialize(
        settings=SETTINGS,
        form=st.sampled_from(FORMS),
        with_ids_broken_archived=CIRCUMSTANCES,
        summarizer=st.data(),
    )
    def begins(
        self,
        settings: dict[str, Any],
        form: str,
        with_ids_broken_archived: Circumstances,
        summarizer: st.DataObject,
    ) -> None:
        with_ids, broken, archived = with_ids_broken_archived
        self.form = form if form in self.forms else self.forms[0]
        self.named = with_ids
        self.broken = broken and self.broken_too
        self.has_archive = archived > 0 or not self.archives
        self.settings = {**settings, **self.settings_of}
        self.kind = summarizer.draw(st.sampled_from(self.summarizer_kinds))
        self.build()
        self.ready = True

    def build(self) -> None:
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
            self.moods.new_summarizer(self.kind),
            archive=self.archive,
            summarizer_timeout=600,
            on_event=lambda name, data: self.events.append((name, dict(data))),
            alternate_roles="off",  # each message is looked for by itself
            **settings,
        )

    # What else happens

    @rule(
        kinds=st.lists(st.sampled_from([*KINDS, *GOOD]), min_size=1, max_size=4),
        options=LOOK_OPTIONS,
    )
    def summarisers_behave(self, kinds: list[str], options: LookOptions) -> None:
        self.moods.kinds[:] = kinds
        self.end_quiet()
        self.the_talk_goes_on(4, 60)
        self.look(*options)

    @precondition(lambda self: self.ready and self.has_archive)
    @rule(successes=st.integers(0, 8), times=st.integers(1, 4), options=LOOK_OPTIONS)
    def the_archive_is_in_trouble(self, successes: int, times: int, options: LookOptions) -> None:
        self.store.fail_after(successes, times)
        self.end_quiet()
        self.the_talk_goes_on(4, 60)
        self.look(*options)

    @rule()
    def the_process_restarts(self) -> None:
        if self.has_archive:
            self.build()
            self.end_quiet()

    def end_quiet(self) -> None:
        for conversation in self.conversations.values():
            conversation.quiet = False

    @rule(name=st.sampled_from(NAMES))
    def another_conversation_goes_on(self, name: tuple[str, str, str]) -> None:
        self.current = self.conversation(name)

    @rule(index=st.integers(0, 1_000), text=WRITTEN)
    def a_message_is_edited(self, index: int, text: str) -> None:
        current = self.current
        if not current.whole:
            return
        index %= len(current.whole)
        old = current.whole[index]
        content = self.text(text)
        if self.form == "langchain":
            new = old.model_copy(update={"content": content})
        elif isinstance(old["content"], str):
            new = {**old, "content": content}
        else:
            return
        current.whole[index] = new
        shown = [n for n, message in enumerate(current.view) if message is old]
        if index < current.shown_count:
            current.unedited = False
            current.quiet = False
            current.returned_to = None
            if len(shown) == 1 and not current.whole_only:
                current.view = [new if message is old else message for message in current.view]
            else:
                current.whole_only = True

    @rule(choice=st.integers(0, 1_000), options=LOOK_OPTIONS, goes_on=st.booleans())
    def somebody_goes_to_another_moment(
        self, choice: int, options: LookOptions, goes_on: bool
    ) -> None:
        """Back, forward again, or over to another branch; and perhaps on from there."""
        current = self.current
        if not current.moments:
            return
        moment = current.moments[choice % len(current.moments)]
        current.whole = list(moment.whole)
        current.view = list(moment.view)
        current.shown_count = len(moment.whole)
        current.returned_to = moment
        current.unedited = False
        current.whole_only = False
        current.pending = []
        current.quiet = False
        if goes_on:
            self.the_talk_goes_on(2, 30)
        self.look(*options)

    @rule(kept_count=st.integers(0, 1_000))
    def the_history_is_cut_short(self, kept_count: int) -> None:
        self.cut(kept_count % (len(self.current.whole) + 1))

    @rule(choice=st.integers(0, 1_000), options=LOOK_OPTIONS)
    def a_client_asks_again(self, choice: int, options: LookOptions) -> None:
        """What a user has said is sent once more, without all that came of it."""
        user_indexes = [n for n, m in enumerate(self.current.whole) if role_of(m) == "user"]
        if user_indexes:
            self.cut(user_indexes[choice % len(user_indexes)] + 1)
            self.look(*options)

    def cut(self, kept_count: int) -> None:
        current = self.current
        del current.whole[kept_count:]
        current.pending = []
        if len(current.whole) < current.shown_count:
            current.unedited = False
            current.whole_only = True
            current.returned_to = None
            current.quiet = False

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

    def messages_to_send(self, whole: bool) -> list[Any]:
        current = self.current
        if whole or current.whole_only or not current.view:
            return list(current.whole)
        return [*current.view, *current.whole[current.shown_count :]]

    def ask(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        """What the compactor answers."""
        scope_arguments = self.current.scope_arguments
        if on_a_loop:
            answer = self.compactor.acompact(messages, force=force, **scope_arguments)
            return self.loop.run(self.moods.cancellable(answer))
        return self.compactor.compact(messages, force=force, **scope_arguments)

    def try_ask(self, messages: list[Any], force: bool, on_a_loop: bool) -> Any:
        """The same, or what was raised."""
        try:
            return self.ask(messages, force, on_a_loop)
        except (ConspectusError, KeyboardInterrupt, asyncio.CancelledError) as error:
            return error

    def look(self, force: bool, whole: bool, on_a_loop: bool) -> Look:
        current = self.current
        messages = self.messages_to_send(whole)
        sent_texts = [plain(message) for message in messages]
        records = self.store.values_of("records")
        head = self.in_force()
        drafts = self.store.values_of("drafts")
        readings_before = len(self.moods.readings)
        prompts_before = len(self.moods.prompts)
        failures_before = self.store.failed
        sees_same = current.unedited and not current.whole_only
        unchanged = None
        if sees_same or (current.returned_to is not None and not whole):
            unchanged = [plain(m) for m in [*current.view, *current.whole[current.shown_count :]]]
        answer = self.try_ask(messages, force, on_a_loop)
        new_readings = self.moods.readings[readings_before:]
        summarizer_of_record = (
            answer.record.by if isinstance(answer, CompactionResult) and answer.record else ""
        )
        if summarizer_of_record or self.store.values_of("drafts") != drafts:
            current.readings += [
                reading
                for reading in new_readings
                if not summarizer_of_record or reading.by == summarizer_of_record.partition(":")[0]
            ]
        error = answer if isinstance(answer, BaseException) else None
        self.store.recover()
        look = Look(
            whole=list(current.whole),
            shown=messages if error is not None else list(answer.messages),
            readings=current.readings,
            fresh=new_readings,
            prompts=self.moods.prompts[prompts_before:],
            unchanged=unchanged if sees_same or not whole else None,
            records_before=records,
            records_after=self.store.values_of("records"),
            head_before=head,
            head_after=self.in_force(),
            unedited=sees_same,
            error=error,
            failed=error is not None or self.store.failed > failures_before,
            archive_failed=self.store.failed > failures_before,
            calls=len(new_readings),
            forced=force,
            asked_again=current.quiet and not whole,
            sent_texts=sent_texts,
            returned_to=(current.returned_to.reach, [plain(m) for m in current.returned_to.view])
            if current.returned_to
            else None,
            broken=self.broken,
        )
        if error is None:
            look.outcome = answer.outcome
            look.budget = self.settings["window"] or answer.budget
            look.tokens_after = answer.tokens_after
            look.needed = answer.needed
            look.committed = answer.record is not None
            look.failed = look.failed or answer.failed is not None
            look.summary = answer.summary
            look.archived = answer.archived
        if self.archive is not None:
            self.note_reach(look)
        self.sent = messages
        self.answer = answer
        self.judge(look)
        if error is None:
            current.view = look.shown
            current.shown_count = len(current.whole)
            current.unedited = True
            current.whole_only = False
            # what the archive refused is tried again
            current.returned_to = None
            current.quiet = not look.archive_failed
            if not look.failed:  # what failed may be made good by whoever comes back to it
                reach = counted(look.reach or [])
                current.moments.append(Moment(list(current.whole), list(current.view), reach))
        return look

    def in_force(self) -> Any:
        heads = self.store.values_of("head")
        prefix = ("conspectus", *self.current.scope.hashes, "head")
        return next((v for k, v in heads.items() if k[: len(prefix)] == prefix), None)

    def note_reach(self, look: Look) -> None:
        """What the archive holds of it; asked for while it works."""
        scope = self.current.scope
        chain = self.archive.chain(scope)
        covered_keys = {key for record in chain for key in record.covers}
        # Those that are only truncated stand between them where the archive knows their place.
        rows = sorted(
            (r["key"] for r in self.archive.export(scope)), key=lambda k: k not in covered_keys
        )
        look.reach = [original.message for original in self.archive.get(scope, rows)]
        look.covered = sum(len(record.covers) for record in chain)
        look.lines = lines_of(chain)

    def judge(self, look: Look) -> None:
        """What a promise says of a look."""
        raise NotImplementedError
