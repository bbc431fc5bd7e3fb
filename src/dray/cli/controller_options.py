"""The options of commands that run controllers: evictions, node health, and a file for what does not fit on a line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from dray.cli import output
from dray.cli.option_groups import OptionGroup
from dray.files import home

if TYPE_CHECKING:
    from dray.controllers import ControllerSettings

PANEL = "Evictions and node health"
GUARD = "50,10%,node,spare"
"""What may leave unless something else is said: a device or a node of a cluster of any size, not a fleet."""
NO_GUARD = "none"


class EvictionOptions(OptionGroup, frozen=True):
    """What most people want to say of controllers."""

    config: Annotated[
        Path | None,
        typer.Option("--controllers-config", help="A ControllersConfiguration; options win.", rich_help_panel=PANEL),
    ] = None
    eviction_policy: Annotated[
        str,
        typer.Option(
            metavar="NAME[=OPTION:VALUE,...]",
            help="Who decides how pods leave: delete (default), pdb, checkpoint, a plugin or a webhook.",
            rich_help_panel=PANEL,
        ),
    ] = ""
    max_evictions: Annotated[
        str,
        typer.Option(
            metavar="N|P%|none",
            help=f"What would evict more, over all taints together, is held until confirmed; {GUARD} unless given.",
            rich_help_panel=PANEL,
        ),
    ] = ""
    grace_period: Annotated[
        str,
        typer.Option(
            "--node-monitor-grace-period",
            help="How long a node may be silent before it is unreachable (50s).",
            rich_help_panel=PANEL,
        ),
    ] = ""

    def settings(self, feature_gates: str) -> ControllerSettings:
        """The settings of the file, with what options say instead. Ends with exit code 2 if they cannot be."""
        from dray.controllers.eviction import check_settings
        from dray.eviction.settings import SettingsError
        from dray.process import switches

        try:
            settings = replace(self._settings(), disabled_gates=switches.disabled_gates(feature_gates))
            check_settings(settings.eviction)
        except (SettingsError, switches.SwitchError) as error:
            output.fail(str(error))
        return settings

    def node_lifecycle(self) -> dict[str, Any]:
        """What is said of when a node counts as gone."""
        return {"grace_period": self.grace_period}

    def _settings(self) -> ControllerSettings:
        """Raises SettingsError."""
        from dray.controllers import ControllerSettings
        from dray.controllers.configuration import node_lifecycle_settings, parse_configuration
        from dray.eviction.settings import Limit, PolicyChoice

        path = self.config
        base = ControllerSettings() if path is None else parse_configuration(_contents(path), str(path))
        eviction = base.eviction
        if self.eviction_policy:
            eviction = replace(eviction, policy=PolicyChoice.parse(self.eviction_policy))
        if self.max_evictions == NO_GUARD:
            eviction = replace(eviction, max_evictions=None)
        elif self.max_evictions or eviction.max_evictions is None:
            eviction = replace(eviction, max_evictions=Limit.parse(self.max_evictions or GUARD))
        node_lifecycle = node_lifecycle_settings(base.node_lifecycle, **self.node_lifecycle())
        return replace(base, node_lifecycle=node_lifecycle, eviction=eviction)


class ControllerOptions(EvictionOptions, frozen=True):
    """All that is to be said of controllers on a line."""

    monitor_period: Annotated[
        str, typer.Option("--node-monitor-period", help="How often nodes are looked at (5s).", rich_help_panel=PANEL)
    ] = ""
    startup_grace_period: Annotated[
        str,
        typer.Option(
            "--node-startup-grace-period", help="The same for a node that never reported (60s).", rich_help_panel=PANEL
        ),
    ] = ""
    eviction_rate: Annotated[
        float | None,
        typer.Option(
            "--node-eviction-rate",
            help="Nodes per second that get NoExecute taints, by zone (0.1).",
            rich_help_panel=PANEL,
        ),
    ] = None
    secondary_rate: Annotated[
        float | None,
        typer.Option(
            "--secondary-node-eviction-rate",
            help="The same in a large zone that is unhealthy (0.01).",
            rich_help_panel=PANEL,
        ),
    ] = None
    large_cluster: Annotated[
        int | None,
        typer.Option(
            "--large-cluster-size-threshold", help="A zone with more nodes is large (50).", rich_help_panel=PANEL
        ),
    ] = None
    unhealthy_zone: Annotated[
        float | None,
        typer.Option(
            "--unhealthy-zone-threshold",
            help="Share of its nodes from which a zone is unhealthy (0.55).",
            rich_help_panel=PANEL,
        ),
    ] = None

    def node_lifecycle(self) -> dict[str, Any]:
        """What is said of when a node counts as gone, and of zones."""
        return {
            **super().node_lifecycle(),
            "monitor_period": self.monitor_period,
            "startup_grace_period": self.startup_grace_period,
            "taint_rate": self.eviction_rate,
            "secondary_taint_rate": self.secondary_rate,
            "large_zone": self.large_cluster,
            "unhealthy_share": self.unhealthy_zone,
        }


def _contents(path: Path) -> bytes:
    try:
        return home.expand(path).read_bytes()
    except OSError as error:
        output.fail(f"--controllers-config: {path} cannot be read: {(error.strerror or str(error)).lower()}")
