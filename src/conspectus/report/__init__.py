"""Reports: data first, rendering second. A measurement as one self-contained page."""

from conspectus.report.evaluation import evaluation_page

__all__ = ["evaluation_page"]
