"""The environment of a container: values, references to the pod, to ConfigMaps and Secrets, and `$(NAME)` in them."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from dray.api.generated.core import ConfigMap, Container, EnvVar, EnvVarSource, Pod, Secret
from dray.api.kinds import CONFIG_MAPS, SECRETS
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.client import Client
from dray.node.runtime.interface import CONFIG_ERROR, StartFailed

MOST: Final = 2 * 1024 * 1024

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]+)\))")
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class Room:
    """How much may still be said to a program when it is started, in words and variables: what the kernel takes.

    Variables can refer to others, twice as long each time: what comes of them is counted before it is made.
    """

    def __init__(self, letters: int = MOST) -> None:
        self._left = letters

    def expand(self, text: str, values: Mapping[str, str]) -> str:
        """`$(NAME)` replaced by the value of a variable, `$$` by a dollar; a name that nobody knows stays as it is.

        Raises StartFailed if there is no room for what comes of it.
        """
        self.take(text)

        def value(found: re.Match[str]) -> str:
            if found[1] == "$":
                return "$"
            known = values.get(found[2], found[0])
            self.take(known)
            return known

        return _REFERENCE.sub(value, text)

    def take(self, *texts: str) -> None:
        """Uses some of it up. Raises StartFailed if there is not that much."""
        self._left -= sum(map(len, texts)) + 1
        if self._left < 0:
            raise StartFailed(CONFIG_ERROR, f"command and args, or env and envFrom, come to more than {MOST} letters")


def host_name(pod: Pod) -> str:
    """What a pod is called on the inside."""
    return pod.spec.hostname_override or pod.spec.hostname or pod.metadata.name


class Environments:
    """Resolves the environment of containers. ConfigMaps and Secrets are read when they are needed, each one once."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, pod: Pod, container: Container) -> dict[str, str]:
        """All variables. Raises StartFailed for what cannot be resolved, ApiError or OSError without the server."""
        room, sources = Room(), _Sources(self._client, pod.metadata.namespace, container)
        values = {"PATH": os.environ.get("PATH", os.defpath), "HOSTNAME": host_name(pod)}
        for source in container.env_from:
            reference = source.config_map_ref or source.secret_ref
            if reference is None:
                continue
            kind = CONFIG_MAPS if source.config_map_ref is not None else SECRETS
            for name, value in (await sources.read(kind, reference.name, bool(reference.optional))).items():
                room.take(source.prefix, name, value)
                values[f"{source.prefix}{name}"] = value
        for variable in container.env:
            found = await self._value(pod, variable, values, room, sources)
            if found is not None:
                room.take(variable.name)
                values[variable.name] = found
        return values

    async def _value(
        self, pod: Pod, variable: EnvVar, values: Mapping[str, str], room: Room, sources: _Sources
    ) -> str | None:
        """A variable's value; None for an optional one that is not there."""
        source = variable.value_from
        if source is None:
            return room.expand(variable.value, values)
        if source.field_ref is not None:
            found: str | None = field_value(pod, source.field_ref.field_path)
        elif (asked := _keyed(source)) is not None:
            found = await sources.value(variable.name, *asked)
        else:
            raise StartFailed(CONFIG_ERROR, f"variable {variable.name}: the kind of its valueFrom is not supported")
        room.take(found or "")
        return found


class _Sources:
    """The ConfigMaps and Secrets of a container: read once for all its variables, and only what these name is kept."""

    def __init__(self, client: Client, namespace: str, container: Container) -> None:
        self._client = client
        self._namespace = namespace
        self._room = Room()
        self._named: dict[tuple[Kind, str], set[str]] = {}
        self._kept: dict[tuple[Kind, str], dict[str, str] | ApiError] = {}
        for variable in container.env:
            asked = _keyed(variable.value_from) if variable.value_from is not None else None
            if asked is not None:
                self._named.setdefault((asked.kind, asked.name), set()).add(asked.key)

    async def value(self, variable: str, kind: Kind, name: str, key: str, optional: bool) -> str | None:
        """What a variable asks for; None if that is optional and not there. Raises StartFailed, ApiError or OSError."""
        if (kind, name) not in self._kept:
            try:
                kept = _texts(name, await self._find(kind, name), self._named[kind, name])
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                self._kept[kind, name] = error
            else:
                self._room.take(*kept.values())
                self._kept[kind, name] = kept
        known = self._kept[kind, name]
        data = _missing(known, kind, name, optional) if isinstance(known, ApiError) else known
        if key not in data and not optional:
            raise StartFailed(CONFIG_ERROR, f"variable {variable}: there is no key {key}")
        return data.get(key)

    async def read(self, kind: Kind, name: str, optional: bool) -> dict[str, str]:
        """All that is in one. Raises StartFailed, ApiError or OSError."""
        try:
            return _texts(name, await self._find(kind, name), None)
        except ApiError as error:
            return _missing(error, kind, name, optional)

    async def _find(self, kind: Kind, name: str) -> ConfigMap | Secret:
        found = await self._client.get(kind, self._namespace, name)
        assert isinstance(found, ConfigMap | Secret)
        return found


class _Asked(NamedTuple):
    kind: Kind
    name: str
    key: str
    optional: bool


def _keyed(source: EnvVarSource) -> _Asked | None:
    """The key of a ConfigMap or Secret that a variable asks for, if it does."""
    for kind, asked in ((CONFIG_MAPS, source.config_map_key_ref), (SECRETS, source.secret_key_ref)):
        if asked is not None:
            return _Asked(kind, asked.name, asked.key, bool(asked.optional))
    return None


def _texts(name: str, source: ConfigMap | Secret, keys: Collection[str] | None) -> dict[str, str]:
    """What some keys have, or all, as text. Raises StartFailed for what is none."""
    data = {key: value for key, value in source.data.items() if keys is None or key in keys}
    if isinstance(source, ConfigMap):
        return data
    try:
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    except (binascii.Error, UnicodeDecodeError) as error:
        raise StartFailed(CONFIG_ERROR, f"Secret {name}: {error}") from None


def field_value(pod: Pod, path: str) -> str:
    """A field of the pod as the downward API gives it. Raises StartFailed for one that it does not have."""
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        table = pod.metadata.labels if keyed[1] == "labels" else pod.metadata.annotations
        return table.get(keyed[2], "")
    simple = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": pod.status.host_ip,
        "status.podIP": pod.status.pod_ip or pod.status.host_ip,
    }
    if path not in simple:
        raise StartFailed(CONFIG_ERROR, f"fieldRef {path} is not supported")
    return simple[path]


def _missing(error: ApiError, kind: Kind, name: str, optional: bool) -> dict[str, str]:
    if error.code == 404 and optional:
        return {}
    if error.code in (403, 404):
        raise StartFailed(CONFIG_ERROR, f"{kind.kind} {name}: {error}") from None
    raise error
