"""Writes `docs/driver-api.md`: the reference of the driver SDK, from the docstrings of what `dray.driver` offers.

    python -m tools.driver_api_page

A test checks that the page is current, and that nothing on it is without words.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dray import driver

PAGE = Path(__file__).parent.parent / "docs" / "driver-api.md"
INTRODUCTION = """\
# The driver SDK, name by name

Everything that `from dray import driver` offers. Made by `make generate` from the docstrings; do not edit.
[drivers.md](drivers.md) says how it fits together, and `dray driver new NAME` writes a driver to begin with.
"""
FIRST = ("Driver", "Device", "CounterSet", "Version", "Taint", "Claim", "ClaimDevice", "Config", "Edits", "Health")
"""What people write and get, in the order in which they meet it; the rest follows by name."""


def names() -> list[str]:
    """All names in the order of the page."""
    return [*FIRST, *sorted(set(driver.__all__) - set(FIRST))]


def render_page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for name in names() for line in _section(name))])


def _section(name: str) -> Iterator[str]:
    value = getattr(driver, name)
    yield f"## `{name}`"
    yield ""
    if not inspect.isclass(value):
        yield f"```python\n{name}{_signature(value)}\n```"
        yield ""
        yield from _prose(value)
        return
    yield from _prose(value)
    fields, methods = _members(value)
    if fields:
        yield "| Field | Type | Default | |"
        yield "|---|---|---|---|"
        yield from (f"| {' | '.join(cells)} |" for cells in fields)
        yield ""
    for declaration, text in methods:
        yield f"**`{declaration}`**"
        yield ""
        yield text
        yield ""


def _prose(value: Any) -> Iterator[str]:
    yield inspect.cleandoc(value.__doc__ or "")
    yield ""


def _signature(value: Any) -> str:
    return str(inspect.signature(value)).replace("'", "")


def _members(value: type) -> tuple[list[tuple[str, ...]], list[tuple[str, str]]]:
    """Fields with type, default and words, and public methods with theirs, as the source has them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    assert isinstance(tree, ast.ClassDef)
    fields: list[tuple[str, ...]] = []
    methods: list[tuple[str, str]] = []
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            cells = (f"`{node.target.id}`", f"`{_code(node.annotation)}`", _default(node.value), _words(after))
            fields.append(tuple(cell.replace("|", "\\|") for cell in cells))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
            methods.append((_declaration(node), inspect.cleandoc(ast.get_docstring(node) or "")))
    return fields, methods


def _code(node: ast.expr) -> str:
    return ast.unparse(node)


def _words(node: ast.stmt | None) -> str:
    """The text below a field."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def _default(node: ast.expr | None) -> str:
    if node is None:
        return "required"
    text = ast.unparse(node)
    for made, shown in (("dict", "{}"), ("list", "[]"), ("str", "''")):
        if text.startswith("field(") and f"default_factory={made}" in text:
            return f"`{shown}`"
    return "" if text.startswith("field(") else f"`{text}`"


def _declaration(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
    start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    result = f" -> {_code(node.returns)}" if node.returns is not None else ""
    if is_property:
        return f"{node.name}{result}"
    arguments = ast.unparse(node.args).removeprefix("self").removeprefix(", ").removeprefix("cls").removeprefix(", ")
    return f"{start}{node.name}({arguments}){result}"


if __name__ == "__main__":
    PAGE.write_text(render_page())
