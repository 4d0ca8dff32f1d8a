"""The HTTP endpoint: turns, answers, and a compaction now; JSON in and out.

It has no users and no passwords, so it serves this machine only unless the configuration says
otherwise, and nothing that a web page in a browser could send.
"""

from __future__ import annotations

import json
import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from conspectus.errors import ConspectusError
from lead_agent.agent import LeadAgent
from lead_agent.errors import BadRequest, LeadAgentError, SettingsError

logger = logging.getLogger("lead_agent")

LARGEST = 1_000_000
"""Bytes of a request, at most."""

ROUTES = "GET /threads/ID, POST /threads/ID/turns, POST /threads/ID/compact"


class NotHere(LeadAgentError):
    """No such address."""

    status = 404


class Unacceptable(LeadAgentError):
    """A request that is not looked at."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class WrongMethod(LeadAgentError):
    """An address that takes another method."""

    status = 405

    def __init__(self, allowed: str) -> None:
        super().__init__(f"another method is needed; there are {ROUTES}")
        self.allowed = allowed


class LeadAgentServer(ThreadingHTTPServer):
    """Serves one agent.

    Args:
        agent: which stays open when the server ends.
        host: to listen on.
        port: 0 for any that is free; `server_port` says which.

    Raises:
        SettingsError: nothing can be served there, such as where the port is in use.
    """

    daemon_threads = True

    def __init__(self, agent: LeadAgent, host: str, port: int) -> None:
        self.agent = agent
        self.hosts = {host, "localhost", "127.0.0.1", "::1"}
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise SettingsError(
                f"server.port: {host}:{port} cannot be served on ({error.strerror}); set another "
                f"'server.port' or 'server.host' in {agent.file}"
            ) from None


class _Handler(BaseHTTPRequestHandler):
    server: LeadAgentServer
    timeout = 60
    protocol_version = "HTTP/1.1"
    server_version = "lead-agent"
    sys_version = ""

    def do_GET(self) -> None:
        self._served("GET")

    def do_POST(self) -> None:
        self._served("POST")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses by itself, as JSON like all else."""
        if code == 501:
            self._served(self.command)  # a method that nothing here takes
        else:
            self._send(code, {"error": message or "the request cannot be understood"})

    def _served(self, method: str) -> None:
        allowed = ""
        try:
            status, found = 200, self._found(method)
        except LeadAgentError as error:
            status, found = error.status, {"error": str(error)}
            allowed = error.allowed if isinstance(error, WrongMethod) else ""
        except ConspectusError as error:
            status, found = 500, {"error": str(error)}
        except Exception:
            logger.exception("a request failed")
            status, found = 500, {"error": "the run failed; the log of the server says why"}
        self._send(status, found, allowed)

    def _send(self, status: int, found: dict[str, Any], allowed: str = "") -> None:
        data = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        if status >= 400:
            self.close_connection = True  # what was not read would be taken for a request
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:
            self.send_header("Connection", "close")
        if allowed:
            self.send_header("Allow", allowed)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _found(self, method: str) -> dict[str, Any]:
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if host not in self.server.hosts:
            raise Unacceptable(403, "this server is called by another name than its own")
        match method, urlsplit(self.path).path.split("/"):
            case "GET", ["", "threads", thread]:
                return self.server.agent.look(unquote(thread))
            case "POST", ["", "threads", thread, "turns"]:
                return self._turn(unquote(thread), self._body({"message", "id", "answer"}))
            case "POST", ["", "threads", thread, "compact"]:
                focus = self._body({"focus"}).get("focus")
                return self.server.agent.compact(unquote(thread), focus)
            case _, ["", "threads", _]:
                raise WrongMethod("GET")
            case _, ["", "threads", _, "turns" | "compact"]:
                raise WrongMethod("POST")
        raise NotHere(f"nothing is here; there are {ROUTES}")

    def _turn(self, thread: str, body: dict[str, Any]) -> dict[str, Any]:
        if ("message" in body) == ("answer" in body):
            raise BadRequest("send a 'message', or an 'answer' to what the agent has asked")
        if "answer" in body:
            if body.get("id") is not None:
                raise BadRequest(
                    "an 'answer' takes no 'id'; GET /threads/ID says whether its question is open"
                )
            return self.server.agent.answer(thread, body["answer"])
        return self.server.agent.turn(thread, body["message"], body.get("id"))

    def _body(self, known: set[str]) -> dict[str, Any]:
        # A web page can send other types here without being asked for permission.
        if self.headers.get_content_type() != "application/json":
            raise Unacceptable(415, "send JSON, with 'Content-Type: application/json'")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Unacceptable(411, "send a Content-Length")
        if int(length) > LARGEST:
            raise Unacceptable(413, f"send at most {LARGEST:,} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
            raise BadRequest("the body is no JSON") from None
        if not isinstance(body, dict):
            raise BadRequest("the body must be a JSON object")
        if unknown := sorted(set(body) - known):
            raise BadRequest(f"unknown: {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        return body

    def log_message(self, format: str, *args: Any) -> None:
        logger.info("%s %s", self.address_string(), format % args)
