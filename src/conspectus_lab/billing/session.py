"""Bill one session: requests through a simulated cache, and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import reduce
from itertools import takewhile
from operator import add
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from conspectus.core.records import Cost
from conspectus.errors import PolicyError, install_command
from conspectus.observe import Price, price_of
from conspectus.observe.prices import checked
from conspectus_lab.billing.prefix_cache import Block, CacheRules, PrefixCache, rules_for

CURRENCY = "USD"


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of a session with one model.

    Attributes:
        model: the one with the prices and the cache.
        requests: of the agent.
        cached_tokens, written_tokens: part of `input_tokens` read from or written to the cache.
        summarizer: calls and tokens of the summariser; the embedded one calls no model.
        money: cost of all of it, in US dollars.
        summarizer_money: the summariser's part of it.
        waited: seconds that the agent waited for its context; bills are compared without it.
    """

    model: str
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    summarizer: Cost = Cost()  # noqa: RUF009 - it is frozen
    money: float = 0.0
    summarizer_money: float = 0.0
    waited: float = field(default=0.0, compare=False)

    @property
    def cached_share(self) -> float | None:
        """Return the share of the input from the cache; None without input."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON data."""
        derived = {"cached_share": self.cached_share, "currency": CURRENCY}
        return {**asdict(self), "summarizer": self.summarizer.to_json(), **derived}

    def __add__(self, other: Bill) -> Bill:
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.name != "model"
        }
        return replace(self, **sums)


def summed(bills: Iterable[Sequence[Bill]]) -> list[Bill]:
    """Add up the bills of several sessions, one for each model."""
    rows = [row for row in bills if row]
    return [reduce(add, column) for column in zip(*rows, strict=True)]


class Till:
    """Add up the cost of a session with one model, request by request.

    Args:
        prices: your own, by model; others are looked up in `genai-prices`.

    Raises:
        PolicyError: the model has no price, or `prices` are none.

    Example:
        >>> till = Till("gpt-5.4")
        >>> till.request([Block("instructions", 2_006)], output=300, at=0.0)
        >>> till.request([Block("instructions", 2_006)], output=300, at=15.0)
        >>> till.bill().cached_tokens, round(till.bill().money, 6)
        (1920, 0.01471)
    """

    def __init__(self, model: str, prices: Mapping[str, Price] | None = None) -> None:
        self._prices = checked({} if prices is None else prices)
        if not self._is_priced(model):
            raise _unknown(model, self._prices)
        self._rules = rules_for(model)
        self._cache = PrefixCache(self._rules)
        self._bill = Bill(model)

    def request(self, blocks: Sequence[Block], output: int, at: float, waited: float = 0.0) -> None:
        """Add one request of the agent.

        Args:
            blocks: of its input.
            output: tokens of the answer.
            at: seconds since the session began.
            waited: seconds that the agent waited before it.
        """
        use = self._cache.request(marked(blocks, self._rules), at)
        spent = Cost(1, use.input, output, cached_tokens=use.read, written_tokens=use.written)
        self._bill += Bill(
            self._bill.model,
            requests=1,
            input_tokens=spent.input_tokens,
            cached_tokens=spent.cached_tokens,
            written_tokens=spent.written_tokens,
            output_tokens=output,
            money=self._money(self._bill.model, spent),
            waited=waited,
        )

    def summarizer(self, cost: Cost) -> None:
        """Add calls of the summariser.

        A model without a price costs as much as the agent's. A call that reports no cache use has
        none; if the provider writes by itself, all of it is written. Several calls count as short.
        """
        names = list(cost.models)
        own = len(names) == 1 and self._is_priced(names[0])
        rules = rules_for(names[0]) if own else self._rules
        if rules.moving and not cost.cached_tokens + cost.written_tokens:
            cost = replace(cost, written_tokens=cost.input_tokens)
        money = self._money(names[0] if own else self._bill.model, cost)
        self._bill += Bill(self._bill.model, summarizer=cost, money=money, summarizer_money=money)

    def _is_priced(self, model: str) -> bool:
        return price_of(Cost(1).asked_of(model), self._prices) is not None

    def _money(self, model: str, cost: Cost) -> float:
        return price_of(cost.asked_of(model), self._prices) or 0.0

    def bill(self) -> Bill:
        """Return the sum so far."""
        return self._bill


def marked(blocks: Sequence[Block], rules: CacheRules) -> Sequence[Block]:
    """Set the breakpoints of LangChain's middleware for Anthropic.

    They stand behind the tools, the system prompt and the last message, and behind no system
    message that comes later; a provider that sets its own gets none.
    """
    if not rules.marked or rules.moving or not blocks:
        return blocks
    lead = takewhile(lambda block: block.run in STABLE, blocks)
    ends = {block.run: place for place, block in enumerate(lead)}
    places = {*ends.values(), len(blocks) - 1}
    return [
        replace(block, mark=True) if place in places else block
        for place, block in enumerate(blocks)
    ]


TOOLS, SYSTEM, RESULTS = "tools", "system", "results"
STABLE = frozenset({TOOLS, SYSTEM})
"""Kinds of blocks that stay the same for a whole session."""


def block_of(message: BaseMessage, tokens: int) -> Block:
    """Convert a message to a block: all that a provider compares, without its id.

    Example:
        >>> block_of(ToolMessage("3 passed", tool_call_id="c1"), 5).run
        'results'
    """
    calls = str(message.tool_calls) if isinstance(message, AIMessage) else ""
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    text = "\0".join([message.type, calls, answers, str(message.content)])
    run = {"system": SYSTEM, "tool": RESULTS}.get(message.type, "")
    return Block(text, tokens, run=run)


def _unknown(model: str, prices: Mapping[str, Price]) -> PolicyError:
    near = get_close_matches(model, list(prices), n=3)
    return PolicyError(
        f"no price is known for {model!r}; "
        + (f"name another, such as {', '.join(near)}, or " if near else "")
        + "give prices of your own (prices=, on the command line --prices FILE), or install those "
        f"of the providers: {install_command('prices')}"
    )
