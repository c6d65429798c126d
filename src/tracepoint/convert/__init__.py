"""A trace in other formats: for Perfetto, for DuckDB, as CTF and Parquet, as a part of itself."""
