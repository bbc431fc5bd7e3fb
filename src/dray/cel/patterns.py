"""How large the regular expressions are that an expression has written out, all together."""

from __future__ import annotations

from dray.cel.ast import Call, Literal, Node, children
from dray.cel.library import regex
from dray.cel.library.regex_size import regex_size

__all__ = ["patterns_size"]


def patterns_size(root: Node) -> int:
    """The sum of their sizes."""
    total = 0
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function in regex.NAMES:
            texts = (arg.value for arg in node.args if isinstance(arg, Literal))
            total += sum(regex_size(text) for text in texts if isinstance(text, str))
        pending.extend(children(node))
    return total
