"""A static, searchable site of all tracepoints of one or several kernels."""

from __future__ import annotations

from tracepoint.generate.catalog.data import CatalogVersion, read_catalog
from tracepoint.generate.catalog.site import MARK, make_catalog

__all__ = ["MARK", "CatalogVersion", "make_catalog", "read_catalog"]
