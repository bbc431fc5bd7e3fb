"""Names of objects as people type them: `ml/train`, `train` with -n, `pod/train`, `resourceclaim/ml/train`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Annotated, Any, Final, TypeAlias

import typer
from typer.core import TyperGroup

from dray.cli import completion, output

KINDS: Final = {
    "claim": ("claim", "claims", "resourceclaim", "resourceclaims", "resourceclaim.resource.k8s.io"),
    "pod": ("pod", "pods", "po"),
    "podgroup": ("podgroup", "podgroups", "podgroup.scheduling.k8s.io"),
    "placement": ("placement", "placements", "placement.cluster.open-cluster-management.io"),
    "node": ("node", "nodes", "no"),
    "rule": ("rule", "rules", "devicetaintrule", "devicetaintrules", "devicetaintrule.resource.k8s.io"),
    "slice": ("slice", "slices", "resourceslice", "resourceslices", "resourceslice.resource.k8s.io"),
}
"""By command or kind, what objects may be called in front of a name."""
DEFAULT_NAMESPACE: Final = "default"

Namespace: TypeAlias = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Of a NAME without one; default if not given.",
        autocompletion=completion.namespaces,
    ),
]

OnlyNamespace: TypeAlias = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Only what is in this namespace.",
        autocompletion=completion.namespaces,
    ),
]
AllNamespaces: TypeAlias = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="What is in any namespace, as without -n.")
]
AlwaysAll: TypeAlias = Annotated[bool, typer.Option("--all-namespaces", "-A", hidden=True)]
"""Of commands that look at all namespaces anyway: who is used to kubectl says so."""


def one_of(namespace: str, *, all_namespaces: bool) -> str:
    """The namespace to look at, empty for all. Ends with exit code 2 for one and all."""
    if namespace and all_namespaces:
        output.fail(f"-A is all namespaces, and -n says {namespace}: give one of them.")
    return namespace


def read(text: str, namespace: str, kind: str) -> str:
    """`namespace/name` of an object of a kind. Ends with exit code 2 for what names none, or two namespaces."""
    parts = text.split("/")
    if len(parts) > 1 and parts[0].lower() in KINDS[kind]:
        parts = parts[1:]
    if not 1 <= len(parts) <= 2 or not all(parts):
        output.fail(f"{text!r} names no {kind}. Write NAMESPACE/NAME, or NAME with -n NAMESPACE.")
    if len(parts) == 1:
        return f"{namespace or DEFAULT_NAMESPACE}/{parts[0]}"
    if namespace and namespace != parts[0]:
        output.fail(f"{text!r} is in namespace {parts[0]}, and -n says {namespace}: give one of them.")
    return "/".join(parts)


def node_name(text: str) -> str:
    """`node-1` of `node/node-1`, as `-o name` prints nodes; a name as it is."""
    return _bare(text, "node")


def rule_name(text: str) -> str:
    """`fw-old` of `rule/fw-old`, as `dray confirm` lists rules; a name as it is."""
    return _bare(text, "rule")


def _bare(text: str, kind: str) -> str:
    word, slash, name = text.partition("/")
    return name if slash and word.lower() in KINDS[kind] else text


def node_option(text: str) -> Any:
    """The option --node, with what it means as its help."""
    return typer.Option("--node", help=text, callback=_read_node, autocompletion=completion.nodes)


def _read_node(given: str | None) -> str | None:
    return None if given is None else node_name(given)


def placed(text: str, namespace: str) -> str:
    """`kind/name` as `kind/namespace/name`, if a namespace is given. Ends with exit code 2 for two namespaces."""
    kind, _, name = text.partition("/")
    if not namespace or not name:
        return text
    there, slash, short = name.partition("/")
    if slash and there != namespace:
        output.fail(f"{text!r} is in namespace {there}, and -n says {namespace}: give one of them.")
    return f"{kind}/{namespace}/{short if slash else name}"


def pair(words: Iterable[str], kinds: Container[str]) -> Iterator[str]:
    """`rule fw-old` as `rule/fw-old`: a kind and a name may be two words; what has a slash is one already."""
    waiting = ""
    for word in words:
        if waiting:
            yield f"{waiting}/{word}"
            waiting = ""
        elif word.lower() in kinds:
            waiting = word
        else:
            yield word
    if waiting:
        yield waiting


class ByKind(TyperGroup):
    """Commands that are called by a kind, also where it is in front of the name: `explain pod/train`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command for `pod`, `pods` or `pod/train`."""
        word, slash, rest = args[0].partition("/")
        for command, words in KINDS.items():
            if word.lower() in words and command in self.commands and (slash or word not in self.commands):
                args = [command, *([args[0]] if slash and rest else []), *args[1:]]
                break
        if args[0] not in self.commands and not args[0].startswith("-"):
            there = ", ".join(self.commands)
            output.fail(f"{ctx.command_path}: {args[0]!r} is none of {there}. Give one of them, then what is meant.")
        return super().resolve_command(ctx, args)
