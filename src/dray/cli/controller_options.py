"""The options of commands that run controllers: evictions, node health, and a file for what does not fit on a line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer

from dray.cli import output
from dray.files import home

if TYPE_CHECKING:
    from dray.controllers import ControllerSettings

PANEL = "Evictions and node health"
GUARD = "50,10%,node,spare"
"""What may leave unless something else is said: a device or a node of a cluster of any size, not a fleet."""
NO_GUARD = "none"

ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--controllers-config", help="A ControllersConfiguration; options win.", rich_help_panel=PANEL),
]
EvictionPolicy: TypeAlias = Annotated[
    str,
    typer.Option(
        "--eviction-policy",
        metavar="NAME[=OPTION:VALUE,...]",
        help="Who decides how pods leave: delete (default), pdb, checkpoint, a plugin or a webhook.",
        rich_help_panel=PANEL,
    ),
]
MaxEvictions: TypeAlias = Annotated[
    str,
    typer.Option(
        "--max-evictions",
        metavar="N|P%|none",
        help=f"What would evict more, over all taints together, is held until confirmed; {GUARD} unless given.",
        rich_help_panel=PANEL,
    ),
]
MonitorPeriod: TypeAlias = Annotated[
    str, typer.Option("--node-monitor-period", help="How often nodes are looked at (5s).", rich_help_panel=PANEL)
]
GracePeriod: TypeAlias = Annotated[
    str,
    typer.Option(
        "--node-monitor-grace-period",
        help="How long a node may be silent before it is unreachable (50s).",
        rich_help_panel=PANEL,
    ),
]
StartupGracePeriod: TypeAlias = Annotated[
    str,
    typer.Option(
        "--node-startup-grace-period", help="The same for a node that never reported (60s).", rich_help_panel=PANEL
    ),
]
EvictionRate: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--node-eviction-rate", help="Nodes per second that get NoExecute taints, by zone (0.1).", rich_help_panel=PANEL
    ),
]
SecondaryRate: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--secondary-node-eviction-rate",
        help="The same in a large zone that is unhealthy (0.01).",
        rich_help_panel=PANEL,
    ),
]
LargeCluster: TypeAlias = Annotated[
    int | None,
    typer.Option("--large-cluster-size-threshold", help="A zone with more nodes is large (50).", rich_help_panel=PANEL),
]
UnhealthyZone: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--unhealthy-zone-threshold",
        help="Share of its nodes from which a zone is unhealthy (0.55).",
        rich_help_panel=PANEL,
    ),
]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the options say; empty or None where they say nothing."""

    config: Path | None = None
    feature_gates: str = ""
    eviction_policy: str = ""
    max_evictions: str = ""
    monitor_period: str = ""
    grace_period: str = ""
    startup_grace_period: str = ""
    eviction_rate: float | None = None
    secondary_rate: float | None = None
    large_cluster: int | None = None
    unhealthy_zone: float | None = None


def read_settings(given: Given) -> ControllerSettings:
    """The settings of the file, with what options say instead. Ends with exit code 2 if they cannot be."""
    from dray.controllers.eviction import check_settings
    from dray.eviction.settings import SettingsError
    from dray.process import switches

    try:
        settings = _settings(given)
        check_settings(settings.eviction)
    except (SettingsError, switches.SwitchError) as error:
        output.fail(str(error))
    return settings


def _settings(given: Given) -> ControllerSettings:
    """Raises SettingsError or SwitchError."""
    from dray.controllers import ControllerSettings
    from dray.controllers.configuration import node_lifecycle_settings, parse_configuration
    from dray.eviction.settings import Limit, PolicyChoice
    from dray.process import switches

    base = (
        ControllerSettings()
        if given.config is None
        else parse_configuration(_contents(given.config), str(given.config))
    )
    eviction = base.eviction
    if given.eviction_policy:
        eviction = msgspec.structs.replace(eviction, policy=PolicyChoice.parse(given.eviction_policy))
    if given.max_evictions == NO_GUARD:
        eviction = msgspec.structs.replace(eviction, max_evictions=None)
    elif given.max_evictions or eviction.max_evictions is None:
        limit = Limit.parse(given.max_evictions or GUARD)
        eviction = msgspec.structs.replace(eviction, max_evictions=limit)
    node_lifecycle = node_lifecycle_settings(
        base.node_lifecycle,
        monitor_period=given.monitor_period,
        grace_period=given.grace_period,
        startup_grace_period=given.startup_grace_period,
        taint_rate=given.eviction_rate,
        secondary_taint_rate=given.secondary_rate,
        large_zone=given.large_cluster,
        unhealthy_share=given.unhealthy_zone,
    )
    gates = switches.disabled_gates(given.feature_gates)
    return msgspec.structs.replace(base, disabled_gates=gates, node_lifecycle=node_lifecycle, eviction=eviction)


def _contents(path: Path) -> bytes:
    try:
        return home.expand(path).read_bytes()
    except OSError as error:
        output.fail(f"--controllers-config: {path} cannot be read: {(error.strerror or str(error)).lower()}")
