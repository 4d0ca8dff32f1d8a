"""Announce the engine's work in typed events; there are no listeners by default.

`conspectus.telemetry` makes spans, metrics, log lines and bills of them.
"""

from conspectus.events.hub import Follower as Follower
from conspectus.events.hub import Listener as Listener
from conspectus.events.hub import Seen as Seen
from conspectus.events.hub import add as add
from conspectus.events.hub import are_listeners as are_listeners
from conspectus.events.hub import heard_by as heard_by
from conspectus.events.hub import listening as listening
from conspectus.events.hub import money_of as money_of
from conspectus.events.hub import observing as observing
from conspectus.events.hub import remove as remove
from conspectus.events.hub import tell as tell
from conspectus.events.kinds import ArchiveOperation as ArchiveOperation
from conspectus.events.kinds import Compaction as Compaction
from conspectus.events.kinds import CompactionStep as CompactionStep
from conspectus.events.kinds import Event as Event
from conspectus.events.kinds import GuardFit as GuardFit
from conspectus.events.kinds import HistoryStuck as HistoryStuck
from conspectus.events.kinds import ModelUse as ModelUse
from conspectus.events.kinds import Preparing as Preparing
from conspectus.events.kinds import Recall as Recall
from conspectus.events.kinds import RequestSent as RequestSent
from conspectus.events.kinds import SummarizerCall as SummarizerCall
from conspectus.events.kinds import Whose as Whose
