"""The embedded summariser: the notes without a model, offline, the same for the same messages."""

from __future__ import annotations

from conspectus._core.choices import EMBEDDED
from conspectus.model.base import Form, Summary, SummaryRequest
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes


class EmbeddedSummarizer:
    """Have the notes written from the messages alone: no model, no network.

    What the user said and what was done is written by the same code whoever summarises. Here the
    agent's own words to the user take the place of a model's findings: they are quoted and cut,
    and nothing is rephrased. Where there is a model, that is recommended.

    Example:
        >>> EmbeddedSummarizer().name
        'embedded'
    """

    form: Form = "findings"

    @property
    def name(self) -> str:
        """What records and events call it."""
        return EMBEDDED

    @property
    def identity(self) -> str:
        """Changes when its summaries would."""
        return "embedded-6"

    def summarize(self, request: SummaryRequest) -> Summary:
        """Return notes on the messages of a request, within its limit."""
        segment = read_segment(request.entries, request.kept)
        text = Notes([segment]).render(request.limit, request.count, archived=request.archived)
        return Summary(text, tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        """Summarise on an event loop; it waits for nothing."""
        return self.summarize(request)
