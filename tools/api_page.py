"""Writes `docs/api.md`: what is public in Python, with signatures and docstrings, read from the sources.

    python -m tools.api_page

A test checks that the page is current. Public is what CONTRIBUTING.md lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "api.md"
MODULES = ("dray", "dray.cel", "dray.testing", "dray.eviction.policy")
"""The SDK for drivers has a page of its own."""
INTRODUCTION = """\
# Python

What may be imported, with signatures, in the words of the sources. Made by `make generate`; do not edit. Everything
else is internal and may change from one version to the next. The SDK for drivers is in [driver-api.md](driver-api.md).
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | Function


def render_page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for name in MODULES for line in _module(name))]).rstrip() + "\n"


def _module(name: str) -> Iterator[str]:
    yield f"## {name}\n\n{_prose(_tree(name))}"
    for offered in sorted(_offered(name), key=str.lower):
        found = _find(name, offered)
        if isinstance(found, ast.ClassDef):
            yield f"### {name}.{offered}\n\n{_prose(found)}"
            yield from _members(found)
            yield ""
        elif found is not None:
            yield f"### {name}.{offered}\n\n`{_signature(found)}`\n\n{_prose(found)}"


@cache
def _tree(module: str) -> ast.Module:
    path = ROOT / "src" / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def _offered(module: str) -> list[str]:
    """What a module lists in `__all__`, or the classes that it defines."""
    for one in _tree(module).body:
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__":
            return list(ast.literal_eval(one.value))
    return [one.name for one in _tree(module).body if isinstance(one, ast.ClassDef) and one.name[0] != "_"]


def _find(module: str, name: str) -> Definition | None:
    """A class or function that a module defines, or imports from another; None for constants and packages."""
    for one in ast.walk(_tree(module)):
        if isinstance(one, Definition) and one.name == name and one in _tree(module).body:
            return one
        if isinstance(one, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in one.names):
            return None if f"{one.module}.{name}" in MODULES else _find(str(one.module), name)
    return None


def _members(found: ast.ClassDef) -> Iterator[str]:
    """Fields with the text below them, and methods."""
    for one, after in zip(found.body, [*found.body[1:], None], strict=True):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id[0] != "_":
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield f"- `{ast.unparse(one)}`{_after(str(said))}"
        elif isinstance(one, Function) and one.name[0] != "_":
            yield f"- `{_signature(one)}`{_after(ast.get_docstring(one) or '')}"


def _signature(found: Function) -> str:
    """As a caller sees it: without self, and a property without brackets."""
    decorators = {ast.unparse(one) for one in found.decorator_list}
    returns = f" -> {ast.unparse(found.returns)}" if found.returns else ""
    if "property" in decorators:
        return f"{found.name}{returns}"
    text = re.sub(r"^(self|cls)(, )?", "", ast.unparse(found.args))
    return f"{'async ' if isinstance(found, ast.AsyncFunctionDef) else ''}{found.name}({text}){returns}"


def _after(text: str) -> str:
    line = " ".join(text.split())
    return f": {line}" if line else ""


def _prose(found: ast.Module | Definition) -> str:
    """A docstring as Markdown, in which what is indented is code, too."""
    text = re.sub(r"::$", ":", ast.get_docstring(found) or "", flags=re.MULTILINE)
    return text.replace("``", "`") + "\n"


if __name__ == "__main__":
    PAGE.write_text(render_page())
