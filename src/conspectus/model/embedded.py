"""The embedded summariser: the notes without a model, offline, the same for the same messages."""

from __future__ import annotations

from conspectus.core.policy import EMBEDDED
from conspectus.model.base import Form, Summary, SummaryRequest
from conspectus.notes.reading import read_segment
from conspectus.notes.rendering import Notes


class EmbeddedSummarizer:
    """Have the notes written from the messages alone: no model, no network.

    The agent's own words to the user, quoted, take the place of a model's findings. Where there is
    a model, that is recommended.
    """

    name, identity = EMBEDDED, "embedded-6"
    form: Form = "findings"

    def summarize(self, request: SummaryRequest) -> Summary:
        segment = read_segment(request.entries, request.kept)
        text = Notes([segment]).render(request.limit, request.count, archived=request.archived)
        return Summary(text, tuple(entry.key for entry in request.entries))

    async def asummarize(self, request: SummaryRequest) -> Summary:
        return self.summarize(request)
