"""What a world has whoever talks in it: summarisers, a store, and an event loop."""

import asyncio
from contextlib import ExitStack

from hypothesis.stateful import RuleBasedStateMachine

from stateful.stores import TroubledStore
from stateful.summarizers import Moods, embedded_is_heard


class World(RuleBasedStateMachine):
    """Of these there are one each, and they are closed in the end."""

    ready = False
    planted = 0

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.moods = Moods()
        self.store = TroubledStore()
        self.stack.enter_context(embedded_is_heard(lambda: self.moods.readings))
        self.loop = self.stack.enter_context(asyncio.Runner())

    def teardown(self) -> None:
        self.stack.close()
