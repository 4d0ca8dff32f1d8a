"""Report a measurement as one self-contained page."""

from conspectus_lab.report.evaluation import evaluation_page
from conspectus_lab.report.pages import templates
from conspectus_lab.report.replay_page import replay_page

__all__ = ["evaluation_page", "replay_page", "templates"]
