"""The environment of a container: values, references to the pod, to ConfigMaps and Secrets, and `$(NAME)` in them."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from typing import Final

from dray.api.generated.core import ConfigMap, Container, EnvVar, EnvVarSource, Pod, Secret
from dray.api.kinds import CONFIG_MAPS, SECRETS
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

    def take(self, text: str) -> None:
        """Uses some of it up. Raises StartFailed if there is not that much."""
        self._left -= len(text) + 1
        if self._left < 0:
            raise StartFailed(CONFIG_ERROR, f"command and args, or env and envFrom, come to more than {MOST} letters")


class Environments:
    """Resolves the environment of containers. Each ConfigMap and Secret is read when it is needed."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def of(self, pod: Pod, container: Container) -> dict[str, str]:
        """All variables. Raises StartFailed for what cannot be resolved, ApiError or OSError without the server."""
        room = Room()
        values = {"PATH": os.environ.get("PATH", os.defpath), "HOSTNAME": pod.spec.hostname or pod.metadata.name}
        for source in container.env_from:
            if source.config_map_ref is not None:
                reference = source.config_map_ref
                data = await self._config_map(pod, reference.name, bool(reference.optional))
            elif source.secret_ref is not None:
                data = await self._secret(pod, source.secret_ref.name, bool(source.secret_ref.optional))
            else:
                continue
            for name, value in data.items():
                room.take(value)
                values[f"{source.prefix}{name}"] = value
        for variable in container.env:
            found = await self._value(pod, variable, values, room)
            if found is not None:
                values[variable.name] = found
        return values

    async def _value(self, pod: Pod, variable: EnvVar, values: Mapping[str, str], room: Room) -> str | None:
        """A variable's value; None for an optional one that is not there."""
        source = variable.value_from
        if source is None:
            return room.expand(variable.value, values)
        if source.field_ref is not None:
            found: str | None = field_value(pod, source.field_ref.field_path)
        else:
            found = await self._keyed(pod, variable.name, source)
        room.take(found or "")
        return found

    async def _keyed(self, pod: Pod, name: str, source: EnvVarSource) -> str | None:
        if source.config_map_key_ref is not None:
            key, optional = source.config_map_key_ref.key, bool(source.config_map_key_ref.optional)
            data = await self._config_map(pod, source.config_map_key_ref.name, optional)
        elif source.secret_key_ref is not None:
            key, optional = source.secret_key_ref.key, bool(source.secret_key_ref.optional)
            data = await self._secret(pod, source.secret_key_ref.name, optional)
        else:
            raise StartFailed(CONFIG_ERROR, f"variable {name}: the kind of its valueFrom is not supported")
        if key not in data and not optional:
            raise StartFailed(CONFIG_ERROR, f"variable {name}: there is no key {key}")
        return data.get(key)

    async def _config_map(self, pod: Pod, name: str, optional: bool) -> dict[str, str]:
        try:
            found = await self._client.get(CONFIG_MAPS, pod.metadata.namespace, name)
        except ApiError as error:
            return _missing(error, f"ConfigMap {name}", optional)
        assert isinstance(found, ConfigMap)
        return found.data

    async def _secret(self, pod: Pod, name: str, optional: bool) -> dict[str, str]:
        try:
            found = await self._client.get(SECRETS, pod.metadata.namespace, name)
        except ApiError as error:
            return _missing(error, f"Secret {name}", optional)
        assert isinstance(found, Secret)
        try:
            return {key: base64.b64decode(value).decode() for key, value in found.data.items()}
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


def _missing(error: ApiError, what: str, optional: bool) -> dict[str, str]:
    if error.code == 404 and optional:
        return {}
    if error.code in (403, 404):
        raise StartFailed(CONFIG_ERROR, f"{what}: {error}") from None
    raise error
