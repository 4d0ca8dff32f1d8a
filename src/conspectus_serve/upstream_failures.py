"""The errors that a client gets if the upstream cannot be reached, or breaks off."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import aiohttp

from conspectus_serve.protocols import HttpError


class _FailureText(NamedTuple):
    """The text that a client gets for an error."""

    status: int
    problem: str
    remedy: str


_FAILURES: Sequence[tuple[type[Exception], _FailureText]] = (
    (TimeoutError, _FailureText(504, "the upstream did not answer in time", "try again")),
    (
        aiohttp.ClientHttpProxyError,
        _FailureText(502, "the proxy to the upstream refuses", "check serve.proxy"),
    ),
    (
        aiohttp.ClientProxyConnectionError,
        _FailureText(502, "the proxy cannot be reached", "check serve.proxy"),
    ),
    (
        aiohttp.ClientConnectorError,
        _FailureText(502, "the upstream cannot be reached", "check serve.upstream"),
    ),
    (
        aiohttp.ClientResponseError,
        _FailureText(502, "the upstream's answer is no HTTP", "check serve.upstream"),
    ),
    (aiohttp.ClientError, _FailureText(502, "the upstream has broken off", "try again")),
    (Exception, _FailureText(400, "this path cannot be sent on", "check it")),
)
"""Texts by types of errors; the first type that an error has counts."""


def http_error_for(error: Exception) -> HttpError:
    """Return the error that a client gets."""
    text = next(text for error_type, text in _FAILURES if isinstance(error, error_type))
    reason = type(error.__cause__ or error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = f"{reason}: {_words_of_system(error.os_error)}"[:300]
    remedy = text.remedy
    if "CERTIFICATE_VERIFY" in reason:
        remedy = "name the certificates of your network with serve.ca_file or SSL_CERT_FILE"
    return HttpError(text.status, f"{text.problem} ({reason}); {remedy}")


def _words_of_system(error: OSError) -> str:
    """Return the operating system's words for an error, which name no key."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
