"""Which running cluster a command is about, and the way to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dray.cli import completion, output
from dray.cli.option_groups import OptionGroup
from dray.prose.wording import names

if TYPE_CHECKING:
    from dray.client.kubeconfig import Connection


class RunningCluster(OptionGroup, frozen=True):
    """As the options say it; the one that `dray up` runs here if nothing else is there."""

    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="The cluster; by default $KUBECONFIG, ~/.kube/config, that of the pod, or the one that dray up runs "
            "here.",
        ),
    ] = None
    context: Annotated[
        str, typer.Option(help="Which context of the kubeconfig.", autocompletion=completion.contexts)
    ] = ""

    @property
    def is_named(self) -> bool:
        """Whether anything is said."""
        return self.kubeconfig is not None or bool(self.context)

    def connect(self) -> Connection:
        """The way to the cluster. Ends with exit code 2 if there is none."""
        from dray.cli import clusters
        from dray.client.kubeconfig import KubeconfigError, NothingGiven, find_connection, load_kubeconfig

        try:
            try:
                return find_connection(self.kubeconfig, self.context)
            except NothingGiven as error:
                here = clusters.find_default()
                if here is None:
                    output.fail(f"{error}{_tell_way_to_one()}")
                return load_kubeconfig([here.kubeconfig])
        except KubeconfigError as error:
            output.fail(str(error))

    def words(self) -> list[str]:
        """What leads another command to it."""
        return [
            *(["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig is not None else []),
            *(["--context", self.context] if self.context else []),
        ]

    def check_alone(self, files: object) -> None:
        """Ends with exit code 2 if files are given, too."""
        if files and self.is_named:
            output.fail("-f is a cluster in files, --kubeconfig and --context a running one: give one of them.")


def _tell_way_to_one() -> str:
    """To clusters that run here under other names: nobody is led to one of them unasked."""
    from dray.cli import clusters

    running = [one for one in clusters.find_all() if one.pid]
    if not running:
        return ", or start one with: dray up --detach"
    runs = f"{names([one.label for one in running])} {'runs' if len(running) == 1 else 'run'} here (dray ls)"
    return f". {runs}: export KUBECONFIG={output.short_path(running[0].kubeconfig)}"
