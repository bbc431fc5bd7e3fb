"""How drivers fail: one type, whose message is what the node and people get to read."""


class DriverError(Exception):
    """Something cannot be done. Raise it in a driver to answer the node with exactly this message."""
