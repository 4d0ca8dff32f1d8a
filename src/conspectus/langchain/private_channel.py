"""A channel of a graph's state that checkpoints keep and nodes read, but that no client gets.

LangGraph's `values` stream sends every channel of the state at each step, whatever the output
schema says. A record that is not in an archive takes some 14 kB.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from langgraph.channels import LastValue
from langgraph.errors import EmptyChannelError

READERS_MODULE = "langgraph.pregel._io"
"""The module with all that reads channels by name."""

LOOP_MODULE = "langgraph.pregel._loop"
"""The module that sends what a step has made to the stream."""


class PrivateValue(LastValue[Any]):
    """The newest value. For the reader of a stream the channel is empty.

    If a step writes several values, as parallel calls of tools do, the last one counts.
    """

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        if values:
            self.value = values[-1]
        return bool(values)

    def get(self) -> Any:
        if _is_read_for_stream():
            raise EmptyChannelError()
        return super().get()

    def checkpoint(self) -> Any:
        return self.value


def _is_read_for_stream() -> bool:
    """Tell whether the channel is read to send the state to a client.

    LangGraph reads for nodes, for conditions, for `get_state` and for streams with the same
    methods. Only the calling function tells these apart. If a later version reads in another way,
    clients get the channel like any other.
    """
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") == READERS_MODULE and frame.f_back is not None:
        if frame.f_code.co_name == "map_output_values":
            return True
        frame = frame.f_back
    return frame.f_globals.get("__name__") == LOOP_MODULE
