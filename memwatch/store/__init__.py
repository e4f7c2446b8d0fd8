"""The history: an index of both logs in DuckDB, which may be deleted and is rebuilt from them."""
