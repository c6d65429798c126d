"""Pages that people look at: one self-contained HTML file of one or several analyses."""

from tracepoint.report.page import HtmlReport, make_report

__all__ = ["HtmlReport", "make_report"]
