"""Check scripts and replies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from conspectus_lab.testing.fault_server.faults import Answer, Broken, HttpError, Reply
from conspectus_lab.testing.fault_server.request import Request

Script = Sequence[Reply] | Callable[[Request], Reply]


def check_script(script: Script) -> None:
    """Check a script.

    Raises:
        TypeError: it is neither a list of replies nor a function that returns one.
    """
    if callable(script):
        if inspect.iscoroutinefunction(script):
            raise TypeError(f"the script {script!r} must not be async; give a plain function")
        return
    if isinstance(script, (str, Answer, HttpError, Broken)):
        raise TypeError(f"a script is a list of replies: give [{script!r}]")
    if not isinstance(script, Sequence):
        raise TypeError(f"a script is a list of replies or a function of a Request, not {script!r}")
    for reply in script:
        check_reply(reply)


def check_reply(reply: object) -> None:
    """Check a reply.

    Raises:
        TypeError: it is no text, answer or fault.
    """
    if isinstance(reply, (str, Answer, HttpError, Broken)):
        return
    name = getattr(reply, "__name__", "")
    hint = f"; call it: {name}()" if callable(reply) and name else ""
    raise TypeError(f"a reply must be a text, an Answer or a fault, not {reply!r}{hint}")
