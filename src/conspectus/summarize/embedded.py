"""The embedded summariser: the notes without a model, offline, deterministic, in any script."""

from __future__ import annotations

from conspectus._core.choices import EMBEDDED
from conspectus.summarize.base import Form, Summary, SummaryRequest
from conspectus.summarize.writing import Answer, write


class EmbeddedSummarizer:
    """Write the notes from the messages alone: no model, no network, no sentence of its own.

    What the user said and what was done is written by the same code whoever summarises; here the
    agent's own conclusions take the place of a model's findings.

    Example:
        >>> EmbeddedSummarizer().name
        'embedded'
    """

    form: Form = "notes"

    @property
    def name(self) -> str:
        """What records and events call it."""
        return EMBEDDED

    @property
    def identity(self) -> str:
        """Changes when its summaries would."""
        return "embedded-5"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Write the notes; never fails, never exceeds the limit."""
        return Summary(write(request, Answer()), tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """The same; it waits for nothing."""
        return self.summarize(request)
