"""Answers out: stored objects in the form that a client accepts (JSON, YAML, rows of a table, only metadata)."""
