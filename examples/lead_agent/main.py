"""Talk to the lead agent, or serve it over HTTP.

    python examples/lead_agent/main.py chat --thread demo
    python examples/lead_agent/main.py serve

`chat` reads lines from the terminal or a pipe. A line goes to the agent, as an answer if it has
asked something; `/compact` summarises the thread now. Everything else stands in `config.yaml`.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from conspectus.errors import ConspectusError
from lead_agent import LeadAgent, LeadAgentError
from lead_agent.server import LeadAgentServer


def chat(agent: LeadAgent, thread: str) -> None:
    """One line after the other, until there is none."""
    prompt = "> " if sys.stdin.isatty() else ""
    waiting = False
    try:
        waiting = "clarification" in agent.look(thread)
    except LeadAgentError:
        print(f"A new thread, {thread}.")
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            return
        if not line:
            continue
        try:
            if line == "/compact":
                print(agent.compact(thread))
                continue
            reply = agent.answer(thread, line) if waiting else agent.turn(thread, line)
        except (LeadAgentError, ConspectusError) as error:
            print(f"Error: {error}")
            continue
        waiting = "clarification" in reply
        if waiting:
            asked = reply["clarification"]
            print("?", asked["question"], *(f"\n  - {one}" for one in asked["options"]))
        else:
            print(f"[{reply['title']}] {reply['answer']}")


def serve(agent: LeadAgent) -> None:
    """Until it is interrupted."""
    at = agent.settings.server
    with LeadAgentServer(agent, at.host, at.port) as server:
        print(f"Serving on http://{at.host}:{server.server_port}", flush=True)
        server.serve_forever()


def main() -> int:
    """What was asked for; 2 where the configuration cannot be used."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", choices=("chat", "serve"))
    parser.add_argument("--thread", default="demo", help="of the chat")
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("config.yaml"))
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        with LeadAgent(given.config) as agent:
            if given.command == "chat":
                chat(agent, given.thread)
            else:
                serve(agent)
    except (LeadAgentError, ConspectusError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
