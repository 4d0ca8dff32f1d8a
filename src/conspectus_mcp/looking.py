"""Look up threads, compactions and messages within a grant, as text without authority."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from conspectus._core.records import Record
from conspectus.archive import Archive, Scope
from conspectus.errors import InputError, NotFoundError
from conspectus.messages.framing import as_notes
from conspectus.messages.recalled import recalled_text
from conspectus.notes.cutting import cut, one_line
from conspectus.notes.segment import Segment
from conspectus.recall import recall_flow
from conspectus.recall.layout import Hit, hit_of, label, render
from conspectus_mcp.grants import Grant

PAGE = 100
"""Threads, compactions or messages on one page of a list."""

SEARCHED = 50
"""Maximum threads of one search."""

HEAD = 120
"""Characters of a message in a list."""

SAID = 1_000
"""Characters of one message of the user's that an overview shows."""

SUMMARY = 8_000
"""Characters of a summary in one answer."""


def handle_of(place: Scope) -> str:
    """Return a thread's id of 16 hexadecimal digits, whatever characters its name has."""
    tenant, thread, _ = place.hashes
    return hashlib.sha256(f"{tenant}{thread}".encode()).hexdigest()[:16]


def line_of(place: Scope) -> str:
    """Describe a thread on one line."""
    return f'[{handle_of(place)}] "{label(place.thread)}" of {label(place.tenant)}'


@dataclass(frozen=True, slots=True)
class Looking:
    """Look up one archive for one client. Each method is a flow that returns an answer's text."""

    archive: Archive
    grant: Grant
    count: Callable[[str], int]

    async def places(self) -> list[Scope]:
        """List all threads that are kept and granted, by tenant and name."""
        found = []
        for tenant in self.grant.tenants:
            threads = await self.archive.flow(self.archive.threads, tenant)
            found += [Scope(tenant, one) for one in threads if self.grant.allows(tenant, one)]
        return found

    async def threads(self, start: int) -> str:
        """List a page of the threads."""
        lines = [line_of(place) for place in (await self.places())]
        return _listed(lines, start, "No thread is kept that you may read.")

    async def search(self, query: str, thread: str, session: str, limit: int, tokens: int) -> str:
        """Search messages for words, in one thread or in all of them."""
        if not query.strip():
            raise InputError("query is empty; give words, names, paths or numbers to look for")
        places = await (self._named(thread) if thread else self.places())
        searched, texts = places[:SEARCHED], []
        for place in searched:
            scope = replace(place, session=session)
            chain = await self.archive.flow(self.archive.chain, scope)
            result = await recall_flow(
                self.archive,
                scope,
                chain,
                query=query,
                most=limit,
                tokens=max(1, tokens // max(1, min(len(searched), 4))),
                count=self.count,
            )
            if result.hits:
                best = max(hit.score for hit in result.hits)
                texts.append((best, place, result.text, len(result.hits)))
        texts.sort(key=lambda one: -one[0])
        parts: list[str] = []
        used = shown = 0
        for _, place, text, hits in texts:
            part = text if len(places) == 1 else f"{line_of(place)}\n{text}"
            used += self.count(part)
            shown += hits
            if parts and (used > tokens or shown > limit):
                break
            parts.append(part)
        notes = []
        if len(parts) < len(texts):
            more = len(texts) - len(parts)
            notes.append(f"({more:,} more threads hold something; name one of them to see it.)")
        if len(searched) < len(places):
            notes.append(f"(Searched: the first {SEARCHED} of {len(places):,} threads; name one.)")
        if not parts:
            return "\n".join(["Nothing was found; try other words, or an id.", *notes])
        return "\n".join([recalled_text("\n".join(parts)), *notes])

    async def read(
        self, id: str, until: str, at: int, query: str, thread: str, session: str, tokens: int
    ) -> str:
        """Read a message by its id, all, from a character on, or where words stand; or a range."""
        if until and (at or query):
            raise InputError("at and query go with one id; leave out until to read in one message")
        scope, chain = await self._chain(thread, session)
        result = await recall_flow(
            self.archive,
            scope,
            chain,
            id=None if until else id,
            range=(id, until) if until else None,
            at=at or None,
            query=query or None,
            tokens=tokens,
            count=self.count,
        )
        if not result.text:
            raise InputError(f"tokens={tokens} is too little to show any of it; ask for more")
        notes = []
        if result.truncated:
            notes.append(
                "(Not all is shown. Read on in one message with its id and at= the last character "
                "shown, or with words to look for in it; in a range with the next id.)"
            )
        return "\n".join([recalled_text(result.text), *notes])

    async def compactions(self, start: int, thread: str, session: str) -> str:
        """List a page of the compactions in force, the first one first."""
        _, chain = await self._chain(thread, session)
        lines = [f"{number}. {_outline(record)}" for number, record in enumerate(chain, 1)]
        return _listed(lines, start, "No compaction is in force in this thread.")

    async def compaction(self, id: str, start: int, thread: str, session: str) -> str:
        """Show the messages, the cause and the summary of one compaction."""
        scope, chain = await self._chain(thread, session)
        record = next((one for one in chain if one.id == id.strip()), None)
        if record is None:
            raise NotFoundError(
                f"no compaction in force here has the id {id[:80]!r}; list_compactions names them"
            )
        left = await self._lines(scope, record.covers[start : start + PAGE])
        clips = [] if start else [clip.key for clip in record.clips[:PAGE]]
        short = await self._lines(scope, clips)
        text = [_outline(record), *_why(record), *_section("Left the view", left)]
        if start + PAGE < len(record.covers):
            text.append(f"({len(record.covers) - start - PAGE:,} more: start={start + PAGE})")
        text += _section("Shown short from then on", short)
        if not start:
            summary = as_notes(record.summary[:SUMMARY])
            text += _section("Summary from then on", summary.splitlines())
            if len(record.summary) > SUMMARY:
                text.append(f"({len(record.summary) - SUMMARY:,} more characters)")
        return recalled_text("\n".join(text))

    async def overview(self, handle: str) -> str:
        """Show one thread with its compactions, standing facts and newest summary."""
        [place] = await self._named(handle)
        chain = await self.archive.flow(self.archive.chain, place)
        lines = [f"{number}. {_outline(one)}" for number, one in enumerate(chain, 1)][-PAGE:]
        text = [line_of(place), *_section("Compactions", lines)]
        if chain:
            text += _section("Said by the user", list(user_lines(chain)))
            summary = as_notes(chain[-1].summary[:SUMMARY])
            text += _section("Summary", summary.splitlines())
        return recalled_text("\n".join(text))

    async def _chain(self, thread: str, session: str) -> tuple[Scope, tuple[Record, ...]]:
        [place] = await self._named(thread)
        scope = replace(place, session=session)
        return scope, (await self.archive.flow(self.archive.chain, scope))

    async def _named(self, thread: str) -> list[Scope]:
        """Find the one thread of a handle or a name; without one, the only thread."""
        places = await self.places()
        if not thread:
            found = places
            if not found:
                raise NotFoundError("nothing is archived yet that you may read")
        else:
            bare = thread.strip().removeprefix("[").removesuffix("]")
            found = [one for one in places if handle_of(one) == bare]
            found = found or [one for one in places if one.thread == thread]
        if not found:
            raise NotFoundError(
                f"there is no thread {thread[:80]!r} that you may read; list_threads names them"
            )
        if len(found) > 1:
            why = f"{thread[:80]!r} names several threads" if thread else "there are several"
            raise InputError(f"{why}; give thread= one of the ids in list_threads")
        return found

    async def _lines(self, scope: Scope, keys: Sequence[str]) -> list[str]:
        found = await self.archive.flow(self.archive.find, scope, keys)
        hits: list[Hit] = []
        for key in keys:
            if (one := found.get(key)) is None:
                continue
            text = " ".join(one.text[: 4 * HEAD].split())
            text = text if len(text) <= HEAD else f"{text[:HEAD]} …"
            hits.append(hit_of(replace(one, text=text)))
        lines = render(hits).splitlines()
        if gone := len(keys) - len(hits):
            lines.append(f"({gone:,} are gone: they have expired or were forgotten)")
        return lines


def user_lines(chain: Sequence[Record]) -> Iterator[str]:
    """Yield what the user has said, of messages that left, a line each, newest first."""
    for record in reversed(chain):
        lines = Segment.from_json(record.segment).lines
        for line in reversed([line for line in lines if line.kind == "said"]):
            yield f"- {as_notes(cut(one_line(line.text), SAID))} [{label(line.ids[0])}]"


def _outline(record: Record) -> str:
    by = f", by {label(record.by)}" if record.by else ""
    clips = f", {len(record.clips):,} shown short" if record.clips else ""
    return (
        f"[{record.id}] {label(record.cause)}: {len(record.covers):,} messages left{clips}; "
        f"{record.tokens_before:,} tokens before, {record.tokens_after:,} after{by}"
    )


def _why(record: Record) -> list[str]:
    lines = [
        f"Asked for by: {as_notes(' '.join(record.cause.split()))}",
        "Originals: " + ("archived and read back" if record.archived else "not archived"),
    ]
    if record.cost.calls:
        lines.append(f"Cost: {record.cost.calls:,} calls, {record.cost.tokens:,} tokens")
    if record.redacted:
        kinds = ", ".join(f"{label(kind)} {count}" for kind, count in record.redacted.items())
        lines.append(f"Secrets taken out: {kinds}")
    if record.cut:
        lines.append(f"Cut off at the end of the summary: {record.cut:,} tokens")
    return lines


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", *lines] if lines else []


def _listed(lines: Sequence[str], start: int, none: str) -> str:
    page = list(lines[start : start + PAGE])
    if not page:
        return none if not lines else f"The list ends at {len(lines):,}."
    if start + PAGE < len(lines):
        page.append(f"({len(lines) - start - PAGE:,} more: start={start + PAGE})")
    return recalled_text("\n".join(page))
