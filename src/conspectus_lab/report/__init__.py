"""Reports: data first, rendering second. A measurement as one self-contained page."""

from conspectus_lab.report.evaluation import evaluation_page
from conspectus_lab.report.replay_page import chart_library, replay_page

__all__ = ["chart_library", "evaluation_page", "replay_page"]
