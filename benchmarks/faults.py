"""What goes wrong around Conspectus, and what becomes of the messages.

    make bench-faults [ONLY="stores kills"] [KILLS=1000] [MINUTES=1] [HISTORIES=500]

Archives that fail, summarisers that fail over HTTP, workers that are killed at random moments, an
endpoint with thousands of conversations, random histories whose caller counts tokens in odd ways,
and a soak with all of it at random. Ends with 1 if a message is lost or a promise breaks.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence

import fault_counters
import fault_http
import fault_kills
import fault_serve
import fault_soak
import fault_stores
from fault_thread import warm_up
from tables import Row, end

PARTS: dict[str, Callable[[argparse.Namespace], Iterable[Row]]] = {
    "stores": lambda given: fault_stores.rows(),
    "kills": lambda given: fault_kills.rows(given.kills),
    "http": lambda given: fault_http.rows(given.quick),
    "serve": lambda given: fault_serve.rows(100 if given.quick else 2_000),
    "counters": lambda given: fault_counters.rows(given.histories),
    "soak": lambda given: fault_soak.rows(given.minutes),
}
"""The parts that fork come first, before this process has threads."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART",
                        help=f"some of {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--kills", type=int, default=1_000, help="of all surfaces; default: 1000")
    parser.add_argument("--minutes", type=float, default=1.0, help="of the soak; default: 1")
    parser.add_argument("--histories", type=int, default=500, help="of odd counters; default: 500")
    parser.add_argument("--quick", action="store_true", help="few kinds of faults over HTTP")
    parser.add_argument("--json", action="store_true", help="print the rows as data")
    given = parser.parse_args(arguments)
    if given.kills < 1 or given.minutes <= 0 or given.histories < 1:
        parser.error("--kills, --minutes and --histories must be above 0")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    began = time.monotonic()
    if {"stores", "kills"} & {*given.only}:
        warm_up()
    for name, part in PARTS.items():
        if name in given.only:
            try:
                rows.extend(part(given))
            except KeyboardInterrupt:
                print(f"stopped in {name}; the rows before it:", file=sys.stderr)
                return end("Faults", rows, given.json) or 130
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return end("Faults", rows, given.json)


if __name__ == "__main__":
    sys.exit(main())
