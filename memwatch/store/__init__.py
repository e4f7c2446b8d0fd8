"""The history: an index of both logs in DuckDB, written by one thread. Only importer of duckdb."""
