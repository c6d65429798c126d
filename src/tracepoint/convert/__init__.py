"""A trace in other formats: for Perfetto, for DuckDB, as a part of itself."""
