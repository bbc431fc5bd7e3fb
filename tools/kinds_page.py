"""Writes `docs/kinds.md`: every kind that is served, and what storing an object of it brings about.

    python -m tools.kinds_page

A test checks that the page is current.
"""

from __future__ import annotations

from pathlib import Path

from dray.api.effects import Effect, effect_of
from dray.api.idle_fields import IDLE_FIELDS, OF_THE_NODE
from dray.api.registry import Kind, kinds

PAGE = Path(__file__).parent.parent / "docs" / "kinds.md"
OF_TEMPLATES = ("spec.template.", "spec.jobTemplate.", "spec.volumeClaimTemplates[].")
"""Below these, kinds have what pods, jobs and claims have."""
INTRODUCTION = """\
# Kinds

Every kind that the API server serves, and what comes of an object that is stored.
Made by `make generate` from `dray.api.effects` and `dray.api.idle_fields`; do not edit.

- **acts**: the server, the scheduler or a controller does something with it.
- **data**: others read it; nothing else was meant to happen.
- **does nothing**: it is stored, validated and watched as in Kubernetes, and the answer to whoever writes it carries a
  `Warning` that says so.
"""
FIELDS = """\
## Fields that do nothing

Of kinds that act. They are stored and validated, and whoever writes one, in templates of workloads too, gets a
`Warning`; drivers, who write ResourceSlices, are answered as by Kubernetes, without one.
"""
NODES = """\
## Fields for the node

What the server, the scheduler and the controllers only judge: whoever runs the pod acts on them. A kubelet does; what
`dray node` does is in [node.md](node.md); simulated pods do none of it.
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
    lines += [FIELDS, "| Kind | Field | Why |", "|---|---|---|"]
    lines += [
        f"| {kind.kind} | `{path}` | {why} |"
        for kind in kinds()
        for path, why in IDLE_FIELDS.get(kind.resource, {}).items()
        if not path.startswith(OF_TEMPLATES)
    ]
    lines += ["", NODES, "| In | Fields |", "|---|---|"]
    lines += [
        f"| {name} | {', '.join(f'`{field}`' for field in sorted(fields))} |" for name, fields in OF_THE_NODE.items()
    ]
    return "\n".join([*lines, ""])


def _row(kind: Kind) -> str:
    return f"| {kind.kind} | {kind.group or 'core'} | {', '.join(kind.versions)} | {effect_of(kind).text} |"


if __name__ == "__main__":
    PAGE.write_text(render_page())
