"""`dray install` and `dray uninstall`: dray's components on a Kubernetes cluster, as manifests or as a chart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dray.cli import output

if TYPE_CHECKING:
    from dray.install.values import Value

Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Something else than the default; may be repeated."),
]


def install(
    settings: Settings = None,
    chart: Annotated[
        Path | None, typer.Option("--chart", metavar="DIR", help="Write a Helm chart there instead of manifests.")
    ] = None,
    values: Annotated[bool, typer.Option("--values", help="Show what can be set, with the defaults.")] = False,
) -> None:
    """Print what runs dray on a Kubernetes cluster, for `dray install | kubectl apply -f -`.

    A namespace, rights, the scheduler and the controllers with leases, budgets, metrics and a network policy, the
    dashboard, and the kinds that Kubernetes does not have. docs/clusters.md says what works
    where; `dray doctor` looks at a cluster.

    Exit code 0: printed; 2: something that was set is not known, or the folder cannot be written.
    """
    from dray.install import chart_files, manifests

    if values:
        _print_values()
        return
    wanted = _read(settings)
    if chart is None:
        _print(manifests(wanted))
        return
    if settings:
        output.fail("--set belongs to manifests; a chart gets its values from helm (--set, -f).")
    for name, text in chart_files().items():
        path = chart / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        except OSError as error:
            output.fail(f"--chart: {path} cannot be written: {(error.strerror or str(error)).lower()}")
    print(f"Chart written. Install it with: helm install dray {chart}")


def uninstall(
    settings: Settings = None,
    kinds: Annotated[
        bool,
        typer.Option("--kinds", help="Also the definitions of kinds, and with them every patch and rule of dray.dev."),
    ] = False,
) -> None:
    """Print what `dray install` with the same --set made, for `dray uninstall | kubectl delete -f -`.

    Exit code 0: printed; 2: something that was set is not known.
    """
    from dray.install import manifests

    _print(list(reversed(manifests(_read(settings), definitions=kinds))))


def _read(settings: list[str] | None) -> dict[str, Value]:
    from dray.install import ValuesError, read_values

    try:
        return read_values(settings or ())
    except ValuesError as error:
        output.fail(f"--set: {error}.")


def _print(objects: list[dict[str, Any]]) -> None:
    import yaml

    print(yaml.safe_dump_all(objects, sort_keys=False, width=120), end="")


def _print_values() -> None:
    from dray.cli import tables
    from dray.install.values import DEFAULTS, MEANINGS

    rows = [
        (name, str(value).lower() if isinstance(value, bool) else str(value), MEANINGS[name])
        for name, value in DEFAULTS.items()
    ]
    tables.print_table(("NAME", "DEFAULT", "WHAT IT IS"), rows)
