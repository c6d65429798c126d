"""Pages that people look at: one self-contained HTML file of one or several analyses."""

from tracepoint.report.page import HtmlReport, make_report
from tracepoint.report.sets import make_set_report

__all__ = ["HtmlReport", "make_report", "make_set_report"]
