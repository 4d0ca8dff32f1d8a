"""What the agent refuses, with the HTTP status that says the same."""

from __future__ import annotations


class LeadAgentError(Exception):
    """The root of what is raised on purpose; each message says what to do next."""

    status = 500


class SettingsError(LeadAgentError):
    """`config.yaml` says something that cannot mean anything."""


class BadRequest(LeadAgentError):
    """What was asked cannot be understood."""

    status = 400


class UnknownThread(LeadAgentError):
    """Nobody has said anything in that thread."""

    status = 404


class Conflict(LeadAgentError):
    """Not now: a run is in flight, a question is open, or it is switched off."""

    status = 409
