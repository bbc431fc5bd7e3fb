"""Writes `docs/kinds.md`: every kind that is served, and what storing an object of it brings about.

    python -m tools.kinds_page

A test checks that the page is current.
"""

from __future__ import annotations

from pathlib import Path

from dray.api.effects import Effect, effect_of
from dray.api.registry import Kind, kinds

PAGE = Path(__file__).parent.parent / "docs" / "kinds.md"
INTRODUCTION = """\
# Kinds

Every kind that the API server serves, and what comes of an object that is stored.
Made by `make generate` from `dray.api.effects`; do not edit.

- **acts**: the server, the scheduler or a controller does something with it.
- **data**: others read it; nothing else was meant to happen.
- **does nothing**: it is stored, validated and watched as in Kubernetes, and the answer to whoever writes it carries a
  `Warning` that says so.
"""


def render_page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for effect in Effect:
        lines += [
            f"## {effect.value.capitalize()}",
            "",
            "| Kind | Group | Versions | What comes of it |",
            "|---|---|---|---|",
        ]
        lines += [_row(kind) for kind in kinds() if effect_of(kind).effect is effect]
        lines.append("")
    return "\n".join(lines)


def _row(kind: Kind) -> str:
    return f"| {kind.kind} | {kind.group or 'core'} | {', '.join(kind.versions)} | {effect_of(kind).text} |"


if __name__ == "__main__":
    PAGE.write_text(render_page())
