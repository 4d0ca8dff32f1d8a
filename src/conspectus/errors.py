"""Define every error that Conspectus raises on purpose.

Each message names a remedy. Catch `ConspectusError` to catch them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def did_you_mean(word: str, known_words: Iterable[str]) -> str:
    """Return a question with the most similar known word; empty if none is similar.

    Example:
        >>> did_you_mean("triger", ["trigger", "keep"])
        " did you mean 'trigger'?"
    """
    import difflib

    words = {candidate.lower(): candidate for candidate in known_words}
    similar = difflib.get_close_matches(word.lower().replace("-", "_"), words, n=1, cutoff=0.7)
    return f" did you mean '{words[similar[0]]}'?" if similar else ""


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from the source of the installed version.

    Example:
        >>> install_command("serve").startswith("pip install ")
        True
    """
    import json
    from contextlib import suppress
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    origin: dict[str, Any] = {}  # as pip has stored it; empty for an index
    with suppress(PackageNotFoundError, ValueError, OSError):
        origin = json.loads(distribution("conspectus").read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    if url.scheme == "file":  # a checkout or a wheel; the index may know no such package
        option = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {option}'{unquote(url.path)}[{extra}]'"
    requirement = f"conspectus[{extra}]"
    repository = origin.get("vcs_info")
    if repository:
        requirement += f" @ {repository['vcs']}+{origin['url']}"
    return f"pip install '{requirement}'"


class ConspectusError(Exception):
    """The base of all errors of Conspectus.

    Attributes:
        failure: the name, in events, of what failed if a compaction ends with this error.
        cost: the `Cost` of the summaries that were not used; set only by a compaction, and by a
            summariser that has called a model.
    """

    failure = "summary"
    cost: object


class PolicyError(ConspectusError, ValueError):
    """An invalid setting, such as a trigger, `keep` or limit."""


class WrongType(PolicyError, TypeError):
    """A setting of a type that it cannot have."""


class Attributes:
    """Raises `AttributeError` for unknown attributes, such as misspelt settings."""

    def __setattr__(self, name: str, value: Any) -> None:
        # A subclass may have its own attributes, and so may a class that a library derives from it.
        ours = type(self).__module__.startswith("conspectus.") and "_is_built" in vars(self)
        if ours and name[0] != "_" and not hasattr(self, name):
            hint = did_you_mean(name, vars(self)) or f" help({type(self).__name__}) lists them"
            raise AttributeError(f"{type(self).__name__} has no setting {name!r};{hint}")
        super().__setattr__(name, value)


class MessageError(ConspectusError, ValueError):
    """A message has an unknown form. The text names the message and the expected form."""


class InputError(ConspectusError, ValueError):
    """A file, stream or argument that cannot be read."""


class ConfigError(InputError):
    """A configuration has mistakes; nothing was made of it.

    Attributes:
        problems: one text for each mistake, with file, line, cause and remedy.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class SummaryError(ConspectusError):
    """No summary could be made; the history is unchanged.

    Attributes:
        transient: whether the same request may succeed later: a rate limit, a timeout, a server
            that is down.
        retry_after: seconds that the provider asks to wait; None if it names none.
        after_rejection: whether the summariser failed at its second try, and its first text was
            rejected.
    """

    transient: bool = False
    retry_after: float | None = None
    after_rejection: bool = False


class SummaryRejected(SummaryError):
    """A summary failed a check; the history is unchanged.

    Attributes:
        missing: what the text lacks, as its summariser is told; empty for other checks.
    """

    failure = "rejected"
    missing = ""


class SummarizerTimeout(SummaryError):
    """The summariser did not answer within `summarizer_timeout` seconds."""

    failure = "timeout"


class SummarizerOverflow(SummaryError):
    """The messages do not fit the summariser's own window, not even in pieces."""

    failure = "overflow"


class ArchiveError(ConspectusError):
    """The archive could not be read or written; the history is unchanged."""

    failure = "archive"


class ArchiveTimeout(ArchiveError):
    """The archive did not answer within its `timeout` (seconds)."""


class ArchiveUnconfirmed(ArchiveError):
    """The archive accepted values, but does not return them unchanged."""


class ArchiveOvertaken(ArchiveError):
    """Another worker has put its own record in force in the meantime; call again."""


class RedactionError(ConspectusError):
    """The redactor failed, so nothing was archived; the history is unchanged."""

    failure = "redaction"


class NotFoundError(ConspectusError, LookupError):
    """Nothing is archived under that id, range or thread."""


class StuckError(ConspectusError):
    """The history cannot be made to fit.

    Attributes:
        needed: the tokens that the window must have: the fewest tokens of the messages that must
            stay in the view, or, if a compaction has failed, the tokens of the whole history.
        budget: the most tokens that the messages may have.
    """

    def __init__(self, message: str, *, needed: int, budget: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.budget = budget
