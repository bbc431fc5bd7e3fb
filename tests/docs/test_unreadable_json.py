"""JSON of others fails in three ways: it is none, its letters are none, or it is nested too deeply. All are caught.

A handler that forgets the last is a 500, or the end of a task, for whoever sends a few thousand brackets.
"""

from __future__ import annotations

import ast
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src" / "dray"


NOT_JSON = ("msgspec.DecodeError", "msgspec.MsgspecError")


def _forgetful(source: str) -> list[int]:
    """The lines of `try` that catch what msgspec raises for JSON that is none, and not RecursionError."""
    found: list[int] = []
    if not any(error in source for error in NOT_JSON):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Try):
            caught = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type is not None)
            reads = any(error in caught for error in NOT_JSON)
            if reads and not ("RecursionError" in caught and ("Unicode" in caught or "ValueError" in caught)):
                found.append(node.lineno)
    return found


def test_every_way_in_which_json_cannot_be_read_is_caught() -> None:
    found = [f"{path}:{line}" for path in SOURCES.rglob("*.py") for line in _forgetful(path.read_text())]
    assert found == []
