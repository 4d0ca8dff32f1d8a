"""The embedded summariser: the notes without a model, offline, deterministic, in any script."""

from __future__ import annotations

from conspectus._core.choices import EMBEDDED
from conspectus.summarize.base import Form, Summary, SummaryRequest
from conspectus.summarize.writing import Answer, write


class EmbeddedSummarizer:
    """Write the notes from the messages alone: no model, no network, no sentence of its own.

    It extracts and compresses by rules, and understands nothing: what the user said and what was
    done is written by the same code whoever summarises; the agent's own conclusions, picked by
    their form, take the place of a model's findings. Where there is a model, that is recommended.

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
        """Summarise on an event loop; it waits for nothing."""
        return self.summarize(request)


ExtractiveSummarizer = EmbeddedSummarizer
"""The name that it had before."""
