"""A trace in other formats: for Perfetto, for DuckDB."""
