"""Rows for people: what `kubectl get` prints, made on the server. One module per family of kinds."""

from dray.server.answers.tables.table import Tables

__all__ = ["Tables"]
