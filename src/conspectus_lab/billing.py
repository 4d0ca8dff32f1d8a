"""Price a session: simulated prefix caches, and bills by dated prices.

The rules of caches are those of the providers' pages on 2026-11-23. Nothing here reads a clock: the
caller passes the time of each request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import reduce
from itertools import accumulate, takewhile
from operator import add
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from conspectus.core.records import Cost
from conspectus.errors import PolicyError, install_command
from conspectus.observe import Price, price_of

FIVE_MINUTES = 300.0
HALF_HOUR = 1_800.0
"""Lifetimes of cache entries, in seconds."""

TOOLS = "tools"
SYSTEM = "system"
"""Kinds of blocks that stay the same for a whole session."""


@dataclass(frozen=True, slots=True)
class Block:
    """One part of a request, in the provider's order: tools, system, messages."""

    text: str  # the text that the provider compares
    tokens: int  # its size
    mark: bool = False  # whether a breakpoint (`cache_control`) is at its end
    run: str = ""  # `tools` or `system`; empty for messages


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of one provider's cache.

    Attributes:
        marked: only prefixes that end at a breakpoint are cached, and writing them has a price;
            otherwise every prefix is cached.
    """

    least: int  # tokens of the shortest prefix that is cached
    step: int = 1  # tokens; reads beyond `least` are multiples of this
    marked: bool = False
    moving: bool = False  # the provider sets a breakpoint at the end of each request
    lifetime: float = FIVE_MINUTES  # seconds of an entry; each read renews it


RULES: dict[str, CacheRules] = {
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    r"claude-(fable|mythos)|claude-(opus|sonnet|haiku)-5-5|claude-opus-5": CacheRules(
        512, marked=True
    ),
    r"claude-opus-4-7|claude-(3-5-haiku|haiku-3)|claude-3-haiku": CacheRules(2_048, marked=True),
    r"claude-opus-4-[56]|claude-haiku-4-5": CacheRules(4_096, marked=True),
    r"claude": CacheRules(1_024, marked=True),
    # https://ai.google.dev/gemini-api/docs/caching: no lifetime is named; five minutes are assumed.
    r"gemini-2\.5": CacheRules(2_048),
    r"gemini": CacheRules(4_096),
    # https://developers.openai.com/api/docs/guides/prompt-caching: from GPT-5.6 on at breakpoints.
    r"gpt-(5\.([6-9]|\d\d)|[6-9]|1\d)": CacheRules(
        1_024, marked=True, moving=True, lifetime=HALF_HOUR
    ),
    r"": CacheRules(1_024, step=128),
}
"""Rules by the beginning of a model's name; the first match is used."""


def rules_for(model: str) -> CacheRules:
    """Return the rules of the cache of a model's provider.

    The name may begin with a provider (`anthropic:claude-sonnet-5-5`), or be Bedrock's. An unknown
    one has the rules of OpenAI before GPT-5.6.

    Example:
        >>> rules_for("claude-haiku-4-5-20251001").least, rules_for("gpt-5.4").step
        (4096, 128)
    """
    # Bedrock writes `us.anthropic.claude-haiku-4-5-20251001-v1:0`.
    name = (re.findall(r"(?:claude|gemini|gpt)[^/]*", model.lower()) or [""])[-1]
    return next(rules for pattern, rules in RULES.items() if re.match(pattern, name))


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Input tokens of one request: read from the cache, written to it, or neither."""

    read: int = 0
    written: int = 0
    plain: int = 0

    @property
    def input(self) -> int:
        """Return all tokens of the input."""
        return self.read + self.written + self.plain


class PrefixCache:
    """The cache of one provider for one caller.

    Example:
        >>> cache = PrefixCache(CacheRules(least=1_024, step=128))
        >>> prompt = [Block("instructions", 2_006)]
        >>> cache.request(prompt, at=0.0)
        CacheUse(read=0, written=0, plain=2006)
        >>> cache.request(prompt, at=60.0)
        CacheUse(read=1920, written=0, plain=86)
    """

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._ends: dict[int, float] = {}  # end of each cached prefix's lifetime, by its hash

    def request(self, blocks: Sequence[Block], at: float) -> CacheUse:
        """Send a request at a time in seconds, and return its use of the cache.

        The longest cached prefix of whole blocks is read, and its lifetime is renewed.
        """
        rules = self._rules
        # For each prefix, by the number of its blocks: its size and its hash.
        sizes = list(accumulate((block.tokens for block in blocks), initial=0))
        names = list(accumulate((b.text for b in blocks), lambda *pair: hash(pair), initial=0))
        cached_prefixes: list[int] = []
        for length, block in enumerate(blocks, 1):
            has_breakpoint = block.mark or (rules.moving and length == len(blocks))
            if sizes[length] >= rules.least and (has_breakpoint or not rules.marked):
                cached_prefixes.append(length)
        self._ends = {name: end for name, end in self._ends.items() if end >= at}
        hits = [length for length, name in enumerate(names) if name in self._ends]
        longest_hit = max(hits, default=0)
        beyond_least = max(0, sizes[longest_hit] - rules.least)
        read = sizes[longest_hit] - beyond_least % rules.step
        for length in (*cached_prefixes, longest_hit):
            self._ends[names[length]] = at + rules.lifetime
        written = 0
        if rules.marked:
            written = max([0, *(sizes[length] - read for length in cached_prefixes)])
        return CacheUse(read, written, sizes[-1] - read - written)


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a session with one model.

    Attributes:
        summarizer: the calls and tokens of the summariser; the embedded one has none.
        waited: seconds that the agent waited for its context. Bills are compared without it.
    """

    model: str  # the model with the prices and the cache
    requests: int = 0  # of the agent
    input_tokens: int = 0
    cached_tokens: int = 0  # part of `input_tokens` read from or written to the cache
    written_tokens: int = 0
    output_tokens: int = 0
    summarizer: Cost = Cost()  # noqa: RUF009 - it is frozen
    money: float = 0.0  # the whole cost in US dollars
    summarizer_money: float = 0.0  # the summariser's part of it
    waited: float = field(default=0.0, compare=False)

    @property
    def cached_share(self) -> float | None:
        """Return the share of the input from the cache; None without input."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON data."""
        plain = {**asdict(self), "summarizer": self.summarizer.to_json()}
        return {**plain, "cached_share": self.cached_share}

    def __add__(self, other: Bill) -> Bill:
        counts = [field.name for field in fields(self) if field.name != "model"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        return replace(self, **sums)


def summed(bills: Iterable[Bill | None]) -> Bill | None:
    """Add up the bills of several sessions with one model; None if there are none."""
    present = [bill for bill in bills if bill is not None]
    return reduce(add, present) if present else None


class BillBuilder:
    """Add up the cost of a session with one model, request by request.

    Args:
        prices: your own, by model, by default those of `set_prices`; others are looked up in
            `genai-prices`.

    Raises:
        PolicyError: the model has no price, or `prices` are none.

    Example:
        >>> builder = BillBuilder("gpt-5.4")
        >>> builder.request([Block("instructions", 2_006)], output=300, at=0.0)
        >>> builder.request([Block("instructions", 2_006)], output=300, at=15.0)
        >>> builder.bill().cached_tokens, round(builder.bill().money, 6)
        (1920, 0.01471)
    """

    def __init__(self, model: str, prices: Mapping[str, Price] | None = None) -> None:
        if not is_priced(model, prices):
            raise PolicyError(
                f"no price is known for {model!r}; give prices of your own (prices=, on the "
                "command line --prices FILE), or install those of the providers: "
                f"{install_command('prices')}"
            )
        self._prices = prices
        self._rules = rules_for(model)
        self._cache = PrefixCache(self._rules)
        self._bill = Bill(model)

    def request(self, blocks: Sequence[Block], output: int, at: float, waited: float = 0.0) -> None:
        """Add one request of the agent.

        `output` is the size of the answer in tokens. `at` are the seconds since the session began,
        `waited` the seconds that the agent waited before the request.
        """
        use = self._cache.request(_with_breakpoints(blocks, self._rules), at)
        spent = Cost(1, use.input, output, cached_tokens=use.read, written_tokens=use.written)
        self._bill += Bill(
            self._bill.model,
            requests=1,
            input_tokens=use.input,
            cached_tokens=use.read,
            written_tokens=use.written,
            output_tokens=output,
            money=self._money(self._bill.model, spent),
            waited=waited,
        )

    def summarizer(self, cost: Cost) -> None:
        """Add calls of the summariser.

        A model without a price costs as much as the agent's. If a call reports no use of the cache,
        nothing was read; if the provider sets breakpoints, all was written. Several calls count as
        short ones.
        """
        names = list(cost.models)
        has_own_price = len(names) == 1 and is_priced(names[0], self._prices)
        rules = rules_for(names[0]) if has_own_price else self._rules
        if rules.moving and not cost.cached_tokens + cost.written_tokens:
            cost = replace(cost, written_tokens=cost.input_tokens)
        money = self._money(names[0] if has_own_price else self._bill.model, cost)
        self._bill += Bill(self._bill.model, summarizer=cost, money=money, summarizer_money=money)

    def bill(self) -> Bill:
        """Return the sum so far."""
        return self._bill

    def _money(self, model: str, cost: Cost) -> float:
        return price_of(cost.asked_of(model), self._prices) or 0.0


def is_priced(model: str, prices: Mapping[str, Price] | None) -> bool:
    """Tell whether the price of a model is known."""
    return price_of(Cost(1).asked_of(model), prices) is not None


def _with_breakpoints(blocks: Sequence[Block], rules: CacheRules) -> Sequence[Block]:
    """Set the breakpoints of LangChain's middleware for Anthropic.

    They are after the tools, the system prompt and the last message. A later system message gets
    none, and a provider that sets its own gets none at all.
    """
    if not rules.marked or rules.moving or not blocks:
        return blocks
    lasting = takewhile(lambda block: block.run in (TOOLS, SYSTEM), blocks)
    end_of_run = {block.run: index for index, block in enumerate(lasting)}
    marked = [*blocks]
    for index in {*end_of_run.values(), len(blocks) - 1}:
        marked[index] = replace(blocks[index], mark=True)
    return marked


def block_of(message: BaseMessage, tokens: int) -> Block:
    """Convert a message to a block, with the text that a provider compares, without its id.

    Example:
        >>> block_of(AIMessage("Yes."), 5).tokens
        5
    """
    calls = str(message.tool_calls) if isinstance(message, AIMessage) else ""
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    text = "\0".join([message.type, calls, answers, str(message.content)])
    return Block(text, tokens, run=SYSTEM if message.type == "system" else "")
