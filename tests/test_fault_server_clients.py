"""What docs/reliability.md says that each fault becomes in a real client is what it becomes."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from conspectus_lab.testing.fault_server import Reply, faults
from fault_support import PROTOCOLS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"

FAULTS: dict[str, Reply] = {
    "context_length": faults.context_length(10, 20),
    "too_long": faults.too_long(),
    "too_large": faults.too_large(),
    "bad_request": faults.bad_request("no such parameter"),
    "not_found": faults.not_found("the model"),
    "unauthorized": faults.unauthorized(),
    "no_credit": faults.no_credit(),
    "rate_limited": faults.rate_limited(1),
    "request_timeout": faults.request_timeout(),
    "server_error": faults.server_error(),
    "unavailable": faults.unavailable(),
    "blocked": faults.blocked(),
    "slow": faults.slow(0.05),
    "cut_before_headers": faults.cut_before_headers(),
    "cut_in_the_middle": faults.cut_in_the_middle(),
    "ends_early": faults.ends_early(),
    "error_in_the_stream": faults.error_in_the_stream(),
    "invalid_json": faults.invalid_json(),
    "empty_choices": faults.empty_choices(),
    "content_filter": faults.content_filter("What there was"),
    "refusal": faults.refusal("I do not do this."),
    "length": faults.length(),
    "lying_usage": faults.lying_usage(0, 0),
}


def told() -> dict[str, list[str]]:
    """The rows of the page's table, by fault: whole and streamed, for each protocol."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("| fault | OpenAI |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {name: cells for names, *cells in rows for name in re.findall(r"`(\w+)`", names)}


def met(model: Any) -> tuple[str, set[str]]:
    """What a client makes of its call, and the classes that it may be called by."""
    try:
        said = model.invoke("Hello")
    except Exception as error:
        return "raised", {one.__name__ for one in type(error).__mro__}
    reasons = said.response_metadata
    reason = reasons.get("finish_reason") or reasons.get("stop_reason") or "no reason"
    return ("text" if said.text else "nothing"), {str(reason)}


def test_the_table_has_every_fault():
    made = inspect.getmembers(faults, inspect.isfunction)
    public = {name for name, one in made if one.__module__ == faults.__name__ and name[0] != "_"}
    assert set(told()) == set(FAULTS) == public


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_becomes_what_the_page_says(wires, name):
    cells = iter(told()[name])
    for protocol in PROTOCOLS:
        for streaming in (False, True):
            wires.server.restart(lambda request: FAULTS[name])
            kind, names = met(wires.model(protocol, streaming=streaming))
            cell = next(cells)
            assert (cell.split(", ")[0] if ", " in cell else "raised") == kind, (name, protocol)
            assert cell.split(", ")[-1].strip("`") in names, (name, protocol, streaming)
