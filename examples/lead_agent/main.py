"""Talk to the lead agent, or serve it over HTTP.

    python examples/lead_agent/main.py chat --thread demo
    python examples/lead_agent/main.py serve

`chat` reads lines from the terminal or a pipe. A line goes to the agent, as an answer if it has
asked something; `/help` names the commands. Everything else stands in `config.yaml`.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from pathlib import Path
from typing import Any

from conspectus.errors import ConspectusError
from lead_agent import LeadAgent, LeadAgentError
from lead_agent.server import LeadAgentServer

HELP = (
    "/compact summarises the thread now, /quit leaves, /help says this. Anything else goes to the "
    "agent; a line that begins with such a word does if a space is put before it."
)


def asked(reply: dict[str, Any]) -> bool:
    """Show the question that is open, if there is one."""
    question = reply.get("clarification")
    if question:
        print("?", question["question"], *(f"\n  - {one}" for one in question["options"]))
    return bool(question)


def chat(agent: LeadAgent, thread: str) -> None:
    """One line after the other, until there is none."""
    prompt = "> " if sys.stdin.isatty() else ""
    waiting = False
    try:
        waiting = asked(agent.look(thread))
    except LeadAgentError:
        print(f"A new thread, {thread}.")
    while True:
        try:
            given = input(prompt)
        except EOFError:
            return
        line = given.strip()
        if not line:
            continue
        command = re.match(r"/\w+(?!\S)", given)
        if command and command[0] == "/quit":
            return
        if command and line != "/compact":
            known = line == "/help"
            print(HELP if known else f"Error: there is no command '{line:.60}'. {HELP}")
            continue
        try:
            if command:
                print(agent.compact(thread))
                continue
            reply = agent.answer(thread, line) if waiting else agent.turn(thread, line)
        except (LeadAgentError, ConspectusError) as error:
            print(f"Error: {error}")
            continue
        waiting = asked(reply)
        if not waiting:
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
