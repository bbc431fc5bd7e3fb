"""The one way in which this package fails."""


class CdiError(Exception):
    """A spec, an id or a file that cannot be used. The message names it, the field, and the rule."""
