"""What is to be different in a replay: objects besides or instead of the recorded ones, evictions, nodes to add."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from dray.api import kinds
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.controllers import ControllerSettings
from dray.controllers.configuration import KIND as CONFIGURATION
from dray.controllers.configuration import read_configuration
from dray.controllers.eviction import check_settings
from dray.eviction.settings import PolicyChoice, SettingsError
from dray.process.clock import as_time
from dray.recording import RECORDED
from dray.replay.history import History
from dray.scale_up import NodeGroup, NodeGroupError, load_groups
from dray.scale_up.node_group_files import is_group
from dray.snapshot import InputError, from_objects
from dray.snapshot.files import Item, read
from dray.snapshot.objects import load_items

_OBJECTS: Final = frozenset(RECORDED) - {kinds.PODS, kinds.CLAIMS}
"""Work is what the history has; everything else may be another."""


_POLICY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(=|$)")
"""What looks like the name of a policy, with or without options, if no file is called so."""


class ChangeError(ValueError):
    """Something that a replay cannot be given; the message names the file and what to do."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is different unless said."""

    objects: tuple[Object, ...] = ()
    """There from the start to the end, instead of what the history has at their places."""
    settings: ControllerSettings = ControllerSettings()
    groups: tuple[NodeGroup, ...] = ()
    """Nodes of these are added when pods wait."""


def load_changes(given: Sequence[str], history: History) -> Changes:
    """What files, directories and names of eviction policies ask for. Raises ChangeError."""
    policies = [one for one in given if _POLICY.match(one) and not Path(one).exists()]
    files = [one for one in given if one not in policies]
    try:
        items = list(read(files))
        groups = load_groups(items, from_objects(history.first))
        return Changes(
            objects=_objects([item for item in items if not is_group(item) and not _is_configuration(item)], history),
            settings=_settings([item for item in items if _is_configuration(item)], policies),
            groups=groups,
        )
    except (InputError, NodeGroupError) as error:
        raise ChangeError(f"{error}.".replace("..", ".")) from None


def _is_configuration(item: Item) -> bool:
    return isinstance(item.value, dict) and item.value.get("kind") == CONFIGURATION


def _objects(items: Sequence[Item], history: History) -> tuple[Object, ...]:
    loaded = load_items(items, as_time(history.start))
    if loaded.ignored:
        raise ChangeError(f"{loaded.ignored[0].why}.")
    for obj in loaded.objects.values():
        if by_kind(obj.api_version, obj.kind) not in _OBJECTS:
            allowed = ", ".join(sorted(kind.kind for kind in _OBJECTS))
            raise ChangeError(f"--with: a {obj.kind} ({obj.metadata.name}) cannot be given; there is {allowed}.")
    return tuple(loaded.objects.values())


def _settings(configurations: Sequence[Item], policies: Sequence[str]) -> ControllerSettings:
    if len(configurations) + len(policies) > 1:
        raise ChangeError("--with: give one eviction policy, by its name or in one ControllersConfiguration.")
    try:
        settings = ControllerSettings()
        for item in configurations:
            settings = read_configuration(item.value)
        for text in policies:
            eviction = msgspec.structs.replace(settings.eviction, policy=PolicyChoice.parse(text))
            settings = msgspec.structs.replace(settings, eviction=eviction)
        check_settings(settings.eviction)
    except SettingsError as error:
        where = configurations[0].source if configurations else "--with"
        raise ChangeError(f"{where}: {error}. Give a file, or the name of an eviction policy.") from None
    if settings.eviction.webhooks:
        raise ChangeError("--with: a replay asks no webhooks. Give a policy of dray's own.")
    return settings
