"""A trace in other formats: for Perfetto, for DuckDB, as Parquet, as a part of itself."""
